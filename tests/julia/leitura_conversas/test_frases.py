"""The reader on the labelled sentences of several authors. A failure names the author, never a sentence."""

import pytest

from tests.julia.leitura_conversas.score import authors, score

# Of the wishes, the share that is read certo or provavel; of the other texts, the share that is.
GOAL = (0.99, 0.01)
# The sentences of these two authors are unseen by the people who write the grammar; the reader does not reach the goal on them yet.
UNSEEN = {"autor_b": (0.90, 0.06), "autor_c": (0.94, 0.03)}


@pytest.mark.parametrize("autor", authors())
def test_opt_outs_are_heard_and_work_talk_is_not_taken_for_one(autor: str) -> None:
    recall, false_alarms = UNSEEN.get(autor, GOAL)
    found = score(autor)
    assert found.recall >= recall
    assert found.false_alarm_share <= false_alarms
