"""Fit the model that computes how likely the reader of group messages has read a vacancy correctly (its confidence):
``python -m tests.julia.leitura_grupos.calibrar`` writes ``dados/confianca.json``.

A vacancy is correct if its key (hospital, day, period, speciality) and its price match the label. A logistic regression
is fitted by coordinate descent. A feature that is evidence against a vacancy may only lower its confidence. Otherwise a
rare feature of the labelled messages could by chance raise the confidence of a new author's vacancies.

The rules were developed with the labelled messages, so the rules recognise more layouts in these messages than in those
of a new author. Each message is therefore also read with one of its layouts disabled, as if the reader did not know
that layout.

The tables score each author with a model that was fitted without the author. The model that is written to the file is
fitted on all authors.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import pairwise
from math import exp, sqrt

from app.contexts.leitura_grupos.blocos.layout import BLOCOS, Bloco
from app.contexts.leitura_grupos.documento import documento
from app.contexts.leitura_grupos.juizo.confianca import ate
from app.contexts.leitura_grupos.juizo.evidencia import AJUDAM, COMUNS, PROPRIAS
from app.contexts.leitura_grupos.leitor import evidencias
from app.contexts.leitura_grupos.texto.vocabulario import DADOS
from app.contexts.leitura_grupos.tipos import Leitura
from app.contexts.vagas.limiares import Limiares
from tests.julia.leitura_grupos.placar import (
    Documento,
    autores,
    igual,
    mensagens,
    por_chave,
    resolvida,
    tabela,
    vocabulario,
)
from tests.julia.leitura_grupos.treinar import sem

L2 = 6.0
# Weight of a sample that was read without one of the blocks.
SEM_BLOCO = 0.3
ROUNDS = 40
CARACTERISTICAS = (*COMUNS, *PROPRIAS)


@dataclass(frozen=True, slots=True)
class Amostra:
    """A vacancy that the rules read: its features, and whether its key and its price are correct."""

    features: tuple[float, ...]
    certa: bool
    peso: float
    mensagem: str


def lida(mensagem: Documento, autor: str, blocos: Sequence[Bloco] = BLOCOS) -> tuple[Leitura, list[tuple[float, ...]]]:
    """Read a message with a category model that was fitted without the message's author."""
    return evidencias(
        mensagem["texto"],
        enviado_em=datetime.fromisoformat(mensagem["enviado_em"]),
        regiao=mensagem.get("regiao") or mensagem.get("grupo"),
        vocabulario=vocabulario(),
        assunto=sem(autor),
        blocos=blocos,
    )


@cache
def lidas(autor: str) -> tuple[tuple[Leitura, list[tuple[float, ...]]], ...]:
    return tuple(lida(each, autor) for each in mensagens(autor))


@cache
def amostras(autor: str) -> tuple[Amostra, ...]:
    pairs = zip(mensagens(autor), lidas(autor), strict=True)
    return tuple(each for mensagem, read in pairs for each in _amostras(mensagem, *read))


@cache
def sem_um_bloco(autor: str) -> tuple[Amostra, ...]:
    """Read each offer several times, each time with one layout rule disabled. Return the vacancies from the readings
    that differ from the complete one.
    """
    found: list[Amostra] = []
    for mensagem, (whole, _) in zip(mensagens(autor), lidas(autor), strict=True):
        for left_out in BLOCOS if mensagem["eh_oferta"] else ():
            read, features = lida(mensagem, autor, [each for each in BLOCOS if each is not left_out])
            if documento(read)["vagas"] != documento(whole)["vagas"]:
                found.extend(_amostras(mensagem, read, features, SEM_BLOCO))
    return tuple(found)


def _amostras(
    mensagem: Documento, read: Leitura, features: Sequence[tuple[float, ...]], weight: float | None = None
) -> Iterator[Amostra]:
    expected = por_chave(mensagem)
    for each, own in zip(read.vagas, features, strict=False):
        day, period = each.data.valor.isoformat(), each.periodo.valor
        label = expected.get(resolvida(each.hospital.valor, day, period, each.especialidade.valor))
        price = None if each.valor is None else each.valor.valor
        is_right = label is not None and igual("valor", label.get("valor"), price)
        # The vacancies of one message tend to be right or wrong together, so they share their weight.
        yield Amostra(own, is_right, weight or 1 / sqrt(len(read.vagas)), mensagem["id"])


