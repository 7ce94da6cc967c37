"""Read the values of spreadsheet cells. Spreadsheet programs may store whole numbers as floats, and dates as numbers or
as text.
"""

import re
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final, TypeAlias

from app.contexts.agendamentos.documento.documento import cpf_valido
from app.contexts.agendamentos.planilha.linhas import LONGEST_TEXT
from app.contexts.agendamentos.texto import diz_nada, limpo, plano

Celula: TypeAlias = str | float | int | bool | datetime | date | time | timedelta | None

EPOCH, EPOCH_1904 = date(1899, 12, 30), date(1904, 1, 1)
FIRST_YEAR, LAST_YEAR = 1900, 2100
# Characters that begin a formula in spreadsheet programs, half-width and full-width.
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠")
FIRST_WITH_HOUR: Final = 1000  # a smaller number is never a day with a time
DDDS: Final = frozenset(
    f"{first}{second}"
    for first, seconds in {
        1: "123456789", 2: "12478", 3: "1234578", 4: "123456789", 5: "1345", 6: "123456789", 7: "134579", 8: "123456789",
        9: "123456789",
    }.items()
    for second in seconds
)  # fmt: skip
_MONTHS: Final = {
    word: number
    for number, name in enumerate(
        [
            "janeiro",
            "fevereiro",
            "marco",
            "abril",
            "maio",
            "junho",
            "julho",
            "agosto",
            "setembro",
            "outubro",
            "novembro",
            "dezembro",
        ],
        start=1,
    )
    for word in (name, name[:3])
}
_AROUND: Final = "\x00 \t\r\n\u00a0\ufeff"
_SEPARATORS: Final = dict.fromkeys(range(0x1C, 0x20), " ") | {0x85: "\n", 0x0B: "\n", 0x0C: "\n"}
_DAY_FIRST = re.compile(r"([0-9]{1,2})\s?[/.\-]\s?([0-9]{1,2})\s?[/.\-]\s?([0-9]{4}|[0-9]{2})(?![0-9])")
_ISO = re.compile(r"([0-9]{4})[-/]([0-9]{1,2})[-/]([0-9]{1,2})(?![0-9])")
_IN_WORDS = re.compile(
    r"([0-9]{1,2})[ºo]?\s?(?:de\s|[-/ ])\s?([a-z]{3,9})\.?\s?(?:de\s|[-/ ])\s?([0-9]{4}|[0-9]{2})(?![0-9])"
)
_CLOCK = re.compile(
    r"(?<![0-9:])([0-9]{1,2})\s?(?::|h(?:s|oras?)?|hr?s?)\s?([0-9]{2})?(?::([0-9]{2}))?\s?(?:m(?:in)?)?(?![0-9:])"
)
_DOTTED = re.compile(r"(?<![0-9.,/:-])([0-9]{1,2})\.([0-9]{2})(?![0-9.,/:-])")
_BARE = re.compile(r"(?<![0-9.,/:-])([0-9]{1,2})()(?=\s?[ap]\.?\s?m\b|\sda (?:tarde|noite|manha|madrugada)\b)")
_HALF_OF_DAY = re.compile(r"\s?(?:([ap])\.?\s?m\b|da (tarde|noite|manha|madrugada)\b)")
_PHONE = re.compile(
    r"(?:\+?\s?55[\s.-]*)?(?:\(?0?(?:[0-9]{2})?([1-9][0-9])\)?)[\s.-]*(9?[\s.-]?[0-9]{4})[\s.-]*([0-9]{4})(?![0-9])"
)


_DIGIT_RUN = re.compile(r"(?<![0-9])[0-9](?:[\s()./+-]{0,3}[0-9]){9,12}(?![0-9])")  # 11 981 000 345


# An area code in its own cell or after its own label: "11;91200-0345", "DDD: 11 Nº: 91200-0345".
_AREA_APART = re.compile(
    r"(?<![0-9])\(?([1-9][1-9])\)?(?:\s*+[;,/|]\s*+|(?<=[1-9])[\s;,/|]++)(?:(?:n[º°o.]*+|num(?:ero)?|fone|tel(?:efone)?|cel(?:ular)?)\s*+[:=.]*+\s*+)?"
    r"(9?[0-9]{4}[\s.-]?[0-9]{4}(?![0-9]))",
    re.IGNORECASE,
)
_HHMM = re.compile(r"([01][0-9]|2[0-3])([0-5][0-9])\s?(?:h|hs|hrs|horas)?\.?")  # 0730
_SERIAL = re.compile(r"[345][0-9]{4}(?:\.[0-9]+)?")  # days from 1982 to 2064
_HOUR_ALONE = re.compile(r"([01]?[0-9]|2[0-3])()")


