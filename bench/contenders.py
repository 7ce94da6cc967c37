"""The contenders of the store benchmark: Batuta's store, and bare drivers that do the same work with as little code as
possible and with equal durability.

Every contender starts with an empty table of its own, and reports success only when the row is on disk.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from batuta.kernel.clock import SystemClock
from batuta.stores import connect
from batuta.stores.sql.database import ConnectionLimits, Database
from batuta.stores.sql.queries import in_dialect, query_of

if TYPE_CHECKING:
    import asyncpg
    from asyncpg.pool import PoolConnectionProxy

    Pool: TypeAlias = asyncpg.Pool[asyncpg.Record]
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]

T = TypeVar("T")

NOTE = "about as many characters as a small row of the engine holds beside its key: a name, a reason"
TABLE = "CREATE TABLE entries (id INTEGER PRIMARY KEY, note TEXT NOT NULL);"
FRESH_TABLE = "DROP TABLE IF EXISTS entries;\n" + TABLE
INSERT = query_of("insert", "INSERT INTO entries (id, note) VALUES (:id, :note)", writes=True)
READ = query_of("read", "SELECT id, note FROM entries WHERE id = :id", writes=False)
COUNT = query_of("count", "SELECT count(*) AS entries FROM entries", writes=False)


class Contender(Protocol):
    async def insert(self, number: int) -> None:
        """Insert one row in its own transaction."""
        ...

    async def insert_together(self, numbers: Sequence[int]) -> None:
        """Insert many rows in one transaction."""
        ...

    async def read_then_insert(self, seen: int, number: int) -> None:
        """Run one transaction of two statements. The second statement depends on the result of the first."""
        ...

    async def read(self, number: int) -> None:
        """Read one row by its key while other tasks write."""
        ...

    async def insert_until(self, ends: float, numbers: Iterator[int]) -> int:
        """Insert rows until ``time.perf_counter()`` reaches ``ends``, while other tasks are reading. Return the number
        of rows inserted.
        """
        ...

    async def count(self) -> int: ...


Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Contender]]


async def count_until(ends: float, act: Callable[[], Awaitable[object]]) -> int:
    done = 0
    while time.perf_counter() < ends:
        await act()
        done += 1
    return done


class Ours:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._insert = in_dialect(INSERT, database.dialect)
        self._read = in_dialect(READ, database.dialect)

    async def insert(self, number: int) -> None:
        await self._database.run(self._insert, id=number, note=NOTE)

    async def insert_together(self, numbers: Sequence[int]) -> None:
        await self._database.run_many(self._insert, [{"id": number, "note": NOTE} for number in numbers])

    async def read_then_insert(self, seen: int, number: int) -> None:
        async with self._database.transaction() as transaction:
            await transaction.one(self._read, id=seen)
            await transaction.run(self._insert, id=number, note=NOTE)

    async def read(self, number: int) -> None:
        await self._database.one(self._read, id=number)

    async def insert_until(self, ends: float, numbers: Iterator[int]) -> int:
        return await count_until(ends, lambda: self.insert(next(numbers)))

    async def count(self) -> int:
        row = await self._database.one(COUNT)
        assert row is not None
        counted: int = row["entries"]
        return counted


@asynccontextmanager
async def ours(url: str) -> AsyncIterator[Contender]:
    database = connect(url, SystemClock())
    await database.open()
    try:
        await database.script(FRESH_TABLE)
        yield Ours(database)
    finally:
        await database.close()


class BareSqlite:
    """One connection from the standard ``sqlite3`` module, called synchronously."""

    def __init__(self, file: Path) -> None:
        self._connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")

    def execute(self, statement: str) -> None:
        self._connection.execute(statement)

    def insert(self, number: int) -> None:
        self._connection.execute("INSERT INTO entries (id, note) VALUES (?, ?)", (number, NOTE))

    def insert_together(self, numbers: Sequence[int]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        rows = [(number, NOTE) for number in numbers]
        self._connection.executemany("INSERT INTO entries (id, note) VALUES (?, ?)", rows)
        self._connection.execute("COMMIT")

    def read(self, number: int) -> None:
        self._connection.execute("SELECT id, note FROM entries WHERE id = ?", (number,)).fetchall()

    def count(self) -> int:
        counted: int = self._connection.execute(COUNT.text).fetchone()[0]
        return counted

    def close(self) -> None:
        self._connection.close()


class SameThread:
    """SQLite on the event loop's thread. It blocks the event loop, so it would not be usable in a server."""

    def __init__(self, file: Path) -> None:
        self._here = BareSqlite(file)
        self._beside = BareSqlite(file)

    async def insert(self, number: int) -> None:
        self._here.insert(number)

    async def insert_together(self, numbers: Sequence[int]) -> None:
        self._here.insert_together(numbers)

    async def read_then_insert(self, seen: int, number: int) -> None:
        self._here.execute("BEGIN IMMEDIATE")
        self._here.read(seen)
        self._here.insert(number)
        self._here.execute("COMMIT")

    async def read(self, number: int) -> None:
        self._here.read(number)

    async def insert_until(self, ends: float, numbers: Iterator[int]) -> int:
        # The readers never yield to the event loop, so the writer needs a thread.
        return await asyncio.to_thread(self._write_beside, ends, numbers)

    def _write_beside(self, ends: float, numbers: Iterator[int]) -> int:
        done = 0
        while time.perf_counter() < ends:
            self._beside.insert(next(numbers))
            done += 1
        return done

    async def count(self) -> int:
        return self._here.count()

    def close(self) -> None:
        self._here.close()
        self._beside.close()


