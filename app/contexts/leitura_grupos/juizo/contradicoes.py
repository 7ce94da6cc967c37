"""Find vacancies that their own message contradicts, so that a person decides about them: prices for another kind of
day, words for a taken shift, alternative places, combinations of several lists, and other stated numbers of shifts.

These contradictions are fixed rules rather than features of the model, because each of them is too rare in the labelled
messages.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from app.contexts.leitura_grupos.marcas.feriados import feriados
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Preco, entre, linha_de
from app.contexts.leitura_grupos.texto.texto import contem
from app.contexts.leitura_grupos.tipos import Periodo, VagaLida

_KIND = (
    r"(?:(?P<feriado>feriad(?:o|ao)s?)|(?P<fds>fds|fi(?:m|nal) de semana|sab(?:ado)? e dom(?:ingo)?)"
    r"|(?P<semana>semana|sem|dias? ut(?:il|eis)|seg a sex)|(?P<normal>dias? (?:comum|comuns|norma(?:l|is))|normal))"
)
_AREA = (
    r"(?:clinic[oa]s?|cm|pediatr(?:ia|as?)|ped|go|obstetr(?:icia|as?)|cirurgia|cirurgiao|anestesia|orto(?:pedia)?|uti)"
)
_KIND_BEFORE = re.compile(rf"\b{_KIND}(?: (?:(?:d[ao]|na?|no|p/|para|pra) ?)?{_AREA})?[ :=()-]{{0,4}}(?:r?\$ ?)?$")
_KIND_AFTER = re.compile(rf"[ (:=-]{{0,3}}(?:n[oa]s? |aos? |em |de |d[oa] )?{_KIND}\b")
# Matches the days before a price: "(3 a 5/04) = 1.900", "31/12 e 01/01 2.600".
_DAYS_BEFORE = re.compile(
    r"(?<![\d/])(?P<de>\d{1,2})(?: ?/ ?\d{1,2})?(?:(?P<liga> ?(?:a|ate|ao|-|e|,) ?)(?P<a>\d{1,2})(?: ?/ ?\d{1,2})?)?"
    r"\)? {0,2}[:=] {0,2}(?:r?\$ ?)?$"
)
_TAKEN = re.compile(
    r"\b(?:(?:reservad|ocupad|garantid|preenchid|cobert|lotad|resolvid|tomad|realizad|escalad)[oa]s?"
    r"|complet[oa]s?(?= ?(?:[),.;\n]|$))|okay|ok|pegou|pegaram|peguei|(?:ja )?e meu|comigo|tem interessad[oa])\b"
)
# Matches a day of a list that the author takes back: "a de 12/05 já está com a Dra. X", "a de terça já foi".
_TAKEN_LATER = re.compile(
    r"\b[ao]s? (?:(?:de|do|da) (?:dia )?|dia )(?:(?P<dia>\d{1,2})|(?P<semana>seg|ter|qua|qui|sex|sab|dom)[a-z]{0,5})\b"
    r"[^.;\n]{0,20}\b(?:ja (?:esta|ta|foi|tem|era|peguei|pegaram|passei|fechou|fechei)\b|(?:esta|ta|ficou|fica) com\b"
    r"|(?:e|eh) d[ao] dra?\b)"
)
# A text that contains none of these parts cannot match ``_TAKEN_LATER`` and is not searched.
_TAKES = (" ja ", " com ", " dr")
# Matches a row that has a shift and at least two signs: "SD . *".
_UNREAD_ROW = re.compile(
    r"^[^\w\n]{0,4}(?:s[dn]|diurno|noturno|manha|tarde|noite|[dn])\b(?:[ |:]{1,8}(?:[^\w\s|:]|x|ok)){2,40}[ |]{0,8}$",
    re.MULTILINE,
)
_SIGN = re.compile(r"[ \t*_]{0,4}(\[ ?\S? ?\]|\( ?\S? ?\)|[^\w\s*_~'\"(-])")
_MARKS, _LOOSE = frozenset("✔✓☑✗✘✖❎●○■□◆◇◻◼⚪⚫🔴🟢🟡🔵🟠"), " *_\ufe0f"
# Matches a number before a shift. In ``livre``, the words that were read as days are blank.
_BEFORE_SHIFT = re.compile(r"(?<![\w/.,:$-])(\d{1,2}) (?:s[dn]|noturno|diurno|noite|manha|tarde|dia)\b")
_WEEK = ("seg", "ter", "qua", "qui", "sex", "sab", "dom")
_WEEKDAY = re.compile(r"\b(?:seg|ter|qua|qui|sex|s[aá]b|dom)", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_NUMBERS = {
    "dois": 2,
    "duas": 2,
    "tres": 3,
    "quatro": 4,
    "cinco": 5,
    "seis": 6,
    "sete": 7,
    "oito": 8,
    "nove": 9,
    "dez": 10,
}
_COUNT = re.compile(
    rf"(?<![\w/.,:$-])(?P<n>[2-9]|1\d|{'|'.join(_NUMBERS)}) (?:ultim[oa]s )?(?:plantoes|noites|noturnos|diurnos|datas|turnos)\b"
    r"(?! (?:por|na semana|semanais|no mes|mensais|fixos))"
)


def contraditorias(folha: Folha, vagas: Sequence[VagaLida]) -> frozenset[int]:
    """Return the indexes of the vacancies that their own message contradicts. Each of these facts is a contradiction:

    - The words next to a vacancy's price name another kind of day: the vacancy is on a Tuesday, but its price is for
      "feriado" (holiday).
    - Another price is for the vacancy's kind of day or for its day.
    - The vacancy's line has a word for a taken shift that no rule matched.
    - A sentence says that the vacancy's day is taken.
    - The vacancy's line says "a combinar", and its price is on another line.
    - The vacancy is at the second of two alternative places.
    - The weekday next to the number of the vacancy's day is another one, and no month is written.
    - The vacancy's price is so high that it may be the sum of several shifts.
    - Only a weekday names the vacancy's day, and all written days are in later weeks.
    - The message states another number of shifts, has a row of a table that no rule read, or marks the lines of its
      vacancies with different signs that no legend explains.
    - A number that no rule read as a day precedes a shift, and a vacancy has this day.
    - A line has several places and several shifts, and each place was combined with each shift.
    """
    found = set(_de_outro_preco(folha, vagas)) if len(folha.precos) > 1 else set()
    found.update(
        at
        for at, each in enumerate(vagas)
        if _is_taken(folha, each)
        or _is_to_be_agreed(folha, each)
        or _is_alternative(folha, each)
        or _is_of_other_weekday(folha, each)
    )
    found.update(_antes_dos_escritos(folha, vagas))
    found.update(_retiradas(folha, vagas))
    found.update(at for at, each in enumerate(vagas) if each.valor is not None and each.valor.valor > _alto(each))
    if (
        _has_unread_day(folha, vagas)
        or _has_other_count(folha, vagas)
        or _UNREAD_ROW.search(folha.texto.plano)
        or _has_other_signs(folha, vagas)
    ):
        return frozenset(range(len(vagas)))
    lines: dict[tuple[int, int], list[int]] = {}
    for at, each in enumerate(vagas):
        assert each.derivacao is not None
        lines.setdefault(each.derivacao.do_bloco, []).append(at)
    for places in lines.values():
        if len(places) > 3 and _is_product([vagas[at] for at in places]):
            found.update(places)
    return frozenset(found)


def _de_outro_preco(folha: Folha, vagas: Sequence[VagaLida]) -> Iterator[int]:
    """Yield the indexes of the vacancies whose price is for another kind of day, or for whose day or kind of day the
    message has another price.
    """
    places = {folha.texto.trecho(each.inicio, each.fim): at for at, each in enumerate(folha.precos[:60])}
    kinds = [_tipos_do_preco(folha, each) for each in folha.precos[:60]]
    dates = [_dias_do_preco(folha, each) for each in folha.precos[:60]]
    for at, each in enumerate(vagas):
        own = None if each.valor is None or each.valor.trecho is None else places.get(each.valor.trecho)
        assert each.derivacao is not None
        if own is None or each.derivacao.preco == 0:
            continue
        days, price = _tipos_do_dia(each), folha.precos[own]
        if kinds[own] and kinds[own].isdisjoint(days):
            yield at
            continue
        line = linha_de(folha.texto.plano, price.inicio)
        special = {"feriado"} if "feriado" in days else {"fds"} if each.data.valor.weekday() > 4 else set[str]()
        for other, mark in enumerate(folha.precos[:60]):
            if mark.reais == price.reais or line[0] <= mark.inicio < line[1]:
                continue
            if each.data.valor.day in dates[other] or (special & kinds[other] and not special & kinds[own]):
                yield at
                break


def _tipos_do_preco(folha: Folha, price: Preco) -> set[str]:
    """Return the kinds of days, such as holidays, to which the words next to a price refer."""
    plano = folha.texto.plano
    said = (_KIND_BEFORE.search(plano, max(0, price.inicio - 30), price.inicio), _KIND_AFTER.match(plano, price.fim))
    return {str(each.lastgroup) for each in said if each is not None}


def _dias_do_preco(folha: Folha, price: Preco) -> frozenset[int]:
    """Return the days of the month that are written directly before a price: "Feriadão (4 a 7/09) = 1.900"."""
    line = linha_de(folha.texto.plano, price.inicio)
    if entre(folha.turnos, *line):
        return frozenset()
    said = _DAYS_BEFORE.search(folha.texto.plano, max(line[0], price.inicio - 30), price.inicio)
    if said is None:
        return frozenset()
    first, last = int(said["de"]), int(said["a"] or said["de"])
    is_range = said["liga"] is not None and said["liga"].strip() in ("a", "ate", "ao", "-")
    return frozenset(range(first, last + 1)) if is_range else frozenset((first, last))


def _alto(vaga: VagaLida) -> int:
    """Return the highest usual price of a shift in reais. A higher price may be the sum of several shifts."""
    return 8_000 if vaga.periodo.valor is Periodo.H24 else 4_000


def _is_taken(folha: Folha, vaga: VagaLida) -> bool:
    """Return whether a vacancy's line has a word for a taken shift that no rule matched."""
    assert vaga.derivacao is not None
    return _TAKEN.search(folha.texto.plano, *vaga.derivacao.do_bloco) is not None


