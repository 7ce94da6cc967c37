"""The database becomes unavailable and comes back. Loops wait for it and continue without a restart."""

import asyncio
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from batuta import Batuta
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import StoreTimeout
from batuta.kernel.events import LoopFailed, LoopRecovered
from batuta.stores.sql.database import ConnectionLimits
from batuta.stores.sql.queries import query_of
from batuta.stores.sqlite.driver import SqliteDatabase
from batuta.testing import EventRecorder
from tests.conftest import lack
from tests.servers import postgres_server

GRACE = timedelta(seconds=2)


async def test_loops_survive_a_database_that_stops_and_starts() -> None:
    with postgres_server() as server:
        if server is None:
            lack("PostgreSQL", "set BATUTA_PG_BIN to the folder that holds initdb")
        work = Batuta(server.url())
        events = EventRecorder()
        work.events.subscribe(events)
        reads = 0

        @work.loop(every=0.05, stuck_after=60)
        async def reads_a_switch() -> None:
            nonlocal reads
            await work.switches.read("pausa")
            reads += 1

        async def more_than(count: int) -> None:
            async with asyncio.timeout(60):
                while reads <= count:
                    await asyncio.sleep(0.02)

        async with work:
            stop = asyncio.Event()
            running = asyncio.create_task(work.supervisor().run(stop, GRACE))
            await more_than(1)
            await asyncio.to_thread(server.stop)
            await events.wait_for(LoopFailed, lambda fact: fact.loop == "reads_a_switch")
            before = reads
            await asyncio.to_thread(server.start)
            recovered = await events.wait_for(LoopRecovered, lambda fact: fact.loop == "reads_a_switch")
            assert recovered.failures >= 1
            await more_than(before)
            stop.set()
            await running


async def test_transaction_that_never_gets_the_writer_fails_and_the_next_one_works(tmp_path: Path) -> None:
    """Another program keeps the file locked for longer than every timeout. Once the lock is released, no transaction
    may wait forever.
    """
    put = query_of("put", "INSERT INTO things (n) VALUES (:n)", writes=True)
    database = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits(lock=timedelta(milliseconds=300)))
    await database.open()
    await database.script("CREATE TABLE things (n INTEGER PRIMARY KEY)")

    async def transaction(n: int) -> None:
        async with database.transaction() as writing:
            await writing.run(put, n=n)
            await writing.run(put, n=-n)

    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    # The first transaction waits for the lock. The others wait for the writer.
    waiting = [asyncio.create_task(transaction(n)) for n in (1, 2, 3)]
    done, late = await asyncio.wait(waiting, timeout=60)
    other.execute("ROLLBACK")
    other.close()
    assert late == set()
    for each in done:
        with pytest.raises(StoreTimeout):
            await each
    await asyncio.wait_for(transaction(4), 60)
    rows = await database.all(query_of("all", "SELECT n FROM things ORDER BY n", writes=False))
    await database.close()
    assert [row["n"] for row in rows] == [-4, 4]
