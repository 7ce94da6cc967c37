"""Workers lose access to the database for a while. No item is lost or done twice, and the workers recover."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.queue.worker.rescuer import Rescuer
from batuta.stores.sql.database import AsJson, ConnectionLimits
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sqlite.driver import SqliteDatabase
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder, FakeClock
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures
from tests.faults.queue_harness import Enqueuer, QueueWorkers, queue_workers
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, slowness
from tests.servers import Postgres, postgres_server

LEASE = timedelta(seconds=30)


@pytest.mark.calm
async def test_database_outage_loses_no_item(places: Mapping[str, Path]) -> None:
    # The server is created before the runs begin, because this takes long and open transactions would be idle
    # meanwhile.
    with postgres_server(durable=LONG) as server:
        runs = [
            _locked(url, folder) if url.startswith("sqlite") else _cut(url, folder) for url, folder in places.items()
        ]
        if server is not None:
            runs.append(_stopped(next(iter(places.values())).parent / "stopped", server))
        await together(*runs)


async def test_read_only_server_ends_no_worker(places: Mapping[str, Path]) -> None:
    for url, folder in places.items():
        if url.startswith("postgresql"):
            await _read_only(url, folder)


async def _read_only(url: str, folder: Path) -> None:
    """Make the database read-only, as during a failover, and check that failed writes do not count as failures of a
    loop. Otherwise a loop would reach its failure limit within 4 s in the short form of the test, in which the lease is
    1 s.
    """
    seconds, lease, tasks = (90.0, 30.0, 1_000) if LONG else (6.0, 1.0, 100)
    figures = Figures(
        "T33", "PostgreSQL", f"the database is read-only for {seconds:g} s while two workers run {tasks} tasks"
    )
    async with queue_workers(folder, url, lease=lease) as running:
        workers = await running.begin_until_up(2)
        ids = await running.work.enqueue_many("conta", [(0.1,) for _ in range(tasks)])
        await running.until("they work", lambda: running.runs().total() > 10)
        async with _without_own_connection(running):
            await _set_read_only(url, True)
            await asyncio.sleep(seconds)
            assert [each.exitcode for each in workers] == [None, None], (folder / "log").read_text()[-3000:]
            await _set_read_only(url, False)
        await running.until_over()
        assert [each.exitcode for each in workers] == [None, None]
        tally = await running.judge(ids)
        figures.record_items(tally, f"repeated runs: {tally.in_vain}; no process ended")


async def _set_read_only(url: str, is_read_only: bool) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET transaction_read_only = off")
        name, value = url.rpartition("/")[2], "on" if is_read_only else "off"
        await connection.execute(
            f"BEGIN READ WRITE; ALTER DATABASE {name} SET default_transaction_read_only = {value}; COMMIT"
        )
    finally:
        await connection.close()
    await _terminate(url, "application_name LIKE 'batuta%'")


async def _cut(url: str, folder: Path) -> None:
    """Repeatedly terminate every database connection, including those that listen for notifications."""
    tasks, rounds = (5_000, 40) if LONG else (300, 4)
    figures = Figures(
        "T33", "PostgreSQL", f"all connections of two workers that run {tasks} tasks are terminated {rounds} times"
    )
    async with queue_workers(folder, url, looks_every=3600) as running:
        await running.begin_until_up(2)
        ids = await running.work.enqueue_many("conta", [(0.1,) for _ in range(tasks)])
        async with _without_own_connection(running):
            for _ in range(rounds):
                await asyncio.sleep(0.3)
                await _terminate(url, "application_name LIKE 'batuta%'")
            cut_at = time.monotonic()
        await running.until_over()
        healed = time.monotonic() - cut_at
        tally = await running.judge(ids)
        assert not [each for each in running.workers if not each.is_alive()]
        # The listener reconnects, because only its notification can wake the worker within the hour.
        deaf = await _listeners(running)
        await _terminate(url, "application_name = 'batuta-listener'")
        await running.until("they listen again", lambda: _has_others(running, deaf))
        more = await running.work.enqueue("conta")
        await running.until("it is heard", lambda: running.runs()[more])
        figures.record_items(
            tally, f"all tasks were done {healed:.1f} s after the last termination; repeated runs: {tally.in_vain}"
        )


@asynccontextmanager
async def _without_own_connection(running: QueueWorkers) -> AsyncIterator[None]:
    """Keep the test's own connection closed during the block, in which all connections are terminated."""
    await running.work.database.close()
    yield
    await running.work.database.open()


