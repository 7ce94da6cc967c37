"""Train the address tagger: ``python -m tests.julia.agendamentos.treinar`` writes ``endereco/pesos.txt``.

The tagger learns first from generated addresses (``gerador``), then from the authors' rows and an equal number of
generated ones. Training on the same rows always gives the same weights.
"""

import random
import sys
from collections.abc import Callable, Sequence
from functools import partial

from app.contexts.agendamentos.endereco.endereco import Endereco, ler_com, preparar
from app.contexts.agendamentos.endereco.etiquetador import PESOS, Etiquetador
from app.contexts.agendamentos.endereco.palavras import Palavra, palavras
from app.contexts.agendamentos.planilha.celulas import dito
from tests.julia.agendamentos.alinhamento import alinhar
from tests.julia.agendamentos.gerador import gerar
from tests.julia.agendamentos.medir import autores, linhas_de, rotulo
from tests.julia.agendamentos.perceptron import Frase, Perceptron, media

GERADOS = 14_000
ROUNDS_OF_GENERATED, ROUNDS_OF_AUTHORS = 2, 3
SEEDS = (3, 5, 7)  # each seed gives another order of the authors' rows
LEAST = 3.0  # smaller weights are left out of the file


class Escola:
    """The training rows, and a perceptron that has learnt from the generated rows."""

    def __init__(self) -> None:
        self._base = Perceptron()
        self._generated = [self._base.frase(*each) for each in _generated(GERADOS)]
        r = random.Random(11)
        for _ in range(ROUNDS_OF_GENERATED):
            r.shuffle(self._generated)
            self._base.esquecer()
            for frase in self._generated:
                self._base.aprender(frase)
        self._rows = {autor: [self._base.frase(*each) for each in _aligned(autor)] for autor in autores()}

    def sem(self, autor: str) -> Etiquetador:
        """Return a tagger that was trained without the rows of one author."""
        return Etiquetador(self._trained([other for other in autores() if other != autor]))

    def com_todos(self) -> dict[str, tuple[int, ...]]:
        return self._trained(autores())

    def _trained(self, names: Sequence[str]) -> dict[str, tuple[int, ...]]:
        """Return the mean weights of several perceptrons, each of which learnt the rows in another order."""
        return media([self._learnt(names, seed).medias() for seed in SEEDS], LEAST)

    def _learnt(self, names: Sequence[str], seed: int) -> Perceptron:
        rows: list[Frase] = [each for name in names for each in self._rows[name]]
        learner, r = self._base.copia(), random.Random(seed)
        for _ in range(ROUNDS_OF_AUTHORS):
            batch = rows + r.sample(self._generated, len(rows))
            r.shuffle(batch)
            for frase in batch:
                learner.aprender(frase)
        return learner


def _generated(count: int) -> list[tuple[list[Palavra], str]]:
    r = random.Random(7)
    found: list[tuple[list[Palavra], str]] = []
    while len(found) < count:
        pieces = gerar(r)
        text = "".join(each for each, _ in pieces)
        prepared = preparar(text)
        lidas = palavras(prepared.texto) if prepared is not None and len(prepared.texto) == len(text) else []
        if lidas:
            labels = "".join((label or "X") * len(each) for each, label in pieces)
            found.append((lidas, "".join(labels[each.inicio] for each in lidas)))
    return found


def _aligned(autor: str) -> list[tuple[list[Palavra], str]]:
    rows = [alinhar(dito(linha["celulas"]["endereco"]) or "", rotulo(linha)) for linha in linhas_de(autor)]
    return [each for each in rows if each is not None]


def leitores_sem() -> dict[str, Callable[[str], Endereco]]:
    """Return, for each author, a reader that was trained without that author's rows."""
    escola = Escola()
    return {autor: partial(ler_com, escola.sem(autor)) for autor in autores()}


def main() -> int:
    pesos = Escola().com_todos()
    lines = [f"{name}\x1f{','.join(map(str, values))}\n" for name, values in sorted(pesos.items())]
    PESOS.write_text("".join(lines), encoding="utf-8")
    print(f"{len(lines):,d} features, {PESOS.stat().st_size:,d} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
