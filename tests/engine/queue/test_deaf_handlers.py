"""A handler that ignores its cancellation affects only its own attempt, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import ItemOverdue, TaskUncancellable
from batuta.testing import EventRecorder
from batuta.testing.clock import settle
from tests.pacing import PacedClock

SECOND = timedelta(seconds=1)
GRACE = 5 * SECOND


@pytest.fixture
def clock() -> PacedClock:
    return PacedClock()


@pytest.fixture
async def work(database_url: str, clock: PacedClock, events: EventRecorder) -> AsyncIterator[Batuta]:
    release = asyncio.Event()
    made = Batuta(database_url, clock=clock)
    clock.watch(made)
    made.events.subscribe(events)

    @made.task(timeout=10, retry=[60], retry_timeout=True)
    async def deaf() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    @made.task()
    async def neighbour(seconds: float) -> float:
        await clock.sleep(seconds)
        return seconds

    async with made:
        yield made
        release.set()  # set even if the test fails
        await settle()


async def status(work: Batuta, id: str) -> tuple[str, str | None]:
    found = await work.status(id)
    assert found is not None
    return str(found.status), found.error


async def test_ignored_cancellation_settles_the_item_and_ends_the_process(
    work: Batuta, clock: PacedClock, events: EventRecorder
) -> None:
    deaf = await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 22)
    running = asyncio.create_task(work.supervisor().run(asyncio.Event(), GRACE))
    await advance_until(clock, lambda: events.of(TaskUncancellable))
    assert [each.item for each in events.of(ItemOverdue)] == [deaf]
    (event,) = events.of(TaskUncancellable)
    assert (event.loop, event.what) == ("worker:default", f"item {deaf}")
    assert "in deaf" in event.stack
    await advance_until(clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    state, error = await status(work, deaf)
    assert (state, error) == ("queued", "Job timeout exceeded")  # one attempt is used, another is left
    assert (await status(work, neighbour))[0] == "complete"


async def test_ignored_cancellation_does_not_shorten_the_drain_of_other_items(work: Batuta, clock: PacedClock) -> None:
    await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 50)  # ends well after the worker gave up the deaf handler
    running = asyncio.create_task(work.supervisor().run(asyncio.Event(), 60 * SECOND))
    await advance_until(clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    assert (await status(work, neighbour))[0] == "complete"


async def test_scheduled_run_ends_and_reports_an_ignored_cancellation(work: Batuta, clock: PacedClock) -> None:
    deaf = await work.enqueue("deaf")
    neighbour = await work.enqueue("neighbour", 50)
    running = asyncio.create_task(work.work_once("default", 2))
    await advance_until(clock, running.done)
    with pytest.raises(CancelIgnored):
        await running
    assert await status(work, deaf) == ("queued", "Job timeout exceeded")
    assert (await status(work, neighbour))[0] == "complete"


async def advance_until(clock: PacedClock, true: Callable[[], object]) -> None:
    for _ in range(200):
        if true():
            return
        await clock.advance(SECOND)
    raise AssertionError("the condition did not become true")
