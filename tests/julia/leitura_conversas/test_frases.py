"""The reader on the labelled sentences of several authors. A failure names the author, never a sentence."""

import json

import pytest

from tests.julia.leitura_conversas.frases import UNSEEN, authors, digest
from tests.julia.leitura_conversas.score import VALIDATION, Score, score_unseen, validated

# Of the wishes, the least share that is read certo or provavel; of the other texts, the largest share that is.
FLOORS = {
    "b": (1.0, 0.0),
    "c": (0.988, 0.012),
    "d": (0.981, 0.0),
    "e": (1.0, 0.01),
    "f": (0.99, 0.04),
    "g": (1.0, 0.027),
    "j": (0.996, 0.028),
    "k": (0.972, 0.056),
    "l": (0.995, 0.02),
    "m": (1.0, 0.025),
    "n": (0.967, 0.039),
}
# Of the texts that are read certo, the largest share that is not an opt-out.
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
    trained = json.loads(VALIDATION.read_text(encoding="utf-8"))["digest"]
    assert digest() == trained, "run python3 -m tests.julia.leitura_conversas.train (needs scikit-learn)"