def ajustados(samples: Sequence[Amostra]) -> list[float]:
    """Return the weights of a logistic regression: the intercept, then one per feature."""
    size = len(CARACTERISTICAS)
    columns = [
        [(row, each.features[at]) for row, each in enumerate(samples) if each.features[at]] for at in range(size)
    ]
    penalties = [L2 * _variancia([value for _, value in column], len(samples)) for column in columns]
    rises = [name in AJUDAM for name in CARACTERISTICAS]
    scores = [0.0] * len(samples)
    intercept, weights = 0.0, [0.0] * size
    all_rows = [(row, 1.0) for row in range(len(samples))]
    for _ in range(ROUNDS):
        for at in range(-1, size):
            column = all_rows if at < 0 else columns[at]
            now = intercept if at < 0 else weights[at]
            penalty = 1e-6 if at < 0 else penalties[at] + 1e-6
            slope, curve = penalty * now, penalty
            for row, value in column:
                sample = samples[row]
                chance = 1 / (1 + exp(-max(-30.0, min(30.0, scores[row]))))
                slope += sample.peso * (chance - sample.certa) * value
                curve += sample.peso * chance * (1 - chance) * value * value
            new = now - slope / curve
            if at >= 0:
                new = max(0.0, new) if rises[at] else min(0.0, new)
            if (step := new - now) == 0:
                continue
            for row, value in column:
                scores[row] += step * value
            if at < 0:
                intercept = new
            else:
                weights[at] = new
    return [intercept, *weights]


def _variancia(values: Sequence[float], size: int) -> float:
    """Return the variance of a column with ``size`` rows. ``values`` contains only those of its values that are not
    zero.
    """
    mean = sum(values) / size
    return sum(value * value for value in values) / size - mean * mean


def chance(weights: Sequence[float], features: Sequence[float]) -> float:
    score = weights[0] + sum(map(float.__mul__, weights[1:], features))
    return 1 / (1 + exp(-max(-30.0, min(30.0, score))))


@cache
def deixados() -> dict[str, list[tuple[float, Amostra]]]:
    """Return the vacancies of each author with their confidence. The model that computes it was fitted without this
    author's messages.
    """
    found = {}
    for autor in autores():
        others = [other for other in autores() if other != autor]
        weights = ajustados([each for other in others for each in (*amostras(other), *sem_um_bloco(other))])
        found[autor] = [(min(ate(each.features), chance(weights, each.features)), each) for each in amostras(autor)]
    return found


def importadas(limit: float) -> str:
    """Return a table of the vacancies that would be imported, by author."""
    rows = [["author", "vagas", "read", "imported", "correct", "precision", "coverage"]]
    sums = [0, 0, 0, 0]
    for autor, read in deixados().items():
        labels = sum(len(por_chave(each)) for each in mensagens(autor))
        taken = [each.certa for chance, each in read if chance >= limit]
        sums = [one + two for one, two in zip(sums, (labels, len(read), len(taken), sum(taken)), strict=True)]
        rows.append(_linha(autor, labels, len(read), len(taken), sum(taken)))
    return tabela([*rows, _linha("all", *sums)])


def _linha(name: str, labels: int, read: int, taken: int, right: int) -> list[str]:
    shares = [f"{right / max(1, taken):.3f}", f"{right / max(1, labels):.3f}"]
    return [name, str(labels), str(read), str(taken), str(right), *shares]


LIMITES = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.01)


def faixas() -> list[tuple[float, float, int, float, float]]:
    """Return, for each range of confidence, its bounds, the number of vacancies, their mean confidence and the share of
    correct ones.
    """
    read = [(sure, each.certa) for one in deixados().values() for sure, each in one]
    found = []
    for low, high in pairwise(LIMITES):
        own = [each for each in read if low <= each[0] < high]
        if own:
            mean = sum(sure for sure, _ in own) / len(own)
            right = sum(is_right for _, is_right in own) / len(own)
            found.append((low, min(high, 1.0), len(own), mean, right))
    return found


def confiabilidade() -> str:
    """Return the reliability table: the share of correct vacancies in each range of confidence. Each confidence comes
    from a model that was fitted without the message's author.
    """
    rows = [["confidence", "vagas", "mean confidence", "correct"]]
    rows.extend(
        [f"{low:.2f} to {high:.2f}", str(count), f"{mean:.3f}", f"{right:.3f}"]
        for low, high, count, mean, right in faixas()
    )
    return tabela(rows)


def piores(limit: float, count: int = 10) -> list[str]:
    """Return the ids of the messages with the most incorrect vacancies that would be imported. Messages with equally
    many incorrect vacancies are ordered by confidence.
    """
    wrong: dict[str, float] = {}
    for read in deixados().values():
        for sure, each in read:
            if not each.certa:
                wrong[each.mensagem] = wrong.get(each.mensagem, 0.0) + (sure >= limit) + sure / 1000
    return sorted(wrong, key=wrong.__getitem__, reverse=True)[:count]


def main() -> None:
    weights = ajustados([each for autor in autores() for each in (*amostras(autor), *sem_um_bloco(autor))])
    text = json.dumps({"pesos": [round(each, 4) for each in weights]}, separators=(",", ":"))
    (DADOS / "confianca.json").write_text(text + "\n", encoding="utf-8")
    limit = Limiares().leitura
    print(f"{importadas(limit)}\n\n{confiabilidade()}")


if __name__ == "__main__":
    main()
