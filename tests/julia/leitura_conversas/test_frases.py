"""The reader on the labelled sentences of several authors. A failure names figures and the author, never a sentence."""

import pytest

from tests.julia.leitura_conversas.score import score

RECALL = 0.99
FALSE_ALARMS = 0.01


@pytest.mark.parametrize("autor", ["autor_a", "desenvolvimento"])
def test_opt_outs_are_heard_and_work_talk_is_not_taken_for_one(autor: str) -> None:
    found = score(autor)
    assert (found.recall >= RECALL, found.false_alarm_share <= FALSE_ALARMS) == (True, True), found
