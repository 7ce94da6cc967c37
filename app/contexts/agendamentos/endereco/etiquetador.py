"""Label each word in an address with its field. The labels come from a linear sequence model, trained by
``tests/julia/agendamentos/treinar.py``.

The weights of one feature for all labels are packed into one integer, so that a single addition covers all labels. The
Viterbi algorithm finds the best sequence of labels.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from struct import Struct
from typing import Final

from app.contexts.agendamentos.endereco.palavras import (
    LUGARES,
    TIPOS_DE_CHAVES,
    Chave,
    Forma,
    Palavra,
    Pesos,
    descrever,
    fatos_da_palavra,
    forma,
    indice,
    indice_das_palavras,
)

# In order: logradouro, número, complemento, bairro, município, UF, no field
ETIQUETAS: Final = "LNCBMUX"
SURE: Final = 300  # if the margin between the two best labels of a word is smaller, the address gets a warning
PESOS: Final = Path(__file__).parent / "pesos.txt"
_BITS: Final = 32
_SHIFTS: Final = tuple(_BITS * place for place in range(len(ETIQUETAS)))
# Added to each sum so that it never becomes negative. The addend is the same for all labels, so no comparison changes.
_ZERO: Final = sum(1 << (_BITS - 1) << shift for shift in _SHIFTS)
_SCORES: Final = Struct(f"<{len(ETIQUETAS)}I")
_MOST_KEYS: Final = 100_000  # capacity of each cache of sums
_MOST_SHAPES: Final = 8_192  # capacity of the cache of shapes; a shape of ten words takes about 2 KiB
_FAR: Final = 800  # labels whose score is this much below the best label of the word are ignored
_NONE: Final = (0,) * len(ETIQUETAS)


class _SomasDeChaves(dict[Chave, int]):
    """Cache of the address tagger, which labels each word of an address. It maps a key (a list of facts about a word in
    an address) to the sum of the weights of the key's features.
    """

    def __init__(self, packed: Pesos) -> None:
        super().__init__()
        self._features = {tipo: indice(packed, tipo) for tipo in TIPOS_DE_CHAVES}

    def __missing__(self, key: Chave) -> int:
        if len(self) >= _MOST_KEYS:
            self.clear()
        self[key] = total = sum([weights.get(facts(key), 0) for facts, weights in self._features[str(key[0])]])
        return total


class _SomasDeFormas(dict[Forma, tuple[list[int], list[str]]]):
    """Cache of the address tagger, which labels each word of an address. It maps the shape of an address to two lists
    with one entry per word.

    The first list has the sum of the weights of all features of the word's keys. The second list has the code for the
    separator between the previous word and this word (``Descricao.juncoes``).
    """

    def __init__(self, packed: Pesos) -> None:
        super().__init__()
        self._keys = _SomasDeChaves(packed)

    def __missing__(self, shape: Forma) -> tuple[list[int], list[str]]:
        if len(self) >= _MOST_SHAPES:
            self.clear()
        rows, joins = descrever(shape)
        sum_of = self._keys.__getitem__
        self[shape] = found = [sum(map(sum_of, keys), _ZERO) for keys in rows], joins
        return found


class _SomasDePalavras(dict[str, tuple[int, ...]]):
    """Cache of the address tagger, which labels each word of an address. It maps a word of an address to the sums of
    the weights of the word's features, one sum for each position relative to the labelled word.
    """

    def __init__(self, packed: Pesos) -> None:
        super().__init__()
        self._features = indice_das_palavras(packed)

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _MOST_KEYS:
            self.clear()
        weights = [weights.get(fact) for weights, fact in zip(self._features, fatos_da_palavra(word), strict=False)]
        self[word] = sums = tuple(map(sum, zip(*filter(None, weights), strict=True))) or (0,) * LUGARES
        return sums


class _Passos(dict[str, tuple[Sequence[int], ...]]):
    """Maps the code for the separator between two adjacent words of an address to the weights of every pair of labels
    for these words.
    """

    def __init__(self, pesos: Mapping[str, Sequence[int]]) -> None:
        super().__init__()
        self._pesos = pesos

    def __missing__(self, join: str) -> tuple[Sequence[int], ...]:
        self[join] = found = tuple(self._pesos.get(f"~{label}{join}", _NONE) for label in ETIQUETAS)
        return found


class Etiquetador:
    def __init__(self, pesos: Mapping[str, Sequence[int]]) -> None:
        packed: dict[str, dict[str, int]] = {}
        for name, values in pesos.items():
            if name[0] != "~":
                weight = sum(value << shift for value, shift in zip(values, _SHIFTS, strict=True))
                packed.setdefault(name[:2], {})[name[2:]] = weight
        self._start = pesos.get("~^", _NONE)
        self._moves = _Passos(pesos)
        self._shapes = _SomasDeFormas(packed)
        self._words = _SomasDePalavras(packed)

    def etiquetas(self, lidas: Sequence[Palavra]) -> tuple[str, int]:
        """Return one label per word, and the margin between the score of these labels and the next best score. The
        margin is small if, for any word, another label has almost the same score as the chosen label.
        """
        if not lidas:
            return "", SURE
        sums, joins = self._shapes[forma(lidas)]
        sums_of, unpacked, size = self._words, _SCORES.unpack, _SCORES.size
        first, last = sums_of["^"], sums_of["$"]
        words = [first, first, *[sums_of[each.plana] for each in lidas], last, last]
        every: list[list[tuple[int, int]]] = []
        for i, of_shape in enumerate(sums):
            # the word itself, the word before, the word after, the second word before, the second word after
            total = of_shape + words[i + 2][0] + words[i + 1][1] + words[i + 3][2] + words[i][3] + words[i + 4][4]
            scores = unpacked(total.to_bytes(size, "little"))
            least = max(scores) - _FAR
            every.append([each for each in enumerate(scores) if each[1] > least])
        found = self._path(every, joins)
        return "".join([ETIQUETAS[label] for label in found]), self._margin(every, joins, found)

    def _path(self, every: Sequence[Sequence[tuple[int, int]]], joins: Sequence[str]) -> list[int]:
        done: list[int] = []
        paths: list[tuple[int, tuple[int, ...]]] = [(score + self._start[label], (label,)) for label, score in every[0]]
        for place in range(1, len(every)):
            table = self._moves[joins[place]]
            if len(paths) == 1:  # the label of the previous word is certain, so only the labels after it are still open
                done += paths[0][1]
                if len(every[place]) == 1:
                    paths = [(0, (every[place][0][0],))]
                    continue
                moves = table[done[-1]]
                paths = [(score + moves[label], (label,)) for label, score in every[place]]
                continue
            last = [(value, path, table[path[-1]]) for value, path in paths]
            paths = []
            for label, score in every[place]:
                value, path = max([(value + moves[label], path) for value, path, moves in last])
                paths.append((value + score, (*path, label)))
        return [*done, *max(paths)[1]]

    def _margin(self, every: Sequence[Sequence[tuple[int, int]]], joins: Sequence[str], found: Sequence[int]) -> int:
        """Return the smallest amount by which the score of an address's labels falls if the label of one word changes."""
        least = _FAR
        last = len(found) - 1
        for place, scores in enumerate(every):
            if len(scores) == 1:
                continue
            before = self._moves[joins[place]][found[place - 1]] if place else self._start
            values = [score + before[label] for label, score in scores]
            if place < last:
                table, after = self._moves[joins[place + 1]], found[place + 1]
                values = [value + table[label][after] for value, (label, _) in zip(values, scores, strict=True)]
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
