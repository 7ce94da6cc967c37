"""When the machine's clock, which SQLite uses, is set back, neither the backlog nor the items of a dead worker are
delayed.
"""

from dataclasses import replace
from datetime import timedelta

import pytest

from batuta.health.finding import Severity
from batuta.health.queues import WatchedQueue, judge_queue
from batuta.kernel.ids import Ids
from batuta.queue.item import ItemState, NewItem
from batuta.queue.outcome import Settlement
from batuta.queue.worker.rescuer import Rescuer
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder, FakeClock
from tests.engine.queue.contract import ANN, BEN, ITEM_LEASE, SECOND

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
ITEM = NewItem(values={"name": "f", "args": AsJson([[], {}])})


@pytest.fixture
def queue(database: Database, clock: FakeClock, ids: Ids) -> SqlQueue:
    return _queue(database, clock, ids)


def _queue(database: Database, clock: FakeClock, ids: Ids, *, fixed_times: bool = False) -> SqlQueue:
    if database.dialect != "sqlite":
        pytest.skip("PostgreSQL has its own clock")
    return SqlQueue(database, replace(TASKS, fixed_times=fixed_times), ids, clock, queue="default", own_time=True)


def rescuer(queue: SqlQueue, clock: FakeClock) -> Rescuer:
    """Return a rescuer as in a newly started process: it knows only what the queue's table contains."""
    return Rescuer("default", queue, ITEM_LEASE, clock, EventRecorder())


async def claim(queue: SqlQueue, limit: int = 1000) -> int:
    return len((await queue.settle_and_claim([], BEN, limit)).leases)


async def test_backlog_is_claimed_after_a_step(queue: SqlQueue, clock: FakeClock) -> None:
    await rescuer(queue, clock).tick()
    await queue.put([ITEM] * 100)
    clock.step(-HOUR)
    await rescuer(queue, clock).tick()
    assert await claim(queue) == 100


async def test_backlog_is_claimed_although_no_worker_ran_before_the_step(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.put([ITEM] * 3)
    clock.step(-HOUR)
    await rescuer(queue, clock).tick()
    assert await claim(queue) == 3


async def test_items_of_a_dead_worker_are_released_after_one_lease(queue: SqlQueue, clock: FakeClock) -> None:
    await rescuer(queue, clock).tick()
    await queue.put([ITEM] * 10)
    assert len((await queue.settle_and_claim([], ANN, 10)).leases) == 10
    clock.step(-HOUR)
    await rescuer(queue, clock).tick()
    clock.step(ITEM_LEASE + SECOND)
    assert len(await queue.rescue(100)) == 10


async def test_live_worker_keeps_its_items(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.follow_clock(ITEM_LEASE)
    await queue.put([ITEM] * 10)
    leases = (await queue.settle_and_claim([], ANN, 10)).leases
    clock.step(-HOUR)
    await queue.renew(leases, ANN)
    await queue.follow_clock(ITEM_LEASE)
    clock.step(ITEM_LEASE - SECOND)
    assert await queue.rescue(100) == []
    assert not (await queue.renew(leases, ANN)).lost


async def test_retries_and_delays_keep_their_length(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.put([ITEM])
    (lease,) = (await queue.settle_and_claim([], ANN, 10)).leases
    await queue.settle_and_claim([(lease, Settlement(state=ItemState.READY, wait=MINUTE, error="busy"))], ANN, 0)
    await queue.put([replace(ITEM, delay=2 * MINUTE)])
    await queue.follow_clock(ITEM_LEASE)
    clock.step(-HOUR)
    assert await queue.follow_clock(ITEM_LEASE) == HOUR
    assert await claim(queue) == 0
    clock.step(MINUTE)
    assert await claim(queue) == 1
    clock.step(MINUTE)
    assert await claim(queue) == 1


async def test_instant_chosen_by_the_application_stays(database: Database, clock: FakeClock, ids: Ids) -> None:
    queue = _queue(database, clock, ids, fixed_times=True)
    await queue.put([replace(ITEM, available_at=clock.now() + 10 * MINUTE), ITEM])
    await queue.follow_clock(ITEM_LEASE)
    clock.step(-HOUR)
    await queue.follow_clock(ITEM_LEASE)
    assert await claim(queue) == 1
    clock.step(HOUR + 10 * MINUTE - SECOND)
    assert await claim(queue) == 0
    clock.step(SECOND)
    assert await claim(queue) == 1


async def test_long_delays_survive_a_clock_that_was_ahead_for_a_while(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.put([replace(ITEM, delay=timedelta(days=2))])
    for by in (timedelta(0), timedelta(days=1), -timedelta(days=1)):
        clock.step(by)
        await queue.follow_clock(ITEM_LEASE)
    clock.step(timedelta(days=2) - SECOND)
    assert await claim(queue) == 0
    clock.step(SECOND)
    assert await claim(queue) == 1


async def test_only_one_of_many_processes_corrects_a_step(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.follow_clock(ITEM_LEASE)
    clock.step(-HOUR)
    assert [await queue.follow_clock(ITEM_LEASE) for _ in range(3)] == [HOUR, timedelta(0), timedelta(0)]


async def test_elapsed_time_is_not_taken_for_a_step(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.put([replace(ITEM, delay=2 * MINUTE)])
    for _ in range(5):
        clock.step(10 * SECOND)
        assert await queue.follow_clock(ITEM_LEASE) == timedelta(0)
    clock.step(-SECOND)
    assert await queue.follow_clock(ITEM_LEASE) == timedelta(0)
    assert await claim(queue) == 0


async def test_health_counts_items_that_a_step_delays_until_it_is_corrected(queue: SqlQueue, clock: FakeClock) -> None:
    await queue.put([ITEM] * 110)
    assert len((await queue.settle_and_claim([], ANN, 10)).leases) == 10
    await queue.follow_clock(ITEM_LEASE)
    assert (await queue.pulse()).held_back == 0
    clock.step(-HOUR)
    pulse = await queue.pulse()
    assert pulse.held_back == 110
    watched = WatchedQueue(name="default", pulse=queue.pulse, loops=())
    found = [each for each in judge_queue(watched, pulse, has_worker=True).findings if "clock" in each.cause]
    assert [(each.severity, each.facts["count"]) for each in found] == [(Severity.WARNING, 110)]
    await queue.follow_clock(ITEM_LEASE)
    assert (await queue.pulse()).held_back == 0