def _retiradas(folha: Folha, vagas: Sequence[VagaLida]) -> Iterator[int]:
    """Yield the indexes of the vacancies on whose day, or on whose weekday, a sentence says that the shift is taken."""
    plano = folha.texto.plano
    said = [*_TAKEN_LATER.finditer(plano)] if contem(plano, _TAKES) else []
    days = {int(each["dia"]) for each in said if each["dia"]}
    weekdays = {_WEEK.index(each["semana"]) for each in said if each["semana"]}
    for at, each in enumerate(vagas) if said else ():
        if each.data.valor.day in days or each.data.valor.weekday() in weekdays:
            yield at


def _is_to_be_agreed(folha: Folha, vaga: VagaLida) -> bool:
    """Return whether a vacancy has the price of another line, although its own line says "a combinar" (to be agreed)."""
    assert vaga.derivacao is not None
    line = vaga.derivacao.do_bloco
    return vaga.valor is not None and bool(entre(folha.combinar, *line)) and not entre(folha.precos, *line)


def _is_of_other_weekday(folha: Folha, vaga: VagaLida) -> bool:
    """Return whether a number without a month and another weekday name a vacancy's day, as in "sábado 12" for a Wednesday.
    Such a number may also count doctors.
    """
    if vaga.data.trecho is None:
        return False
    said = folha.texto.fonte[slice(*vaga.data.trecho)]
    if "/" in said or len(said) > 30 or len(_WEEKDAY.findall(said)) != 1 or len(_NUMBER.findall(said)) != 1:
        return False
    named = _WEEKDAY.search(said)
    return named is not None and _WEEK.index(named[0][:3].lower().replace("á", "a")) != vaga.data.valor.weekday()


