"""Combine the lists in a message item by item: "dias 10 e 11, SD e SN respectivamente", "10/08 SN e 11/08 SD. 1.500 e
1.800".
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any, Protocol, TypeVar

from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Area, Condicao, Marca, Turno, linha_de
from app.contexts.leitura_grupos.montagem.condicoes_de_preco import Regra, periodo_de
from app.contexts.leitura_grupos.montagem.linhas import Bloco
from app.contexts.leitura_grupos.tipos import Periodo

_EXPLICIT = "respectiv"
_AND = re.compile(r" {0,2}e {0,2}(?:r\$ {0,2})?")
_OR_SIGN = re.compile(r"[^\n\d;]{0,20}")


class ComPeriodo(Protocol):
    """A shift whose period, such as day or night, is known."""

    @property
    def periodo(self) -> Periodo: ...


_S = TypeVar("_S", bound=ComPeriodo)


def em_paralelo(folha: Folha, block: Bloco, lists: Sequence[Sequence[Any]]) -> int:
    """Return the common length of the lists that the word "respectivamente" (respectively) pairs on a line, or 0 if the
    line pairs no lists.
    """
    if _EXPLICIT not in folha.texto.plano:
        return 0
    start, end = linha_de(folha.texto.plano, block.inicio)
    if folha.texto.plano.find(_EXPLICIT, start, end) < 0:
        return 0
    sizes = Counter(len(each) for each in lists if len(each) > 1)
    return next((size for size, times in sizes.most_common(1) if times > 1), 0)


def repetidos(folha: Folha, block: Bloco, days: Sequence[Any], shifts: Sequence[_S]) -> Sequence[_S]:
    """Return one shift per day if the word "respectivamente" pairs the days of a line with as many shifts, some of which
    repeat: "dias 9, 11 e 14, SN, SD e SN respectivamente". Otherwise return ``shifts``.
    """
    if len(days) == len(shifts) or _EXPLICIT not in folha.texto.plano:
        return shifts
    stated = [periodo_de(each) for each in block.turnos if each.periodo or each.das]
    by_period = {each.periodo: each for each in shifts}
    listed = [by_period[each] for each in stated if each is not None and each in by_period]
    return listed if len(listed) == len(days) else shifts


def em_ordem(folha: Folha, regras: Sequence[Regra], blocos: Sequence[Bloco]) -> None:
    """Assign adjacent prices in order: one to each line with days, or one to each day if only one line has days. If the
    text says "respectivamente" (respectively), the prices may also belong to another list that has as many items.
    """
    is_explicit = _EXPLICIT in folha.texto.plano
    if not 2 <= len(regras) <= 12 or any(each.preco.liquido for each in regras):
        return
    if not is_explicit and any(each.condicoes for each in regras):
        return
    between = _OR_SIGN if is_explicit else _AND
    prices = [each.preco for each in regras]
    if not all(between.fullmatch(folha.livre, one.fim, two.inicio) for one, two in pairwise(prices)):
        return
    dated = [each for each in blocos if each.dias is not None]
    lines = [list(each) for _, each in groupby(dated, key=lambda each: linha_de(folha.texto.plano, each.inicio))]
    groups = lines if len(lines) > 1 else [[each] for each in dated]
    if len(groups) == len(regras):
        _dar(blocos, [[rule] for rule in regras], groups)
    elif is_explicit and len(dated) == 1:
        items = next((each for each in _listas(dated[0]) if len(each) == len(regras)), None)
        if items is not None:
            paired = [replace(rule, condicoes=(item,)) for rule, item in zip(regras, items, strict=True)]
            _dar(blocos, [paired], [dated])


def _listas(block: Bloco) -> Iterator[Sequence[Marca]]:
    """Yield the lists in a block of the message whose items may each have a price: days, shifts, specialities and
    places.
    """
    days = () if block.dias is None else block.dias.dias
    yield [Condicao(each.inicio, each.fim, datas=frozenset((each.data,))) for each in days]
    yield [each for each in block.turnos if each.periodo or each.das]
    yield [each for each in block.areas if not each.fraca]
    yield block.lugares


def _dar(blocos: Sequence[Bloco], rules: Sequence[list[Regra]], groups: Sequence[Sequence[Bloco]]) -> None:
    for each in blocos:
        each.regras = []
    for own, group in zip(rules, groups, strict=True):
        for each in group:
            each.regras = own


def por_area(marks: Sequence[Area | Turno], shifts: Sequence[_S]) -> Sequence[tuple[Area, _S]] | None:
    """Return the shifts of each speciality in a text such as "clínico SD e SN, pediatra SN". Return None unless each
    speciality is directly followed by its own shifts and one of the specialities has several.
    """
    by_period = {each.periodo: each for each in shifts}
    pairs: list[tuple[Area, _S]] = []
    area: Area | None = None
    for before, each in zip((None, *marks), marks, strict=False):
        if isinstance(each, Area):
            if isinstance(before, Area):
                return None
            area = each
            continue
        period = periodo_de(each)
        if area is None or before is None or period not in by_period or each.inicio - before.fim > 4:
            return None
        pairs.append((area, by_period[period]))
    areas = {each.nome for each, _ in pairs}
    return pairs if len(areas) > 1 and len(pairs) > len(areas) and isinstance(marks[-1], Turno) else None
