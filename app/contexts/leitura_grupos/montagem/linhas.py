"""Group marks (recognised days, places, shifts, prices) by lines and sections, to find out which of them belong
together.

Each sequence of days on a line becomes one block. A heading or a note becomes a block without days. A heading's marks
apply to the blocks below it, a note's marks to the blocks above it.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import islice, pairwise, takewhile

from app.contexts.leitura_grupos.marcas.feriados import feriados
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Area, Combinar, Dias, Fechado, Lugar, Marca, Preco, Turno, entre
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import Regra
from batuta.kernel import dataclass

# Matches the end of a sentence and the beginning of the next.
_SENTENCE = re.compile(r"[.!?;] +(?!e |dias? )[a-z]{3}")


@dataclass(slots=True)
class Bloco:
    inicio: int
    fim: int
    dias: Dias | None = None
    lugares: list[Lugar] = field(default_factory=list)
    areas: list[Area] = field(default_factory=list)
    turnos: list[Turno] = field(default_factory=list)
    regras: list[Regra] = field(default_factory=list)
    combinar: list[Combinar] = field(default_factory=list)
    fechados: list[Fechado] = field(default_factory=list)
    feriado: bool = False

    @property
    def so_dias(self) -> bool:
        return self.dias is not None and not (self.turnos or self.regras)


def blocos(folha: Folha, dias: Sequence[Dias], regras: Sequence[Regra]) -> list[Bloco]:
    """Split a message into blocks: lines, or parts of a line, whose recognised fields belong together. ``dias`` has the
    days of shifts; ``regras`` has the prices with their conditions.
    """
    used = {id(mark) for rule in regras for mark in rule.so_condicao}
    kinds: tuple[Sequence[Marca], ...] = (
        [each for each in folha.lugares if id(each) not in used],
        [each for each in folha.areas if id(each) not in used],
        [each for each in folha.turnos if id(each) not in used],
        [rule.preco for rule in regras],
        folha.combinar,
        folha.fechados,
    )
    by_price = {id(rule.preco): rule for rule in regras}
    found: list[Bloco] = []
    holidays = [each for each in folha.dias if each.feriado]
    for start, end in _linhas(folha.texto.plano):
        if start == end:
            continue
        parts = [entre(kind, start, end) if kind else () for kind in kinds]
        runs = _sem_o_fechado(_juntos(folha.texto.plano, entre(dias, start, end), parts), folha.texto.plano, parts[-1])
        if runs:
            line = _partida(folha.texto.plano, start, end, runs, parts, by_price)
        else:
            line = [_bloco(start, end, None, parts, by_price)]
        if entre(holidays, start, end):
            for each in line:
                each.feriado = True
        found.extend(line)
    return _herdados(_com_areas(_sem_anuncio([each for each in found if not _is_empty(each)])))


def _com_areas(found: list[Bloco]) -> list[Bloco]:
    """Assign specialities that are listed below a day to this day: "2 CM" and "1 Orto" below "09/08 SD:"."""
    for place, head in enumerate(found):
        if head.dias is None or head.areas:
            continue
        listed: list[Bloco] = []
        for each in islice(found, place + 1, place + 12):
            if not each.areas or each.dias or each.turnos or each.regras or each.lugares or each.fechados:
                break
            listed.append(each)
        if len(listed) > 1:
            head.areas = [area for each in listed for area in each.areas]
    return found


def _sem_anuncio(found: list[Bloco]) -> list[Bloco]:
    """Remove the days in a headline that a later block names again: "UPA – feriado 12/10" above "12/10 SD e SN"."""
    dated = {day.data for each in found if each.dias and each.turnos for day in each.dias.dias}
    first = next((each for each in found if each.dias), None)
    return [
        replace(each, dias=None)
        if each.dias
        and each.so_dias
        and (each.lugares or each is first)
        and all(day.data in dated for day in each.dias.dias)
        else each
        for each in found
    ]


def _juntos(plano: str, runs: Sequence[Dias], parts: Sequence[Sequence[Marca]]) -> list[Dias]:
    """Merge sequences of days that only ordinary words separate: "sábado (10/01) e domingo (11/01)".

    In "terças e quintas de agosto (11, 13, 20)", the numbers select dates of the named weekdays, so only these dates
    remain.
    """
    kept: list[Dias] = []
    for run in runs:
        if (
            kept
            and not any(entre(kind, kept[-1].fim, run.inicio) for kind in parts)
            and not _SENTENCE.search(plano, kept[-1].fim, run.inicio)
            and not _have_own_shifts(plano, kept[-1], run, parts)
        ):
            last = kept[-1]
            named = () if _tells_which(last, run) else last.dias
            days = {day.data: day for day in (*named, *run.dias)}
            kept[-1] = replace(last, fim=run.fim, dias=tuple(days.values()), passou=last.passou and run.passou)
        else:
            kept.append(run)
    return kept


def _have_own_shifts(plano: str, one: Dias, two: Dias, parts: Sequence[Sequence[Marca]]) -> bool:
    """Return whether a shift is directly before days in brackets and another one directly after the next days: "SD (10 a
    14/08) e sábado 15/08 SN".
    """
    if plano[max(0, one.inicio - 1) : one.inicio] != "(":
        return False
    shifts = [each for kind in parts for each in kind if isinstance(each, Turno)]
    return any(0 < one.inicio - each.fim < 3 for each in shifts) and any(
        0 < each.inicio - two.fim < 3 for each in shifts
    )


def _sem_o_fechado(runs: list[Dias], plano: str, closed: Sequence[Marca]) -> list[Dias]:
    """If a word in brackets says that a day in a list is taken, separate that day from the days before it, because the
    word applies only to that day.

    Example: "10/08, 11/08 (preenchido), 12/08".
    """
    if not closed:
        return runs
    kept: list[Dias] = []
    for run in runs:
        last = run.dias[-1] if len(run.dias) > 1 else None
        is_bracketed = plano[run.fim : run.fim + 3].lstrip(" ")[:1] == "(" and bool(entre(closed, run.fim, run.fim + 4))
        if last is None or not is_bracketed or last.inicio <= run.dias[-2].inicio:
            kept.append(run)
            continue
        kept.append(replace(run, fim=run.dias[-2].fim, dias=run.dias[:-1]))
        kept.append(replace(run, inicio=last.inicio, dias=(last,)))
    return kept


def _tells_which(named: Dias, run: Dias) -> bool:
    is_beside = bool(run.dias) and run.inicio - named.fim <= 2
    return is_beside and not run.semana and all(day.data.weekday() in named.semana for day in run.dias)


def _linhas(plano: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in plano.split("\n"):
        yield start, start + len(line)
        start += len(line) + 1


def _bloco(start: int, end: int, days: Dias | None, parts: Sequence[Sequence[Marca]], rules: dict[int, Regra]) -> Bloco:
    places, areas, shifts, prices, agreed, closed = parts
    return Bloco(
        start,
        end,
        days,
        [each for each in places if isinstance(each, Lugar)] if places else [],
        [each for each in areas if isinstance(each, Area)] if areas else [],
        [each for each in shifts if isinstance(each, Turno)] if shifts else [],
        [rules[id(each)] for each in prices if isinstance(each, Preco)] if prices else [],
        [each for each in agreed if isinstance(each, Combinar)] if agreed else [],
        [each for each in closed if isinstance(each, Fechado)] if closed else [],
    )


def _partida(
    plano: str, start: int, end: int, runs: list[Dias], parts: Sequence[Sequence[Marca]], rules: dict[int, Regra]
) -> list[Bloco]:
    """Split a line into blocks, one for each sequence of days. Each block gets the shifts, prices and places next to
    its days. A value that occurs once on the line applies to all blocks.
    """
    if len(runs) == 1:
        return [_bloco(start, end, runs[0], parts, rules)]
    heading: list[list[Marca]] = []
    trailing: list[list[Marca]] = []
    own: list[list[list[Marca]]] = [[] for _ in runs]
    cuts = [start, *(run.inicio for run in runs), end]
    for number, kind in enumerate(parts):
        if number == len(parts) - 1:
            heading.append([])
            trailing.append([])
            for place, marks in enumerate(_fechados_de(plano, kind, runs, cuts)):
                own[place].append(marks)
            continue
        pieces = [list(entre(kind, first, last)) for first, last in pairwise(cuts)]
        before, each_run, behind = _repartidos(plano, pieces, runs)
        heading.append(before)
        trailing.append(behind)
        for place, marks in enumerate(each_run):
            own[place].append(marks)
    return [
        _bloco(start, runs[0].inicio, None, heading, rules),
        *(_bloco(run.inicio, run.fim, run, marks, rules) for run, marks in zip(runs, own, strict=True)),
        _bloco(runs[-1].fim, end, None, trailing, rules),
    ]


def _fechados_de(plano: str, marks: Sequence[Marca], runs: list[Dias], cuts: list[int]) -> Iterator[list[Marca]]:
    """Assign each word that means "taken" to the days directly after it or, if there are none, to the days before it.

    Example: "Fechados: 10 e 12/08; 14/08 SN coberto".
    """
    for place, run in enumerate(runs):
        before = [each for each in entre(marks, cuts[place], run.inicio) if _closes_next(plano, each, run)]
        behind = list(entre(marks, run.fim, cuts[place + 2]))
        if place + 1 < len(runs):
            behind = [each for each in behind if not _closes_next(plano, each, runs[place + 1])]
        yield before + behind


def _closes_next(plano: str, mark: Marca, run: Dias) -> bool:
    """Return whether a word that means "taken" refers to the days directly after it.

    If a comma or a similar sign separates them, the word does not refer to these days: in "04/07 SD já foi, 05/07 SN",
    the 4th is taken, not the 5th.
    """
    between = plano[mark.fim : run.inicio]
    return len(between) <= 4 and not any(sign in between for sign in ",;./|)")


def _repartidos(
    plano: str, pieces: list[list[Marca]], runs: Sequence[Dias]
) -> tuple[list[Marca], list[list[Marca]], list[Marca]]:
    """Divide a line's marks (its recognised shifts, prices, places…) into three groups: those before the first sequence
    of days, those of each sequence of days, and those after the last one.
    """
    before, behind = pieces[0], pieces[1:]
    between, last = (
        any(behind[:-1]),
        any(not isinstance(each, Turno) or each.periodo or each.das for each in behind[-1]),
    )
    nothing: list[list[Marca]] = [[] for _ in behind]
    leads = all(
        two.inicio - one[-1].fim <= one[0].inicio - run.fim or ";" in plano[run.fim : one[0].inicio]
        for run, two, one in zip(runs, runs[1:], behind, strict=False)
        if one
    )
    if before and between and not last and leads:
        return [], [before, *behind[:-1]], behind[-1]
    is_shift = before and last and isinstance(before[-1], Turno)
    if (
        is_shift
        and not between
        and len(runs) == 2
        and runs[0].inicio - before[-1].fim < 3 > behind[1][0].inicio - runs[1].fim
    ):
        return [], [before, behind[1]], []  # "SD (10 a 14/08) e sábado 15/08 SN"
    if not before and last and not between:
        return [], nothing, behind[-1]
    return before, behind, []


def _herdados(found: list[Bloco]) -> list[Bloco]:
    """Copy a heading's days to the lines below it: "Sábado 14/02" above two lines with hospitals or shifts."""
    result: list[Bloco] = []
    place = 0
    while place < len(found):
        each = found[place]
        stop = place + 1
        while stop < len(found) and found[stop].dias is None:
            stop += 1
        below = found[place + 1 : stop]
        is_headed = bool(result) and bool(result[-1].lugares) and result[-1].dias is None
        heirs = _herdeiros(each, below, is_headed) if each.so_dias else []
        if heirs and each.lugares and not heirs[0].lugares and _ha_outro_dia(found, each):
            heirs = []
        if heirs:
            whose = {id(other) for other in heirs}
            result.append(replace(each, dias=None))
            result.extend(_com_dias(each, other) if id(other) in whose else other for other in below)
        else:
            result.extend(found[place:stop])
        place = stop
    return result


