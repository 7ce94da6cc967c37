"""Train the model that reads inbound texts: ``python3 -m tests.julia.leitura_conversas.train``.

The script needs scikit-learn, which Batuta does not depend on; any interpreter that has it can run the script. The
script is deterministic. It writes

    app/contexts/leitura_conversas/classificador.json  weights for the opt-out, calibration and limits
    app/contexts/leitura_conversas/conceitos.json      weights for the opt-out by concepts
    app/contexts/leitura_conversas/classes.json        weights for the classes
    tests/julia/leitura_conversas/validacao.json       each author's figures, from a model that did not see the author

The weights are a logistic regression on the sentences of the development authors and on changed copies of them. A
feature counts more if opt-outs have it much more often, or much less often, than other texts (naive Bayes). The
calibration combines the scores by letters, words and concepts, of the text and of its sentences. It is fitted on the
validated authors (``FOLDS``). Each validated author is scored by a model that was trained without this author's
sentences. The other authors had seen sentences of the validated authors or errors of the reader, so their sentences are
used only for training.
"""

import base64
import json
import lzma
import multiprocessing
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np  # type: ignore[import-not-found]
from scipy.sparse import csr_matrix, diags, vstack  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-not-found]

from app.contexts.leitura_conversas.api import Classe, OptOut
from app.contexts.leitura_conversas.classificador import CLASSES, CONCEPTS, FILE, SIZE, Tracos, features
from app.contexts.leitura_conversas.texto import separate
from tests.julia.leitura_conversas.frases import (
    DEV,
    SIM,
    Rotulada,
    authors,
    digest,
    digest_of_sample,
    digest_of_weights,
    sentences,
)
from tests.julia.leitura_conversas.variacoes import fill, vary

VALIDATION = Path(__file__).parent / "validacao.json"
# Three views of the opt-out, each with its own features, in the order of ``Tracos``; then outputs by words.
VIEWS = ("letras", "opt_out", "conceitos")
WORDS = VIEWS.index("opt_out")
OUTPUTS = (*VIEWS, "certo", *(each.value for each in Classe if each is not Classe.OPT_OUT))
CERTO, CLASS = len(VIEWS), len(VIEWS) + 1
# Each fold is read by a model without its authors.
FOLDS = (
    ("b", "c", "d", "e", "f", "g", "l", "m"), ("j", "k", "n"), ("z",),
    ("aa", "ab", "ac", "ak", "ao"), ("ad", "ae", "af", "al", "au"), ("ag", "ah", "ai", "aj", "ap"),
)  # fmt: skip
HONEST = tuple(autor for fold in FOLDS for autor in fold)
# These authors knew only the guideline, like the authors of new sentences.
INDEPENDENT = ("l", "m", "aa", "ab", "ac", "ad", "ae", "af", "ag", "ah", "ai", "aj", "ak", "al", "ao", "ap", "au")
# The weight of one sentence of a collection. It is below 1 if a large collection has many sentences of one kind.
IMPORTANCE = {"o": 0.6, "moldes": 0.5, "aq": 1.5, "ar": 2.0, "aw": 0.6} | dict.fromkeys(INDEPENDENT, 2.5)
# Sentences with slots, which train like the sentences of an author.
PATTERNS, OF_EACH_PATTERN = "moldes", 12
# Authors who knew the errors on the validated authors. The models of the folds are trained without them.
AIMED = ("i", "aq", "ar")
COPIES, COPY_IMPORTANCE = 2, 0.5
# C of the regression, the exponent of the naive Bayes ratio, and the smallest count of a feature.
STRENGTH = {"letras": 50.0, "opt_out": 50.0, "conceitos": 20.0}
OTHER_STRENGTH, BAYES, PRIOR = 10.0, 0.75, 0.03
# Number of positive values to which weights are rounded. It is small, so that the file stays small. A class needs less
# precision than the opt-out.
LEVELS, OTHER_LEVELS = {"letras": 63, "opt_out": 63, "conceitos": 63, "certo": 15}, 7
# Weights beyond this share of all weights are cut.
LARGEST = 0.9995
# A feature that occurs in fewer sentences gets no weight.
RARE = 2
# The score of a text without words.
LOWEST = -30.0
# The inputs of the calibration, and the places of those that a text of one sentence has.
PARTS = (
    "letters", "words", "concepts", "letters_of_sentence", "words_of_sentence", "concepts_of_sentence", "bias",
)  # fmt: skip
SINGLE = [0, 1, 2, 6]
PROCESSES = 2
LIMITS = {"opt_out": 0.57, "certo": 0.95, "request": -0.5}