async def _terminate(url: str, which: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {which}"
        " AND datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def _listeners(running: QueueWorkers) -> set[int]:
    rows = await running.ask(
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'batuta-listener' AND datname = current_database()"
    )
    return {row["pid"] for row in rows}


async def _has_others(running: QueueWorkers, deaf: set[int]) -> bool:
    return len(await _listeners(running) - deaf) == len(running.workers)


async def _stopped(folder: Path, server: Postgres) -> None:
    tasks, rounds, away = (2_000, 10, 5.0) if LONG else (200, 1, 1.5)
    figures = Figures(
        "T35",
        "PostgreSQL",
        f"the database server is stopped {rounds} times for {away:g} s while workers run {tasks} tasks",
    )
    folder.mkdir()
    async with queue_workers(folder, server.url(), lease=1.0) as running:
        await running.begin_until_up(2)
        ids = await running.work.enqueue_many("conta", [(0.2,) for _ in range(tasks)])
        slowest = 0.0
        async with running.enqueuing() as enqueuer:
            for _ in range(rounds):
                await asyncio.sleep(0.5)
                await asyncio.to_thread(server.stop)
                await asyncio.sleep(away)
                await asyncio.to_thread(server.start)
                slowest = max(slowest, await running.serves())
        await running.until_over()
        tally = await running.judge([*ids, *enqueuer.accepted], or_more=True)
        assert await running.ask("SELECT id FROM tasks WHERE crashes > 1") == []
        figures.record_items(tally, _note(enqueuer, slowest, tally))


async def _locked(url: str, folder: Path) -> None:
    # The longest lock lasts longer than every wait for the file.
    lease = slowness()
    tasks, aways = (2_000, [5.0, 5.0, 15.0, 30.0]) if LONG else (200, [1.5 * lease])
    lengths = " and ".join(", ".join(f"{away:g}" for away in aways).rsplit(", ", 1))
    figures = Figures(
        "T35",
        "SQLite",
        f"another program locks the database file several times while workers run {tasks} tasks; the locks last {lengths} s",
    )
    async with queue_workers(folder, url, lease=lease) as running:
        await running.begin_until_up(2)
        ids = await running.work.enqueue_many("conta", [(0.2,) for _ in range(tasks)])
        slowest = 0.0
        async with running.enqueuing() as enqueuer:
            for away in aways:
                await asyncio.sleep(0.5)
                other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=TIMEOUT)
                other.execute("BEGIN IMMEDIATE")
                await asyncio.sleep(away)
                other.execute("ROLLBACK")
                other.close()
                slowest = max(slowest, await running.serves())
        await running.until_over()
        tally = await running.judge([*ids, *enqueuer.accepted], or_more=True)
        assert tally.in_vain == 0  # no worker died, so no item may have been rescued
        figures.record_items(tally, _note(enqueuer, slowest, tally))


def _note(enqueuer: Enqueuer, slowest: float, tally: Tally) -> str:
    refused = f"refused enqueues: {enqueuer.refused}; the workers worked again {slowest:.1f} s after the fault ended"
    return f"{refused}; repeated runs: {tally.in_vain}"


@asynccontextmanager
async def _leased_item(file: Path, clock: FakeClock, events: EventRecorder) -> AsyncIterator[tuple[SqlQueue, Rescuer]]:
    """Lease an item to a worker that is alive but cannot renew the lease. Yield the queue and a rescuer."""
    database = SqliteDatabase(file, SystemClock(), ConnectionLimits(lock=timedelta(milliseconds=300)))
    await database.open()
    await Migrator(database, engine_migrations(), clock, events).migrate()
    queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default", own_time=True)
    await queue.put([NewItem(values={"name": "conta", "args": AsJson([[], {}])})])
    await queue.settle_and_claim([], LeaseHolder(owner="alive", lease=LEASE), 1)
    try:
        yield queue, Rescuer("default", queue, LEASE, clock, events)
    finally:
        await database.close()


@contextmanager
def _lock_on(file: Path) -> Iterator[sqlite3.Connection]:
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    yield other
    other.close()


async def test_rescuer_that_waits_for_the_lock_rescues_no_item_of_a_living_worker(
    tmp_path: Path, clock: FakeClock, events: EventRecorder
) -> None:
    async with _leased_item(tmp_path / "test.db", clock, events) as (queue, rescuer):
        for _ in range(3):
            await rescuer.tick()
            await clock.advance(LEASE * 0.35)
        with _lock_on(tmp_path / "test.db"):
            looking = asyncio.create_task(rescuer.tick())
            await asyncio.sleep(0.1)
            await clock.advance(LEASE * 0.5)
        await looking
        await rescuer.tick()
        assert await queue.counts() == {"in_progress": 1}
        for _ in range(2):
            await clock.advance(LEASE * 0.6)
            await rescuer.tick()
        assert await queue.counts() == {"queued": 1}  # the worker of this item stopped renewing


async def test_rescuer_rescues_no_item_of_a_living_worker_after_an_outage(
    tmp_path: Path, clock: FakeClock, events: EventRecorder
) -> None:
    async with _leased_item(tmp_path / "test.db", clock, events) as (queue, rescuer):
        await rescuer.tick()
        with _lock_on(tmp_path / "test.db"):
            for passes in (0.5, 0.9):
                await clock.advance(LEASE * passes)
                with suppress(StoreUnavailable):
                    await rescuer.tick()
            await clock.advance(LEASE * 0.2)
            looking = asyncio.create_task(rescuer.tick())
            await asyncio.sleep(0.1)
        await looking
        assert await queue.counts() == {"in_progress": 1}