def _herdeiros(head: Bloco, below: list[Bloco], is_headed: bool) -> list[Bloco]:
    """Return the lines to which a heading's days apply. ``is_headed`` is true if the line directly above
    the heading names a place.
    """
    tests: tuple[Callable[[Bloco], bool], ...] = (
        lambda each: bool(each.lugares and each.turnos),
        lambda each: any(shift.periodo or shift.das for shift in each.turnos) and not head.lugares,
        lambda each: bool(each.lugares) and not head.lugares,
    )
    for test, least in zip(tests, (2 if head.lugares or is_headed else 1, 2, 2), strict=True):
        if len(heirs := [each for each in below if test(each)]) >= least:
            return heirs
    for is_item in (_e_so_um_turno, _e_um_turno_e_sua_area):
        listed = [*takewhile(is_item, below)]
        has_state = all(each.regras for each in listed) or any(each.fechados for each in listed)
        if len(listed) > 1 and has_state:
            return listed
    return []


def _ha_outro_dia(found: list[Bloco], head: Bloco) -> bool:
    """Return whether a list of shifts below a day may apply to several days, because another day of the message has no
    shift of its own.
    """
    below = (*found[1:], None)
    return any(
        each is not head and each.so_dias and (after is None or not _e_so_um_turno(after))
        for each, after in zip(found, below, strict=True)
    )


def _e_so_um_turno(each: Bloco) -> bool:
    """Return whether a line has one shift, and at most its price and its state: "🌙 SN – R$ 1.600", "SN: coberto"."""
    stated = sum(bool(shift.periodo or shift.das) for shift in each.turnos)
    return stated == 1 and len(each.regras) < 2 and not (each.lugares or each.areas)


def _e_um_turno_e_sua_area(each: Bloco) -> bool:
    """Return whether a line has one shift with its speciality and its price: "UTI SN 2.100"."""
    stated = sum(bool(shift.periodo or shift.das or shift.horas) for shift in each.turnos)
    return stated == 1 and len(each.regras) == 1 and bool(each.areas) and not each.lugares


def _com_dias(head: Bloco, heir: Bloco) -> Bloco:
    days = head.dias
    if heir.feriado and days is not None:
        holidays = tuple(each for each in days.dias if each.data in feriados(each.data.year))
        days = replace(days, dias=holidays or days.dias)
    return replace(heir, dias=days, areas=heir.areas or head.areas)


def _is_empty(each: Bloco) -> bool:
    return not (
        each.dias
        or each.lugares
        or each.areas
        or each.turnos
        or each.regras
        or each.combinar
        or each.fechados
        or each.feriado
    )
