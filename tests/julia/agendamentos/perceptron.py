"""An averaged perceptron over label sequences, for the address tagger. It needs only the standard library."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from app.contexts.agendamentos.endereco.etiquetador import ETIQUETAS
from app.contexts.agendamentos.endereco.palavras import Palavra, descrever, forma, tracos, tracos_da_palavra

COUNT = len(ETIQUETAS)
SCALE = 10  # weights are written as integers, in tenths


class Frase(NamedTuple):
    """The words of an address: their features, their correct labels, and how each word is joined to the previous
    one.
    """

    tracos: list[list[int]]
    certas: list[int]
    juncoes: list[str]


class Perceptron:
    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.weights: list[list[float]] = []
        self.sums: list[list[float]] = []
        self.stamps: list[int] = []
        self.moves: dict[str, list[float]] = defaultdict(lambda: [0.0] * COUNT)
        self.move_sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * COUNT)
        self.move_stamps: dict[str, int] = defaultdict(int)
        self.now = 0

    def frase(self, lidas: Sequence[Palavra], etiquetas: str) -> Frase:
        described, joins = descrever(forma(lidas))
        words = ["^", "^", *(each.plana for each in lidas), "$", "$"]
        rows = [
            [
                *(self._id(name) for key in keys for name in tracos(key)),
                *(
                    self._id(name)
                    for lugar, at in enumerate((2, 1, 3, 0, 4))
                    for name in tracos_da_palavra(words[i + at], lugar)
                ),
            ]
            for i, keys in enumerate(described)
        ]
        return Frase(rows, [ETIQUETAS.index(each) for each in etiquetas], joins)

    def _id(self, name: str) -> int:
        found = self.ids.setdefault(name, len(self.ids))
        if found == len(self.weights):
            self.weights.append([0.0] * COUNT)
            self.sums.append([0.0] * COUNT)
            self.stamps.append(0)
        return found

    def aprender(self, frase: Frase) -> bool:
        """Correct the weights using one address. Return True if the weights already gave the correct labels with a
        sufficient margin.
        """
        self.now += 1
        found, gold = self._best(frase), frase.certas
        if found == gold:
            return True
        for place, row in enumerate(frase.tracos):
            right, wrong = gold[place], found[place]
            if right != wrong:
                for at in row:
                    self._settle(at)
                    self.weights[at][right] += 1
                    self.weights[at][wrong] -= 1
            was_right, was_wrong = self._move(frase, gold, place), self._move(frase, found, place)
            if (was_right, right) != (was_wrong, wrong):
                self._settle_move(was_right)
                self._settle_move(was_wrong)
                self.moves[was_right][right] += 1
                self.moves[was_wrong][wrong] -= 1
        return False

    @staticmethod
    def _move(frase: Frase, labels: Sequence[int], place: int) -> str:
        return ETIQUETAS[labels[place - 1]] + frase.juncoes[place] if place else "^"

    def _best(self, frase: Frase) -> list[int]:
        scores: list[float] = []
        back: list[list[int]] = []
        labels = range(COUNT)
        for place, row in enumerate(frase.tracos):
            emit = [sum(column) + 1 for column in zip(*map(self.weights.__getitem__, row), strict=True)]
            emit[frase.certas[place]] -= 1  # a wrong label must lose by a margin
            if not place:
                scores = [emit[label] + self.moves["^"][label] for label in labels]
                continue
            tables = [self.moves[ETIQUETAS[label] + frase.juncoes[place]] for label in labels]
            came = [max(labels, key=lambda last, label=label: scores[last] + tables[last][label]) for label in labels]  # type: ignore[misc]
            scores = [scores[came[label]] + tables[came[label]][label] + emit[label] for label in labels]
            back.append(came)
        path = [max(labels, key=scores.__getitem__)]
        for came in reversed(back):
            path.append(came[path[-1]])
        return path[::-1]

    def _settle(self, at: int) -> None:
        passed = self.now - self.stamps[at]
        if passed:
            self.sums[at] = [
                total + passed * weight for total, weight in zip(self.sums[at], self.weights[at], strict=True)
            ]
            self.stamps[at] = self.now

    def _settle_move(self, name: str) -> None:
        passed = self.now - self.move_stamps[name]
        pairs = zip(self.move_sums[name], self.moves[name], strict=True)
        self.move_sums[name] = [total + passed * weight for total, weight in pairs]
        self.move_stamps[name] = self.now

    def esquecer(self) -> None:
        """Restart the average, so that it excludes the early, poor weights."""
        self.now = 0
        self.sums = [[0.0] * COUNT for _ in self.sums]
        self.stamps = [0] * len(self.stamps)
        self.move_sums.clear()
        self.move_stamps.clear()

    def copia(self) -> Self:
        other = type(self)()
        other.ids = dict(self.ids)
        other.weights = [list(each) for each in self.weights]
        other.sums = [list(each) for each in self.sums]
        other.stamps = list(self.stamps)
        other.moves.update({name: list(values) for name, values in self.moves.items()})
        other.move_sums.update({name: list(values) for name, values in self.move_sums.items()})
        other.move_stamps.update(self.move_stamps)
        other.now = self.now
        return other

    def medias(self) -> dict[str, list[float]]:
        """Return the averaged weights of each feature."""
        found: dict[str, list[float]] = {}
        for name, at in self.ids.items():
            self._settle(at)
            found[name] = [value / self.now for value in self.sums[at]]
        for name in list(self.moves):
            self._settle_move(name)
            found[f"~{name}"] = [value / self.now for value in self.move_sums[name]]
        return found


def media(learnt: Sequence[Mapping[str, Sequence[float]]], least: float = 0.0) -> dict[str, tuple[int, ...]]:
    """Return the mean weights of several perceptrons as integers. A feature of a word is omitted if none of its weights
    is above ``least`` or below the negative of ``least``.
    """
    found: dict[str, tuple[int, ...]] = {}
    for name in {name: None for each in learnt for name in each}:
        rows = [each[name] for each in learnt if name in each]
        values = [sum(column) / len(learnt) for column in zip(*rows, strict=True)]
        if name[0] == "~" or max(map(abs, values)) > least:
            found[name] = tuple(round(value * SCALE) for value in values)
    return {name: values for name, values in found.items() if any(values)}
