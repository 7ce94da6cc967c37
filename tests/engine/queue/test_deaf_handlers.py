"""A handler that ignores its cancellation costs its own attempt, on both databases, and nothing of its neighbours."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import ItemOverdue, TaskDeaf
from batuta.stores.sql.queries import query_of
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle

SECOND = timedelta(seconds=1)
GRACE = 5 * SECOND
WRITTEN = query_of("written", "UPDATE tasks SET status = status WHERE name = 'nobody'", writes=True)


@pytest.fixture
async def work(database_url: str, clock: FakeClock, events: EventRecorder) -> AsyncIterator[Batuta]:
    release = asyncio.Event()
    made = Batuta(database_url, clock=clock)
    made.events.subscribe(events)

    @made.task(timeout=10, retry=[60], retry_timeout=True)
    async def deaf(ctx: object) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @made.task()
    async def neighbour(ctx: object, seconds: float) -> float:
        await clock.sleep(seconds)
        return seconds

    async with made:
        yield made
        release.set()  # whatever becomes of the test
        await settle()


async def status(work: Batuta, id: str) -> tuple[str, str | None]:
    found = await work.status(id)
    assert found is not None
    return str(found.status), found.error


async def test_a_deaf_handler_is_settled_without_being_waited_for_and_its_process_is_told_to_end(
    work: Batuta, clock: FakeClock, events: EventRecorder
) -> None:
    deaf = await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 22)
    running = asyncio.create_task(work.supervisor().run(asyncio.Event(), GRACE))
    await passes(work, clock, lambda: events.of(TaskDeaf))
    assert [each.item for each in events.of(ItemOverdue)] == [deaf]
    (event,) = events.of(TaskDeaf)
    assert (event.loop, event.what) == ("worker:default", f"item {deaf}")
    assert "in deaf" in event.stack
    await passes(work, clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    state, error = await status(work, deaf)
    assert (state, error) == ("queued", "Job timeout exceeded")  # its attempt is used, and another is left
    assert (await status(work, neighbour))[0] == "complete"


async def test_while_the_others_drain_a_deaf_handler_is_no_reason_to_hurry(work: Batuta, clock: FakeClock) -> None:
    await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 50)  # ends well after the deaf one was given up
    running = asyncio.create_task(work.supervisor().run(asyncio.Event(), 60 * SECOND))
    await passes(work, clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    assert (await status(work, neighbour))[0] == "complete"


async def test_a_run_by_schedule_ends_although_a_handler_is_deaf_and_says_so(work: Batuta, clock: FakeClock) -> None:
    deaf = await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 50)
    running = asyncio.create_task(work.work_once("default", 2))
    await passes(work, clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    assert await status(work, deaf) == ("queued", "Job timeout exceeded")
    assert (await status(work, neighbour))[0] == "complete"


async def passes(work: Batuta, clock: FakeClock, true: Callable[[], object]) -> None:
    """Let time pass, a second at a time, and never faster than the database writes."""
    for _ in range(200):
        if true():
            return
        await clock.advance(SECOND)
        await work.database.run(WRITTEN)
    raise AssertionError("it did not come to that")
