"""Callers are cancelled at arbitrary moments. No acknowledged write is lost, no transaction is half done, and the store
still works.
"""

import asyncio
import itertools
import random
import time

import pytest

from batuta.kernel.clock import SystemClock
from batuta.stores import connect
from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import in_dialect, query_of

SECONDS = 3.0
CALLERS = 20
FEWEST = 100  # smallest number of acknowledged writes, however busy the machine is


class Storm:
    def __init__(self, database: Database, seed: int) -> None:
        self.acknowledged: set[int] = set()
        self.undone: set[int] = set()
        self._database = database
        self._chance = random.Random(seed)
        self._numbers = itertools.count()
        self._put = self._query("INSERT INTO storm (n, twin) VALUES (:n, :twin)", writes=True)
        self._count = self._query("SELECT count(*) AS c FROM storm", writes=False)

    def _query(self, text: str, *, writes: bool) -> Query:
        return in_dialect(query_of("storm", text, writes=writes), self._database.dialect)

    async def run(self) -> None:
        await self._database.script("CREATE TABLE storm (n INTEGER PRIMARY KEY, twin INTEGER)")
        ends = time.monotonic() + SECONDS
        await asyncio.wait_for(asyncio.gather(*(self._caller(ends) for _ in range(CALLERS))), SECONDS + 120)

    async def _caller(self, ends: float) -> None:
        while time.monotonic() < ends or len(self.acknowledged) < FEWEST:
            task = asyncio.create_task(self._one())
            if self._chance.random() < 0.4:
                for _ in range(self._chance.randrange(6)):
                    await asyncio.sleep(0)
                await asyncio.sleep(self._chance.random() * 0.003)
                task.cancel()
            try:
                await task
            except (asyncio.CancelledError, ZeroDivisionError):
                continue

    async def _one(self) -> None:
        work = self._chance.choice([self._single, self._pair, self._pair, self._many, self._read, self._look_twice])
        await work(next(self._numbers), next(self._numbers))

    async def _single(self, n: int, _: int) -> None:
        await self._database.run(self._put, n=n, twin=None)
        self.acknowledged.add(n)

    async def _pair(self, n: int, twin: int) -> None:
        async with self._database.transaction() as transaction:
            await transaction.run(self._put, n=n, twin=twin)
            if self._chance.random() < 0.2:
                self.undone.add(n)
                raise ZeroDivisionError
            await transaction.run(self._put, n=twin, twin=n)
        self.acknowledged |= {n, twin}

    async def _many(self, n: int, twin: int) -> None:
        await self._database.run_many(self._put, [{"n": n, "twin": twin}, {"n": twin, "twin": n}])
        self.acknowledged |= {n, twin}

    async def _read(self, _: int, __: int) -> None:
        await self._database.one(self._count)

    async def _look_twice(self, _: int, __: int) -> None:
        async with self._database.snapshot() as snapshot:
            first, second = await snapshot.one(self._count), await snapshot.one(self._count)
        assert first is not None
        assert second is not None
        assert first["c"] == second["c"]


@pytest.mark.filterwarnings("error")
async def test_storm_of_cancellations_loses_no_write_and_leaves_none_half_done(database_url: str) -> None:
    database = connect(database_url, SystemClock())
    await database.open()
    storm = Storm(database, seed=20260105)
    await storm.run()
    everything = in_dialect(query_of("all", "SELECT n, twin FROM storm", writes=False), database.dialect)
    rows = {row["n"]: row["twin"] for row in await database.all(everything)}
    await database.close()
    assert len(storm.acknowledged) >= FEWEST
    assert storm.acknowledged - set(rows) == set()
    assert storm.undone & set(rows) == set()
    assert [n for n, twin in rows.items() if twin is not None and rows.get(twin) != n] == []
