"""An effect is bounded by its item's time limit and fails its own item only, identically on both databases."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from batuta import Done
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import StoreReadOnly, StoreUnavailable
from batuta.kernel.reasons import code_of, decode
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle

Body = Callable[[Any], Awaitable[object]]
WRITTEN = query_of("written", "UPDATE tasks SET status = status WHERE name = 'nobody'", writes=True)
COUNT = query_of("count", "SELECT count(*) AS items FROM tasks", writes=False)


class Plant:
    """A running worker and a task ``conta`` with a time limit of 3 s; the test sets its handler and its effect."""

    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work, self.clock = work, clock
        self.effect: Body | None = None
        self.handler: Body | None = None
        self.effects, self.in_effect = 0, False
        self.stop = asyncio.Event()

    async def run(self, ctx: Any) -> Done:
        if self.handler is not None:
            await self.handler(ctx)
        return Done(effect=self._counted if self.effect is not None else None)

    async def _counted(self, transaction: Any) -> None:
        assert self.effect is not None
        self.effects, self.in_effect = self.effects + 1, True
        try:
            await self.effect(transaction)
        finally:
            self.in_effect = False

    async def passes(self, seconds: int, *, step: float = 1.0, until: Callable[[], object] = lambda: False) -> None:
        """Advance the clock step by step, never faster than the database writes."""
        for _ in range(int(seconds / step)):
            if until():
                return
            await self._until_written()
            await self.clock.advance(step)

    async def _until_written(self) -> None:
        """Wait for a write; while an effect holds the writer of SQLite, a few reads replace it."""
        count, written = (in_dialect(each, self.work.database.dialect) for each in (COUNT, WRITTEN))
        writing = asyncio.ensure_future(self.work.database.run(written))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        for n in range(10_000):
            await self.work.database.all(count)
            await settle()
            if writing.done() or (self.in_effect and n >= 5):
                return

    async def ends(self, id: str, within: int = 60) -> tuple[str, str | None]:
        for _ in range(within):
            found = await self.work.status(id)
            assert found is not None
            if found.status not in ("queued", "in_progress"):
                return found.status, found.error
            await self.passes(1)
        raise AssertionError(f"the item has not ended: {found}")

    async def works_on(self) -> None:
        """Assert that the worker still completes an item."""
        self.effect = self.handler = None
        assert (await self.ends(await self.work.enqueue("conta")))[0] == "complete"


@pytest.fixture
async def plant(database_url: str, clock: FakeClock, events: EventRecorder) -> AsyncIterator[Plant]:
    work = Batuta(database_url, clock=clock, concurrency=2)
    work.events.subscribe(events)
    made = Plant(work, clock)
    work.task(name="conta", timeout=3, retry=[])(made.run)
    work.task(name="longa", timeout=300, retry=[])(partial(Plant.run, made))
    async with work:
        running = asyncio.create_task(work.supervisor().run(made.stop, timedelta(seconds=10)))
        await settle()
        yield made
        made.stop.set()
        await made.passes(40, until=running.done)
        await running


async def for_ever(_: Any) -> None:
    await asyncio.Event().wait()


async def test_effect_that_never_returns_fails_its_item_at_the_time_limit(plant: Plant) -> None:
    plant.effect = for_ever
    ids = await plant.work.enqueue_many("conta", [[]] * 3)
    assert {await plant.ends(id) for id in ids} == {("failed", "Job timeout exceeded")}
    assert plant.effects == 3
    await plant.works_on()


async def test_handler_and_effect_share_one_time_limit(plant: Plant) -> None:
    async def two_seconds(_: Any) -> None:
        await plant.clock.sleep(2)

    plant.handler = plant.effect = two_seconds
    id = await plant.work.enqueue("conta")
    assert await plant.ends(id) == ("failed", "Job timeout exceeded")


def cancel_this_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def cancels_and_returns(_: Any) -> None:
    cancel_this_task()


async def cancels_and_waits(_: Any) -> None:
    cancel_this_task()
    await asyncio.sleep(0)


async def cancels_and_handles(_: Any) -> None:
    cancel_this_task()
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)


async def test_item_whose_code_handles_its_own_cancellation_completes(plant: Plant) -> None:
    plant.handler = plant.effect = cancels_and_handles
    assert await plant.ends(await plant.work.enqueue("conta")) == ("complete", None)
    await plant.works_on()


def raises(error: BaseException) -> Body:
    async def body(_: Any) -> None:
        raise error

    return body


BAD: dict[str, tuple[Body, str]] = {
    "SystemExit": (raises(SystemExit(3)), "SystemExit"),
    "KeyboardInterrupt": (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    "GeneratorExit": (raises(GeneratorExit()), "GeneratorExit"),
    "CancelledError": (raises(asyncio.CancelledError()), "CancelledError"),
    "cancels itself": (cancels_and_returns, "CancelledError"),
    "cancels itself and waits": (cancels_and_waits, "CancelledError"),
    "another database is away": (raises(StoreUnavailable(where="elsewhere", why="it is away")), "StoreUnavailable"),
    "another database only reads": (raises(StoreReadOnly(where="elsewhere", why="it only reads")), "StoreReadOnly"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_programming_error_in_an_effect_fails_the_item_once(plant: Plant, kind: str) -> None:
    plant.effect, name = BAD[kind]
    id = await plant.work.enqueue("conta")
    assert await plant.ends(id) == ("failed", f"{name} while it was settled; the log has the traceback")
    assert plant.effects == 1
    await plant.works_on()


@pytest.mark.parametrize("kind", BAD)
async def test_programming_error_in_a_handler_fails_the_item_once(plant: Plant, kind: str) -> None:
    plant.handler, name = BAD[kind]
    id = await plant.work.enqueue("conta")
    assert await plant.ends(id) == ("failed", f"{name} in the handler; the log has the traceback")
    await plant.works_on()


async def test_concurrent_statements_in_an_effect_fail_the_item(plant: Plant) -> None:
    async def at_once(transaction: Any) -> None:
        count = in_dialect(COUNT, plant.work.database.dialect)
        await asyncio.gather(transaction.all(count), transaction.all(count))

    plant.effect = at_once
    id = await plant.work.enqueue("conta")
    assert await plant.ends(id) == ("failed", "ConcurrentStatements while it was settled; the log has the traceback")
    assert plant.effects == 1


async def test_worker_repeats_an_effect_while_the_store_is_unavailable(
    plant: Plant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage is longer than the time limit: the wait for the store does not count."""
    where = plant.work.database.where

    async def away_twice(_: Any) -> None:
        if plant.effects <= 2:
            await plant.clock.sleep(0)
            raise StoreUnavailable(where=where, why="it restarts")

    store = plant.work.queues["default"]
    conclude, outage_ends = store.conclude, plant.clock.monotonic() + 30

    async def away(*arguments: Any) -> bool:
        if plant.clock.monotonic() < outage_ends:
            raise StoreUnavailable(where=where, why="it restarts")
        return await conclude(*arguments)

    monkeypatch.setattr(store, "conclude", away)
    plant.effect = away_twice
    id = await plant.work.enqueue("conta")
    assert await plant.ends(id) == ("complete", None)
    assert plant.effects == 3


async def test_effect_that_always_exceeds_the_store_limits_fails_within_its_time(plant: Plant) -> None:
    async def too_slow(_: Any) -> None:
        await plant.clock.sleep(2)
        raise StoreUnavailable(where=plant.work.database.where, why="the statement took too long")

    plant.effect = too_slow
    id = await plant.work.enqueue("conta")
    assert (await plant.ends(id))[0] == "failed"
    assert plant.effects == 2


async def test_shutdown_releases_an_item_whose_effect_hangs(plant: Plant) -> None:
    plant.effect = for_ever
    id = await plant.work.enqueue("longa")
    await plant.passes(5, until=lambda: plant.effects)
    plant.stop.set()
    await plant.passes(11, step=0.02)
    row = await plant.work.queues["default"].item(id)
    assert row is not None
    assert (row["status"], row["attempts"], row["crashes"], code_of(decode(row["error"]))) == (
        "queued",
        0,
        0,
        "worker_stopped",
    )
