"""Decide which of the days that a message names are days of shifts. The other days say when a price applies, or belong
to a headline.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Dias, entre, linha_de

BULLET = re.compile(r"[^a-z0-9]{0,6}")
_WEEK_OF = re.compile(r"\bsemana (?:\d ?[(:-] ?|d[eo] (?:dia )?|\(|: ?)?$")


def datas_de(run: Dias) -> frozenset[date]:
    return frozenset(day.data for day in run.dias)


def datas_de_precos(folha: Folha) -> Iterator[Dias]:
    """Yield dates that only say when a price applies: "07/09 (feriado): R$ 2.400" below the shift of 07/09."""
    runs = [each for each in folha.dias if each.dias and not each.solto and not each.feriado]
    if len(runs) < 2 or not folha.precos:
        return
    times = Counter(day for each in runs for day in datas_de(each))
    found: list[Dias] = []
    plano = folha.livre
    for each in runs:
        line = linha_de(plano, each.inicio)
        earlier = entre(folha.precos, line[0], each.inicio)[-1:]
        is_behind = bool(earlier) and plano[earlier[0].fim : each.inicio] == " "
        price = earlier[0] if is_behind else next(iter(entre(folha.precos, each.fim, line[1])), None)
        if price is None or any(times[day] < 2 for day in datas_de(each)):
            continue
        since = earlier[0].fim if earlier and not is_behind else 0
        start = max(line[0], since, *(plano.rfind(sign, line[0], each.inicio) for sign in (". ", ";")))
        if entre(folha.lugares, start, price.fim) or entre(folha.dias, each.fim, price.inicio)[1:]:
            continue
        if not any(mark.periodo or mark.das for mark in entre(folha.turnos, start, max(each.fim, price.inicio))):
            found.append(each)
    priced = Counter(day for each in found for day in datas_de(each))
    yield from (each for each in found if any(priced[day] < times[day] for day in datas_de(each)))


def dia_fechado(folha: Folha, each: Dias, days: Sequence[Dias]) -> Dias | None:
    """Return the dates of a weekday that the message declares taken, as in "só a quinta já está coberta" (only Thursday
    is taken). Return None if no word for "taken" follows the weekday.
    """
    after = entre(folha.fechados, each.fim, each.fim + 20)
    if not each.semana or not after or after[0].sinal or "\n" in folha.texto.plano[each.fim : after[0].inicio]:
        return None
    named = {
        day.data: day for run in days[:60] if not run.solto for day in run.dias if day.data.weekday() in each.semana
    }
    found = tuple(replace(day, inicio=each.inicio, fim=each.fim) for day in named.values())
    return replace(each, dias=found, solto=False) if found else None


def sem_fds_repetido(folha: Folha, days: list[Dias]) -> list[Dias]:
    """Remove the mention of the weekend if the message also names other days: "fim de semana: sábado SD, domingo SN"."""
    if len(days) < 2:
        return days
    named = [
        each
        for each in days
        if not (each.solto and each.semana == {5, 6} and folha.texto.plano[each.inicio : each.inicio + 1] == "f")
    ]
    return named or days[:1]


def sem_semanas(folha: Folha, days: list[Dias]) -> list[Dias]:
    """Remove the days of a week before its weekdays: "semana 2 (08 a 14/06): ter SN, sáb SD"."""
    plano = folha.texto.plano
    if "semana" not in plano:
        return days
    weeks = {id(each) for each in days if _WEEK_OF.search(plano, max(0, each.inicio - 20), each.inicio)}
    return (
        [each for each in days if id(each) not in weeks or not _has_weekday_with_shift(folha, each)] if weeks else days
    )


def _has_weekday_with_shift(folha: Folha, week: Dias) -> bool:
    """Return whether a weekday with its own shift follows the days of a week on their line."""
    _, end = linha_de(folha.texto.plano, week.fim)
    return any(
        each.solto and each.semana and bool(entre(folha.turnos, each.fim, each.fim + 5))
        for each in entre(folha.dias, week.fim, end)
    )


def sem_manchete(folha: Folha, days: list[Dias]) -> list[Dias]:
    """Remove the days of a headline whose range covers the days below it: "Lista da semana de 09 a 15/11"."""
    named = [each for each in days if not _WEEK_OF.search(folha.texto.plano, max(0, each.inicio - 20), each.inicio)]
    days = named or days
    head, rest = days[:1], days[1:]
    below = {day.data for each in rest for day in each.dias if each.semana}
    if head and head[0].dias and all(day.data in below for day in head[0].dias):
        return rest if not entre(folha.turnos, *linha_de(folha.texto.plano, head[0].inicio)) else days
    is_week = bool(rest) and 4 < len(head[0].dias) < 8 and head[0].dias[0].data.weekday() == 0
    is_week = is_week and not entre(folha.turnos, *linha_de(folha.texto.plano, head[0].inicio))
    if not (is_week and all(each.semana for each in rest)) and (len(rest) < 3 or len(head[0].dias) < 4):
        return days
    spanned = {day.data for day in head[0].dias}
    return rest if all(day.data in spanned for each in rest for day in each.dias) else days


def is_own_day(folha: Folha, each: Dias, free: Sequence[Dias]) -> bool:
    """Return whether a weekday with a price is a day of a shift, as in "domingo R$ 1.500 SD" below "sábado SD R$
    1.400". It must begin a line that has a shift, and no other line may offer a shift on this weekday.
    """
    if not free or not each.semana or any(each.semana & other.semana for other in free):
        return False
    line = linha_de(folha.texto.plano, each.inicio)
    return BULLET.fullmatch(folha.texto.plano, line[0], each.inicio) is not None and bool(entre(folha.turnos, *line))


def has_own_place(folha: Folha, each: Dias) -> bool:
    """Return whether a weekday is a day of a shift, because its line has a place before it, a shift directly after it
    and no date: "UPA Norte: dom 19h-7h R$ 1.500".
    """
    line = linha_de(folha.texto.plano, each.inicio)
    places, shifts = entre(folha.lugares, line[0], each.inicio), entre(folha.turnos, each.fim, each.fim + 5)
    alone = len(entre(folha.dias, *line)) == 1
    return alone and len(places) == 1 and bool(shifts) and len(each.semana) == 1


def begins_shift(folha: Folha, each: Dias) -> bool:
    """Return whether a weekday among dates is a separate day of a shift.

    There are two cases. In the first, the weekday begins a line that has a shift but neither a date nor a price; a
    price is allowed if a headline has the weekday's date: "sobrou do fds (08 e 09/08)". In the second, a shift directly
    follows the weekday, and another shift stands between each date of the line and the weekday.
    """
    line = linha_de(folha.texto.plano, each.inicio)
    if BULLET.fullmatch(folha.texto.plano, line[0], each.inicio) and entre(folha.turnos, *line):
        is_free = not entre(folha.precos, *line) or _is_in_heading(folha, each)
        return is_free and all(other.solto for other in entre(folha.dias, *line))
    for other in entre(folha.dias, *linha_de(folha.texto.plano, each.inicio)):
        if not other.solto and not entre(folha.turnos, other.fim, each.inicio):
            return False
    return bool(entre(folha.turnos, each.fim, each.fim + 5))


def _is_in_heading(folha: Folha, each: Dias) -> bool:
    """Return whether a headline has a weekday's date: the first dates in the message are on an earlier line without
    shifts, and include this date.
    """
    first = next((other for other in folha.dias if not other.solto and other.dias), None)
    if first is None or first.inicio > each.inicio:
        return False
    line = linha_de(folha.texto.plano, first.inicio)
    return not entre(folha.turnos, *line) and line[1] < each.inicio and datas_de(each) <= datas_de(first)
