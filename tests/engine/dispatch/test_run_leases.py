"""A healthy scheduler keeps the leases of its runs. If a scheduler dies, its runs are taken over and the actual reason
is recorded.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from batuta.dispatch.scheduler import Scheduler
from batuta.kernel.clock import SystemClock
from batuta.kernel.events import ExecutionStarted
from batuta.kernel.leases import Renewed
from batuta.runlog.execution import Ending, Execution, Status
from batuta.runlog.log import Closing
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.executions import SqlExecutionLog
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Idle, LoopPolicy, Pace, Wakeup
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.engine.dispatch.scheduling import LEASE, MINUTE, Endpoint, House, finish, job, tick_at, watch_leases

SOON = 8.0  # seconds of real time; less than a statement waits for a row lock
HOUR = timedelta(hours=1)
NAMES = ("a", "b", "c")


@asynccontextmanager
async def row_lock(url: str, execution: Execution) -> AsyncIterator[None]:
    """Lock one row of job_executions from another session, as ``SELECT … FOR UPDATE`` in psql does."""
    session = connect(url, SystemClock())
    if session.dialect == "sqlite":
        pytest.skip("SQLite has no row locks")
    await session.open()
    text = f"SELECT id FROM job_executions WHERE id = '{execution.id}' FOR UPDATE"
    try:
        async with session.transaction() as transaction:
            await transaction.all(in_dialect(query_of("lock", text, writes=True), "postgres"))
            yield
    finally:
        await session.close()


class SchedulerPair:
    """A scheduler with three runs that end when ``gate`` is set, and a second scheduler with the same code."""

    def __init__(self, house: House, *, repeatable: bool = True) -> None:
        self.house = house
        self.gate = asyncio.Event()
        self.endpoint = Endpoint(gate=self.gate, repeatable=repeatable)
        self.owner, self.other = self.scheduler(), self.scheduler()

    def scheduler(self) -> Scheduler:
        return self.house.scheduler(*(job(name, target=self.endpoint) for name in NAMES))

    async def begin(self) -> list[Execution]:
        for each in (self.owner, self.other):
            await tick_at(each, self.house.clock, self.house.clock.now())
        self.house.clock.step(MINUTE)
        await self.owner.dispatcher.tick()
        await asyncio.sleep(0)
        return [run.execution for run in self.endpoint.runs]

    async def attempts(self) -> list[int]:
        return [row["attempt"] for row in await self.house.rows()]

    async def end(self) -> None:
        self.gate.set()
        await finish(self.owner)
        await finish(self.other)


async def test_locked_row_does_not_delay_the_renewal_of_other_rows(house: House, database_url: str) -> None:
    pair = SchedulerPair(house)
    runs = await pair.begin()
    async with row_lock(database_url, runs[0]):
        renewed = await asyncio.wait_for(house.log.renew(runs, pair.owner.lease_holder), SOON)
    assert renewed == Renewed(unchecked=frozenset({runs[0].id}))
    assert await house.log.renew(runs, pair.owner.lease_holder) == Renewed()
    await pair.end()


async def test_run_whose_row_was_locked_longer_than_its_lease_keeps_its_owner(
    house: House, clock: FakeClock, database_url: str
) -> None:
    pair = SchedulerPair(house)
    runs = await pair.begin()
    async with row_lock(database_url, runs[0]):
        for _ in range(6):
            await pair.owner.leases.tick()
            await pair.other.reaper.tick()
            await clock.advance(LEASE / 3)
    await pair.other.reaper.tick()  # the first check after the lock, before the owner can renew
    await clock.advance(LEASE / 12)
    await pair.owner.leases.tick()
    await watch_leases(clock, pair.owner)
    assert await pair.attempts() == [1, 1, 1]
    await pair.end()
    assert await house.statuses() == ["success"] * 3


async def test_ending_is_written_as_soon_as_its_row_is_unlocked(
    house: House, clock: FakeClock, database_url: str
) -> None:
    pair = SchedulerPair(house)
    runs = await pair.begin()
    async with row_lock(database_url, runs[0]):
        closing = await asyncio.wait_for(house.log.close(runs[0], Ending(status=Status.SUCCESS)), SOON)
        assert closing is Closing.UNCHECKED
        pair.gate.set()
        while len(pair.owner.runner.running_executions()) > 1:
            await clock.advance(0)
    ending = asyncio.create_task(finish(pair.owner))
    while not ending.done():
        await clock.advance(0.25)
    assert await house.statuses() == ["success"] * 3


async def test_scheduler_started_after_a_clock_step_takes_over_nothing(house: House, clock: FakeClock) -> None:
    pair = SchedulerPair(house)
    await pair.begin()
    clock.step(HOUR)
    started = pair.scheduler()
    for _ in range(6):
        await started.reaper.tick()
        await clock.advance(LEASE / 3)
        await pair.owner.leases.tick()
    assert await pair.attempts() == [1, 1, 1]
    await pair.end()


@pytest.mark.parametrize("step", [timedelta(0), HOUR, -HOUR])
async def test_run_of_a_dead_scheduler_is_taken_over_although_the_clock_was_set(
    house: House, clock: FakeClock, step: timedelta
) -> None:
    pair = SchedulerPair(house)
    await pair.begin()
    clock.step(step)
    for _ in range(11):
        await pair.other.reaper.tick()
        await clock.advance(LEASE / 3)
    assert await pair.attempts() == [2, 2, 2]
    await pair.end()


async def test_reaper_ignores_silence_during_its_own_long_pause(house: House, clock: FakeClock) -> None:
    """If the reaper's own process or the database file was frozen between two checks, the owner of a run may have been
    unable to renew its lease too. The owner's silence then proves nothing.
    """
    pair = SchedulerPair(house)
    await pair.begin()
    await clock.advance(LEASE / 2)
    await pair.other.reaper.tick()
    await clock.advance(10 * LEASE)
    await pair.other.reaper.tick()
    assert await pair.attempts() == [1, 1, 1]
    await pair.end()


async def test_scheduler_does_not_take_over_its_own_runs(house: House, clock: FakeClock) -> None:
    pair = SchedulerPair(house)
    await pair.begin()
    await watch_leases(clock, pair.owner)
    assert await pair.attempts() == [1, 1, 1]
    await pair.end()
    assert len(pair.endpoint.runs) == 3


async def test_runs_of_a_process_that_is_proven_dead_are_taken_over_at_once(house: House) -> None:
    pair = SchedulerPair(house, repeatable=False)
    await pair.begin()
    assert await pair.other.reaper.recover([pair.owner.lease_holder.owner]) == 3
    assert {(row["status"], row["reason"]) for row in await house.rows()} == {
        ("abandoned", "the process ended before the run did")
    }
    await pair.end()


async def test_released_run_is_taken_over_at_the_next_look(house: House, clock: FakeClock) -> None:
    pair = SchedulerPair(house, repeatable=False)
    await pair.begin()
    stopping = asyncio.create_task(pair.owner.runner.drain(timedelta(seconds=10)))
    await clock.advance(timedelta(seconds=10))
    await stopping
    await pair.other.reaper.tick()
    assert {(row["status"], row["reason"]) for row in await house.rows()} == {
        ("abandoned", "the scheduler stopped before the run ended")
    }


async def test_lease_times_use_the_clock_of_the_database(
    house: House, database: Database, events: EventRecorder
) -> None:
    """On PostgreSQL, a scheduler whose machine's clock is an hour ahead takes over no runs and writes no lease times
    from its own clock.
    """
    if database.dialect == "sqlite":
        pytest.skip("on SQLite the machine's clock is the only one")
    ahead = FakeClock(SystemClock().now() + HOUR)
    here = House(database, ahead, events)
    here.log = SqlExecutionLog(database, here.switches, here.controls, here.ids, ahead)
    pulse = job("pulse", target=Endpoint(gate=asyncio.Event()))
    scheduler = here.scheduler(pulse)
    running = asyncio.create_task(scheduler.run_by_hand(pulse))
    await events.wait_for(ExecutionStarted)
    await scheduler.leases.tick()
    (row,) = await here.rows()
    left = row["lease_until"] - SystemClock().now()
    assert LEASE - timedelta(seconds=5) < left <= LEASE
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


class SlowLog:
    """Execution log that opens or takes over runs immediately, but returns them only after ``answers`` is set."""

    def __init__(self, log: SqlExecutionLog) -> None:
        self._log = log
        self.written, self.answers = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def open_due(self, *asked: Any) -> Any:
        return await self._slowly(self._log.open_due(*asked))

    async def take_over(self, *asked: Any) -> Any:
        return await self._slowly(self._log.take_over(*asked))

    async def _slowly(self, statement: Awaitable[Any]) -> Any:
        answer = await statement
        self.written.set()
        await self.answers.wait()
        return answer


@pytest.mark.parametrize("how", ["opened", "taken over"])
async def test_run_acquired_during_shutdown_ends_within_the_grace_period(
    house: House, clock: FakeClock, how: str
) -> None:
    dead = house.scheduler(job(target=Endpoint(gate=asyncio.Event())))
    house.log = slow = SlowLog(house.log)  # type: ignore[assignment]
    scheduler = house.scheduler(job(target=Endpoint()))
    await dead.dispatcher.tick()
    clock.step(MINUTE)
    if how == "opened":
        slow.answers.set()
        await scheduler.dispatcher.tick()
        await finish(scheduler)
        clock.step(MINUTE)
        slow.answers.clear()
        slow.written.clear()
        ticking = asyncio.create_task(scheduler.dispatcher.tick())
    else:
        await dead.dispatcher.tick()
        ticking = asyncio.create_task(scheduler.reaper.recover([dead.lease_holder.owner]))  # type: ignore[arg-type]
    await slow.written.wait()
    draining = asyncio.create_task(scheduler.runner.drain(MINUTE))
    await settle()
    assert not draining.done()
    slow.answers.set()
    await ticking
    await draining
    assert set(await house.statuses()) == {"success"}


async def wait_for_tick(supervisor: Supervisor, loop: LeaseKeeper) -> None:
    """Wait until the current tick of ``loop`` ends. The tick's database statements take real time, during which the
    fake clock must not move.
    """
    while any(running.is_ticking for running in supervisor.running if running.loop is loop):
        await asyncio.sleep(0)


class Hanging:
    name = "hanging"

    def __init__(self) -> None:
        self.wakeup = Wakeup()

    async def tick(self) -> Pace:
        await asyncio.Event().wait()
        return Idle()


async def test_leases_are_renewed_until_the_last_run_of_a_shutdown_ends(house: House, clock: FakeClock) -> None:
    """During a shutdown, leases are renewed until the last run ends. Here a run takes longer than its lease, and the
    last tick of another loop hangs.
    """
    pair = SchedulerPair(house)
    supervisor = Supervisor(clock, house.events, lambda: 0.5)
    for loop, policy in pair.owner.loops():
        supervisor.add(loop, policy)
    supervisor.add(Hanging(), LoopPolicy(every=LEASE, stuck_after=timedelta(hours=1), finishes_tick=True))
    await pair.begin()
    stop = asyncio.Event()
    running = asyncio.create_task(supervisor.run(stop, timedelta(minutes=4)))
    await clock.advance(LEASE / 3)
    stop.set()
    for _ in range(12):
        await clock.advance(LEASE / 3)
        await wait_for_tick(supervisor, pair.owner.leases)
        await pair.other.reaper.tick()
    assert await pair.attempts() == [1, 1, 1]
    pair.gate.set()
    await finish(pair.owner)
    while not running.done():
        await wait_for_tick(supervisor, pair.owner.leases)
        await clock.advance(LEASE / 3)
    await running
    assert await house.statuses() == ["success"] * 3


async def test_schedulers_with_leases_of_different_lengths_take_nothing_from_each_other(
    house: House, clock: FakeClock
) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    long, short = timedelta(minutes=1), timedelta(seconds=6)
    owner = house.scheduler(job(target=endpoint), lease=long)
    other = house.scheduler(job(target=endpoint), lease=short)
    await tick_at(owner, clock, clock.now())
    clock.step(MINUTE)
    await owner.dispatcher.tick()
    for n in range(120):
        if n % 10 == 0:
            await owner.leases.tick()
        await other.reaper.tick()
        await clock.advance(short / 3)
    assert [row["attempt"] for row in await house.rows()] == [1]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(owner)
