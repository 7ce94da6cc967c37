"""Tag each word of an address with its field: a linear model over sequences, trained by ``tests/julia/agendamentos/treinar.py``.

The weights of all labels of a feature are packed into one integer, so that one addition sums all labels. The best sequence
of labels is found with the Viterbi algorithm.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from app.contexts.agendamentos.endereco.palavras import Chave, Palavra, descrever, tracos, tracos_da_palavra

# logradouro, número, complemento, bairro, município, UF, none
ETIQUETAS: Final = "LNCBMUX"
SURE: Final = 300  # a smaller margin between two labels of a word adds a warning
PESOS: Final = Path(__file__).parent / "pesos.txt"
_BITS: Final = 24
_MASK: Final = (1 << _BITS) - 1
_HALF: Final = 1 << (_BITS - 1)
_SHIFTS: Final = tuple(_BITS * place for place in range(len(ETIQUETAS)))
_ZERO: Final = sum(_HALF << shift for shift in _SHIFTS)
_MOST_KEYS: Final = 100_000  # remembered sums of each kind
_FAR: Final = 800  # a label this far below the best one of a word is not considered
_PLACES: Final = (
    2,
    1,
    3,
    0,
    4,
)  # where a word and those around it stand in a list that has two signs before the first word
_ORDER: Final = range(len(_PLACES))
_NONE: Final = (0,) * len(ETIQUETAS)


class Etiquetador:
    def __init__(self, pesos: Mapping[str, Sequence[int]]) -> None:
        self._packed = {
            name: sum(value << shift for value, shift in zip(values, _SHIFTS, strict=True))
            for name, values in pesos.items()
            if name[0] != "~"
        }
        self._moves = {name[1:]: tuple(values) for name, values in pesos.items() if name[0] == "~"}
        self._keys: dict[Chave, int] = {}
        self._words: tuple[dict[str, int], ...] = ({}, {}, {}, {}, {})

    def etiquetas(self, lidas: Sequence[Palavra]) -> tuple[str, int]:
        """Return one label for each word, and the margin: how far the next best label of a word falls behind."""
        if not lidas:
            return "", SURE
        rows, joins = descrever(lidas)
        words = ["^", "^", *(each.plana for each in lidas), "$", "$"]
        every: list[list[tuple[int, int]]] = []
        for place, row in enumerate(rows):
            total = _ZERO
            for sums, at, lugar in zip(self._words, _PLACES, _ORDER, strict=True):
                known = sums.get(words[place + at])
                if known is None:
                    known = self._remember(sums, words[place + at], tracos_da_palavra(words[place + at], lugar))
                total += known
            for chave in row:
                known = self._keys.get(chave)
                total += self._remember(self._keys, chave, tracos(chave)) if known is None else known
            scores = [(total >> shift & _MASK) - _HALF for shift in _SHIFTS]
            least = max(scores) - _FAR
            every.append([(label, score) for label, score in enumerate(scores) if score > least])
        found = self._path(every, joins)
        return "".join([ETIQUETAS[label] for label in found]), self._margin(every, joins, found)

    def _remember(self, sums: dict[Any, int], key: Hashable, names: Iterable[str]) -> int:
        if len(sums) >= _MOST_KEYS:
            sums.clear()
        sums[key] = total = sum([self._packed.get(name, 0) for name in names])
        return total

    def _path(self, every: Sequence[Sequence[tuple[int, int]]], joins: Sequence[str]) -> list[int]:
        start = self._moves.get("^", _NONE)
        paths: list[tuple[int, tuple[int, ...]]] = [(score + start[label], (label,)) for label, score in every[0]]
        for place in range(1, len(every)):
            sep = joins[place]
            last = [(value, path, self._moves.get(ETIQUETAS[path[-1]] + sep, _NONE)) for value, path in paths]
            if len(last) == 1:
                value, path, moves = last[0]
                paths = [(value + moves[label] + score, (*path, label)) for label, score in every[place]]
                continue
            paths = []
            for label, score in every[place]:
                value, path = max([(value + moves[label], path) for value, path, moves in last])
                paths.append((value + score, (*path, label)))
        return list(max(paths)[1])

    def _margin(self, every: Sequence[Sequence[tuple[int, int]]], joins: Sequence[str], found: Sequence[int]) -> int:
        """Return the smallest loss from another label for one word, while the labels of the other words stay."""
        least = _FAR
        last = len(found) - 1
        for place, scores in enumerate(every):
            if len(scores) == 1:
                continue
            before = self._moves.get(ETIQUETAS[found[place - 1]] + joins[place] if place else "^", _NONE)
            values = [score + before[label] for label, score in scores]
            if place < last:
                sep, after = joins[place + 1], found[place + 1]
                values = [
                    value + self._moves.get(ETIQUETAS[label] + sep, _NONE)[after]
                    for value, (label, _) in zip(values, scores, strict=True)
                ]
            values.sort()
            least = min(least, values[-1] - values[-2])
        return least


@cache
def etiquetador() -> Etiquetador:
    return Etiquetador(ler_pesos(PESOS))


def ler_pesos(onde: Path) -> dict[str, tuple[int, ...]]:
    pesos: dict[str, tuple[int, ...]] = {}
    for line in onde.read_text(encoding="utf-8").splitlines():
        name, _, values = line.rpartition("\x1f")
        pesos[name] = tuple(map(int, values.split(",")))
    return pesos