def texto_da(valor: Celula) -> str:
    """Return a cell as text. A whole number is written without ``.0``."""
    if isinstance(valor, str):
        return valor.strip(_AROUND)
    match valor:
        case None:
            return ""
        case bool():
            return "sim" if valor else "não"
        case float() | int():
            return _number(float(valor))
        case datetime():
            return valor.strftime("%d/%m/%Y %H:%M")
        case date():
            return valor.strftime("%d/%m/%Y")
        case time():
            return valor.strftime("%H:%M")
        case timedelta():
            return hora_da(valor) or ""


def dito(valor: Celula) -> str | None:
    """Return the text of a cell without unprintable characters, or None if no text remains."""
    if valor is None or valor == "":
        return None
    texto = texto_da(valor)[:LONGEST_TEXT]
    if texto[:1] == "'":
        texto = _strip_apostrophe(texto)
    if not texto.isprintable():
        texto = "".join(each for each in texto if each.isspace() or each.isprintable()).translate(_SEPARATORS)
    said = texto.strip()
    return None if not said or (len(texto) < 40 and _nada(texto)) else said


def _strip_apostrophe(texto: str) -> str:
    """Remove the leading apostrophe from a text. Our exports add it so that spreadsheet programs do not interpret the
    text as a formula.
    """
    return texto[1:] if texto[:1] == "'" and texto[1:2] in FORMULA else texto


@lru_cache(maxsize=4096)
def _nada(texto: str) -> bool:
    return diz_nada(limpo(texto))


def documento_da(valor: Celula) -> str | None:
    """Return the document number in a cell. A CPF typed as a number has lost its leading zeros. They are restored if
    this makes the check digits match.
    """
    texto = dito(valor)
    if texto is None or not isinstance(valor, float | int) or isinstance(valor, bool):
        return texto
    padded = texto.zfill(11)
    return padded if cpf_valido(padded) else texto


def cep_da(valor: Celula) -> str | None:
    """Return the CEP in a cell. Spreadsheet programs drop leading zeros, so a number that lacks one digit gets a
    leading zero.
    """
    digits = re.sub(r"[^0-9]", "", texto_da(valor))
    if isinstance(valor, float | int) and len(digits) == 7:
        digits = f"0{digits}"
    return f"{digits[:5]}-{digits[5:]}" if len(digits) == 8 and len(set(digits)) > 1 else None


def data_da(valor: Celula, *, since_1904: bool = False) -> date | None:
    """Return the date in a cell, or None if that date does not exist. In text, the day precedes the month. A number is
    interpreted as a spreadsheet date (a count of days).
    """
    match valor:
        case bool() | None | time() | timedelta():
            return None
        case datetime():
            return valor.date()
        case date():
            return valor
        case float() | int():
            return _serial(float(valor), since_1904=since_1904)
        case _:
            return _parse_date(plano(limpo(valor)))


def serial_dito(valor: Celula) -> Celula:
    """Return the number in a cell that contains a spreadsheet date as text ("46092"); return any other cell unchanged."""
    is_serial = isinstance(valor, str) and _SERIAL.fullmatch(valor.strip()) is not None
    return float(valor) if is_serial and isinstance(valor, str) else valor


def hora_da(valor: Celula) -> str | None:
    """Return the time in a cell as ``HH:MM``. A number is read as a fraction of a day: 0.5 is 12:00."""
    match valor:
        case bool() | None:
            return None
        case datetime() | time():
            return f"{valor.hour:02d}:{valor.minute:02d}"
        case date():
            return None
        case timedelta():
            return _minutes(round(valor.total_seconds() / 60))
        case float() | int():
            return _fraction(float(valor))
        case _:
            return _parse_time(plano(limpo(valor)))


