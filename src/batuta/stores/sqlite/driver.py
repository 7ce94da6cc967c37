"""Implements the Database interface on one SQLite file."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StatementRefused, StoreNotOpen, TransactionMisuse
from batuta.stores.sql.database import (
    ChangeListener,
    ConnectionLimits,
    Dialect,
    Held,
    Query,
    Reading,
    Row,
    StatementGuard,
    Statements,
    Transaction,
    Values,
)
from batuta.stores.sqlite.connection import (
    Act,
    ActFactory,
    StatementsInThread,
    open_connection,
    prepare,
    translate_errors,
)
from batuta.stores.sqlite.identity import OpenFile
from batuta.stores.sqlite.notifications import NotificationFolder, Receiver
from batuta.stores.sqlite.readers import Pinned, Readers
from batuta.stores.sqlite.writer import Single, TransactionUnit, Writer

T = TypeVar("T")


_CONTROL = re.compile(r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE)\b", re.IGNORECASE)


# How often a process that is waiting for a task to end reads the file's commit counter.
WATCH_PERIOD = timedelta(milliseconds=50)


class SqliteDatabase(Transaction):
    dialect: Dialect = "sqlite"

    def __init__(self, file: Path, clock: Clock, limits: ConnectionLimits) -> None:
        # Resolve the path now, because the working directory of the process may change.
        self._file = file.absolute()
        self._makes_folder = not file.is_absolute()
        self.where = str(self._file)
        self._clock = clock
        self._limits = limits
        self._held = Held()
        self._acts = ActFactory(clock, limits)
        self._open_file = OpenFile(self._file)
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._notifications = NotificationFolder(self._file)
        self._listeners: list[Callable[[str | None], None]] = []

    async def open(self) -> None:
        await asyncio.to_thread(prepare, self._file, makes_folder=self._makes_folder)
        file = self._open_file = OpenFile(self._file)
        writing = await asyncio.to_thread(
            file.open_with, partial(self._connect, writes=True), lambda connection: connection.close()
        )
        loop, clock, limits = asyncio.get_running_loop(), self._clock, self._limits
        self._writer = Writer(writing, file, loop, clock, self.where, limits.lock)
        self._readers = Readers(partial(self._connect_reader, file), file, limits, clock, self.where)

    @property
    def file(self) -> Path:
        return self._file

    def check_free(self) -> None:
        self._held.check("enqueue()")

    def check_file(self) -> None:
        """Raise StoreReplaced if the database file was deleted or replaced after it was opened. Thread-safe."""
        if self._writer is not None:
            self._open_file.check()

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        readers, self._readers = self._readers, None
        if writer is not None:
            await asyncio.to_thread(writer.stop)
        if readers is not None:
            await asyncio.to_thread(readers.stop)
        self._notifications.close()

    async def all(self, query: Query, **values: object) -> list[Row]:
        self._held.check("statement", query.name)
        act = self._acts.all(query, values)
        by_writer = query.writes or not self._limits.readers
        rows: list[Row] = await (self._write(act) if by_writer else self._open_readers().read(act))
        return rows

    async def run(self, query: Query, **values: object) -> int:
        self._held.check("statement", query.name)
        touched: int = await self._write(self._acts.run(query, values))
        return touched

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        self._held.check("statement", query.name)
        await self._write(self._acts.run_many(query, rows), is_single=False)

    async def script(self, text: str) -> None:
        async with self.transaction() as transaction:
            await transaction.script(text)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        with self._held.by_this_task():
            transaction = SqliteTransaction(self._open_writer(), self._acts, self._limits, self.where)
            try:
                yield transaction
            except BaseException:
                await transaction.roll_back()
                raise
            await transaction.commit()
        for queue in transaction.notified:
            self.notify(queue)

    async def perform(self, steps: Callable[[Statements], T]) -> T:
        self._held.check("transaction")
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def act(connection: sqlite3.Connection) -> T:
            if future.cancelled():
                raise TransactionMisuse(why="the caller ended before the writer started its transaction")
            return steps(StatementsInThread(connection, self._acts))

        self._open_writer().submit(Single(act, future, is_single=False))
        return await future

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reading]:
        with self._held.by_this_task():
            async with self._open_readers().pin() as pinned:
                await pinned.call(_begin_reading)
                try:
                    yield SqliteSnapshot(pinned, self._acts)
                finally:
                    await pinned.call(_end_reading)

    async def empty_log(self) -> bool:
        def empty() -> bool:
            with closing(self._connect(writes=True)) as connection, translate_errors(self.where):
                (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                return not is_busy

        return await asyncio.to_thread(empty)

    async def lock_migrations(self, transaction: Transaction) -> None:
        """Do nothing, because SQLite allows only one write transaction at a time across all processes."""

    async def exists(self) -> bool:
        return await asyncio.to_thread(self._file.exists)

    def notify(self, queue: str | None) -> None:
        for on_change in self._listeners:
            on_change(queue)
        self._notifications.send(queue)

    async def listen(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        version = await self.data_version()
        try:
            receiver = self._notifications.listen(on_change)
        except (OSError, NotImplementedError, AttributeError):  # the file system or the platform has no FIFOs
            return PollingListener(self, on_change, version)
        self._listeners.append(on_change)
        return SqliteListener(self, receiver, partial(self._listeners.remove, on_change))

    async def watch(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        return PollingListener(self, on_change, await self.data_version(), WATCH_PERIOD)

    async def data_version(self) -> int:
        """Return a number that changes when any process commits to this file."""
        self.check_file()
        return await self._open_readers().data_version()

    def _connect(self, *, writes: bool) -> sqlite3.Connection:
        with translate_errors(self.where):
            return open_connection(self._file, self._clock, self._limits, writes=writes)

    def _connect_reader(self, file: OpenFile) -> sqlite3.Connection:
        connection = self._connect(writes=False)
        # the new connection may have opened a file that replaced the original one
        if (lost := file.find_loss()) is not None:
            connection.close()
            raise lost
        return connection

    async def _write(self, act: Act, *, is_single: bool = True) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open_writer().submit(Single(act, future, is_single=is_single))
        return await future

    def _open_writer(self) -> Writer:
        if self._writer is None:
            raise StoreNotOpen(where=self.where)
        return self._writer

    def _open_readers(self) -> Readers:
        if self._readers is None:
            raise StoreNotOpen(where=self.where)
        return self._readers


class SqliteListener:
    """Receives notifications through a FIFO. ``probe`` detects that the database file was replaced."""

    period = timedelta(seconds=1)

    def __init__(self, database: SqliteDatabase, receiver: Receiver, end: Callable[[], None]) -> None:
        self._database = database
        self._receiver = receiver
        self._end = end

    async def probe(self) -> None:
        self._database.check_file()

    async def close(self) -> None:
        self._end()
        self._receiver.close()


class PollingListener:
    """Polls ``PRAGMA data_version`` to notice commits by any process. This listener is used where FIFOs cannot be
    created. It also detects that the database file was replaced.
    """

    def __init__(
        self,
        database: SqliteDatabase,
        on_change: Callable[[str | None], None],
        version: int,
        period: timedelta = timedelta(milliseconds=250),
    ) -> None:
        self.period = period
        self._database = database
        self._on_change = on_change
        self._version = version

    async def probe(self) -> None:
        version = await self._database.data_version()
        if version != self._version:
            self._version = version
            self._on_change(None)

    async def close(self) -> None:
        """Do nothing, because the listener holds no resource."""


class SqliteTransaction(Transaction):
    """A transaction that occupies the writer thread from its first statement until the block ends."""

    def __init__(self, writer: Writer, acts: ActFactory, limits: ConnectionLimits, where: str) -> None:
        loop = asyncio.get_running_loop()
        self._writer = writer
        self._acts = acts
        self._session = TransactionUnit(loop, loop.create_future(), limits.idle_in_transaction, where)
        self._session.ended.add_done_callback(_retrieve_exception)
        self._started = False
        self._guard = StatementGuard()
        self.notified: dict[str | None, None] = {}  # names of the queues to notify after the commit, in order

    def notify(self, queue: str | None) -> None:
        self.notified[queue] = None

    async def all(self, query: Query, **values: object) -> list[Row]:
        rows: list[Row] = await self._perform(self._acts.all(query, values))
        return rows

    async def run(self, query: Query, **values: object) -> int:
        touched: int = await self._perform(self._acts.run(query, values))
        return touched

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        await self._perform(self._acts.run_many(query, rows))

    async def script(self, text: str) -> None:
        for statement in statements(text):
            if _CONTROL.match(statement):
                raise StatementRefused(
                    why="a script runs in one transaction: remove BEGIN, COMMIT, ROLLBACK and SAVEPOINT"
                )
            await self._perform(partial(_execute, statement))

    async def commit(self) -> None:
        try:
            self._guard.check_commit()
        except TransactionMisuse:
            await self.roll_back()
            raise
        if self._started:
            self._session.commit()
            await asyncio.shield(self._session.ended)

    async def roll_back(self) -> None:
        if self._started and self._session.roll_back():
            await asyncio.wait([self._session.ended])

    async def _perform(self, act: Act) -> Any:
        with self._guard.statement():
            if not self._started:
                self._started = True
                self._writer.submit(self._session)
            return await self._session.send(act)


class SqliteSnapshot(Reading):
    def __init__(self, pinned: Pinned, acts: ActFactory) -> None:
        self._pinned = pinned
        self._acts = acts
        self._guard = StatementGuard()

    async def all(self, query: Query, **values: object) -> list[Row]:
        if query.writes:
            raise StatementRefused(why=f"query {query.name} writes, and a snapshot only reads")
        with self._guard.statement():
            rows: list[Row] = await self._pinned.call(self._acts.all(query, values))
        return rows


def _retrieve_exception(ended: "asyncio.Future[None]") -> None:
    """Retrieve a future's exception without raising it. Otherwise asyncio would warn that the exception was never
    retrieved. The caller already gets the error that ended the transaction block.
    """
    if not ended.cancelled():
        ended.exception()


def _begin_reading(connection: sqlite3.Connection) -> None:
    _end_reading(connection)  # a cancelled earlier snapshot may have left its transaction open
    connection.execute("BEGIN")


def _end_reading(connection: sqlite3.Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _execute(statement: str, connection: sqlite3.Connection) -> None:
    connection.execute(statement)


def statements(text: str) -> list[str]:
    """Split a script into statements. SQLite itself recognises where a statement ends, so a trigger that contains
    several statements is not split.
    """
    found, current = [], ""
    for piece in re.split(r"(?<=;)", text):
        current += piece
        if sqlite3.complete_statement(current):
            found.append(current)
            current = ""
    if current.strip():
        found.append(current)
    return found
