"""Train the model of the reader: ``python3 -m tests.julia.leitura_conversas.train``.

The script needs numpy, which Batuta does not depend on; any interpreter that has it will do. It is deterministic. It writes

    app/contexts/leitura_conversas/classificador.json           weights, calibration and limits
    tests/julia/leitura_conversas/validacao.json         figures of each author, read by a model that did not see the author

The weights are a logistic regression (AdaGrad, L2) on the sentences of the development authors and on changed copies of them. The
calibration combines the model and the grammar; it is fitted on authors that neither of the two saw. The grammar was written
with the sentences of ``o`` and ``a`` in sight and ``h`` with those of the other authors in sight, so their figures are too high.
"""

import base64
import json
import lzma
import multiprocessing
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found]

from app.contexts.leitura_conversas.api import Classe, OptOut
from app.contexts.leitura_conversas.classificador import FILE, SIZE, Atributos, features
from app.contexts.leitura_conversas.leitor import strongest
from app.contexts.leitura_conversas.texto import separate
from tests.julia.leitura_conversas.frases import DEV, Rotulada, authors, digest, sentences
from tests.julia.leitura_conversas.variacoes import vary

VALIDATION = Path(__file__).parent / "validacao.json"
OUTPUTS = ("opt_out", "certo", *(each.value for each in Classe if each is not Classe.OPT_OUT))
# Authors that the grammar did not see. The calibration uses these only.
HONEST = ("b", "c", "f", "g")
# The weight of one sentence: the two large collections have many sentences of one kind.
IMPORTANCE = {"o": 0.6}
COPIES, COPY_IMPORTANCE = 2, 0.5
EPOCHS, RATE, L2 = 12, 0.3, 1e-3
# Positive values of a weight, so that the file stays small. The class needs less precision than the opt-out.
LEVELS, OTHER_LEVELS = {"opt_out": 31, "certo": 7}, 5
# All outputs but the opt-out ignore a feature of fewer sentences.
RARE = 2
PROCESSES = 4
LIMITS = {"opt_out": 0.35, "certo": 0.9, "request": -0.5}


@dataclass(frozen=True)
class Exemplos:
    """Features, labels (one column per output) and importance of the sentences of one author, with their copies."""

    found: Sequence[Atributos]
    labels: Any
    grammar: Sequence[OptOut | None]
    copies: Sequence[tuple[int, ...]]
    copy_labels: Any


def prepare(autor: str) -> Exemplos:
    rows = list(sentences(DEV, autor))
    changed = vary(rows, COPIES, random.Random(7))
    read = [separate(each.texto) for each in rows]
    signs = [strongest(each) for each in read]
    return Exemplos(
        [features(each) for each in read],
        _labels(rows),
        [None if sign is None else sign[0].opt_out for sign in signs],
        [features(separate(each.texto)).texto for each in changed],
        _labels(changed),
    )


def _labels(rows: Sequence[Rotulada]) -> Any:
    return np.array([[_is(each, output) for output in OUTPUTS] for each in rows], np.float32)


def _is(row: Rotulada, output: str) -> bool:
    match output:
        case "opt_out":
            return row.opt_out != OptOut.NAO
        case "certo":
            return row.opt_out == OptOut.CERTO
        case _:
            return row.classe == output


def fit_weights(examples: Mapping[str, Exemplos]) -> tuple[Any, Any]:
    """Return the quantised weights (one column per output) and the biases."""
    rows: list[Any] = []
    labels, importance = [], []
    for autor, each in examples.items():
        weight = IMPORTANCE.get(autor, 1.0)
        rows += [np.array(found.texto) for found in each.found] + [np.array(copy) for copy in each.copies]
        labels += [each.labels, each.copy_labels]
        importance += [weight] * len(each.found) + [weight * COPY_IMPORTANCE] * len(each.copies)
    weights, bias = _adagrad(rows, np.concatenate(labels), np.array(importance, np.float32))
    written = [found.texto for each in examples.values() for found in each.found]
    weights[np.bincount(np.concatenate(written), minlength=SIZE) < RARE, 1:] = 0
    scale = _scale(weights)
    return np.round(weights / scale) * scale, bias


def _scale(weights: Any) -> Any:
    return np.abs(weights).max(axis=0) / np.array([LEVELS.get(each, OTHER_LEVELS) for each in OUTPUTS], np.float32)


def _adagrad(rows: Sequence[Any], labels: Any, importance: Any) -> tuple[Any, Any]:
    weights = np.zeros((SIZE, len(OUTPUTS)), np.float32)
    seen = np.full_like(weights, 1e-4)
    bias, bias_seen = np.zeros(len(OUTPUTS), np.float32), np.full(len(OUTPUTS), 1e-4, np.float32)
    order = np.random.default_rng(1)
    for _ in range(EPOCHS):
        for at in order.permutation(len(rows)):
            row = rows[at]
            length = np.float32(max(1, len(row)) ** -0.5)
            mine = weights[row]
            score = np.clip(bias + mine.sum(axis=0) * length, -30, 30)
            error = (1 / (1 + np.exp(-score)) - labels[at]) * importance[at]
            bias_seen += error * error
            bias -= RATE * error / np.sqrt(bias_seen)
            slope = error * length + np.float32(L2) * mine
            squares = seen[row] + slope * slope
            seen[row] = squares
            weights[row] = mine - RATE * slope / np.sqrt(squares)
    return weights, bias