def data_hora_da(valor: Celula, *, since_1904: bool = False) -> tuple[date | None, str | None]:
    """Return the date and the time in one cell."""
    if isinstance(valor, str):
        dia = data_da(valor)
        return dia, hora_da(valor) if dia is not None else None
    return data_da(valor, since_1904=since_1904), hora_da(valor)


def telefone_da(valor: Celula) -> str | None:
    """Return a cell's first phone number with an area code, in the form 5511900000001."""
    texto = _AREA_APART.sub(r"\1 \2", texto_da(valor))
    for found in _PHONE.finditer(texto):
        local = re.sub(r"[^0-9]", "", found[2] + found[3])
        if found[1] in DDDS and len(local) in (8, 9) and local[0] not in "01" and (len(local) == 8 or local[0] == "9"):
            return f"55{found[1]}{local}"
    for run in _DIGIT_RUN.finditer(texto):
        digits = re.sub(r"[^0-9]", "", run[0])
        digits = digits[2:] if len(digits) in (12, 13) and digits.startswith("55") else digits
        digits = digits[1:] if len(digits) in (11, 12) and digits.startswith("0") else digits
        ddd, local = digits[:2], digits[2:]
        if ddd in DDDS and ((len(local) == 8 and local[0] in "2345678") or (len(local) == 9 and local[0] == "9")):
            return f"55{ddd}{local}"
    return None


def _number(valor: float) -> str:
    if valor != valor or valor in (float("inf"), float("-inf")):
        return ""
    return str(int(valor)) if valor.is_integer() and abs(valor) < 1e17 else repr(valor)


def _serial(valor: float, *, since_1904: bool) -> date | None:
    if not 1 <= valor < 80_000:
        return None
    return _check_range((EPOCH_1904 if since_1904 else EPOCH) + timedelta(days=int(valor)))


def _parse_date(texto: str) -> date | None:
    if found := _ISO.search(texto):
        return _day(int(found[1]), int(found[2]), int(found[3]))
    if found := _DAY_FIRST.search(texto):
        return _day(_year(found[3]), int(found[2]), int(found[1]))
    if (found := _IN_WORDS.search(texto)) and found[2] in _MONTHS:
        return _day(_year(found[3]), _MONTHS[found[2]], int(found[1]))
    return None


def _year(digits: str) -> int:
    return int(digits) if len(digits) == 4 else 2000 + int(digits)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return _check_range(date(year, month, day))
    except ValueError:
        return None


def _check_range(day: date) -> date | None:
    return day if FIRST_YEAR <= day.year <= LAST_YEAR else None


def _parse_time(texto: str) -> str | None:
    if (written := _HHMM.fullmatch(texto) or _HOUR_ALONE.fullmatch(texto)) is not None:
        return f"{int(written[1]):02d}:{written[2] or '00'}"
    found = _CLOCK.search(texto) or _DOTTED.search(texto) or _BARE.search(texto)
    if found is None:
        return None
    half = _HALF_OF_DAY.match(texto, found.end())
    return _clock(_hour_of_day(int(found[1]), half and (half[1] or half[2])), int(found[2] or 0))


def _hour_of_day(hour: int, half: str | None) -> int:
    """Return the hour from 0 to 23, or a negative number if the hour contradicts ``half`` (morning or afternoon)."""
    match half:
        case "p" | "tarde":
            return hour + 12 if hour < 12 else hour
        case "noite":
            return (hour + 12) % 24 if hour <= 12 else hour
        case "a" | "madrugada":
            return hour % 12 if hour <= 12 else -1
        case "manha":
            return hour if hour < 12 else -1
        case _:
            return hour


def _fraction(valor: float) -> str | None:
    """Convert a spreadsheet number to a time of day (0.5 is 12:00). Return None for a number from 1 to 999, because a
    value such as 14.3 may mean 14:30 or 14:18.
    """
    if 1 <= valor < FIRST_WITH_HOUR:
        return None
    rest = valor % 1 if 0 <= valor < 80_000 else 1.0
    return _minutes(round(rest * 1440)) if rest < 1 and (valor < 1 or rest) else None


def _minutes(minutes: int) -> str | None:
    return _clock(minutes // 60, minutes % 60) if 0 <= minutes < 1440 else None


def _clock(hour: int, minute: int) -> str | None:
    return f"{hour:02d}:{minute:02d}" if 0 <= hour < 24 and 0 <= minute < 60 else None