class ExecutorThread:
    """SQLite in an asyncio program: one writer thread, one reader thread, and one thread switch per statement."""

    def __init__(self, file: Path) -> None:
        self._writer, self._reader = BareSqlite(file), BareSqlite(file)
        self._writing, self._reading = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        # so that no other write runs between the statements of a transaction, each of which is a thread switch
        self._turn = asyncio.Lock()

    async def insert(self, number: int) -> None:
        await self._write(lambda: self._writer.insert(number))

    async def insert_together(self, numbers: Sequence[int]) -> None:
        await self._write(lambda: self._writer.insert_together(numbers))

    async def read_then_insert(self, seen: int, number: int) -> None:
        async with self._turn:
            await self._write(lambda: self._writer.execute("BEGIN IMMEDIATE"))
            await self._write(lambda: self._writer.read(seen))
            await self._write(lambda: self._writer.insert(number))
            await self._write(lambda: self._writer.execute("COMMIT"))

    async def read(self, number: int) -> None:
        await asyncio.get_running_loop().run_in_executor(self._reading, self._reader.read, number)

    async def insert_until(self, ends: float, numbers: Iterator[int]) -> int:
        return await count_until(ends, lambda: self.insert(next(numbers)))

    async def count(self) -> int:
        return await self._write(self._writer.count)

    async def _write(self, act: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._writing, act)

    def close(self) -> None:
        for thread in (self._writing, self._reading):
            thread.shutdown()
        for connection in (self._writer, self._reader):
            connection.close()


@asynccontextmanager
async def bare_sqlite(file: Path, kind: type[SameThread] | type[ExecutorThread]) -> AsyncIterator[Contender]:
    making = BareSqlite(file)
    making.execute(TABLE)
    making.close()
    contender = kind(file)
    try:
        yield contender
    finally:
        contender.close()


class Connections(Protocol):
    def acquire(self) -> "AbstractAsyncContextManager[Connection]": ...


class BareAsyncpg:
    def __init__(self, connections: Connections, beside: Connections) -> None:
        self._connections = connections
        self._beside = beside

    async def insert(self, number: int) -> None:
        await _insert(self._connections, number)

    async def insert_together(self, numbers: Sequence[int]) -> None:
        rows = [(number, NOTE) for number in numbers]
        async with self._connections.acquire() as connection:
            # One implicit transaction: asyncpg sends all rows before it commits.
            await connection.executemany("INSERT INTO entries (id, note) VALUES ($1, $2)", rows)

    async def read_then_insert(self, seen: int, number: int) -> None:
        async with self._connections.acquire() as connection, connection.transaction():
            await connection.fetch("SELECT id, note FROM entries WHERE id = $1", seen)
            await connection.execute("INSERT INTO entries (id, note) VALUES ($1, $2)", number, NOTE)

    async def read(self, number: int) -> None:
        async with self._connections.acquire() as connection:
            await connection.fetch("SELECT id, note FROM entries WHERE id = $1", number)

    async def insert_until(self, ends: float, numbers: Iterator[int]) -> int:
        return await count_until(ends, lambda: _insert(self._beside, next(numbers)))

    async def count(self) -> int:
        async with self._connections.acquire() as connection:
            counted: int = await connection.fetchval(COUNT.text)
            return counted


async def _insert(connections: Connections, number: int) -> None:
    async with connections.acquire() as connection:
        await connection.execute("INSERT INTO entries (id, note) VALUES ($1, $2)", number, NOTE)


class OneConnection:
    """One connection that all tasks use in turn, because asyncpg refuses a second statement while one is running."""

    def __init__(self, connection: "Connection") -> None:
        self._connection = connection
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def acquire(self) -> "AsyncIterator[Connection]":
        async with self._turn:
            yield self._connection


@asynccontextmanager
async def bare_asyncpg_connection(url: str) -> AsyncIterator[Contender]:
    import asyncpg

    connection, beside = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        await connection.execute(FRESH_TABLE)
        yield BareAsyncpg(OneConnection(connection), OneConnection(beside))
    finally:
        await connection.close()
        await beside.close()


@asynccontextmanager
async def bare_asyncpg_pool(url: str) -> AsyncIterator[Contender]:
    import asyncpg

    # The pool has as many connections as ours, and runs no clean-up statement on release, like ours. A pool that does
    # more work would make our figures look too good.
    size = ConnectionLimits().readers + 1
    async with asyncpg.create_pool(url, min_size=size, max_size=size, reset=_leave_as_it_is) as pool:
        await pool.execute(FRESH_TABLE)
        yield BareAsyncpg(pool, pool)


async def _leave_as_it_is(connection: "Connection") -> None:
    """Skip the reset of a released connection, because no contender leaves session state behind after its
    transaction.
    """
