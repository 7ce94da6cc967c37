"""Middleware around enqueues and executions: the order in which it runs, what it may change, how its errors are
handled, and its common interface for tasks, stages and jobs.
"""

import asyncio
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from batuta import Batuta, Snooze, TaskContext, enqueue_in_sync
from batuta.errors import InvalidName
from batuta.events import ExecutionEnded, JobsRegistered
from batuta.middleware import Attempt, NewCalls, Proceed
from batuta.testing import EventRecorder, FakeClock
from tests.pacing import PacedClock


@pytest.fixture
def clock() -> PacedClock:
    return PacedClock()


@pytest.fixture
def work(work_url: str, clock: PacedClock) -> Batuta:
    made = Batuta(work_url, timezone="UTC", clock=clock)
    clock.watch(made)
    return made


async def test_middleware_surrounds_tasks_stages_and_jobs_in_order(
    work: Batuta, clock: FakeClock, events: EventRecorder
) -> None:
    seen: list[Any] = []

    @work.around_execution
    async def outer(attempt: Attempt, proceed: Proceed) -> object:
        seen.append((attempt.kind, attempt.name, attempt.number, [*attempt.arguments], dict(attempt.named)))
        try:
            return await proceed()
        except LookupError:
            return Snooze(timedelta(minutes=1), "not there yet")

    @work.around_execution
    async def inner(attempt: Attempt, proceed: Proceed) -> object:
        result = await proceed()
        return result + 1 if isinstance(result, int) else result

    @work.task()
    async def add(context: TaskContext, a: int, *, b: int) -> int:
        return a + b

    @work.task()
    def missing() -> None:
        raise LookupError

    async def double(item: dict[str, int]) -> dict[str, int]:
        return {"n": 2 * item["n"]}

    @work.job("* * * * *")
    def report() -> int:
        return 4

    orders = work.pipeline("orders", [double])
    work.events.subscribe(events)
    async with work.running("scheduler"):
        await events.wait_for(JobsRegistered)
        await clock.advance(60)
        assert (await events.wait_for(ExecutionEnded)).items == 5
        added, late = await add.enqueue(1, b=2), await missing.enqueue()
        await orders.put({"n": 3})
        await work.work_once("default", 10)
        await work.work_once("orders.double", 10)
        assert await added.result(timeout=60) == 4
        status = await late.status()
        assert status is not None
        assert (status.status, status.attempts, status.error) == ("queued", 0, "not there yet")
    assert sorted(seen, key=str) == [
        ("job", "report", 1, [], {}),
        ("stage", "orders.double", 1, [{"n": 3}], {}),
        ("task", "add", 1, [1], {"b": 2}),
        ("task", "missing", 1, [], {}),
    ]


async def test_enqueue_passes_middleware_in_every_form(work: Batuta) -> None:
    steps: list[str] = []

    @work.around_enqueue
    def tag(new: NewCalls) -> Iterator[NewCalls]:
        yield new.with_tags("tenant-7")
        steps.append("stored")

    @work.around_enqueue
    def refuse(new: NewCalls) -> Iterator[NewCalls]:
        if any(call.arguments[:1] == (0,) for call in new.calls):
            raise PermissionError("zero")
        yield replace(new, options=replace(new.options, priority=5))

    @work.task()
    async def note(n: int) -> None: ...

    async with work:
        handles = [await note.enqueue(1), *await note.options(tags=["mail"]).enqueue_many([[2], [3]])]
        handles += [await asyncio.to_thread(note.enqueue_sync, 4)]
        handles += [work.handle(await work.enqueue(note, 5))]
        with sqlite3.connect(work.database.where) as connection:
            handles += [enqueue_in_sync(connection, note, 6)]
        connection.close()
        statuses = [await handle.status() for handle in handles]
        assert [status.tags for status in statuses if status] == [
            ("tenant-7",),
            *[("mail", "tenant-7")] * 2,
            *[("tenant-7",)] * 3,
        ]
        assert steps == ["stored"] * 5
        with pytest.raises(PermissionError):
            await note.enqueue(0)
        assert steps == ["stored"] * 5


def test_unusable_middleware_is_rejected_at_registration(work: Batuta) -> None:
    def plain(attempt: Attempt, proceed: Proceed) -> object: ...

    def returns(new: NewCalls) -> NewCalls:
        return new

    with pytest.raises(InvalidName, match=r"write it as async def plain\(attempt, proceed\)"):
        work.around_execution(plain)  # type: ignore[type-var]
    with pytest.raises(InvalidName, match="with one yield"):
        work.around_enqueue(returns)  # type: ignore[type-var]
