"""Find the marks (recognised fields, such as a place or a price) that apply to a block of the message. They may be in
the block itself, in a heading above it, in a note after it, or in a neighbouring block.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from app.contexts.leitura_grupos.montagem.linhas import Bloco

T = TypeVar("T")


class Planta:
    """A message's layout: the section to which each block (a line or a part of a line) belongs, and the first block
    with days in the message and in each section.
    """

    __slots__ = ("blocos", "primeiro_dia", "primeiros_dias", "secoes")

    def __init__(self, blocos: Sequence[Bloco]) -> None:
        self.blocos = blocos
        self.secoes = _secoes(blocos)
        dated = [place for place, each in enumerate(blocos) if each.dias is not None]
        self.primeiro_dia = dated[0] if dated else 0
        self.primeiros_dias = {self.secoes[at]: at for at in reversed(dated)}


class Onde(Generic[T]):
    """Finds which marks of one kind, such as places or prices, apply to a block of the message. ``what`` returns the
    marks inside a block.

    ``encabeca`` means that marks of this kind occur as headings, above the first day. ``soltos`` has all marks in
    blocks without days.
    """

    def __init__(self, planta: Planta, what: Callable[[Bloco], list[T]]) -> None:
        blocos = planta.blocos
        self._ditos = [what(each) for each in blocos]
        self._secoes = planta.secoes
        self._soltos: list[int] = []
        self._datados: list[int] = []
        for place, each in enumerate(self._ditos):
            if each:
                (self._soltos if blocos[place].dias is None else self._datados).append(place)
        self.encabeca = bool(self._soltos) and self._soltos[0] < planta.primeiro_dia
        heads = {self._secoes[place]: place for place in reversed(self._soltos)}
        self._encabecadas = {key for key, at in heads.items() if at < planta.primeiros_dias.get(key, 0)}
        self.soltos = [each for place in self._soltos for each in self._ditos[place]]

    def de(self, place: int, *, segue: bool = False) -> list[T]:
        """Return the marks (such as places or prices) that apply to a block of the message: the block's own marks or,
        if it has none, those of the nearest heading above it, of a note after it, or of a neighbouring block.

        ``segue`` means that marks on an earlier line with days also apply to later lines, as a hospital's name does.
        """
        at = self.bloco(place, segue=segue)
        return [] if at is None else self._ditos[at]

    def bloco(self, place: int, *, segue: bool = False) -> int | None:
        """Return the index of the block whose marks apply to the block ``place``, or None."""
        if self._ditos[place]:
            return place
        at = self._acima(place, segue)
        return self._perto(place) if at is None else at

    def secao(self, place: int) -> list[T]:
        """Return the marks (such as places or prices) of the block without days that is nearest to the block ``place``,
        including adjacent blocks without days. If marks of this kind occur as headings (``encabeca``), the search goes
        upwards, otherwise downwards.
        """
        at = _antes(self._soltos, place) if self.encabeca else _depois(self._soltos, place)
        if at is None:
            return []
        index = bisect_left(self._soltos, at)
        found = list(self._ditos[at])
        step = -1 if self.encabeca else 1
        index += step
        while 0 <= index < len(self._soltos) and self._soltos[index] == at + step:
            at = self._soltos[index]
            found.extend(self._ditos[at])
            index += step
        return found

    def _acima(self, place: int, follows: bool) -> int | None:
        loose = _antes(self._soltos, place)
        if not follows:
            if loose is not None and self._secoes[loose] == self._secoes[place]:
                return loose if self._secoes[place] in self._encabecadas else None
            return loose if self.encabeca else None
        dated = _antes(self._datados, place)
        if loose is None or dated is None:
            return dated if loose is None else loose
        return max(loose, dated)

    def _perto(self, place: int) -> int | None:
        order = ((_depois, self._soltos), (_antes, self._soltos), (_antes, self._datados), (_depois, self._datados))
        return next((at for look, where in order if (at := look(where, place)) is not None), None)


def _secoes(blocos: Sequence[Bloco]) -> list[int]:
    """Return the number of each block's section. A block of the message with a place but without days begins a section."""
    found, section = [], 0
    for place, each in enumerate(blocos):
        if each.lugares and each.dias is None:
            section = place
        found.append(section)
    return found


def _antes(places: Sequence[int], place: int) -> int | None:
    at = bisect_left(places, place)
    return places[at - 1] if at else None


def _depois(places: Sequence[int], place: int) -> int | None:
    at = bisect_left(places, place + 1)
    return places[at] if at < len(places) else None