@dataclass(frozen=True)
class Exemplos:
    """The training data of one author's sentences, including copies: features (one row per text) and labels (one column
    per output). Each of the three ways to detect an opt-out (letters, words, concepts) has its own feature matrix.
    ``parts`` contains the individual sentences of the texts, and ``owners`` the row of the text to which each sentence
    belongs. ``complete`` says which texts have a labelled class.
    """

    texts: Sequence[Any]
    parts: Sequence[Any]
    owners: Any
    labels: Any
    complete: Any
    copies: Sequence[Any]
    copy_labels: Any


def prepare(autor: str) -> Exemplos:
    chance = random.Random(7)
    rows = fill(OF_EACH_PATTERN, chance) if autor == PATTERNS else list(sentences(DEV, autor))
    changed = vary(rows, COPIES, chance)
    read = [separate(each.texto) for each in rows]
    found = [features(each) for each in read]
    return Exemplos(
        _matrices([each.texto for each in found]),
        _matrices([part for each in found for part in each.frases]),
        np.repeat(np.arange(len(rows)), [len(each.frases) for each in found]),
        _labels(rows),
        np.array([bool(each.classe) for each in rows]),
        _matrices([features(separate(each.texto)).texto for each in changed]),
        _labels(changed),
    )


def _matrices(found: Sequence[Tracos]) -> Sequence[Any]:
    return [_matrix([each[at] for each in found]) for at in range(len(VIEWS))]


def _matrix(rows: Sequence[Collection[int]]) -> Any:
    ends = np.cumsum([0, *map(len, rows)])
    values = np.concatenate([np.full(len(row), max(1, len(row)) ** -0.5) for row in rows])
    return csr_matrix(
        (values, np.concatenate([np.array(sorted(row), np.int64) for row in rows]), ends), (len(rows), SIZE)
    )


def _labels(rows: Sequence[Rotulada]) -> Any:
    return np.array([[_is(each, output) for output in OUTPUTS] for each in rows])


def _is(row: Rotulada, output: str) -> bool:
    match output:
        case "letras" | "opt_out" | "conceitos":
            return row.opt_out != OptOut.NAO
        case "certo":
            return row.opt_out in (OptOut.CERTO, SIM)
        case _:
            return row.classe == output


def fit_weights(examples: Mapping[str, Exemplos]) -> tuple[Any, Any]:
    """Return the quantised weights (one column per output) and the biases."""
    kept = list(examples.values())
    labels = np.concatenate([each.labels for each in kept] + [each.copy_labels for each in kept])
    shares = [IMPORTANCE.get(autor, 1.0) for autor in examples]
    importance = np.repeat(
        shares + [share * COPY_IMPORTANCE for share in shares],
        [len(each.labels) for each in kept] + [len(each.copy_labels) for each in kept],
    )
    views = range(len(VIEWS))
    rows = [vstack([each.texts[at] for each in kept] + [each.copies[at] for each in kept]).tocsr() for at in views]
    written = [sum(np.bincount(each.texts[at].indices, minlength=SIZE) for each in kept) for at in views]
    # The copies are used only for the opt-out. Some authors labelled only whether a text is an opt-out.
    texts = np.flatnonzero(np.concatenate([each.complete for each in kept]))
    fitted = []
    for column, output in enumerate(OUTPUTS):
        at = VIEWS.index(output) if output in VIEWS else WORDS
        part = slice(None) if output in STRENGTH else texts
        fitted.append(_fit(rows[at][part], labels[part, column], importance[part], written[at], output))
    return np.column_stack([weights for weights, _ in fitted]), np.array([bias for _, bias in fitted])