@dataclass(frozen=True)
class Notas:
    """The scores of the sentences of one author: what the calibration combines, and the score of every output."""

    evidence: Any
    outputs: Any


def rate(each: Exemplos, weights: Any, bias: Any) -> Notas:
    texts = np.array([_score(found.texto, weights, bias) for found in each.found])
    best = np.array([max(_score(part, weights, bias)[0] for part in found.frases) for found in each.found])
    certain = np.array([sign is OptOut.CERTO for sign in each.grammar])
    probable = np.array([sign is OptOut.PROVAVEL for sign in each.grammar])
    return Notas(np.column_stack([texts[:, 0], best, certain, probable, np.ones(len(best))]), texts)


def _score(found: Sequence[int], weights: Any, bias: Any) -> Any:
    return bias + weights[np.array(found)].sum(axis=0) / np.sqrt(max(1, len(found)))


def calibrate(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos], but: str = "") -> Any:
    """Fit the logistic combination on the authors that grammar and model did not see, by Newton's method."""
    chosen = [autor for autor in HONEST if autor != but]
    evidence = np.concatenate([rated[autor].evidence for autor in chosen])
    wanted = np.concatenate([examples[autor].labels[:, 0] for autor in chosen]).astype(float)
    ridge = np.diag([0.5] * (evidence.shape[1] - 1) + [0.0])
    found = np.zeros(evidence.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-evidence @ found))
        slope = evidence.T @ (likely - wanted) + ridge @ found
        curve = (evidence * (likely * (1 - likely))[:, None]).T @ evidence + ridge
        found -= np.linalg.solve(curve, slope)
    return found


def validate(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, dict[str, int]]:
    return {autor: _figures(autor, rated, examples) for autor in rated}


def _figures(autor: str, rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, int]:
    labels, outputs, evidence = examples[autor].labels, rated[autor].outputs, rated[autor].evidence
    likely = 1 / (1 + np.exp(-evidence @ calibrate(rated, examples, autor)))
    is_wish = labels[:, 0] > 0
    heard = likely >= LIMITS["opt_out"]
    certain = (likely >= LIMITS["certo"]) & ((outputs[:, 1] >= LIMITS["request"]) | (evidence[:, 2] > 0))
    same = outputs[:, 2:].argmax(axis=1) == labels[:, 2:].argmax(axis=1)
    counts = {
        "wishes": is_wish,
        "heard": heard & is_wish,
        "others": ~is_wish,
        "false_alarms": heard & ~is_wish,
        "certo": certain,
        "certo_right": certain & (labels[:, 1] > 0),
        "certo_wrong": certain & ~is_wish,
        "same_class": same & ~is_wish & ~heard,
    }
    return {name: int(found.sum()) for name, found in counts.items()}


def curve(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, dict[str, float]]:
    """Recall and false alarms of the unseen authors together, by the limit of the probability."""
    wanted = np.concatenate([examples[autor].labels[:, 0] > 0 for autor in HONEST])
    scores = [rated[autor].evidence @ calibrate(rated, examples, autor) for autor in HONEST]
    likely = 1 / (1 + np.exp(-np.concatenate(scores)))
    return {
        str(limit): {
            "recall": round(float((likely[wanted] >= limit).mean()), 4),
            "false_alarms": round(float((likely[~wanted] >= limit).mean()), 4),
        }
        for limit in (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    }


def pack(weights: Any, bias: Any) -> dict[str, Any]:
    scale = _scale(weights)
    content = np.round(weights / scale).astype(np.int8)
    return {
        output: {
            "scale": float(scale[at]),
            "bias": float(bias[at]),
            "weights": base64.b64encode(lzma.compress(content[:, at].tobytes(), preset=9)).decode(),
        }
        for at, output in enumerate(OUTPUTS)
    }


def main() -> None:
    examples = {autor: prepare(autor) for autor in authors(DEV)}
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        whole = pool.apply_async(fit_weights, (examples,))
        folds = {autor: pool.apply_async(_rate_unseen, (autor, examples)) for autor in examples}
        rated = {autor: fold.get() for autor, fold in folds.items()}
        packed = pack(*whole.get())
    figures = {"digest": digest(), "authors": validate(rated, examples), "curve": curve(rated, examples)}
    VALIDATION.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    names = ("text", "sentence", "certo", "provavel", "bias")
    calibration = {name: round(float(value), 4) for name, value in zip(names, calibrate(rated, examples), strict=True)}
    document = {"calibration": calibration, "limits": LIMITS, "outputs": packed}
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _rate_unseen(autor: str, examples: Mapping[str, Exemplos]) -> Notas:
    """Rate the sentences of one author by the weights of all other authors."""
    others = {name: each for name, each in examples.items() if name != autor}
    return rate(examples[autor], *fit_weights(others))


if __name__ == "__main__":
    main()
