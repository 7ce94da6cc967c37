"""Find periods and hours: "SD", "noite", "19h às 07h", "entrada 7h", "12h"."""

import re
from collections.abc import Iterator
from datetime import time
from functools import cache

from app.contexts.leitura_grupos.marcas.marca import DATADO, Marca, Turno, apagar
from app.contexts.leitura_grupos.texto.texto import Texto, achados, contem
from app.contexts.leitura_grupos.texto.vocabulario import Frases, palavras, palavras_soltas
from app.contexts.leitura_grupos.tipos import Periodo

DURACAO = {
    Periodo.DIURNO: 12,
    Periodo.NOTURNO: 12,
    Periodo.MANHA: 6,
    Periodo.TARDE: 6,
    Periodo.CINDERELA: 6,
    Periodo.H24: 24,
}
_H = (
    r"(?:(?P<{0}>[0-2]?\d)(?!\d)(?:(?: ?h|:)(?P<{0}m>[0-5]\d)(?!\d| ?h\b)(?:min\b)?)?(?: {{0,2}}(?P<{0}h>h(?:s|rs?|oras?)?\b))?"
    r"(?: da (?P<{0}p>manha|tarde|noite|madrugada))?|(?P<{0}w>meia[ -]?noite|meio[ -]?dia))"
)
_RANGE = re.compile(
    r"(?<![\w.,/$:])(?P<das>(?:das?|de|entre) (?:as )?)?"
    + _H.format("a")
    + r" {0,2}(?P<liga>-{1,2}>?|>|~|/|as(?=\b|\d)|\ba\b|\be\b|\bate\b(?: as\b)?|x(?= |\d)) {0,2}(?:as )?"
    + _H.format("b")
    + r"(?![\d%])(?![.,]\d)"
)
_START = re.compile(
    r"(?<![\w.,/$:])(?P<cue>(?:as|a partir das|entrada|inicio|comeca(?:ndo)?|das|desde as) (?:as )?)?"
    r"(?P<h>[0-2]?\d)(?:(?: ?h|:)(?P<m>[0-5]\d)(?!\d| ?h\b)| {0,2}h(?:s|rs?|oras?)?\b)"
)
# A text without a match of this faster pattern cannot match ``_START``.
_HOURS = re.compile(r"\d {0,2}[h:]")
_NUMBERS = {
    **{
        name: hour
        for hour, name in enumerate(
            ["uma", "duas", "tres", "quatro", "cinco", "seis", "sete", "oito", "nove", "dez", "onze", "doze"], 1
        )
    },
    **{
        name: hour
        for hour, name in enumerate(
            ["treze", "quatorze", "quinze", "dezesseis", "dezessete", "dezoito", "dezenove", "vinte"], 13
        )
    },
}
_SPOKEN = re.compile(
    r"\b(?:das|de) (?P<a>{0})(?: horas?)?(?: da (?P<ap>manha|tarde|noite|madrugada))? (?P<liga>(?:ate )?as|ate|a) (?P<b>{0})\b"
    r"(?: horas?)?(?: da (?P<bp>manha|tarde|noite|madrugada))?".format("|".join(_NUMBERS))
)
_LINKS = (" as ", " ate ", " a ")
_UNTIL = re.compile(
    r"\b(?:ate|sai(?:da|ndo)?:?|termino:?) (?:as )?(?P<h>[0-2]?\d)(?:(?:h|:)(?P<m>[0-5]\d)| {0,2}h(?:s|rs?|oras?)?\b)"
)
# Matches single letters for periods. They count after a day, or at the start of a line if a day, a price or hours
# follow.
_RUN = r"[dnmt]\b(?:(?: {0,2}[/,+] {0,2}(?:e )?| e | )[dnmt]\b){0,3}"
_LETTERS = re.compile(
    r"(?:\x02[ )(:|,*_>-]{0,4}|\x02 {0,2}\([^()\n\x02]{1,30}\)[ :*_>-]{1,4}|[\dkh] ?\("
    r"|(?:\A|(?<=\n)|(?<=, )|(?<=; )|(?<=: )|(?<=/ )|(?<=\| )|(?<=\d )"
    r"|(?<=k )|(?<=h )|(?<=\()|(?<=[\x01a-z] ))"
    rf"(?={_RUN} {{0,2}}(?:[):=>-]{{0,2}} {{0,2}}(?:r\$|\x02|\d\.\d{{3}}|\d{{3,4}}\b|\d(?:[.,]\d{{1,2}})? ?(?:k"
    rf"|mil)\b)|[:=] ?\x01))|(?:(?<=, )|(?<=tod[ao]s )|(?<=tudo )|(?<=\d\d\d )|(?<=\dk ))(?={_RUN}(?: ?[/|]|[.,;\n]|\Z)))"
    rf"(?P<letras>{_RUN})(?!'|\.? ?(?:sra|sr|senhora?|s)\b)"
)
_LENGTH_CODE = re.compile(r"\bp ?(?P<h>6|12|24)\b(?! ?(?:/|h\b|:))")
_AMOUNT = re.compile(r"[ *_]{1,3}(?:\d\.\d{3}|\d{3,4}\b|\d(?:[.,]\d{1,2})? ?k\b)")
_BREAK = re.compile(r"[,;.|\n]")
# On a line with a day, a sun means a day shift and a moon a night shift.
_SIGNS = ("☀", "🌞", "🌙", "🌛", "🌜", "🌚")
_SKY = re.compile("[" + "".join(_SIGNS) + "]")
_ONE = re.compile(r"\b[dnmt]\b")
_SMALL = re.compile(r"[dn](?:[ ,/+e]{1,3}[dn])?")
_ALONE = re.compile(r"[dnmt](?<!\w.)\b")
_MIRRORED = re.compile(r"(\d(?<![\d/]\d)\d?) ?/ ?(\d{1,2}) ?(?:e|ou|,|;|\|) ?\2 ?/ ?\1(?![\d/])")
_JOINING = re.compile(r"(?:[ ():=,*_.\-\x01]|\b(?:de|das|plantao|turno|horario|h|o|do)\b)*")
_LENGTHS = frozenset((4, 5, 6, 8, 10, 12, 18, 24, 36))
_USUAL = frozenset((0, 1, 6, 7, 8, 12, 13, 14, 18, 19, 20, 22, 23))
_STARTS = frozenset((6, 7, 8, 13, 18, 19, 20))
_BOTH = re.compile(r" ?(?:/|\+|-|e|com) ?")
# Hours at which one shift starts that extends over two named periods.
_PARTS: dict[tuple[Periodo | None, Periodo | None], range] = {
    (Periodo.MANHA, Periodo.TARDE): range(6, 12),
    (Periodo.TARDE, Periodo.NOTURNO): range(12, 18),
}
_LETTER = {"d": Periodo.DIURNO, "n": Periodo.NOTURNO, "m": Periodo.MANHA, "t": Periodo.TARDE}


