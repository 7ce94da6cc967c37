"""Remove days that are not days of shifts: days that belong to another subject, and weekdays that a list of dates
replaces.
"""

import re
from dataclasses import replace

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Dias, Marca, entre, linha_de
from app.contexts.leitura_grupos.texto.texto import contem

_STOP = re.compile(r"[.!?;] ")
_SINCE = re.compile(r"\ba partir d[eo] (?:dia )?$")
# Matches words before the day on which a list is written: "atualizada hoje", "as datas saem amanhã".
_WRITTEN = re.compile(
    r"\b(?:(?:atualizad|postad|enviad|divulgad|publicad)[ao]s?|atualizei|saem|divulgo|posto|mando)(?: (?:so|ate))? $"
)
# Matches words before the day of the payment: "pgto: 10/12".
_PAID = re.compile(
    r"\b(?:pgto|pagto|pagamentos?|receb(?:e|imento)|repasse|deposito|credito|nota(?: fiscal)?|nf)[ *_]{0,2}:?"
    r" {0,2}(?:(?:em|no|ate|previsto|para|pra|dia|o|todo) ){0,3}$"
)
_PAYS = ("pgto", "pagto", "pagamento", "receb", "repasse", "deposito", "credito", "nota", "nf")
_DIGIT = re.compile(r"\d")
_OF_SHIFTS = re.compile(
    r"\b(?:precis|vagas?\b|plant|quem\b|alguem\b|cobr|pass[oa]|abert|descob|falt|urgen|livre|dispon|sobr|escala)"
)


def sem_conversa(folha: Folha, days: list[Dias]) -> list[Dias]:
    """Remove days that are about something other than shifts.

    A day that is written as a word, such as "amanhã" in "A prova é amanhã", is removed if its sentence mentions no
    shift and another sentence has a day with a place and a shift. The day on which a list is written ("atualizada
    hoje") is also removed.
    """
    plano = folha.texto.plano
    if contem(plano, _PAYS):
        days = [each for each in days if not _PAID.search(plano, max(0, each.inicio - 40), each.inicio)] or days
    days = [
        each
        for each in days
        if _DIGIT.search(plano, each.inicio, each.fim)
        or not _WRITTEN.search(plano, max(0, each.inicio - 20), each.inicio)
    ] or days
    spans = [_frase_de(plano, each) for each in days]
    if len({*spans}) < 2 or not any(entre(folha.lugares, *span) and entre(folha.turnos, *span) for span in spans):
        return days
    marks = (folha.lugares, folha.turnos, folha.areas, folha.precos, folha.fechados)
    return [
        each
        for each, span in zip(days, spans, strict=True)
        if _DIGIT.search(plano, each.inicio, each.fim)
        or any(entre(kind, *span) for kind in marks)
        or _OF_SHIFTS.search(plano, *span)
    ]


def _frase_de(plano: str, mark: Marca) -> tuple[int, int]:
    """Return the start and the end of the sentence around a recognised word. A line end also ends the sentence."""
    line = linha_de(plano, mark.inicio)
    start = max((each.end() for each in _STOP.finditer(plano, line[0], mark.inicio)), default=line[0])
    end = _STOP.search(plano, mark.fim, line[1])
    return start, line[1] if end is None else end.start()


def so_os_ditos(plano: str, days: list[Dias]) -> list[Dias]:
    """Reduce the weekdays of a whole month to the dates that the message lists: "toda sexta e sábado de maio: 01/05,
    02/05".
    """
    implied = [each for each in days if each.semana and not each.solto and len(each.dias) > 1]
    if implied:
        days = [each for each in days if not _SINCE.search(plano, max(0, each.inicio - 24), each.inicio)] or days
    listed = {day.data for each in days if not each.semana for day in each.dias}
    implied = [each for each in implied if len(each.dias) > 3]
    if len(listed) < 2 or not implied or not listed <= {day.data for each in implied for day in each.dias}:
        return days
    return [
        replace(each, dias=tuple(day for day in each.dias if day.data in listed)) if each in implied else each
        for each in days
    ]
