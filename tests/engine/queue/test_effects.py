"""An effect is a write that commits together with its item's settlement. It must end within the item's time limit, and
if it fails, only its own item fails. Both databases behave the same.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from batuta import Done, TaskContext
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import StoreReadOnly, StoreUnavailable
from batuta.kernel.reasons import code_of, decode
from batuta.queue.outcome import Writes
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.engine.queue.queue_bench import LEASE, Bench, fine

Body = Callable[[Any], Awaitable[object]]
WRITTEN = query_of("written", "UPDATE tasks SET status = status WHERE name = 'nobody'", writes=True)
COUNT = query_of("count", "SELECT count(*) AS items FROM tasks", writes=False)


class EffectSetup:
    """A running worker and a task ``conta`` with a time limit of 3 s. The test sets the task's handler and effect."""

    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work, self.clock = work, clock
        self.effect: Body | None = None
        self.handler: Body | None = None
        self.effects, self.in_effect = 0, False
        self.stop = asyncio.Event()

    async def run(self, ctx: TaskContext) -> Done:
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

    async def advance_clock(
        self, seconds: int, *, step: float = 1.0, until: Callable[[], object] = lambda: False
    ) -> None:
        """Advance the clock step by step, and wait for the database's writes after each step."""
        for _ in range(int(seconds / step)):
            if until():
                return
            await self._until_written()
            await self.clock.advance(step)

    async def _until_written(self) -> None:
        """Wait until a write has committed. While an effect occupies SQLite's only writer, no other write can commit;
        wait until a few reads have ended instead.
        """
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
            await self.advance_clock(1)
        raise AssertionError(f"the item has not ended: {found}")

    async def assert_worker_works(self) -> None:
        """Assert that the worker still completes an item."""
        self.effect = self.handler = None
        assert (await self.ends(await self.work.enqueue("conta")))[0] == "complete"


@pytest.fixture
async def setup(database_url: str, clock: FakeClock, events: EventRecorder) -> AsyncIterator[EffectSetup]:
    work = Batuta(database_url, clock=clock, concurrency=2)
    work.events.subscribe(events)
    made = EffectSetup(work, clock)
    work.task(name="conta", timeout=3, retry=[])(made.run)
    work.task(name="longa", timeout=300, retry=[])(partial(EffectSetup.run, made))
    async with work:
        running = asyncio.create_task(work.supervisor().run(made.stop, timedelta(seconds=10)))
        await settle()
        yield made
        made.stop.set()
        for _ in range(40):
            # Give a slow database real time, so that a tick that waits for it does not count as hanging.
            await asyncio.wait({running}, timeout=0.3)
            if running.done():
                break
            await made.advance_clock(1)
        await running


async def for_ever(_: Any) -> None:
    await asyncio.Event().wait()


async def succeeds(_: Any) -> None:
    """An effect that succeeds immediately and writes nothing."""


async def test_effect_that_never_returns_fails_its_item_at_the_time_limit(setup: EffectSetup) -> None:
    setup.effect = for_ever
    ids = await setup.work.enqueue_many("conta", [[]] * 3)
    assert {await setup.ends(id) for id in ids} == {("failed", "Job timeout exceeded")}
    assert setup.effects == 3
    await setup.assert_worker_works()


async def test_handler_and_effect_share_one_time_limit(setup: EffectSetup) -> None:
    async def two_seconds(_: Any) -> None:
        await setup.clock.sleep(2)

    setup.handler = setup.effect = two_seconds
    id = await setup.work.enqueue("conta")
    assert await setup.ends(id) == ("failed", "Job timeout exceeded")


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


async def test_item_whose_code_handles_its_own_cancellation_completes(setup: EffectSetup) -> None:
    setup.handler = setup.effect = cancels_and_handles
    assert await setup.ends(await setup.work.enqueue("conta")) == ("complete", None)
    await setup.assert_worker_works()


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
async def test_programming_error_in_an_effect_fails_the_item_once(setup: EffectSetup, kind: str) -> None:
    setup.effect, name = BAD[kind]
    id = await setup.work.enqueue("conta")
    assert await setup.ends(id) == ("failed", f"{name} while the outcome was written; the log has the traceback")
    assert setup.effects == 1
    await setup.assert_worker_works()


@pytest.mark.parametrize("kind", BAD)
async def test_programming_error_in_a_handler_fails_the_item_once(setup: EffectSetup, kind: str) -> None:
    setup.handler, name = BAD[kind]
    id = await setup.work.enqueue("conta")
    assert await setup.ends(id) == ("failed", f"{name} in the handler; the log has the traceback")
    await setup.assert_worker_works()


async def test_concurrent_statements_in_an_effect_fail_the_item(setup: EffectSetup) -> None:
    async def at_once(transaction: Any) -> None:
        count = in_dialect(COUNT, setup.work.database.dialect)
        await asyncio.gather(transaction.all(count), transaction.all(count))

    setup.effect = at_once
    id = await setup.work.enqueue("conta")
    assert await setup.ends(id) == (
        "failed",
        "ConcurrentStatements while the outcome was written; the log has the traceback",
    )
    assert setup.effects == 1


