"""The contender that shows the upper limit: a bare driver changes the rows of Batuta's table as Batuta's worker does,
but without a worker, handlers or objects.

Claimed rows are settled together with the next claim: in one statement on PostgreSQL, in one transaction on SQLite.
"""

import asyncio
import itertools
import json
import signal
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import FrameType
from typing import Any

from batuta.engine.batuta import Batuta
from bench.queue.contender import Assignment, Enqueuer, run

BATCH = 500
EMPTY = 0.01  # seconds between two polls
POOL = 5

INSERT_POSTGRES = """
INSERT INTO tasks (id, queue, name, args, available_at, created_at)
SELECT unnest($1::uuid[]), 'default', 'noop', unnest($2::jsonb[]), now(), now()"""

TURN_POSTGRES = """
WITH settled AS (
    UPDATE tasks SET status = 'complete', finished_at = now(), expires_at = now() + INTERVAL '1 hour',
        lease_until = NULL, owner = NULL, error = NULL, result = NULL
    WHERE id = ANY($1::uuid[])
),
picked AS MATERIALIZED (
    SELECT id FROM tasks
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue = 'default' AND available_at <= now()
    ORDER BY priority, available_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE tasks SET status = 'in_progress', attempts = attempts + 1, fence = fence + 1, owner = 'raw', started_at = now(),
    lease_until = now() + INTERVAL '30 seconds'
WHERE id = ANY(ARRAY(SELECT id FROM picked))
RETURNING id, (args -> 0 ->> 0)::bigint AS number"""

INSERT_SQLITE = """
INSERT INTO tasks (id, queue, name, args, available_at, created_at) VALUES (?, 'default', 'noop', ?, ?, ?)"""

SETTLE_SQLITE = """
UPDATE tasks SET status = 'complete', finished_at = :now, expires_at = :now + 3600000000,
    lease_until = NULL, owner = NULL, error = NULL, result = NULL
WHERE id IN (SELECT value FROM json_each(:ids))"""

CLAIM_SQLITE = """
UPDATE tasks SET status = 'in_progress', attempts = attempts + 1, fence = fence + 1, owner = 'raw', started_at = :now,
    lease_until = :now + 30000000
WHERE id IN (
    SELECT id FROM tasks INDEXED BY tasks_ready
    WHERE status = 'queued' AND lease_until IS NULL AND limit_key IS NULL AND queue = 'default' AND available_at <= :now
    ORDER BY priority, available_at, id LIMIT :limit)
RETURNING id, args ->> '$[0][0]'"""


class RawPostgres:
    def __init__(self, assignment: Assignment) -> None:
        import asyncpg

        self._asyncpg, self._assignment = asyncpg, assignment
        self._pool: Any = None

    async def one(self, number: int) -> None:
        await self.many([number])

    async def many(self, numbers: Sequence[int]) -> None:
        ids = [uuid.uuid4() for _ in numbers]
        await self._pool.execute(INSERT_POSTGRES, ids, [f"[[{number}], {{}}]" for number in numbers])

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        async with Batuta(self._assignment.url):
            """Creates the table."""
        async with self._asyncpg.create_pool(
            self._assignment.url, min_size=POOL, max_size=POOL, reset=nothing
        ) as self._pool:
            yield self

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        raise NotImplementedError

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        connection = await self._asyncpg.connect(self._assignment.url)
        turn, ids = await connection.prepare(TURN_POSTGRES), list[Any]()
        while not stop.is_set():
            rows = await turn.fetch(ids, BATCH)
            for _, number in rows:
                self._assignment.marks.set(number)
            ids = [row[0] for row in rows]
            if not rows:
                await asyncio.sleep(EMPTY)
        await connection.close()


async def nothing(connection: Any) -> None:
    """Skip the reset of a released connection, as Batuta's connection pool does."""


class RawSqlite:
    def __init__(self, assignment: Assignment) -> None:
        self._assignment = assignment
        self._connection: sqlite3.Connection | None = None

    async def one(self, number: int) -> None:
        self._insert([number])

    async def many(self, numbers: Sequence[int]) -> None:
        self._insert(numbers)

    def _insert(self, numbers: Sequence[int]) -> None:
        assert self._connection is not None
        now = time.time_ns() // 1_000
        self._connection.execute("BEGIN IMMEDIATE")
        rows = [(str(uuid.uuid4()), f"[[{number}], {{}}]", now, now) for number in numbers]
        self._connection.executemany(INSERT_SQLITE, rows)
        self._connection.execute("COMMIT")

    def _opened(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._assignment.file, isolation_level=None, timeout=30)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        return connection

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        async with Batuta(self._assignment.url):
            """Creates the table."""
        self._connection = self._opened()
        yield self
        self._connection.close()

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        raise NotImplementedError

    def work(self) -> None:
        stopped = False

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal stopped
            stopped = True

        signal.signal(signal.SIGTERM, stop)
        connection, ids = self._opened(), list[str]()
        for _ in itertools.takewhile(lambda _: not stopped, itertools.count()):
            now = time.time_ns() // 1_000
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(SETTLE_SQLITE, {"now": now, "ids": json.dumps(ids)})
            rows = connection.execute(CLAIM_SQLITE, {"now": now, "limit": BATCH}).fetchall()
            connection.execute("COMMIT")
            for _, number in rows:
                self._assignment.marks.set(number)
            ids = [id for id, _ in rows]
            if not rows:
                time.sleep(EMPTY)
        connection.close()


def make(assignment: Assignment) -> RawPostgres | RawSqlite:
    return RawSqlite(assignment) if assignment.url.startswith("sqlite") else RawPostgres(assignment)


if __name__ == "__main__":
    run(make)