def _fit(rows: Any, wanted: Any, importance: Any, written: Any, output: str) -> tuple[Any, float]:
    """Fit one output: scale each feature by its naive Bayes ratio, fit the regression, quantise the weights."""
    inside = rows[wanted].T @ importance[wanted] + PRIOR
    outside = rows[~wanted].T @ importance[~wanted] + PRIOR
    ratio = np.abs(np.log(inside / inside.sum()) - np.log(outside / outside.sum())) ** BAYES
    ratio[written < RARE] = 0
    strength = STRENGTH.get(output, OTHER_STRENGTH)
    # The class needs less precision, so its fit may end earlier.
    tolerance = 0.03 if output in STRENGTH else 0.1
    model = LogisticRegression(C=strength, solver="liblinear", dual=True, tol=tolerance, max_iter=400, random_state=1)
    model.fit((rows @ diags(ratio)).tocsr(), wanted, sample_weight=importance)
    weights = model.coef_.ravel() * ratio
    levels = LEVELS.get(output, OTHER_LEVELS)
    scale = np.quantile(np.abs(weights[weights != 0]), LARGEST) / levels
    return np.clip(np.round(weights / scale), -levels, levels) * scale, float(model.intercept_[0])


@dataclass(frozen=True)
class Notas:
    """The scores of one author's sentences: the inputs of the calibration, whether each text has several sentences, and
    the score of every output.
    """

    evidence: Any
    several: Any
    outputs: Any


def rate(each: Exemplos, weights: Any, bias: Any) -> Notas:
    texts = each.texts[WORDS] @ weights + bias
    best = np.full((len(texts), len(VIEWS)), LOWEST)
    for at in range(len(VIEWS)):
        texts[:, at] = each.texts[at] @ weights[:, at] + bias[at]
        np.maximum.at(best[:, at], each.owners, each.parts[at] @ weights[:, at] + bias[at])
    several = np.bincount(each.owners, minlength=len(texts)) > 1
    return Notas(np.column_stack([texts[:, : len(VIEWS)], best, np.ones(len(best))]), several, texts)


def calibrate(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos], but: str = "") -> tuple[Any, Any]:
    """Fit one logistic combination for texts of one sentence and another for longer texts, on authors that the model
    has not seen.
    """
    chosen = [autor for autor in HONEST if autor != but]
    evidence = np.concatenate([rated[autor].evidence for autor in chosen])
    wanted = np.concatenate([examples[autor].labels[:, 0] for autor in chosen]).astype(float)
    several = np.concatenate([rated[autor].several for autor in chosen])
    return _combine(evidence[~several][:, SINGLE], wanted[~several]), _combine(evidence[several], wanted[several])


def _combine(evidence: Any, wanted: Any) -> Any:
    """Fit a logistic combination by Newton's method."""
    ridge = np.diag([0.5] * (evidence.shape[1] - 1) + [0.0])
    found = np.zeros(evidence.shape[1])
    for _ in range(30):
        likely = 1 / (1 + np.exp(-evidence @ found))
        slope = evidence.T @ (likely - wanted) + ridge @ found
        curve = (evidence * (likely * (1 - likely))[:, None]).T @ evidence + ridge
        found -= np.linalg.solve(curve, slope)
    return found


def likelihood(each: Notas, calibration: tuple[Any, Any]) -> Any:
    single, several = calibration
    odds = np.where(each.several, each.evidence @ several, each.evidence[:, SINGLE] @ single)
    return 1 / (1 + np.exp(-odds))


def validate(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, dict[str, int]]:
    return {autor: _figures(autor, rated, examples) for autor in rated}


