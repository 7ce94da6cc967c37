"""Find the conditions of each price in a message: weekday, holiday, period, length, speciality, hospital."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import groupby, islice, pairwise
from operator import attrgetter

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.horas import DURACAO, horas_entre, periodo_das_horas
from app.contexts.leitura_grupos.marcas.lugares import Cidade
from app.contexts.leitura_grupos.marcas.marca import Area, Condicao, Dias, Lugar, Marca, Preco, Turno, entre, linha_de
from app.contexts.leitura_grupos.montagem.dias_de_plantao import (
    BULLET,
    begins_shift,
    datas_de,
    datas_de_precos,
    dia_fechado,
    has_own_place,
    is_own_day,
    sem_fds_repetido,
    sem_manchete,
    sem_semanas,
)
from app.contexts.leitura_grupos.montagem.dias_ditos import sem_conversa, so_os_ditos
from app.contexts.leitura_grupos.texto.texto import chave
from app.contexts.leitura_grupos.texto.vocabulario import palavras_soltas
from app.contexts.leitura_grupos.tipos import Periodo
from batuta.kernel import dataclass

_inicio = attrgetter("inicio")
_AND = re.compile(r" {0,2}(?:e|ou|/|,) {0,2}")
_NEXT_TO = re.compile(r" {0,2}[/|] {0,2}")
_OPENS = re.compile(r"[ :=-]{0,3}\(?")
_DIGIT = re.compile(r"\d")
_ALNUM = re.compile(r"[a-z0-9]+")
_LINKS = frozenset(("e", "ou", "sao", "e o", "valores", "valor", "plantao"))
_BRACKET = re.compile(r" {0,2}\([^()\n]{1,40}\)")
_COLON = re.compile(r"[ *_]{0,2}[:=]")
_PART = re.compile(r"\bp/|[a-z0-9]+|[^\sa-z0-9]|\n")
# Largest distance between a price and its condition, as ``_custo`` measures it.
PERTO = 2
# The cost of a line end alone is above ``PERTO``.
_COST = {"e": 2, "ou": 2, ",": 3, ";": 5, "/": 5, "|": 5, "\n": 9, ".": 5, "\x01": 4, "\x02": 4, "•": 5, "+": 2}


@dataclass(slots=True, unsafe_hash=True)
class Regra:
    """A price with its conditions. ``so_condicao`` has the marks (recognised words) whose only purpose is to say when
    this price applies.
    """

    preco: Preco
    condicoes: tuple[Marca, ...] = ()
    so_condicao: tuple[Marca, ...] = ()

    def serve(self, alvo: "Alvo") -> bool:
        kinds: dict[str, bool] = {}
        for each in self.condicoes:
            kind, holds = _holds(each, alvo)
            kinds[kind] = kinds.get(kind, False) or holds
        return all(kinds.values())

    @property
    def peso(self) -> int:
        """The sum of the weights of the price's conditions. Hospital, town and speciality weigh more than holiday,
        period and weekday.
        """
        weights = {type(each): _peso(each) for each in self.condicoes}
        return sum(weights.values())


def _peso(mark: Marca) -> int:
    match mark:
        case Lugar() | Cidade():
            return 48
        case Area():
            return 32
        case Turno():
            return 8
        case Condicao(datas=named) if named:
            return 56
        case Condicao(feriado=True) | Dias(feriado=True):
            return 16
        case Condicao() | Dias():
            return {1: 3, 7: 1}.get(len(mark.semana), 2)
        case _:
            return 0


@dataclass(slots=True, unsafe_hash=True)
class Alvo:
    """The vacancy for which a price is being searched."""

    hospital: str
    cidade: str | None
    especialidade: str
    data: date
    periodo: Periodo
    horas: int
    feriado: bool


def regras(folha: Folha) -> tuple[list[Regra], list[Dias]]:
    """Return every price with its conditions. Also return the days that are days of shifts rather than conditions of a
    price.
    """
    priced = {id(each): each for each in datas_de_precos(folha)}
    days = sem_semanas(folha, [each for each in folha.dias if not each.feriado and id(each) not in priced])
    dates = [Condicao(each.inicio, each.fim, datas=datas_de(each)) for each in priced.values()]
    loose = [each for each in folha.dias if each.solto]
    # Next to "amanhã" or "hoje", a weekday is a day of a shift; next to "12/08", it may be the condition of a price.
    has_dates = any(not each.solto and _DIGIT.search(folha.texto.plano, each.inicio, each.fim) for each in days)
    fortes = [each for each in folha.areas if not each.fraca]
    others: list[Marca] = [*loose, *dates, *folha.condicoes, *folha.turnos, *folha.lugares, *_cidades_de_lugares(folha)]
    candidates = sorted((*others, *fortes), key=_inicio) if folha.precos else ()
    held = _presos(folha, candidates)
    paired = _lado_a_lado(folha, candidates, held)
    every = sorted((*others, *folha.areas), key=_inicio) if folha.precos else ()
    _em_listas(folha, every, held, paired)
    _com_cabeca(folha, every, held)
    for hung in held.values():
        hung.extend(_enumerados(folha, [each for each in hung if id(each) not in paired]))
    conditions = {id(mark) for marks in held.values() for mark in marks}
    free = [each for each in loose if id(each) not in conditions and not each.feriado]
    kept: list[Dias] = []
    for each in days:
        if not each.solto:
            kept.append(each)
        elif _is_named_twice(folha.livre, each, days):
            continue
        elif has_dates and (closed := dia_fechado(folha, each, days)) is not None:
            kept.append(closed)
        elif id(each) in conditions and (has_dates or free) and not is_own_day(folha, each, free):
            continue
        elif (has_dates and has_own_place(folha, each)) or not has_dates or begins_shift(folha, each):
            kept.append(each)
    kept = sem_conversa(folha, kept)
    kept = so_os_ditos(folha.texto.plano, sem_manchete(folha, sem_fds_repetido(folha, kept)))
    kept_ids = {id(each) for each in kept}
    found: list[Regra] = []
    if not folha.precos:
        return found, kept
    elsewhere = _Alhures.de(folha)
    periods = {periodo_de(each) for each in folha.turnos} - {None}
    for price in folha.precos:
        marks = tuple(
            mark
            for mark in held.get(id(price), ())
            if id(mark) not in kept_ids and not _is_last_of_several(folha, price, mark)
        )
        if len(periods) == 1 and len(marks) == 1:
            # In a message that is only about nights, "1.250 a noite" is the price of all shifts without another price.
            marks = tuple(mark for mark in marks if not isinstance(mark, Turno) or periodo_de(mark) is None)
        found.append(
            Regra(
                price,
                marks,
                tuple(mark for mark in marks if id(mark) in paired or _only_condition(folha, price, mark, elsewhere)),
            )
        )
    return found, kept


def _is_named_twice(plano: str, each: Dias, days: Sequence[Dias]) -> bool:
    """Return whether a weekday only repeats the day next to it: "hoje segunda", "amanhã, terça"."""
    near = (run for run in days if not run.solto and len(run.dias) == 1 and 0 <= each.inicio - run.fim < 4)
    return any(run.dias[0].data.weekday() in each.semana and "\n" not in plano[run.fim : each.inicio] for run in near)


def _presos(folha: Folha, candidates: Sequence[Marca]) -> dict[int, list[Marca]]:
    """Assign each possible condition of a price, such as a weekday or a hospital, to the price next to it. Drop a
    condition that is not next to a price.
    """
    prices, plano = folha.precos, folha.livre
    held: dict[int, list[Marca]] = {}
    place = 0
    for index, each in enumerate(candidates):
        while place < len(prices) and prices[place].inicio < each.inicio:
            place += 1
        best: tuple[int, Preco] | None = None
        if place < len(prices):
            cost = _custo(plano, each.fim, prices[place].inicio, _vizinhas(each, candidates[index + 1 : index + 4]))
            best = (cost, prices[place])
        if place:
            near = _vizinhas(each, candidates[max(0, index - 3) : index])
            cost = _custo(plano, prices[place - 1].fim, each.inicio, near)
            is_tied = best is not None and cost == best[0]
            if (
                best is None
                or cost < best[0]
                or (is_tied and (_is_bracketed(plano, each) or _follows_price(folha, each, candidates)))
            ):
                best = (cost, prices[place - 1])
        if best is not None and best[0] <= PERTO:
            held.setdefault(id(best[1]), []).append(each)
    return held


def _follows_price(folha: Folha, each: Marca, candidates: Sequence[Marca]) -> bool:
    """Return whether the conditions of prices on a line come after the prices: "1,25k semana 1,4k fds"."""
    line = linha_de(folha.texto.plano, each.inicio)
    prices, marks = entre(folha.precos, *line), entre(candidates, *line)
    return bool(prices) and prices[0].inicio < marks[0].inicio and prices[-1].inicio < marks[-1].inicio


def _is_bracketed(plano: str, each: Marca) -> bool:
    """Return whether a word in brackets is the condition of the price before it: "1.400 (ter) 1.450 (qui)"."""
    return plano[max(0, each.inicio - 1) : each.inicio] == "(" and plano[each.fim : each.fim + 1] == ")"


def _lado_a_lado(folha: Folha, candidates: Sequence[Marca], held: dict[int, list[Marca]]) -> set[int]:
    """Pair adjacent prices with adjacent conditions in order: "1.800/2.000 (D/N)", "semana/fds 1.500/1.700"."""
    found: set[int] = set()
    holders = {id(mark): marks for marks in held.values() for mark in marks}
    for one, two in pairwise(folha.precos):
        pair = _par(folha, candidates, one, two)
        if pair is None:
            continue
        for price, mark in zip((one, two), pair, strict=True):
            if (before := holders.get(id(mark))) is not None and mark in before:
                before.remove(mark)
            others = [each for each in held.get(id(price), ()) if not isinstance(each, Turno | Dias | Condicao)]
            held[id(price)] = [*others, mark]
            found.add(id(mark))
    return found


def _par(folha: Folha, candidates: Sequence[Marca], one: Preco, two: Preco) -> tuple[Marca, Marca] | None:
    """Return the two adjacent conditions, such as "semana/fds", directly before or directly after two adjacent prices.
    Return None if there are none.
    """
    plano = folha.livre
    if not _NEXT_TO.fullmatch(plano, one.fim, two.inicio):
        return None
    near = [
        each
        for each in (
            *entre(candidates, one.inicio - 30, one.inicio)[-2:],
            *entre(candidates, two.fim, two.fim + 30)[:2],
        )
        if isinstance(each, Turno | Dias | Condicao)
    ]
    for first, second in pairwise(near):
        gap = (two.fim, first.inicio) if first.inicio >= two.fim else (second.fim, one.inicio)
        if _NEXT_TO.fullmatch(plano, first.fim, second.inicio) and _OPENS.fullmatch(plano, *gap):
            return first, second
    return None


def _enumerados(folha: Folha, marks: Sequence[Marca]) -> list[Turno]:
    """Return the other shifts in a list of shifts before a price: in "SD e SN 2.000" the price of SN applies to SD too."""
    found: list[Turno] = []
    for each in marks:
        at = bisect_left(folha.turnos, each.inicio, key=lambda turno: turno.inicio) if isinstance(each, Turno) else 0
        while at and _AND.fullmatch(folha.livre, folha.turnos[at - 1].fim, each.inicio):
            at -= 1
            each = folha.turnos[at]
            found.append(each)
    return [each for each in found if each not in marks]


def _cidades_de_lugares(folha: Folha) -> Sequence[Cidade]:
    """Return mentions of towns that may tell the prices of hospitals apart: "2.000 Recife / 2.300 Caruaru"."""
    several = {each.cidade: each.uf or "" for each in folha.lugares[:50] if each.cidade}
    if len(several) < 2:
        return ()
    known = [each for each in folha.cidades if each.nome in several]
    taken = {each.inicio for each in known}
    plano = folha.texto.plano
    for name, state in several.items():
        word = re.compile(rf"\b{re.escape(chave(name))}\b")
        known.extend(
            Cidade(each.start(), each.end(), name, state)
            for each in islice(word.finditer(plano), 10)
            if each.start() not in taken
        )
    return known


def _em_listas(folha: Folha, candidates: Sequence[Marca], held: dict[int, list[Marca]], paired: set[int]) -> None:
    """Read lines that list prices by condition: "UTI – semana: D 1.600 / N 1.700 – fds: D 1.750 / N 1.850"."""
    plano = folha.livre
    for line, group in groupby(folha.precos, key=lambda each: linha_de(plano, each.inicio)):
        prices, marks = [*group], _sem_sobrepostas(entre(candidates, *line))
        if len(prices) < 2 or not marks or any(id(mark) in paired for mark in marks):
            continue
        if any(not (each.solto or _is_priced(each, marks)) for each in entre(folha.dias, *line)):
            continue
        gaps = [*_intervalos(plano, line[0], prices, marks)]
        behind = entre(marks, prices[-1].fim, line[1])
        if not all(gaps) or (
            behind and behind[0] not in gaps[-1] and _is_joined(plano, prices[-1].fim, behind[0].inicio)
        ):
            continue
        for price, state in zip(prices, _estados(plano, prices, gaps), strict=True):
            held[id(price)] = state


def _sem_sobrepostas(marks: Sequence[Marca]) -> list[Marca]:
    """Remove the conditions of prices that are inside another condition, such as "dia" in "dia útil" (workday)."""
    kept: list[Marca] = []
    for each in sorted(marks, key=lambda mark: (mark.inicio, -mark.fim)):
        if not kept or each.fim > kept[-1].fim or each.inicio == kept[-1].inicio:
            kept.append(each)
    return kept


def _is_priced(each: Dias, marks: Sequence[Marca]) -> bool:
    """Return whether a date is only the condition of a price, and not the day of a shift."""
    return any(isinstance(mark, Condicao) and mark.datas for mark in entre(marks, each.inicio, each.inicio + 1))


def _is_joined(plano: str, start: int, end: int) -> bool:
    """Return whether two conditions belong together, because only punctuation and words such as "e" separate them."""
    between = plano[start:end]
    if len(between) > 30 or ". " in between or "\n" in between:
        return False
    return all(word in _LINKS or word in palavras_soltas("junto_do_preco") for word in _ALNUM.findall(between))


def _intervalos(plano: str, start: int, prices: Sequence[Preco], marks: Sequence[Marca]) -> Iterator[list[Marca]]:
    """Yield the conditions of each price: those directly before the price, and those in brackets directly after it."""
    for price in prices:
        own: list[Marca] = []
        at = price.inicio
        for mark in reversed(entre(marks, start, price.inicio)):
            if not _is_joined(plano, mark.fim, at):
                break
            own.insert(0, mark)
            at = mark.inicio
        start = price.fim
        if (bracket := _BRACKET.match(plano, price.fim)) is not None:
            inside = entre(marks, price.fim, bracket.end())
            if inside and not entre(prices, price.fim, bracket.end()):
                own, start = [*own, *inside], bracket.end()
        yield own


def _estados(plano: str, prices: Sequence[Preco], gaps: Sequence[Sequence[Marca]]) -> Iterator[list[Marca]]:
    """Yield all conditions of each price, including those that continue from earlier prices. If a condition (such as
    "UTI") is followed by a condition of another kind (such as a weekday), it also applies to the next prices, until a
    condition of its own kind (such as "PS") replaces it.
    """
    outer: dict[str, list[Marca]] = {}
    end = 0
    for price, gap in zip(prices, gaps, strict=True):
        new: dict[str, list[Marca]] = {}
        for each in gap:
            new.setdefault(_genero(each), []).append(each)
        first = next(iter(new))
        kept = {kind: marks for kind, marks in outer.items() if kind not in new}
        if first in outer:
            order = [*outer]
            kept = {kind: marks for kind, marks in kept.items() if order.index(kind) < order.index(first)}
        state = kept | new
        yield [mark for marks in state.values() for mark in marks]
        end = price.fim
        is_open = plano[end : end + 3].lstrip(" ")[:1] not in (";", ".")
        carried = list(state)[:-1] if len(state) > 1 else ["onde"] if first == "onde" and is_open else []
        outer = {kind: state[kind] for kind in carried}


def _genero(mark: Marca) -> str:
    match mark:
        case Lugar() | Cidade() | Area():
            return "onde"
        case Turno():
            return "turno"
        case _:
            return "dias"


def _com_cabeca(folha: Folha, candidates: Sequence[Marca], held: dict[int, list[Marca]]) -> None:
    """Apply a condition at the start of a line to each price on the line: in "UTI: semana 2.000 / fds 2.250", both
    prices are for the speciality UTI.
    """
    plano = folha.texto.plano
    for price in folha.precos:
        start, _ = linha_de(plano, price.inicio)
        head = next(iter(entre(candidates, start, price.inicio)), None)
        if head is None or not BULLET.fullmatch(plano, start, head.inicio) or not _COLON.match(plano, head.fim):
            continue
        marks = held.setdefault(id(price), [])
        kind = (Dias, Condicao) if isinstance(head, Dias | Condicao) else type(head)
        if not any(isinstance(each, kind) for each in marks):
            marks.append(head)


def _vizinhas(each: Marca, others: Sequence[Marca]) -> Sequence[Marca]:
    """Return the other conditions that may stand between a condition and its price, such as "domingo" in "feriado e
    domingo 1.800".
    """
    if isinstance(each, Area):
        return [other for other in others if isinstance(other, Turno)]
    if isinstance(each, Turno):
        return [other for other in others if isinstance(other, Dias | Condicao) and not _e_comprimento(each)]
    if not isinstance(each, Dias | Condicao):
        return ()
    is_kind = each.feriado or isinstance(each, Condicao)
    return [
        other
        for other in others
        if isinstance(other, Dias | Condicao) or _e_comprimento(other) or (is_kind and isinstance(other, Turno))
    ]


def _e_comprimento(mark: Marca) -> bool:
    """Return whether the mention of a shift states only its length: "12h" in "seg a sex 12h: 1.250"."""
    return isinstance(mark, Turno) and mark.horas is not None and mark.das is None


def _custo(plano: str, start: int, end: int, others: Sequence[Marca]) -> int:
    """Return the distance between a price and a possible condition. The words and signs between the two add to the
    distance; other possible conditions add nothing. A distance above ``PERTO`` is returned as 99.
    """
    if not 0 <= end - start <= 60:
        return 99
    near = palavras_soltas("junto_do_preco")
    between = [each for each in others if start <= each.inicio and each.fim <= end]
    if not between and plano.find("\n", start, end) >= 0:
        return 99
    cost, at = 0, start
    for gap_end, next_at in [*((each.inicio, each.fim) for each in between), (end, end)]:
        for found in _PART.finditer(plano, at, max(at, gap_end)):
            part = found[0]
            if part in _COST:
                cost += _COST[part] if not (between and part in ("e", ",", "/")) else 1
            elif part.isalnum() and part not in near:
                cost += 4
            if cost > PERTO:
                return 99
        at = next_at
    return cost


def _only_condition(folha: Folha, price: Preco, mark: Marca, elsewhere: "_Alhures") -> bool:
    """Return whether a recognised word, such as a place or a shift, only says when the price applies: "1.350 na UPA",
    "SD 2.250 / SN 2.400".
    """
    match mark:
        case Lugar():
            return mark.inicio > price.inicio and folha.livre[max(0, mark.inicio - 4) : mark.inicio].endswith(
                (" na ", " no ")
            )
        case Area():
            shifts = entre(folha.turnos, mark.inicio - 12, mark.inicio)
            is_own = (
                _has_day_before(folha, price, mark)
                or entre(folha.dias, mark.fim, mark.fim + 4)
                or (shifts and folha.livre[shifts[-1].fim : mark.inicio] in (" ", ": "))
            )
            return elsewhere.areas[mark.nome] < mark.inicio and not is_own
        case Turno(periodo=None, das=None):
            return len(folha.precos) > 1
        case Turno():
            is_stated = not elsewhere.periodos.isdisjoint((periodo_de(mark), Periodo.H24))
            return is_stated and not _has_day_before(folha, price, mark) and not _is_of_bare_day(folha, mark)
        case _:
            return True


@dataclass(frozen=True, slots=True)
class _Alhures:
    """Facts about the whole message that show whether a word is only the condition of a price. ``periodos`` has the
    periods of shifts that are far from any price. ``areas`` has the position at which the message first names each
    speciality.
    """

    periodos: frozenset[Periodo | None]
    areas: Mapping[str, int]

    @classmethod
    def de(cls, folha: Folha) -> "_Alhures":
        first = {each.nome: each.inicio for each in reversed(folha.areas)}
        shifts = (each for each in folha.turnos if not _is_closed(folha, each))
        return cls(frozenset(periodo_de(each) for each in shifts if _is_far_from_prices(folha, each)), first)


def _is_closed(folha: Folha, each: Turno) -> bool:
    """Return whether the line of a shift says that the shift is taken: "Obs.: SN do dia 12 já preenchido"."""
    if not folha.fechados:
        return False
    line = linha_de(folha.texto.plano, each.inicio)
    return bool(entre(folha.fechados, *line)) and len(entre(folha.turnos, *line)) == 1


def _is_last_of_several(folha: Folha, price: Preco, mark: Marca) -> bool:
    """Return whether a line's only price applies to all shifts on the line, and not just to the last: "18/06 SN e 20/06
    SD - 2.000".
    """
    if not isinstance(mark, Turno) or mark.inicio > price.inicio:
        return False
    line = linha_de(folha.texto.plano, price.inicio)
    alone = len(entre(folha.precos, *line)) == 1
    days = [each for each in entre(folha.dias, line[0], mark.inicio) if not each.feriado]
    return alone and len(days) > 1 and _has_day_before(folha, price, mark)


def _has_day_before(folha: Folha, price: Preco, mark: Turno | Area) -> bool:
    """Return whether a day precedes the condition of a price in the same sentence, with no other price between the two."""
    line, _ = linha_de(folha.texto.plano, mark.inicio)
    earlier = entre(folha.precos, line, min(mark.inicio, price.inicio))
    stop = folha.livre.rfind(". ", line, mark.inicio) + 1
    since = max(line, stop, earlier[-1].fim if earlier else 0)
    return any(not each.feriado for each in entre(folha.dias, since, mark.inicio))


def _is_of_bare_day(folha: Folha, mark: Turno) -> bool:
    """Return whether a day, followed only by shifts that have a price, precedes a shift on its line: "10/08. 7-19h:
    1.900. 19-7h: 2.000".
    """
    line, _ = linha_de(folha.texto.plano, mark.inicio)
    days = [each for each in entre(folha.dias, line, mark.inicio) if not each.solto]
    return bool(days) and not any(_is_far_from_prices(folha, each) for each in entre(folha.turnos, line, mark.inicio))


def _is_far_from_prices(folha: Folha, each: Turno) -> bool:
    if each.periodo is None and each.das is None:
        return False
    before = entre(folha.precos, each.inicio - 90, each.inicio)[-1:]
    after = entre(folha.precos, each.fim, each.fim + 60)[:1]
    return not (
        any(_custo(folha.livre, price.fim, each.inicio, ()) <= PERTO for price in before)
        or any(_custo(folha.livre, each.fim, price.inicio, ()) <= PERTO for price in after)
    )


def _holds(mark: Marca, alvo: Alvo) -> tuple[str, bool]:
    match mark:
        case Lugar():
            return "lugar", mark.nome == alvo.hospital
        case Cidade():
            return "cidade", mark.nome == alvo.cidade
        case Area():
            return "area", mark.nome == alvo.especialidade
        case Turno():
            return "turno", _same_shift(mark, alvo)
        case Condicao() | Dias():
            on_holiday = mark.feriado and alvo.feriado
            named = isinstance(mark, Condicao) and alvo.data in mark.datas
            return "dias", on_holiday or named or alvo.data.weekday() in mark.semana
        case _:
            return "", True


def _same_shift(mark: Turno, alvo: Alvo) -> bool:
    period = periodo_de(mark)
    return period == alvo.periodo if period is not None else mark.horas is None or mark.horas == alvo.horas


def periodo_de(mark: Turno) -> Periodo | None:
    """Return the period of a shift as the message names it, or as the shift's hours imply it."""
    if mark.periodo is None and mark.das is not None and mark.ate is not None:
        return periodo_das_horas(mark.das, mark.ate)
    return mark.periodo


def horas_do(turno: Turno, periodo: Periodo) -> int:
    if turno.das is not None and turno.ate is not None:
        return horas_entre(turno.das, turno.ate)
    return turno.horas or DURACAO[periodo]


def por_plantao(preco: Preco, horas: int) -> Decimal:
    amount = (preco.reais * horas if preco.por_hora else preco.reais / preco.plantoes).quantize(Decimal("0.01"))
    return amount.to_integral_value() if amount == amount.to_integral_value() else amount


def rivais(fitting: Sequence[Regra]) -> int:
    """Return how many other prices in ``fitting`` have conditions as specific as those of its first price."""
    if len(fitting) < 2:
        return 0
    best = fitting[0].peso
    return len({each.preco.reais for each in fitting if each.peso == best} - {fitting[0].preco.reais})


def servem(scope: Sequence[Regra], target: Alvo) -> list[Regra]:
    """Return the prices that apply to a vacancy, the one with the most specific conditions first. Among equally
    specific prices, a gross price comes first, then the price that the message states first.
    """
    fitting = [each for each in scope if not each.preco.soma and (not each.condicoes or each.serve(target))]
    return fitting if len(fitting) < 2 else sorted(fitting, key=lambda each: (-each.peso, each.preco.liquido))
