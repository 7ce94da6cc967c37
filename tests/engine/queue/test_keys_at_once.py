"""Concurrent enqueues of items with the same keys. This can happen only on PostgreSQL, because SQLite has one
writer.
"""

import asyncio

import pytest

from batuta.kernel.ids import Ids
from batuta.queue.item import NewItem
from batuta.stores.sql.database import AsJson, Database, Transaction
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock

WAITING = query_of(
    "waiting",
    "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    writes=False,
)


class Undone(Exception):
    """An exception that a test raises to roll a transaction back."""


async def waited_for(database: Database, waiting: int) -> None:
    async with asyncio.timeout(60):
        while True:
            row = await database.one(in_dialect(WAITING, "postgres"))
            if row is not None and row["n"] >= waiting:
                return


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_concurrent_puts_of_the_same_keys_do_not_deadlock(database: Database, clock: FakeClock, ids: Ids) -> None:
    queue = SqlQueue(database, TASKS, ids, clock, queue="default", own_time=True)

    async def put(*keys: str, within: Transaction | None = None) -> int:
        items = [NewItem(values={"name": "f", "args": AsJson([])}, key=key) for key in keys]
        return sum(id is not None for id in await queue.put(items, within))

    async def hold_one() -> None:
        async with database.transaction() as transaction:
            await put("b", within=transaction)
            holds.set()
            await may_end.wait()
            raise Undone

    holds, may_end = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(hold_one())
    await holds.wait()
    both = [asyncio.create_task(put("a", "b", "c")), asyncio.create_task(put("c", "b", "a"))]
    await waited_for(database, 2)
    may_end.set()
    with pytest.raises(Undone):
        await holder
    assert sorted(await asyncio.gather(*both)) == [0, 3]