def turnos(texto: Texto, livre: str) -> list[Turno]:
    """Return every mention of a shift, in text order. A mention states at least one of these: the shift's period, its
    hours, its length.
    """
    found = [*_faixas(livre), *_faladas(livre)]
    livre = apagar(livre, found)
    found.extend(_letras(texto, livre))
    livre = apagar(livre, found)
    found.extend(_siglas(livre))
    found.extend(_inicios(livre))
    livre = apagar(livre, (each for each in found if each.horas is None))
    found.extend(_periodos(texto, livre))
    return _fundidos(sorted(found, key=lambda each: (each.inicio, each.horas is None)), texto.plano)


def espelhadas(livre: str) -> list[Marca]:
    """Return the positions of hours that look like a day and a month: "7/19 e 19/7"."""
    return [Marca(each.start(), each.end()) for each in _MIRRORED.finditer(livre)] if livre.count("/") > 1 else []


def _conjunto(one: Turno, two: Turno, hours: Turno, plano: str) -> Turno | None:
    """Return the one shift that two named periods and a range of hours behind them describe: "tarde/noite (13h às 01h)"."""
    starts = _PARTS.get((one.periodo, two.periodo))
    if starts is None or one.das or two.das or hours.periodo or not (hours.das and hours.ate):
        return None
    if not _BOTH.fullmatch(plano, one.fim, two.inicio) or not _JOINING.fullmatch(plano, two.fim, hours.inicio):
        return None
    if hours.das.hour not in starts or not 8 <= horas_entre(hours.das, hours.ate) <= 12:
        return None
    return Turno(one.inicio, hours.fim, periodo_das_horas(hours.das, hours.ate), hours.das, hours.ate)


