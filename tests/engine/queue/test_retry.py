"""Retry rules by exception class: the most specific class decides, and invalid rules are rejected at registration."""

from typing import Any

import pytest

from batuta import Batuta, NoRetry, never
from batuta.pipelines import step
from batuta.queue.outcome import DEFAULT_RETRY, Waits
from batuta.queue.retry import policy_for, retry_policy
from batuta.testing import FakeClock


def test_most_specific_class_decides() -> None:
    policy = retry_policy({OSError: [10, 60], ConnectionError: [1], ValueError: never, Exception: [5]}, DEFAULT_RETRY)
    waits = {
        kind: policy_for(policy, kind()).wait_after(1, lambda: 0.5)
        for kind in (OSError, ConnectionResetError, UnicodeError, KeyError)
    }
    assert {kind.__name__: wait and wait.total_seconds() for kind, wait in waits.items()} == {
        "OSError": 10,
        "ConnectionResetError": 1,
        "UnicodeError": None,
        "KeyError": 5,
    }
    assert policy.wait_after(1, lambda: 0.5) == Waits(retry_policy([5], DEFAULT_RETRY).waits).waits[0]  # type: ignore[attr-defined]
    assert policy_for(retry_policy({OSError: never}, DEFAULT_RETRY), KeyError()) is DEFAULT_RETRY


@pytest.mark.parametrize(
    ("retry", "step_"),
    [
        ({"OSError": [1]}, "write retry={OSError"),
        ({KeyboardInterrupt: [1]}, "KeyboardInterrupt, which is not a class of exceptions"),
        ({OSError: "10"}, r"retry of OSError must be a list of waits in seconds, a policy or never: write \[10, 60\]"),
        ({OSError: None}, "retry of OSError must be a list"),
        ([-1], "retry must be a list of waits"),
        ("often", "retry must be a list of waits"),
    ],
)
def test_rules_that_cannot_work_are_rejected(work_url: str, retry: Any, step_: str) -> None:
    work = Batuta(work_url, timezone="UTC")
    with pytest.raises(TypeError, match=step_):
        work.task(retry=retry)
    with pytest.raises(TypeError, match=step_):
        step(print, name="print", retry=retry)


async def test_error_chooses_its_rule_and_no_retry_ends_the_item(database_url: str, clock: FakeClock) -> None:
    work = Batuta(database_url, timezone="UTC", clock=clock)
    errors: dict[str, Exception] = {
        "os": OSError(),
        "value": ValueError(),
        "no": NoRetry("no such customer, cpf 111.444.777-35"),
    }

    @work.task(retry={OSError: [60], ValueError: never})
    async def fail(kind: str) -> None:
        raise errors[kind]

    def stage(item: str) -> None:
        raise errors[item]

    letters = work.pipeline("letters", [step(stage, retry={ValueError: never})])
    async with work:
        handles = [await fail.enqueue(kind) for kind in errors]
        ids = [await letters.put(kind) for kind in errors]
        assert await work.work_once("default", 10) == await work.work_once("letters.stage", 10) == 3
        statuses = {kind: await handle.status() for kind, handle in zip(errors, handles, strict=True)}
        assert {kind: status.status for kind, status in statuses.items() if status} == {
            "os": "queued",
            "value": "failed",
            "no": "failed",
        }
        assert statuses["no"] is not None
        assert statuses["no"].error == "no such customer, cpf [cpf]"
        dead = await work.queues["letters.stage"].list_items("dead", 10)
        assert {row["id"] for row in dead} == set(ids[1:])
        await clock.advance(60)
        assert await work.work_once("default", 10) == 1
        status = await handles[0].status()
        assert status is not None
        assert (status.status, status.attempts) == ("failed", 2)
