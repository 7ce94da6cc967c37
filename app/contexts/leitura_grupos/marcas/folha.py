"""Collect all marks in one message. A mark is a range of the text that a reader (a function for one kind of field)
recognised, such as a day, a price or a place. Each reader blanks out the words that it recognised, so that the next
reader ignores them.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import TypeVar

from app.contexts.leitura_grupos.marcas.ajustes_de_dias import com_datas, sem_excetuados
from app.contexts.leitura_grupos.marcas.areas import areas, sem_apoio, sem_iniciais_da_cidade
from app.contexts.leitura_grupos.marcas.contatos import Contato, contatos, fones, ruido
from app.contexts.leitura_grupos.marcas.datas import Calendario, com_barras
from app.contexts.leitura_grupos.marcas.feriados import dias_de_feriados, feriados_com_nome
from app.contexts.leitura_grupos.marcas.horas import espelhadas, turnos
from app.contexts.leitura_grupos.marcas.lugares import Cidade, cidades, conhecidos, novos
from app.contexts.leitura_grupos.marcas.lugares_ditos import (
    com_a_unica_cidade,
    referencias,
    sem_descritos,
    sem_dito_duas_vezes,
)
from app.contexts.leitura_grupos.marcas.marca import (
    DATADO,
    Area,
    Combinar,
    Condicao,
    Dias,
    Fechado,
    Lugar,
    Marca,
    Pagamento,
    Preco,
    Turno,
    apagar,
    entre,
    linha_de,
)
from app.contexts.leitura_grupos.marcas.pagamentos import pagamentos
from app.contexts.leitura_grupos.marcas.precos import combinar, precos, sem_substituidos
from app.contexts.leitura_grupos.texto.texto import Texto, achados, contem
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, frases, palavras_soltas
from batuta.kernel import dataclass

_M = TypeVar("_M", bound=Marca)
_STRUCK = re.compile(r"~[^~\n]{1,400}~")
_WORKDAYS = re.compile(
    r"\b(?:dias?\s(?:uteis|util|de\ssemana)|(?:durante|na|de)\s(?:a\s)?semana(?!\s(?:q|que|proxima|seguinte|d[eo]\s(?:dia\s)?[\d\x02]))|semana(?=[\s:=-]{1,3}(?:r?\$|\d)))\b"
    r"|(?<=\d\s)sem\b(?=\s?[/|,;e]?\s?(?:r\$\s?)?\d)|(?<=\d\s)semana\b(?!\sq(?:ue)?\b)|(?<=k\s)semana\b|(?<=[\dk]\s\()semana\b"
)
# Matches every day except holidays; a price for weekends takes precedence.
_ORDINARY = re.compile(r"\bdias?\s(?:norma(?:l|is)|comu(?:m|ns))\b")
_ASKING = re.compile(r"\b(?:ja|foi|sera)\b[^.!?;,\n]{0,25}$")
_ASKED = re.compile(r"[^.!?;,\n]{0,60}\?")
_PAID_BY = re.compile(
    r" (?:por|pel[oa]|com) (?:o |a )?"
    r"(?:convenio|plano|sus|seguro|cooperativa|particular|plantao|turno|periodo|noite|dia|pacote|conjunto)\b"
)
_SIGNS = re.compile(r"[❌🔒🚫⛔✖]|✅")
# Matches the state of a place without an open shift: "a UPA Norte já está completa".
_COMPLETE = re.compile(
    r" (?:ja )?(?:ta|esta|foi|ficou)(?: tod[ao])? (?:complet[ao]|fechad[ao]|cobert[ao]|preenchid[ao]|lotad[ao])\b"
)
_WORKS_AT = re.compile(r"\b(?:trabalho|moro|estou|to) n[oa] $")
_IS_OPEN = re.compile(r"[ *_:-]{0,3}(?:disponive(?:l|is)|abert[ao]|livres?|vag[ao]s?)\b")
_CORRECTED = re.compile(
    r"\b(?:corrigindo|correcao|corrijo|errata|retificando|retificacao|ops|opa|na\sverdade|digo|alias|perdao|erro\smeu"
    r"|(?:olhei|vi|botei|coloquei|falei|digitei)\serrado|errei|esperem|leia-se|melhor\sdizendo|quer\sdizer)\b"
)
# Parts of words. A text that contains none of them cannot match ``_CORRECTED`` and is not searched.
_CORRECTS = (
    "corri",
    "correcao",
    "err",
    "retific",
    "ops",
    "opa",
    "verdade",
    "digo",
    "alias",
    "perdao",
    "esperem",
    "leia-se",
    "diz",
)
_NOT_AFTER = re.compile(r"[\s)]{0,2}nao(?=\s?(?:[,.;!\n]|$))")
_NOT_BEFORE = re.compile(
    r"(?:(?:\be\s|[,(]\s?)nao\s(?:e\s|sera\s)?|(?:\A|[:;.!\n]\s?)nao\s(?:e|sera)\s)(?:mais\s)?(?:n?[oa]s?\s)?(?:d[oa]\s)?$"
)
# The same for days, which an author also denies inside a clause: "o plantão que postei não é 24/04".
_DAY_NOT_BEFORE = re.compile(r"\bnao (?:e|eh|sera) (?:mais )?(?:n?[oa]s? )?$")
# Matches a statement that Friday night has the price of the weekend: "sexta à noite é valor de fds".
_FRIDAY_NIGHT = r"sex(?:ta)?(?:[ -]feira)?,? (?:a |de )?(?:noite|sn|noturno|n)\b"
_WEEKEND = r"(?:fds|fim de semana)\b"
_FRIDAY = re.compile(
    rf"\b(?P<antes>{_FRIDAY_NIGHT} (?:ja )?(?:e|eh|conta|entra|vale|paga|considera)\b[^\n().;\d]{{0,20}}\b{_WEEKEND})"
    rf"|\b{_WEEKEND}[ (,:]{{1,3}}(?P<depois>(?:ja |que )?"
    rf"(?:conta|inclui|considera|com|a partir d[ae])\b(?: desde)?(?: [ao])? {_FRIDAY_NIGHT})"
)
_IS_NOT = re.compile(r" nao (?:e|era) ")
_BUT_IS = re.compile("[éÉ]")


@dataclass(frozen=True, slots=True)
class Folha:
    texto: Texto
    livre: str
    dias: tuple[Dias, ...]
    turnos: tuple[Turno, ...]
    lugares: tuple[Lugar, ...]
    areas: tuple[Area, ...]
    precos: tuple[Preco, ...]
    condicoes: tuple[Condicao, ...]
    combinar: tuple[Combinar, ...]
    pagamentos: tuple[Pagamento, ...]
    fechados: tuple[Fechado, ...]
    contatos: tuple[Contato, ...]
    cidades: tuple[Cidade, ...]
    riscados: tuple[Marca, ...]
    sexta_no_fds: bool  # whether the price of the weekend applies to Friday night


def folha(
    texto: Texto, hoje: date, vocabulario: Vocabulario, regiao: str | None, fora: tuple[Marca, ...] = ()
) -> Folha:
    """Return all marks in a group message: the ranges that the readers recognise as days, shifts, places, specialities,
    prices and contacts. The readers ignore the ranges in ``fora``, which are not part of a shift offer.
    """
    struck = tuple(Marca(each.start(), each.end()) for each in achados(_STRUCK, texto.plano, "~"))
    friday = tuple(
        Marca(*each.span(each.lastgroup or 0)) for each in achados(_FRIDAY, texto.plano, "fds", "fim de semana")
    )
    livre = apagar(texto.plano, (*struck, *fora, *friday))
    phones = fones(livre)
    livre = apagar(livre, phones)
    livre = apagar(livre, ruido(livre))
    payments, paid_on = pagamentos(livre)
    livre = apagar(livre, paid_on)
    towns = cidades(texto, vocabulario)
    known = conhecidos(texto, livre, vocabulario, regiao, towns)
    livre = apagar(livre, known)
    dated = com_barras(apagar(livre, espelhadas(livre)))
    days = sem_excetuados(dated, list(Calendario.de(dated, hoje).ler(dated)))
    if not any(each.dias or each.feriado for each in days):
        days = sorted((*days, *dias_de_feriados(livre, hoje)), key=lambda each: each.inicio)
    livre = apagar(livre, (each for each in days if not each.feriado), DATADO)
    shifts = turnos(texto, livre)
    days = com_datas(days, shifts)
    free_of_hours = apagar(livre, (each for each in shifts if each.das or each.horas))
    new = sem_descritos(texto, novos(texto, apagar(livre, shifts), vocabulario, known, regiao))
    places = sem_dito_duas_vezes(texto.plano, known, new)
    again = referencias(texto, apagar(free_of_hours, places), places)
    places = sorted((*places, *again), key=lambda each: each.inicio)
    places = com_a_unica_cidade(texto, _sem_enganos(texto.plano, _afirmados(texto.plano, places)), towns)
    livre = apagar(free_of_hours, places)
    said = sem_iniciais_da_cidade(sem_apoio(areas(texto, livre, vocabulario), livre), places, texto.plano)
    specialities = _afirmados(texto.plano, said)
    letters = [each for each in shifts if each.fim - each.inicio == 1 and livre[each.fim : each.fim + 1] == "."]
    prices = sem_substituidos(texto.plano, precos(apagar(livre, (*specialities, *letters))), days)
    people = contatos(texto, apagar(livre, (*places, *specialities, *shifts, *prices)), phones, vocabulario)
    marks = _corrigidas(texto, livre, days, shifts, prices)
    return Folha(
        texto,
        livre,
        dias=marks[0],
        turnos=marks[1],
        precos=marks[2],
        condicoes=_condicoes(livre, hoje),
        combinar=tuple(combinar(texto)),
        pagamentos=tuple(payments),
        fechados=tuple(_fechados(texto, livre)),
        contatos=tuple(people),
        cidades=tuple(towns),
        riscados=struck,
        lugares=tuple(places),
        areas=tuple(specialities),
        sexta_no_fds=bool(friday),
    )


def _condicoes(livre: str, hoje: date) -> tuple[Condicao, ...]:
    """Return the words that limit a price to some days: workdays, ordinary days and named holidays."""
    is_workday = contem(livre, ("seman", "dia")) and contem(livre, ("sem", "uteis", "util"))
    workdays = _WORKDAYS.finditer(livre) if is_workday else ()
    ordinary = achados(_ORDINARY, livre, "norma", "comu")
    return (
        *(Condicao(each.start(), each.end(), frozenset(range(5))) for each in workdays),
        *(Condicao(each.start(), each.end(), frozenset(range(7))) for each in ordinary),
        *feriados_com_nome(livre, hoje),
    )


def _fechados(texto: Texto, livre: str) -> list[Fechado]:
    words = texto.palavras
    found = [
        Fechado(words[each.inicio].inicio, words[each.fim - 1].fim)
        for each in frases("fechado").todas(words)
        if [word.texto for word in words[each.fim : each.fim + 1]] != ["entao"]
        if each.inicio == 0 or words[each.inicio - 1].texto not in palavras_soltas("fecha_outra_coisa")
        if not _PAID_BY.match(texto.plano, words[each.fim - 1].fim)
        if not _is_asked(texto.plano, words[each.inicio].inicio, words[each.fim - 1].fim)
    ]
    found.extend(
        Fechado(each.start(), each.end(), each[0])
        for each in _SIGNS.finditer(livre)
        if _IS_OPEN.match(livre, each.end()) is None
    )
    return sorted(found, key=lambda each: each.inicio)


def _is_asked(plano: str, start: int, end: int) -> bool:
    """Return whether a word that would mean "taken" belongs to a question, as in "já fechou o SN de quinta?" (is
    Thursday night taken yet?).
    """
    return _ASKING.search(plano, max(0, start - 30), start) is not None and _ASKED.match(plano, end) is not None


def _corrigidas(
    texto: Texto, livre: str, days: list[Dias], shifts: list[Turno], prices: list[Preco]
) -> tuple[tuple[Dias, ...], tuple[Turno, ...], tuple[Preco, ...]]:
    """Remove the days, shifts and prices that the author corrects in the same message: "13/03 não… corrigindo: 12/03"."""
    said = days
    if "nao" in texto.plano:
        days = [left for each in days if (left := _sem_negados(texto, each)) is not None]
        shifts = [*_afirmados(texto.plano, shifts)]
    for cue in islice(achados(_CORRECTED, texto.plano, *_CORRECTS), 5):
        line = texto.plano.rfind("\n", 0, cue.start()) + 1
        end = texto.plano.find("\n", cue.end())
        end = len(texto.plano) if end < 0 else end
        denied = _datas_entre(said, cue.start(), end) - _datas_entre(days, cue.start(), end)
        if (others := _sem_os_mesmos(days, denied, line, cue.start(), end)) is not None:
            days = others
            continue
        days = _retirados(days, line, cue.start(), end)
        prices = _retirados(prices, line, cue.start(), end)
        shifts = _retirados(shifts, line, cue.start(), end)
    return tuple(days), tuple(shifts), tuple(prices)


def _datas_entre(days: Sequence[Dias], start: int, end: int) -> set[date]:
    return {day.data for each in days if start <= each.inicio < end for day in each.dias}


def _sem_os_mesmos(days: list[Dias], denied: set[date], line: int, cue: int, end: int) -> list[Dias] | None:
    """Remove earlier mentions of the days that a correction names again ("retificação: dia 18 é SD") or denies ("não é
    18/08, é 19/08").

    Return None, because the correction is of another kind, in three cases: the correction names no day, it names a day
    that the message has not mentioned before, or a day precedes it on the same line.
    """
    corrected = _datas_entre(days, cue, end)
    earlier = [each for each in days if each.inicio < cue]
    before = _datas_entre(earlier, 0, cue)
    if not corrected or any(line <= each.inicio for each in earlier):
        return None
    if denied and denied < before:
        corrected = denied
    if not corrected <= before:
        return None
    left = [replace(each, dias=tuple(day for day in each.dias if day.data not in corrected)) for each in earlier]
    return [*(each for each in left if each.dias or each.feriado), *(each for each in days if each.inicio >= cue)]


def _sem_negados(texto: Texto, each: Dias) -> Dias | None:
    """Remove days that the author denies. In "não é 22/01, é 23/01", only the day after the last "é" remains."""
    if _NOT_AFTER.match(texto.plano, each.fim):
        return None
    if not _is_denied(texto.plano, each):
        return each
    start, end = texto.trecho(each.inicio, each.fim)
    turn = _BUT_IS.search(texto.fonte, start, end)
    if turn is None:
        return None
    left = tuple(day for day in each.dias if texto.trecho(day.inicio, day.fim)[0] > turn.start())
    return replace(each, inicio=left[0].inicio, dias=left) if left else None


def _is_denied(plano: str, each: Marca) -> bool:
    before = _NOT_BEFORE.search(plano, max(0, each.inicio - 20), each.inicio)
    if before is None and isinstance(each, Dias):
        before = _DAY_NOT_BEFORE.search(plano, max(0, each.inicio - 20), each.inicio)
    return before is not None or _IS_NOT.match(plano, each.fim) is not None


def _afirmados(plano: str, marks: Sequence[_M]) -> Sequence[_M]:
    """Remove the places, shifts or specialities that the author denies: "é na UPA e não no hospital". If none would
    remain, remove nothing.
    """
    kept = [each for each in marks if not _is_denied(plano, each)] if "nao" in plano else marks
    return kept or marks


def _sem_enganos(plano: str, places: Sequence[Lugar]) -> Sequence[Lugar]:
    """Remove the place that a correction on the same line replaces: "na UPA Norte, ops, no Hospital Vida"."""
    if len(places) < 2:
        return places
    places = [
        each
        for each in places
        if not _COMPLETE.match(plano, each.fim) and not _WORKS_AT.search(plano, max(0, each.inicio - 20), each.inicio)
    ] or places
    for cue in islice(achados(_CORRECTED, plano, *_CORRECTS), 5):
        line = linha_de(plano, cue.start())
        before, after = entre(places, line[0], cue.start()), entre(places, cue.end(), line[1])
        if (
            len(before) == 1
            and after
            and len(plano[before[0].fim : cue.start()]) <= 12
            and after[0].inicio - cue.end() <= 12
        ):
            places = [each for each in places if each is not before[0]]
    return places


def _retirados(marks: list[_M], line: int, cue: int, end: int) -> list[_M]:
    """Remove the values (days, shifts or prices) that a correction replaces. The replaced values are those before the
    correction on its line or, if there are none, on all earlier lines. If no new value follows the correction on its
    line, remove nothing.
    """
    if not any(cue <= each.inicio < end for each in marks):
        return marks
    since = line if any(line <= each.inicio < cue for each in marks) else 0
    return [each for each in marks if not since <= each.inicio < cue]