def _fundidos(found: list[Turno], plano: str) -> list[Turno]:
    """Merge two adjacent mentions of the same shift into one: "SD (7-19h)", "12h noite"."""
    kept: list[Turno] = []
    for each in found:
        if len(kept) > 1 and (joint := _conjunto(kept[-2], kept[-1], each, plano)) is not None:
            kept[-2:] = [joint]
            continue
        both = _fundir(kept[-1], each, plano) if kept else None
        if both is None:
            kept.append(each)
        else:
            kept[-1] = both
    return kept


def _fundir(one: Turno, two: Turno, plano: str) -> Turno | None:
    between = plano[one.fim : two.inicio]
    if two.inicio >= one.fim and (len(between) > 12 or ". " in between or not _JOINING.fullmatch(between)):
        return None
    if one.periodo and two.periodo and one.periodo != two.periodo:
        return None
    if (one.das and two.das) or (one.horas and two.horas and one.horas != two.horas):
        return None
    period, hours = one.periodo or two.periodo, one if one.das else two
    if period and hours.das and hours.ate and not _suits(period, periodo_das_horas(hours.das, hours.ate)):
        return None
    return Turno(one.inicio, max(one.fim, two.fim), period, hours.das, hours.ate, one.horas or two.horas)


def _suits(named: Periodo, counted: Periodo) -> bool:
    night = {Periodo.NOTURNO, Periodo.CINDERELA}
    return named == counted or Periodo.H24 in (named, counted) or (named in night) == (counted in night)


def periodo_das_horas(das: time, ate: time) -> Periodo:
    start = das.hour * 60 + das.minute
    length = (ate.hour * 60 + ate.minute - start) % 1440 or 1440
    if length == 1440:
        return Periodo.H24
    if length < 480:
        if 300 <= start < 720:
            return Periodo.MANHA
        if 720 <= start < 1020:
            return Periodo.TARDE
        return Periodo.CINDERELA if 1020 <= start < 1320 else Periodo.NOTURNO
    if 300 <= start < 660:
        return Periodo.DIURNO
    return Periodo.TARDE if 660 <= start < 1020 else Periodo.NOTURNO


def horas_entre(das: time, ate: time) -> int:
    return round(((ate.hour - das.hour) * 60 + ate.minute - das.minute) % 1440 / 60) or 24


def periodo_do_inicio(das: time, horas: int | None) -> Periodo:
    """Return the usual period of a shift that starts at the hour ``das``. This period is used if the message states no
    end.
    """
    if horas == 24:
        return Periodo.H24
    if 5 <= das.hour < 12:
        return Periodo.MANHA if horas is not None and horas < 8 else Periodo.DIURNO
    if 12 <= das.hour < 17:
        return Periodo.TARDE
    return Periodo.CINDERELA if horas is not None and horas < 8 and das.hour < 22 else Periodo.NOTURNO


def _faixas(livre: str) -> Iterator[Turno]:
    for each in _RANGE.finditer(livre):
        first, last = _time(each, "a"), _time(each, "b")
        if first is None or last is None or not _is_range(each, first, last):
            continue
        start = each.start("das") if each["das"] and each["das"][0] == "d" else each.start("a" if each["a"] else "aw")
        yield Turno(start, each.end(), None, first, last)