def _is_alternative(folha: Folha, vaga: VagaLida) -> bool:
    """Return whether the message names a vacancy's place directly after the word "ou" (or). In "UPA Norte ou UPA
    Sul", this is UPA Sul, and the vacancy may also be at the other place.
    """
    if " ou " not in folha.texto.plano:
        return False
    named = [each for each in folha.lugares[:200] if each.nome == vaga.hospital.valor]
    return bool(named) and folha.texto.plano.endswith((" ou ", " ou na ", " ou no "), 0, named[0].inicio)


def _antes_dos_escritos(folha: Folha, vagas: Sequence[VagaLida]) -> Iterator[int]:
    """Yield the indexes of vacancies whose day is stated only by a weekday and is more than seven days before every day
    that the message states by a date.
    """
    written = [day.data for each in folha.dias[:200] if not each.solto and not each.semana for day in each.dias]
    first = min(written, default=None)
    for at, each in enumerate(vagas):
        assert each.derivacao is not None
        if first is not None and each.derivacao.de_semana and each.data.valor < first - timedelta(days=7):
            yield at


def _has_other_signs(folha: Folha, vagas: Sequence[VagaLida]) -> bool:
    """Return whether the lines of the vacancies begin with different signs, such as "◇" and "◆", or only some of them end
    with a sign such as "✔".
    """
    texto = folha.texto
    lines = {each.derivacao.do_bloco for each in vagas if each.derivacao is not None}
    signs, marked = set(), set()
    for start, end in lines if 1 < len(lines) < 60 else ():
        marked.add(texto.fonte[slice(*texto.trecho(start, max(start + 1, end)))].rstrip(_LOOSE)[-1:] in _MARKS)
        at = texto.fonte.rfind("\n", 0, texto.trecho(start, max(start + 1, end))[0]) + 1
        found = _SIGN.match(texto.fonte, at)
        signs.add("" if found is None else found[1])
    return len(signs - {""}) > 1 or len(marked) > 1


