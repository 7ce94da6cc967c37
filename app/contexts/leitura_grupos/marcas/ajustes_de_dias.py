"""Adjust the days that were found in a message: remove excluded days ("de 10 a 14/08, exceto 12/08"), and give weekdays
the dates that the message states after them.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from app.contexts.leitura_grupos.marcas.marca import Dia, Dias, Turno, entre
from app.contexts.leitura_grupos.texto.texto import achados

_EXCEPT = re.compile(
    r"(?<!pelo )(?<!ao )(?<!ou )\b(?:exceto|menos|salvo|tirando|fora|com excecao d[eao]s?|sem ser)"
    r"(?: n?[oa]s?)?(?: dias?)?[ :]{1,2}(?=[\da-z])"
)
# Matches a shift or a price after a day: only this shift is excluded, or the exception is one of prices.
_OF_A_PART = re.compile(
    r"[ )(:=,-]{0,4}(?:s[dn]\b|dia\b|noite|manha|tarde|diurno|noturno|[dn]\b|(?:a |por |e )?(?:r\$|\d))"
)


def sem_excetuados(livre: str, days: list[Dias]) -> list[Dias]:
    """Remove excluded days from the days that the message names before them. An excluded weekday removes all dates on
    this weekday. An exclusion of a single shift or price ("exceto 12/08 SN") removes nothing.
    """
    for cue in islice(achados(_EXCEPT, livre, "exce", "menos", "salvo", "tirando", "fora", "sem ser"), 5):
        away = next((each for each in days if cue.start() <= each.inicio <= cue.end()), None)
        if away is None or away.feriado or _OF_A_PART.match(livre, away.fim):
            continue
        earlier = [each for each in days if each.inicio < cue.start()]
        left = [_sem(each, away) for each in earlier]
        if any(each.dias for each in left):
            days = [
                *(each for each in left if each.dias or each.feriado),
                *(each for each in days if each.inicio > away.inicio),
            ]
    return days


def com_datas(days: list[Dias], shifts: Sequence[Turno]) -> list[Dias]:
    """Assign to weekdays the dates that the message states before or after them, and remove these dates from the list:
    "sábado de manhã e domingo à tarde, 11 e 12/04", "dias 11 e 12/04, sábado SD e domingo SN". Each weekday must have its
    own shift, and the dates must fall on exactly these weekdays.
    """
    for run in days:
        if run.solto or run.semana or len(run.dias) < 2:
            continue
        named = [
            each
            for each in days
            if each.solto and len(each.semana) == 1 and run.inicio - 80 < each.inicio < run.fim + 80
        ]
        dates = {day.data.weekday(): day.data for day in run.dias}
        if sorted(day for each in named for day in each.semana) != sorted(dates) or len(dates) < len(run.dias):
            continue
        if entre(shifts, run.fim, run.fim + 6) or not all(entre(shifts, each.fim, each.fim + 6) for each in named):
            continue
        dated = {id(each): dates[min(each.semana)] for each in named}
        return [
            replace(each, dias=(Dia(each.inicio, each.fim, dated[id(each)]),), solto=False)
            if id(each) in dated
            else each
            for each in days
            if each is not run
        ]
    return days


def _sem(run: Dias, away: Dias) -> Dias:
    dates = {day.data for day in away.dias}
    kept = tuple(
        day
        for day in run.dias
        if (day.data.weekday() not in away.semana if away.solto and not run.solto else day.data not in dates)
    )
    return run if len(kept) == len(run.dias) else replace(run, dias=kept)