def _faladas(livre: str) -> Iterator[Turno]:
    """Find hours written in words, as in a transcribed voice message: "das sete da noite às sete da manhã"."""
    for each in achados(_SPOKEN, livre, *_NUMBERS) if contem(livre, _LINKS) else ():
        if each["liga"] in ("a", "ate") and not (each["ap"] and each["bp"]):
            continue
        first, last = (_de_dia(_NUMBERS[each[name]], each[f"{name}p"]) for name in ("a", "b"))
        if first != last or each["ap"]:
            yield Turno(each.start(), each.end(), None, time(first), time(last))


def _de_dia(hour: int, part: str | None) -> int:
    if part in ("tarde", "noite") and hour < 12:
        return hour + 12
    return hour % 12 if part in ("madrugada", "noite") and hour == 12 else hour


def _is_range(each: re.Match[str], first: time, last: time) -> bool:
    if each["liga"] == "x" and first.hour in _STARTS and horas_entre(first, last) in (6, 12, 24):
        return True
    if each["liga"] in ("e", "x") and not (each["ah"] and each["bh"]) and not (each["das"] or "").startswith("entre"):
        return False
    marked = each["ah"] or each["bh"] or each["am"] or each["bm"] or each["aw"] or each["bw"] or each["ap"]
    if each["liga"] == "e" and not (each["das"] or "").startswith("entre"):
        return False
    if marked or each["liga"].startswith("as") or (each["das"] or "").startswith("das"):
        return True
    return first.hour in _USUAL and last.hour in _USUAL and first != last and each["liga"] != "a"


def _inicios(livre: str) -> Iterator[Turno]:
    if _HOURS.search(livre) is None:
        return
    ended = 0
    for each in _START.finditer(livre):
        hour = int(each["h"])
        if hour > 24:
            continue
        if hour in _LENGTHS and each["m"] is None and each["cue"] is None and _is_length(livre, each):
            yield Turno(each.start("h"), each.end(), Periodo.H24 if hour == 24 else None, horas=hour)
            continue
        end = livre.find("\n", each.end(), each.end() + 40)
        if (
            livre[max(0, each.start() - 7) : each.start()].endswith(("ate ", "ate as ", "sao "))
            or each.start("h") < ended
        ):
            continue
        until = _UNTIL.search(livre, each.end(), min(each.end() + 40, end if end >= 0 else len(livre)))
        last = None if until is None else _clock(until["h"], until["m"])
        start = _clock(each["h"], each["m"])
        if start is not None:
            ended = each.end() if until is None else until.end()
            yield Turno(each.start("h"), each.end(), None, start, last)


def _siglas(livre: str) -> Iterator[Turno]:
    """Find a shift's length after the letter P (plantão, shift): "P12", "P6"."""
    for each in achados(_LENGTH_CODE, livre, "p6", "p12", "p24", "p 6", "p 12"):
        hours = int(each["h"])
        yield Turno(each.start(), each.end(), Periodo.H24 if hours == 24 else None, horas=hours)


def _is_length(livre: str, each: re.Match[str]) -> bool:
    return int(each["h"]) in (6, 12, 24, 36) or livre[max(0, each.start() - 9) : each.start()].endswith(
        ("de ", "plantao ", "plantoes ")
    )


def _letras(texto: Texto, livre: str) -> Iterator[Turno]:
    if _ALONE.search(livre) is None:
        return
    for each in _LETTERS.finditer(livre):
        for one in _ONE.finditer(livre, *each.span("letras")):
            if _is_alone_behind_a_day(livre, each) or texto.fonte[texto.trecho(*one.span())[0]].isupper():
                yield Turno(one.start(), one.end(), _LETTER[one[0]])


