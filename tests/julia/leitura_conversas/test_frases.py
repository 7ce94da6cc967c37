"""The reader on the labelled sentences of several authors. A failure names the author, never a sentence."""

import json

import pytest

from tests.faults.figures import LONG
from tests.julia.leitura_conversas.frases import UNSEEN, authors, digest, digest_of_sample, digest_of_weights
from tests.julia.leitura_conversas.score import VALIDATION, Score, score_unseen, validated

# Lowest share of opt-outs that must be read as certo or provavel, and largest share of other texts that may be.
FLOORS = {
    "b": (1.0, 0.0),
    "c": (0.988, 0.012),
    "d": (0.99, 0.0),
    "e": (0.99, 0.01),
    "f": (0.977, 0.022),
    "g": (1.0, 0.018),
    "j": (0.972, 0.028),
    "k": (0.952, 0.036),
    "l": (0.995, 0.015),
    "m": (1.0, 0.006),
    "n": (0.956, 0.019),
    "z": (0.961, 0.028),
    "aa": (0.99, 0.04),
    "ab": (0.96, 0.03),
    "ac": (0.93, 0.025),
    "ad": (0.96, 0.055),
    "ae": (0.945, 0.0),
    "af": (0.984, 0.024),
    "ag": (0.984, 0.0),
    "ah": (0.976, 0.0),
    "ai": (0.995, 0.015),
    "aj": (0.99, 0.016),
    "ak": (0.933, 0.014),
    "al": (0.946, 0.04),
    "am": (0.98, 0.007),
    "an": (0.98, 0.027),
}
# Of the texts that are read as certo, the largest share that may not be an opt-out.
WRONGLY_CERTAIN = 0.005


@pytest.mark.parametrize("autor", sorted(validated()))
def test_opt_outs_of_an_author_outside_the_training_are_recognised(autor: str) -> None:
    check(autor, validated()[autor])


@pytest.mark.parametrize("autor", authors(UNSEEN))
def test_opt_outs_of_an_unseen_author_are_recognised(autor: str) -> None:
    check(autor, score_unseen(autor))


def check(autor: str, found: Score) -> None:
    recall, false_alarms = FLOORS[autor]
    assert found.recall >= recall
    assert found.false_alarm_share <= false_alarms


def test_a_text_that_is_read_certo_is_an_opt_out() -> None:
    found = [*validated().values(), *map(score_unseen, authors(UNSEEN))]
    assert sum(each.certo_wrong for each in found) <= WRONGLY_CERTAIN * sum(each.certo for each in found)


def test_the_model_belongs_to_the_sentences_and_the_features() -> None:
    """The short form compares every sentence, but the features of only one sentence in ten."""
    trained = json.loads(VALIDATION.read_text(encoding="utf-8"))
    found, expected = (digest(), trained["input"]) if LONG else (digest_of_sample(), trained["sample"])
    assert found == expected, "run python3 -m tests.julia.leitura_conversas.train (needs scikit-learn)"


def test_the_weights_are_those_that_the_training_wrote() -> None:
    trained = json.loads(VALIDATION.read_text(encoding="utf-8"))["weights"]
    assert digest_of_weights() == trained, "run python3 -m tests.julia.leitura_conversas.train (needs scikit-learn)"