def _has_unread_day(folha: Folha, vagas: Sequence[VagaLida]) -> bool:
    """Return whether a number before a shift repeats the day of a vacancy, but was not read as a day: "dias 5 e 6 de
    agosto - 5 noturno, 6 diurno".
    """
    numbers = {int(each[1]) for each in _BEFORE_SHIFT.finditer(folha.livre)}
    return bool(numbers) and any(each.data.valor.day in numbers for each in vagas)


def _has_other_count(folha: Folha, vagas: Sequence[VagaLida]) -> bool:
    """Return whether the message states a number of shifts that equals neither the number of its vacancies, nor that of
    different shifts (place, day and period), nor that of days.
    """
    said = _COUNT.search(folha.texto.plano) if len(vagas) < 30 else None
    if said is None:
        return False
    number = _NUMBERS.get(said["n"]) or int(said["n"])
    shifts = {(each.hospital.valor, each.data.valor, each.periodo.valor) for each in vagas}
    return number not in (len(vagas), len(shifts), len({each.data.valor for each in vagas}))


def _tipos_do_dia(vaga: VagaLida) -> set[str]:
    """Return the kinds of days (workday, weekend, holiday) to which a vacancy's day may belong. Friday night may be
    part of the weekend.
    """
    day = vaga.data.valor
    is_holiday = day in feriados(day.year)
    is_weekend = day.weekday() > 4
    kinds = {"feriado"} if is_holiday or (day.month == 12 and day.day in (24, 31)) else {"normal"}
    if is_weekend or (day.weekday() == 4 and vaga.periodo.valor is Periodo.NOTURNO):
        kinds.add("fds")
    if not is_weekend:
        kinds |= {"semana", "normal"} if not is_holiday else {"semana"}
    return kinds


def _is_product(vagas: Sequence[VagaLida]) -> bool:
    """Return whether the vacancies combine each of several places with each of several shifts or specialities."""
    named = {each.hospital.valor for each in vagas}
    kinds = {(each.data.valor, each.periodo.valor, each.especialidade.valor) for each in vagas}
    others = {(each.periodo.valor, each.especialidade.valor) for each in vagas}
    return len(named) > 1 and len(others) > 1 and len(vagas) == len(named) * len(kinds)
