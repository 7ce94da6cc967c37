"""Every function that distinguishes outcomes handles all kinds of outcome."""

from datetime import timedelta
from typing import get_args

import pytest

from batuta.queue.item import ItemState, Lease, QueueTable
from batuta.queue.outcome import (
    Cancelled,
    Done,
    Failed,
    Outcome,
    Partial,
    Skipped,
    Snooze,
    TimedOut,
    after_seconds,
    settle,
)
from batuta.queue.pipeline import Pipeline, Stage
from batuta.receive.endpoints import outcome_word, reply_body, reply_status
from batuta.runlog.execution import Status
from batuta.targets.call import ending_of, outcome_of
from batuta.tasks.task import outcome_of as outcome_of_task

MINUTE = timedelta(minutes=1)
OUTCOMES = [
    (Done(items=2), ItemState.DONE, None, Status.SUCCESS, 200, "ok", "ok"),
    (Partial("half", 2), ItemState.DONE, None, Status.SUCCESS, 200, "partial", "partial"),
    (Skipped("paused"), ItemState.DONE, "dropped", Status.SKIPPED, 200, "skipped", "skipped"),
    (Snooze(MINUTE, "later"), ItemState.READY, None, Status.SKIPPED, 200, "skipped", "skipped"),
    (Failed("no"), ItemState.READY, None, Status.ERROR, 500, "error", "error"),
    (Failed("never", permanent=True), ItemState.DEAD, None, Status.ERROR, 400, "error", "error"),
    (TimedOut("late"), ItemState.READY, None, Status.TIMEOUT, 504, "error", "timeout"),
    (Cancelled("asked"), ItemState.CANCELLED, None, Status.SKIPPED, 200, "skipped", "skipped"),
]
TABLE = QueueTable(
    name="fila", state="stage", queue="stage", ready=("one",), running=None, done="done", dead="dead",
    cancelled="cancelled", attempts="attempts", crashes="crashes", available_at="at", error="error", key="key",
    last_stage="last", updated_at="updated_at",
)  # fmt: skip


def test_table_names_every_outcome() -> None:
    assert {type(outcome) for outcome, *_ in OUTCOMES} == set(get_args(Outcome))


@pytest.mark.parametrize(("outcome", "state", "stage", "status", "code", "said", "word"), OUTCOMES)
def test_every_outcome_has_a_meaning_for_every_consumer(
    outcome: Outcome, state: ItemState, stage: str | None, status: Status, code: int, said: str, word: str
) -> None:
    async def handle(lease: Lease) -> Outcome:
        return outcome

    retry, lease = after_seconds([60]), Lease("a", 1, 1, {})
    pipeline = Pipeline(table=TABLE, stages=(Stage(name="one", handle=handle, retry=retry),), dropped="dropped")
    assert settle(1, outcome, retry, lambda: 0.5).state is state
    moved = pipeline.settle(pipeline.stages[0], lease.attempt, outcome, retry)
    assert (moved.state, moved.stage) == (state, stage)
    assert ending_of(outcome).status is status
    body = reply_body(outcome)
    assert (reply_status(outcome), body["status"], outcome_word(outcome, body)) == (code, said, word)


@pytest.mark.parametrize("outcome", [each[0] for each in OUTCOMES])
def test_job_and_task_may_return_any_outcome(outcome: Outcome) -> None:
    assert outcome_of(outcome) is outcome
    assert outcome_of_task(outcome) is outcome


@pytest.mark.parametrize("outcome", [Partial("half", result={"n": 1}), Skipped("paused")])
def test_reason_of_a_partial_task_is_kept(outcome: Partial | Skipped) -> None:
    settlement = settle(1, outcome, after_seconds([]), lambda: 0.5)
    assert (settlement.state, settlement.error) == (ItemState.DONE, outcome.reason)


@pytest.mark.parametrize(
    ("result", "kept"), [(None, None), ({}, None), ({"a": 1}, {"a": 1}), ([1], {"result": [1]}), (0, {"result": 0})]
)
def test_result_of_a_job_is_stored_as_a_mapping(result: object, kept: object) -> None:
    assert ending_of(Done(result=result)).result == kept  # type: ignore[arg-type]
