"""A live worker keeps all its leases, on both databases, whatever its ticks, effects and other items do."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from batuta import TaskContext
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import StoreTimeout, StoreUnavailable
from batuta.kernel.events import ItemLost
from batuta.queue.store import ClaimResult, Endings
from batuta.testing import EventRecorder
from batuta.testing.clock import settle
from tests.pacing import PacedClock
from tests.stored import readable

SECOND = timedelta(seconds=1)
LEASE = timedelta(seconds=30)


class WorkerSetup:
    """An engine with one task, ``conta(seconds)``, and a worker that the test starts."""

    def __init__(self, work: Batuta, clock: PacedClock) -> None:
        self.work, self.clock = work, clock
        self.begun: Counter[str] = Counter()
        self.store = work.queues["default"]

    async def row(self, id: str) -> dict[str, Any]:
        row = await self.store.item(id)
        assert row is not None
        return readable(row)

    async def advance_clock(
        self, seconds: float, *, step: float = 1.0, until: Callable[[], object] = lambda: False
    ) -> None:
        for _ in range(int(seconds / step)):
            if until():
                return
            await self.clock.advance(step)

    @asynccontextmanager
    async def working(self, grace: timedelta = SECOND) -> AsyncIterator[asyncio.Event]:
        stop = asyncio.Event()
        running = asyncio.create_task(self.work.supervisor().run(stop, grace))
        await settle()
        try:
            yield stop
        finally:
            stop.set()
            await self.advance_clock(60, step=0.05, until=running.done)
            await running


@pytest.fixture
def clock() -> PacedClock:
    return PacedClock()


@pytest.fixture
async def setup(database_url: str, clock: PacedClock, events: EventRecorder) -> AsyncIterator[WorkerSetup]:
    work = Batuta(database_url, clock=clock)
    clock.watch(work)
    work.events.subscribe(events)

    @work.task(retry=[5])
    async def conta(ctx: TaskContext, seconds: float) -> float:
        made.begun[ctx.id] += 1
        await clock.sleep(seconds)
        return seconds

    made = WorkerSetup(work, clock)
    async with work:
        yield made


async def test_running_items_are_renewed_while_a_tick_hangs(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await setup.work.enqueue("conta", 200)
    async with setup.working():
        await setup.advance_clock(5, until=lambda: setup.begun)
        hangs = asyncio.Event()

        async def hang(*arguments: Any, **named: Any) -> Any:
            await hangs.wait()
            raise StoreUnavailable(where="-", why="it hung")

        with monkeypatch.context() as patch:
            patch.setattr(setup.store, "settle_and_claim", hang)
            setup.work.wakeups.wake("default")
            await setup.advance_clock(80)
            row = await setup.row(id)
            hangs.set()
            await settle()
        assert row["lease_until"] > setup.clock.now()
        assert (row["crashes"], setup.begun[id]) == (0, 1)


async def test_ended_items_are_renewed_until_they_are_settled(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch, events: EventRecorder
) -> None:
    id = await setup.work.enqueue("conta", 2)
    async with setup.working():
        await setup.advance_clock(5, until=lambda: setup.begun)

        async def refuse(*arguments: Any, **named: Any) -> Any:
            raise StoreUnavailable(where="-", why="it restarts")

        with monkeypatch.context() as patch:
            patch.setattr(setup.store, "settle_and_claim", refuse)
            await setup.advance_clock(80)
            assert (await setup.row(id))["lease_until"] > setup.clock.now()
        await setup.advance_clock(20)
        row = await setup.row(id)
    assert (row["status"], row["crashes"], setup.begun[id]) == ("complete", 0, 1)
    assert events.of(ItemLost) == []


async def test_settlement_that_times_out_delays_no_other(setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = await setup.work.enqueue_many("conta", [[2]] * 10)
    bad, settle_and_claim = ids[4], setup.store.settle_and_claim
    is_blocked = True

    async def time_out(endings: Endings, *arguments: Any, **named: Any) -> ClaimResult:
        if is_blocked and bad in [lease.id for lease, _ in endings]:
            await setup.clock.sleep(5)
            raise StoreTimeout(where="-", why="a row was locked")
        return await settle_and_claim(endings, *arguments, **named)

    monkeypatch.setattr(setup.store, "settle_and_claim", time_out)
    async with setup.working():
        await setup.advance_clock(60)
        states = Counter([(await setup.row(id))["status"] for id in ids])
        assert states == {"complete": 9, "in_progress": 1}
        (later,) = await setup.work.enqueue_many("conta", [[0]])
        await setup.advance_clock(15)
        assert (await setup.row(later))["status"] == "complete"
        is_blocked = False
        await setup.advance_clock(30)
        row = await setup.row(bad)
    assert (row["status"], row["crashes"]) == ("complete", 0)
    assert set(setup.begun.values()) == {1}


async def test_settlement_of_a_locked_row_is_kept_and_retried_at_intervals(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch, events: EventRecorder
) -> None:
    id = await setup.work.enqueue("conta", 2)
    settle_and_claim, is_locked, tries = setup.store.settle_and_claim, True, 0

    async def skip(endings: Endings, *arguments: Any, **named: Any) -> ClaimResult:
        nonlocal tries
        mine = [lease for lease, _ in endings if lease.id == id]
        if is_locked and mine:
            tries += 1
            others = [each for each in endings if each[0].id != id]
            result = await settle_and_claim(others, *arguments, **named)
            return ClaimResult(result.leases, result.lost, [*result.unchecked, *mine])
        return await settle_and_claim(endings, *arguments, **named)

    monkeypatch.setattr(setup.store, "settle_and_claim", skip)
    async with setup.working():
        await setup.advance_clock(60)
        row = await setup.row(id)
        assert (row["status"], row["lease_until"] > setup.clock.now()) == ("in_progress", True)
        assert 5 <= tries <= 60
        is_locked = False
        await setup.advance_clock(10)
        assert (await setup.row(id))["status"] == "complete"
    assert setup.begun[id] == 1
    assert events.of(ItemLost) == []


async def test_renewal_that_hangs_is_cancelled_and_retried_before_the_lease_ends(
    setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await setup.work.enqueue("conta", 100)
    renew, calls = setup.store.renew, 0

    async def hang_once(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += bool(arguments[0])
        if calls == 2 and arguments[0]:
            await asyncio.Event().wait()
        return await renew(*arguments, **named)

    monkeypatch.setattr(setup.store, "renew", hang_once)
    async with setup.working():
        await setup.advance_clock(60)
        row = await setup.row(id)
        assert row["lease_until"] > setup.clock.now()
        assert (row["crashes"], setup.begun[id]) == (0, 1)