def _is_alone_behind_a_day(livre: str, each: re.Match[str]) -> bool:
    """Return whether only "d" and "n" follow a day, up to the end of the line: "10/08 - d, n". There they need no capital."""
    return (
        livre[each.start()] == DATADO
        and _SMALL.fullmatch(each["letras"]) is not None
        and livre[each.end() :][:1] in ("", "\n", ",", ";", ".")
    )


def _periodos(texto: Texto, livre: str) -> Iterator[Turno]:
    words = texto.palavras
    for found in _frases().todas(words):
        start, end = words[found.inicio].inicio, words[found.fim - 1].fim
        if _BREAK.search(texto.plano, start, end):
            for place in range(found.inicio, found.fim):
                yield from _palavra(texto, livre, place)
        elif (
            livre[start:end] == texto.plano[start:end]
            and _is_period(texto, found.inicio, found.fim)
            and ("+" not in found.valor or not _has_hours(texto.plano, end))
        ):
            yield from (Turno(start, end, Periodo(name)) for name in found.valor.split("+"))
    for each in achados(_SKY, livre, *_SIGNS):
        line = livre.rfind("\n", 0, each.start()) + 1
        if DATADO in livre[line : each.start()] or (
            not livre[line : each.start()].strip(" *_-") and DATADO in livre[:line]
        ):
            yield Turno(each.start(), each.end(), Periodo.DIURNO if each[0] in "☀🌞" else Periodo.NOTURNO)


def _has_hours(plano: str, end: int) -> bool:
    """Return whether hours after a word such as "MT" describe one long shift: "MT 7h-19h"."""
    said = _RANGE.match(plano, end + len(plano[end : end + 3]) - len(plano[end : end + 3].lstrip(" (:")))
    first, last = (None, None) if said is None else (_time(said, "a"), _time(said, "b"))
    return first is not None and last is not None and horas_entre(first, last) >= 8


def _palavra(texto: Texto, livre: str, place: int) -> Iterator[Turno]:
    """Yield the period that a single word names in a list with commas, such as "noite" in "6h, noite"."""
    word = texto.palavras[place]
    period = _frases().valor(word.texto)
    if period is not None and livre[word.inicio : word.fim] == word.texto and _is_period(texto, place, place + 1):
        yield Turno(word.inicio, word.fim, Periodo(period.split("+")[0]))


def _is_period(texto: Texto, start: int, end: int) -> bool:
    words = texto.palavras
    word = words[start].texto
    before = words[start - 1].texto if start else ""
    if end - start > 1:
        return True
    after = texto.plano[words[start].fim : words[start].fim + 8].lstrip(" *_")
    if word == "dia":
        if re.search(r"[\dh] ?/ ?$", texto.plano[max(0, words[start].inicio - 4) : words[start].inicio]):
            return False
        is_date = after[:1].isdigit() and not _AMOUNT.match(texto.plano, words[start].fim)
        is_date = is_date or after.startswith((":", "a ", "da ", "do "))
        return (
            not is_date
            and before not in palavras_soltas("antes_de_dia")
            and not after.startswith(("norm", "comu", "util", "de sem"))
        )
    if word in ("noite", "tarde", "manha"):
        return before not in ("boa", "boas", "bom", "mais", "cedo", "muito")
    if word == "mt":
        return texto.plano[words[start].inicio - 1 : words[start].inicio] not in ("/", "-")
    return True


@cache
def _frases() -> Frases[str]:
    tree = Frases[str]()
    for name, listed in palavras()["periodos"].items():
        for frase in listed:
            tree.juntar(frase, name)
    return tree


def _time(found: re.Match[str], name: str) -> time | None:
    if (word := found[f"{name}w"]) is not None:
        return time(0) if word.startswith("meia") else time(12)
    hour = int(found[name])
    if found[f"{name}p"] in ("tarde", "noite") and hour < 12:
        hour += 12
    return _clock(str(hour), found[f"{name}m"])


def _clock(hour: str, minute: str | None) -> time | None:
    return time(int(hour) % 24, int(minute or 0)) if int(hour) <= 24 else None