def _figures(autor: str, rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, int]:
    labels, outputs = examples[autor].labels, rated[autor].outputs
    likely = likelihood(rated[autor], calibrate(rated, examples, autor))
    is_wish = labels[:, 0] > 0
    heard = likely >= LIMITS["opt_out"]
    certain = (likely >= LIMITS["certo"]) & (outputs[:, CERTO] >= LIMITS["request"])
    same = outputs[:, CLASS:].argmax(axis=1) == labels[:, CLASS:].argmax(axis=1)
    counts = {
        "wishes": is_wish,
        "heard": heard & is_wish,
        "others": ~is_wish,
        "false_alarms": heard & ~is_wish,
        "certo": certain,
        "certo_right": certain & (labels[:, CERTO] > 0),
        "certo_wrong": certain & ~is_wish,
        "same_class": same & examples[autor].complete & ~is_wish & ~heard,
    }
    return {name: int(found.sum()) for name, found in counts.items()}


def curve(rated: Mapping[str, Notas], examples: Mapping[str, Exemplos]) -> dict[str, dict[str, float]]:
    """Return the share of opt-outs that were found (recall) and of false alarms, over all unseen authors, for each
    probability threshold.
    """
    wanted = np.concatenate([examples[autor].labels[:, 0] > 0 for autor in HONEST])
    likely = np.concatenate([likelihood(rated[autor], calibrate(rated, examples, autor)) for autor in HONEST])
    return {
        str(limit): {
            "recall": round(float((likely[wanted] >= limit).mean()), 4),
            "false_alarms": round(float((likely[~wanted] >= limit).mean()), 4),
        }
        for limit in (0.05, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
    }


def pack(weights: Any, bias: Any) -> dict[str, Any]:
    found = {}
    for at, output in enumerate(OUTPUTS):
        scale = np.abs(weights[:, at]).max() / LEVELS.get(output, OTHER_LEVELS)
        content = np.round(weights[:, at] / scale).astype(np.int8).tobytes()
        found[output] = {
            "scale": float(scale),
            "bias": float(bias[at]),
            "weights": base64.b64encode(lzma.compress(content, preset=9)).decode(),
        }
    return found


def main() -> None:
    names = [*authors(DEV), PATTERNS]
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        examples = dict(zip(names, pool.map(prepare, names, 1), strict=True))
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        whole = pool.apply_async(fit_weights, (examples,))
        folds = [pool.apply_async(_rate_unseen, (fold, examples)) for fold in FOLDS]
        rated = {autor: notes for fold in folds for autor, notes in fold.get().items()}
        packed = pack(*whole.get())
    single, several = calibrate(rated, examples)
    calibration = {"single": _named(single, [PARTS[at] for at in SINGLE]), "several": _named(several, PARTS)}
    concepts = {"conceitos": packed.pop("conceitos")}
    requests = {name: packed.pop(name) for name in ("letras", "opt_out", "certo")}
    document = {"calibration": calibration, "limits": LIMITS, "outputs": requests}
    FILE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    CONCEPTS.write_text(json.dumps({"outputs": concepts}, indent=1) + "\n", encoding="utf-8")
    CLASSES.write_text(json.dumps({"outputs": packed}, indent=1) + "\n", encoding="utf-8")
    figures = {"input": digest(), "sample": digest_of_sample(), "weights": digest_of_weights()}
    figures |= {"authors": validate(rated, examples), "curve": curve(rated, examples)}
    VALIDATION.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def _named(values: Any, names: Sequence[str]) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}


def _rate_unseen(fold: Sequence[str], examples: Mapping[str, Exemplos]) -> dict[str, Notas]:
    """Score the sentences of the authors in a fold, using weights that were fitted on all other authors."""
    weights, bias = fit_weights({name: each for name, each in examples.items() if name not in (*fold, *AIMED)})
    return {autor: rate(examples[autor], weights, bias) for autor in fold}


if __name__ == "__main__":
    main()
