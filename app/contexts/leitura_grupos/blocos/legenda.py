"""Apply a legend to the signs before days or shifts. Examples: "■ SD □ SN" with the legend "■ ocupado, □ livre", and
"[x] 03/10 SN".

Shifts that the legend marks as taken are removed. From an open shift, only the sign is removed, so that the rules can
read the shift.
"""

import re
from datetime import date

from app.contexts.leitura_grupos.blocos.celula import Tipo, estado
from app.contexts.leitura_grupos.blocos.escrita import Linha, letras
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario

_SINAL = r"(?:\[ ?[x✓✔]? ?\]|\( ?[x✓✔]? ?\)|[■□▪▫◼◻⬛⬜●○◯◉☐☑☒✓✔✗✘🟢🔴🟡🟠🔵⚪⚫🟩🟥🟨🟧🟦])"
# The first characters of ``_SINAL``. A line without them has no sign and is not searched further.
_INICIO = re.compile(r"[\[(■□▪▫◼◻⬛⬜●○◯◉☐☑☒✓✔✗✘🟢🔴🟡🟠🔵⚪⚫🟩🟥🟨🟧🟦]")
_LEGENDA = re.compile(
    rf"(?P<sinal>{_SINAL})\ufe0f? {{0,2}}(?:[=:>-]{{1,2}} {{0,2}})?(?P<frase>[a-zà-ÿ][^\n,;|/()\[\]■-◿☐-☒🟠-🟫🔴🔵⚪⚫]{{3,40}})",
    re.IGNORECASE,
)
_TURNO = re.compile(
    r" {0,2}(?:sd|sn|dia|noite|diurno|noturno|manhã|manha|tarde|cinderela|24 ?h|12 ?h|[dnmt])\b", re.IGNORECASE
)
_DIA = re.compile(r"\d")
_LIVRE = re.compile(r"\b(?:abert|livre|dispon|vag[ao]|falta|precis)")
# Matches a day with its shift between two signs: "(x) 05/11 SD   ( ) 05/11 SN".
_DATADO = re.compile(
    r" {0,2}(?:[a-zà-ÿ]{3,13}\.? {1,2})?\d{1,2}(?: ?/ ?\d{1,2})?[ :-]{1,3}"
    r"(?:sd|sn|dia|noite|diurno|noturno|manhã|manha|tarde|[dnmt])\b",
    re.IGNORECASE,
)
# Matches a note about an asterisk, and a day or a shift with one. A number between two asterisks is bold.
_NOTA = re.compile(r"[(\[]?\*{1,2} ?[=:-]? ?(?P<frase>[a-z][^*\n]{2,40})")
_COM_ASTERISCO = re.compile(
    r"(?:(?:, ?| e )?(?<![*\d/])(?P<dia>\d{1,2}(?:/\d{1,2})?)|(?<![*\w])(?:SD|SN|[DN]))\*{1,2}(?![*\w])"
)
_NUMERO = re.compile(r"\d{1,2}(?:/\d{1,2})?\b")
_COM_LETRAS = re.compile(r"\b(?:sd|sn|[dn])\b")
_TURNO_DITO = re.compile(
    r"\b(?:sd|sn|dia|noite|diurno|noturno|manha|tarde|cinderela|24 ?h|\d{1,2} ?(?:h|-|as) ?\d|[dn])\b"
)


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    """Apply a message's legend to its lines. If the legend does not explain both a sign for taken shifts and a sign for
    open shifts, the lines stay unchanged. A legend that explains only a sign for taken shifts applies if another line with
    a day lacks this sign.
    """
    found = _sem_asteriscos(found)
    if _INICIO.search(letras(found)) is None:
        return found
    meanings: dict[str, bool] = {}
    legends: set[int] = set()
    for place, line in enumerate(found):
        if _INICIO.search(line.texto) is None:
            continue
        said = [(each, estado(dobrada(each["frase"]))) for each in _LEGENDA.finditer(line.texto)]
        explained = {_igual(each["sinal"]): meant is Tipo.ABERTA for each, meant in reversed(said) if meant is not None}
        if _DIA.search(line.texto) is not None and len({*explained.values()}) < 2:
            continue
        if explained:
            meanings = explained | meanings
            legends.add(place)
    if not meanings or (True in meanings.values() and len({*meanings.values()}) < 2):
        return found
    if True not in meanings.values() and not _ha_outra(found, legends, meanings):
        return found
    return [line if place in legends else _aplicada(line, meanings) for place, line in enumerate(found)]


def _sem_asteriscos(found: list[Linha]) -> list[Linha]:
    """Remove the days with an asterisk if a note says that it marks taken shifts: "14, 21*, 28" with "(* já coberto)"."""
    notes = [place for place, line in enumerate(found) if "*" in line.texto and _is_note(line)]
    if not notes:
        return found
    result = []
    for place, line in enumerate(found):
        days = [] if place in notes else [*_COM_ASTERISCO.finditer(line.texto)]
        if len(days) == 1 and len((_NUMERO if days[0]["dia"] else _COM_LETRAS).findall(line.plano)) < 2:
            result.append(line.com(len(line.texto), " (preenchido)"))
            continue
        for each in reversed(days):
            line = _sem(line, *each.span())
            if line.texto.startswith(", ", each.start()) and not line.texto[: each.start()].rstrip()[-1:].isdigit():
                line = _sem(line, each.start(), each.start() + 2)
        result.append(line)
    return result


def _is_note(line: Linha) -> bool:
    note = _NOTA.fullmatch(line.plano.strip())
    return note is not None and estado(note["frase"].strip(" )*.!")) is Tipo.FECHADA


def _ha_outra(found: list[Linha], legends: set[int], meanings: dict[str, bool]) -> bool:
    """Return whether the legend is on a line without days, and a line with a day and a shift lacks its signs."""
    if any(_DIA.search(found[place].texto) or _LIVRE.search(found[place].plano) for place in legends):
        return False
    return any(
        _DIA.search(line.texto) is not None
        and _TURNO_DITO.search(line.plano) is not None
        and not any(_igual(each[0]) in meanings for each in re.finditer(_SINAL, line.texto, re.IGNORECASE))
        for place, line in enumerate(found)
        if place not in legends
    )


def dobrada(text: str) -> str:
    return Linha(text, ()).plano.strip()


def _igual(sign: str) -> str:
    return re.sub(r"\s", "", sign.lower())


def _aplicada(line: Linha, meanings: dict[str, bool]) -> Linha:
    signs = [each for each in re.finditer(_SINAL, line.texto, re.IGNORECASE) if _igual(each[0]) in meanings]
    is_taken = bool(signs) and not any(meanings[_igual(each[0])] for each in signs)
    for place, each in reversed([*enumerate(signs)]):
        end = signs[place + 1].start() if place + 1 < len(signs) else len(line.texto)
        shift = _TURNO.match(line.texto, each.end(), end) or _DATADO.match(line.texto, each.end(), end)
        is_other = not is_taken and not meanings[_igual(each[0])] and shift is not None
        line = _sem(line, each.start(), shift.end() if is_other and shift is not None else each.end())
    return line.com(len(line.texto), " (preenchidos)") if is_taken else line


def _sem(line: Linha, start: int, end: int) -> Linha:
    while line.texto[end : end + 1] in (" ", "\ufe0f") and end < len(line.texto):
        end += 1
    return Linha(line.texto[:start] + line.texto[end:], [*line.lugares[:start], *line.lugares[end:]], line.bloco)