async def test_worker_repeats_an_effect_while_the_store_is_unavailable(
    setup: EffectSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker repeats an effect while the store is unavailable. The outage may last longer than the task's time
    limit, because waiting for the store does not count towards the limit.
    """
    where = setup.work.database.where

    async def away_twice(_: Any) -> None:
        if setup.effects <= 2:
            await setup.clock.sleep(0)
            raise StoreUnavailable(where=where, why="it restarts")

    store = setup.work.queues["default"]
    conclude, outage_ends = store.conclude, setup.clock.monotonic() + 30

    async def away(*arguments: Any) -> bool:
        if setup.clock.monotonic() < outage_ends:
            raise StoreUnavailable(where=where, why="it restarts")
        return await conclude(*arguments)

    monkeypatch.setattr(store, "conclude", away)
    setup.effect = away_twice
    id = await setup.work.enqueue("conta")
    assert await setup.ends(id) == ("complete", None)
    assert setup.effects == 3


async def test_effect_that_always_exceeds_the_store_limits_waits_without_counting_an_attempt(
    setup: EffectSetup,
) -> None:
    async def too_slow(_: Any) -> None:
        await setup.clock.sleep(2)
        raise StoreUnavailable(where=setup.work.database.where, why="the statement took too long")

    setup.effect = too_slow
    id = await setup.work.enqueue("conta")
    row = await setup.work.queues["default"].item(id)
    for _ in range(200):
        await setup.advance_clock(1)
        row = await setup.work.queues["default"].item(id)
        if row is not None and row["error"] is not None:
            break
    assert row is not None
    # The item may already be claimed again. The new claim counts as an attempt until the worker releases the item.
    assert (row["status"], row["attempts"]) in {("queued", 0), ("in_progress", 1)}
    assert code_of(decode(row["error"])) == "store_away"
    assert setup.effects > 0  # On a busy machine one effect runs within the limits, on a calm one two.
    # The handler may already have run again and returned an effect, so an effect must remain: one that succeeds
    # replaces the slow one.
    setup.effect = succeeds
    assert await setup.ends(id) == ("complete", None)


async def test_shutdown_releases_an_item_whose_effect_hangs(setup: EffectSetup) -> None:
    setup.effect = for_ever
    id = await setup.work.enqueue("longa")
    await setup.advance_clock(5, until=lambda: setup.effects)
    setup.stop.set()
    await setup.advance_clock(11, step=0.02)
    row = await setup.work.queues["default"].item(id)
    assert row is not None
    assert (row["status"], row["attempts"], row["crashes"], code_of(decode(row["error"]))) == (
        "queued",
        0,
        0,
        "worker_stopped",
    )


ONE_PARAMETER = query_of("named", "UPDATE tasks SET status = status WHERE name = :name", writes=True)
WRONG_EFFECTS: dict[str, tuple[Any, str]] = {
    "text": (Writes((("INSERT INTO x VALUES (:a)", {"a": 1}),)), "query_of"),  # type: ignore[arg-type]
    "flat pair": (Writes((ONE_PARAMETER, {"name": "x"})), "query_of"),  # type: ignore[arg-type]
    "no values": (Writes(((ONE_PARAMETER, None),)), "query_of"),  # type: ignore[arg-type]
    "missing value": (Writes(((ONE_PARAMETER, {"nome": "x"}),)), "no value for :name"),
    "bare statements": (((ONE_PARAMETER, {"name": "x"}),), "query_of"),
}


@pytest.mark.parametrize("kind", WRONG_EFFECTS)
async def test_wrong_effect_fails_only_its_own_item(database_url: str, clock: FakeClock, kind: str) -> None:
    effect, hint = WRONG_EFFECTS[kind]
    work = Batuta(database_url, clock=clock)

    @work.task(retry=[1])
    async def bad() -> Done:
        return Done(effect=effect)

    @work.task()
    async def good() -> Done:
        return Done(effect=Writes(((in_dialect(ONE_PARAMETER, work.database.dialect), {"name": "nobody"}),)))

    async with work:
        wrong, *right = [await bad.enqueue(), await good.enqueue(), await good.enqueue()]
        await work.work_once("default", 10)
        assert [found.status for each in right if (found := await each.status())] == ["complete"] * 2
        found = await wrong.status()
        assert found is not None
        assert found.status == "failed"
        assert hint in str(found.error)


async def test_unexpected_error_of_one_settlement_fails_only_its_own_item(
    database_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Batuta(database_url, clock=clock)

    class Unexpected(Exception):
        pass

    class Poison(Writes):
        pass

    @work.task(retry=[])
    async def bad() -> Done:
        return Done(effect=Poison())

    @work.task()
    async def good() -> None: ...

    async with work:
        store = work.queues["default"]
        run_effects = store._run_effects

        async def fails(transaction: Any, settlements: Any) -> None:
            if any(isinstance(each.effect, Poison) for each in settlements):
                raise Unexpected
            await run_effects(transaction, settlements)

        monkeypatch.setattr(store, "_run_effects", fails)
        wrong, *right = [await bad.enqueue(), await good.enqueue(), await good.enqueue()]
        await work.work_once("default", 10)
        assert [found.status for each in right if (found := await each.status())] == ["complete"] * 2
        found = await wrong.status()
        assert found is not None
        assert (found.status, found.error) == (
            "failed",
            "Unexpected while the outcome was written; the log has the traceback",
        )


async def test_settlement_that_cannot_be_written_at_all_waits_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store fails for an unknown reason whenever it settles a particular item. The settlements of the other items
    are written.
    """
    bench.handles("fine", fine)
    first, second, third = await bench.put("fine", "fine", "fine")
    store, broken = bench.store, [True]
    settle_and_claim = store.settle_and_claim

    async def fails(endings: Any, *others: Any, **options: Any) -> Any:
        if broken[0] and second in [lease.id for lease, _ in endings]:
            raise LookupError(second)
        return await settle_and_claim(endings, *others, **options)

    monkeypatch.setattr(store, "settle_and_claim", fails)
    worker = bench.worker()
    await bench.works(worker)
    states = [(await bench.row(id))["status"] for id in (first, second, third)]
    assert states == ["complete", "in_progress", "complete"]
    broken[0] = False
    await bench.clock.advance(LEASE.total_seconds() / 2)
    await bench.works(worker)
    assert (await bench.row(second))["status"] == "complete"
