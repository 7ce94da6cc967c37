"""Fit the confidence of the reader: ``python -m tests.julia.leitura_grupos.calibrar`` writes ``dados/confianca.json``.

A vacancy is correct if its key (hospital, day, period, speciality) and its price are those of the label. A logistic
regression with L2 is fitted by Newton's method. Each author is left out in turn for the table; the model that is
written is fitted on all authors.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from math import exp

from app.contexts.leitura_grupos.leitor import evidencias
from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.vagas.limiares import Limiares
from tests.julia.leitura_grupos.placar import (
    autores,
    igual,
    mensagens,
    por_chave,
    resolvida,
    tabela,
    vocabulario,
)

L2 = 4.0
# The rules were developed with the other authors, on which their errors are rarer than on a new author.
NAO_VISTOS = ("segundo", "sudeste", "minas")
PESO = 3.0


@dataclass(frozen=True, slots=True)
class Amostra:
    """A vacancy that the rules read: its features, and whether key and price are correct."""

    features: tuple[float, ...]
    certa: bool
    peso: float


@cache
def amostras(autor: str) -> tuple[Amostra, ...]:
    found: list[Amostra] = []
    for mensagem in mensagens(autor):
        sent = datetime.fromisoformat(mensagem["enviado_em"])
        where = mensagem.get("regiao") or mensagem.get("grupo")
        read, features = evidencias(mensagem["texto"], enviado_em=sent, regiao=where, vocabulario=vocabulario())
        expected = por_chave(mensagem)
        for each, own in zip(read.vagas, features, strict=False):
            label = expected.get(
                resolvida(
                    each.hospital.valor, each.data.valor.isoformat(), each.periodo.valor, each.especialidade.valor
                )
            )
            price = None if each.valor is None else each.valor.valor
            is_right = label is not None and igual("valor", label.get("valor"), price)
            found.append(Amostra(own, is_right, PESO if autor in NAO_VISTOS else 1.0))
    return tuple(found)


def ajustados(samples: Sequence[Amostra], rounds: int = 12) -> list[float]:
    """Return the weights of a logistic regression: the intercept, then one per feature."""
    size = len(samples[0].features) + 1
    total = sum(each.peso for each in samples)
    columns = list(zip(*(each.features for each in samples), strict=True))
    means = [sum(column) / len(samples) for column in columns]
    spread = [
        (sum((value - mean) ** 2 for value in column) / len(samples)) ** 0.5 or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    rows = [
        [1.0, *((value - mean) / wide for value, mean, wide in zip(each.features, means, spread, strict=True))]
        for each in samples
    ]
    weights = [0.0] * size
    for _ in range(rounds):
        gradient = [-L2 * weight if at else 0.0 for at, weight in enumerate(weights)]
        hessian = [[0.0] * size for _ in range(size)]
        for at in range(1, size):
            hessian[at][at] = L2
        for each, row in zip(samples, rows, strict=True):
            score = sum(map(float.__mul__, weights, row))
            chance = 1 / (1 + exp(-max(-30.0, min(30.0, score))))
            error, curve = (each.certa - chance) * each.peso, chance * (1 - chance) * each.peso
            for at, value in enumerate(row):
                gradient[at] += error * value
                scaled, line = curve * value, hessian[at]
                for other in range(at, size):
                    line[other] += scaled * row[other]
        for at in range(size):
            for other in range(at):
                hessian[at][other] = hessian[other][at]
        step = resolvido(hessian, gradient)
        weights = [weight + each for weight, each in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-4:
            break
    assert total > 0
    scaled_back = [weight / wide for weight, wide in zip(weights[1:], spread, strict=True)]
    return [weights[0] - sum(map(float.__mul__, scaled_back, means)), *scaled_back]


def resolvido(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a linear system by elimination."""
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for at in range(size):
        best = max(range(at, size), key=lambda place: abs(rows[place][at]))
        rows[at], rows[best] = rows[best], rows[at]
        for below in range(at + 1, size):
            if factor := rows[below][at] / (rows[at][at] or 1e-9):
                rows[below] = [two - factor * one for one, two in zip(rows[at], rows[below], strict=True)]
    found = [0.0] * size
    for at in reversed(range(size)):
        found[at] = (rows[at][-1] - sum(map(float.__mul__, rows[at][at + 1 : -1], found[at + 1 :]))) / (
            rows[at][at] or 1e-9
        )
    return found


def chance(weights: Sequence[float], features: Sequence[float]) -> float:
    score = weights[0] + sum(weight * value for weight, value in zip(weights[1:], features, strict=True))
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


@cache
def deixados() -> dict[str, list[tuple[float, bool]]]:
    """Return the confidence of each vacancy, by a model that was fitted without its author."""
    found = {}
    for autor in autores():
        weights = ajustados([each for other in autores() if other != autor for each in amostras(other)])
        found[autor] = [(chance(weights, each.features), each.certa) for each in amostras(autor)]
    return found


def importadas(limit: float) -> str:
    """Return the table of the vacancies that would be imported, by author."""
    rows = [["author", "vagas", "read", "imported", "correct", "precision", "coverage"]]
    sums = [0, 0, 0, 0]
    for autor, read in deixados().items():
        labels = sum(len(por_chave(each)) for each in mensagens(autor))
        taken = [right for chance, right in read if chance >= limit]
        sums = [one + two for one, two in zip(sums, (labels, len(read), len(taken), sum(taken)), strict=True)]
        rows.append(_linha(autor, labels, len(read), len(taken), sum(taken)))
    return tabela([*rows, _linha("all", *sums)])


def _linha(name: str, labels: int, read: int, taken: int, right: int) -> list[str]:
    shares = [f"{right / max(1, taken):.3f}", f"{right / max(1, labels):.3f}"]
    return [name, str(labels), str(read), str(taken), str(right), *shares]


def confiabilidade() -> str:
    """Return the reliability table: the share of correct vacancies by confidence, each author left out in turn."""
    read = [each for one in deixados().values() for each in one]
    edges = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.01)
    rows = [["confidence", "vagas", "mean confidence", "correct"]]
    for low, high in pairwise(edges):
        own = [each for each in read if low <= each[0] < high]
        if own:
            mean, right = sum(each[0] for each in own) / len(own), sum(each[1] for each in own) / len(own)
            rows.append([f"{low:.2f} to {min(high, 1.0):.2f}", str(len(own)), f"{mean:.3f}", f"{right:.3f}"])
    return tabela(rows)


def main(arguments: Sequence[str]) -> None:
    limit = float(arguments[0]) if arguments else Limiares().leitura
    weights = ajustados([each for autor in autores() for each in amostras(autor)])
    document = {"pesos": [round(each, 5) for each in weights]}
    (DADOS / "confianca.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    print(f"limit {limit}\n\n{importadas(limit)}\n\n{confiabilidade()}")


if __name__ == "__main__":
    main(sys.argv[1:])
