"""A parent process records each end of a child. If the database is unavailable, the parent records it later and never
waits for the write. The tests run on both databases.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from batuta.health import checks
from batuta.health.finding import Severity
from batuta.kernel.errors import StoreReplaced, StoreUnavailable
from batuta.kernel.ids import Ids
from batuta.processes.restarts import NewRestart, Restart, RestartReason
from batuta.processes.tree import MOST_PENDING, RestartLog, Stall
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.processes import SqlBeats, SqlRestarts
from batuta.supervise.loop import Again, Idle
from batuta.testing import FakeClock

MINUTE = timedelta(minutes=1)


class Parent:
    """Restart log on a real database that the test can make unavailable."""

    def __init__(self, database: Database, ids: Ids, clock: FakeClock) -> None:
        self.clock = clock
        self.is_away = False
        self.is_replaced = False
        self.opened = 0
        self.beats, self.restarts = SqlBeats(database, "1"), SqlRestarts(database, ids)
        self.restart_log = RestartLog(self._open, self.beats, self, clock, clock.now)

    async def _open(self) -> None:
        if self.is_away:
            raise StoreUnavailable(where="here", why="away")
        self.is_replaced = False
        self.opened += 1

    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        if self.is_away:
            raise StoreUnavailable(where="here", why="away")
        if self.is_replaced:
            raise StoreReplaced(where="here", what="replaced")
        return await self.restarts.add(restart, now=now)

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        return await self.restarts.since(since, limit=limit)

    def note(self, pid: int, times: int = 1) -> None:
        facts = {"worker_name": "worker", "reason": RestartReason.CRASHED, "detail": "exit code 3", "host": "here"}
        self.restart_log.record(NewRestart(**facts, pid=pid, restarts_in_window=times))  # type: ignore[arg-type]

    async def written(self) -> list[tuple[int, datetime]]:
        rows = await self.restarts.since(datetime.min.replace(year=2000, tzinfo=self.clock.now().tzinfo), limit=1000)
        return [(row.pid, row.at) for row in reversed(rows)]


@pytest.fixture
def parent(database: Database, ids: Ids, clock: FakeClock) -> Parent:
    return Parent(database, ids, clock)


async def test_noted_ends_are_written_in_order(parent: Parent) -> None:
    assert await parent.restart_log.tick() == Idle()
    assert parent.opened == 0  # no database connection without an end to write
    parent.note(1)
    parent.clock.step(MINUTE)
    parent.note(2)
    assert [await parent.restart_log.tick() for _ in range(3)] == [Again(), Again(), Idle()]
    assert [pid for pid, _ in await parent.written()] == [1, 2]
    assert parent.opened == 1


async def test_replaced_database_file_is_opened_again(parent: Parent) -> None:
    parent.note(1)
    await parent.restart_log.tick()
    parent.is_replaced = True
    parent.note(2)
    with pytest.raises(StoreReplaced):
        await parent.restart_log.tick()
    await parent.restart_log.tick()
    assert [pid for pid, _ in await parent.written()] == [1, 2]
    assert parent.opened == 2


async def test_parent_records_the_stall_of_a_silent_child(parent: Parent, clock: FakeClock) -> None:
    await parent.beats.beat("here:7:a", "worker", {"heartbeat": {}}, now=clock.now(), host="here", pid=7)
    parent.restart_log.record(Stall("here", 7))
    await parent.restart_log.tick()
    assert not await parent.beats.record_stall(host="here", pid=8)


async def test_outage_loses_no_end_and_keeps_its_time(parent: Parent) -> None:
    first = parent.clock.now()
    parent.note(1)
    parent.is_away = True
    for _ in range(3):
        with pytest.raises(StoreUnavailable):  # the supervisor backs off and retries without limit
            await parent.restart_log.tick()
    parent.clock.step(10 * MINUTE)
    parent.is_away = False
    await parent.restart_log.tick()
    assert await parent.written() == [(1, first)]


async def test_endless_outage_keeps_the_newest_ends(parent: Parent) -> None:
    for pid in range(1, MOST_PENDING + 11):
        parent.note(pid)
    for _ in range(MOST_PENDING):
        await parent.restart_log.tick()
    assert await parent.restart_log.tick() == Idle()
    assert {pid for pid, _ in await parent.written()} == set(range(11, MOST_PENDING + 11))


async def test_end_that_cannot_be_written_does_not_block_the_shutdown(parent: Parent) -> None:
    parent.note(1)
    parent.is_away = True
    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(parent.restart_log.drain(MINUTE), 60)
    parent.is_away = False
    await parent.restart_log.drain(MINUTE)
    assert [pid for pid, _ in await parent.written()] == [1]


async def test_five_ends_of_a_role_are_a_finding_with_a_next_step(parent: Parent, clock: FakeClock) -> None:
    check = checks.workers(parent.beats, parent.restarts, clock.now)
    for times in range(1, 5):
        parent.note(times, times)
        await parent.restart_log.tick()
    assert (await check.ask()).findings == ()
    parent.note(5, 5)
    await parent.restart_log.tick()
    (finding,) = (await check.ask()).findings
    assert (finding.cause, finding.severity) == ("workers.crashing.worker", Severity.CRITICAL)
    assert finding.facts["detail"] == "exit code 3"
