"""The reader of inbound texts on the labelled sentences of several authors. A failure names the author, but never
quotes a sentence.
"""

import json

import pytest

from tests.faults.figures import LONG
from tests.julia.leitura_conversas.frases import UNSEEN, authors, digest, digest_of_sample, digest_of_weights
from tests.julia.leitura_conversas.score import VALIDATION, Score, score_unseen, validated

# Lowest share of opt-outs that must be read as certo or provavel, and largest share of other texts that may be.
FLOORS = {
    "b": (1.0, 0.0),
    "c": (1.0, 0.012),
    "d": (0.981, 0.0),
    "e": (0.99, 0.028),
    "f": (0.977, 0.027),
    "g": (0.995, 0.022),
    "j": (0.996, 0.028),
    "k": (0.96, 0.052),
    "l": (0.995, 0.02),
    "m": (1.0, 0.011),
    "n": (0.965, 0.028),
    "z": (0.962, 0.032),
    "aa": (0.995, 0.04),
    "ab": (0.97, 0.03),
    "ac": (0.955, 0.025),
    "ad": (0.965, 0.05),
    "ae": (0.97, 0.0),
    "af": (0.984, 0.039),
    "ag": (0.984, 0.0),
    "ah": (0.976, 0.008),
    "ai": (0.995, 0.01),
    "aj": (0.995, 0.021),
    "ak": (0.946, 0.02),
    "al": (0.953, 0.04),
    "am": (0.986, 0.0),
    "an": (0.986, 0.014),
    "ao": (0.917, 0.026),
    "ap": (0.891, 0.026),
    "as": (1.0, 0.01),
    "at": (0.99, 0.0),
    "au": (0.882, 0.02),
    "av": (1.0, 0.03),
    "ay": (0.99, 0.0),
    "az": (1.0, 0.0),
}
# Of the texts that are read as certo, the largest share that may not be an opt-out.
WRONGLY_CERTAIN = 0.005


@pytest.mark.parametrize("autor", sorted(validated()))
def test_opt_outs_of_an_author_outside_the_training_are_recognised(autor: str) -> None:
    check(autor, validated()[autor])


@pytest.mark.parametrize("autor", authors(UNSEEN))
def test_opt_outs_of_an_unseen_author_are_recognised(autor: str) -> None:
    check(autor, score_unseen(autor))


def test_unseen_authors_together_meet_the_goals() -> None:
    found = [score_unseen(autor) for autor in authors(UNSEEN)]
    assert sum(each.heard for each in found) >= 0.99 * sum(each.wishes for each in found)
    assert sum(each.false_alarms for each in found) <= 0.01 * sum(each.others for each in found)


def check(autor: str, found: Score) -> None:
    recall, false_alarms = FLOORS[autor]
    assert found.recall >= recall
    assert found.false_alarm_share <= false_alarms


def test_a_text_that_is_read_certo_is_an_opt_out() -> None:
    found = [*validated().values(), *map(score_unseen, authors(UNSEEN))]
    assert sum(each.certo_wrong for each in found) <= WRONGLY_CERTAIN * sum(each.certo for each in found)


def test_the_model_belongs_to_the_sentences_and_the_features() -> None:
    """The stored model was trained on the current sentences and features. By default the test checks every sentence,
    but the features of only one sentence in ten; ``FAULTS=long`` checks all features.
    """
    trained = json.loads(VALIDATION.read_text(encoding="utf-8"))
    found, expected = (digest(), trained["input"]) if LONG else (digest_of_sample(), trained["sample"])
    assert found == expected, "run python3 -m tests.julia.leitura_conversas.train (needs scikit-learn)"


def test_the_weights_are_those_that_the_training_wrote() -> None:
    trained = json.loads(VALIDATION.read_text(encoding="utf-8"))["weights"]
    assert digest_of_weights() == trained, "run python3 -m tests.julia.leitura_conversas.train (needs scikit-learn)"
