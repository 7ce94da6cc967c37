"""The Database interface. Code that uses it runs on both SQLite and PostgreSQL.

Both databases return the same types: TIMESTAMPTZ becomes an aware UTC datetime, JSONB a Python value, BOOLEAN a bool,
and UUID a string. Instants without a time zone are refused. The drivers' exceptions are translated into errors from
``kernel.errors``.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from batuta.kernel.errors import ConcurrentStatements, StatementRefused, TransactionMisuse
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.query import Query as Query
from batuta.kernel.values import dataclass

Dialect: TypeAlias = Literal["sqlite", "postgres"]
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AsJson:
    """Marks a value for a JSONB column. The mark is necessary because SQLite does not know the column's type.
    ``AsJson(None)`` stores SQL NULL.
    """

    value: object


class Row(Protocol):
    """One row of a query's result. Values are accessed by column name; ``dict(row)`` returns them as a dictionary."""

    def __getitem__(self, column: str, /) -> Any: ...  # the value's type depends on the column
    def keys(self) -> Collection[str]: ...


class AnyDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Value = TypeVar("Value", bound=AnyDataclass)
Result = TypeVar("Result")


def from_row(kind: type[Value], row: Row, **others: object) -> Value:
    """Create a dataclass instance from the columns that have the same names as its fields. ``others`` supplies the
    remaining fields.
    """
    return kind(**{name: row[name] for name in kind.__dataclass_fields__ if name not in others}, **others)


def to_values(value: AnyDataclass, **others: object) -> dict[str, object]:
    """Return a dataclass's fields as values for a statement. ``others`` overrides fields or adds values."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__} | others


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """Timeouts and connection counts of one set of connections to the database."""

    connect: timedelta = timedelta(seconds=5)
    statement: timedelta = timedelta(seconds=30)  # timeout of a statement, enforced by the server
    lock: timedelta = timedelta(seconds=10)  # maximum wait for a connection, for the writer or for a row lock
    idle_in_transaction: timedelta = timedelta(seconds=10)
    readers: int = 4  # SQLite: maximum number of read connections; if it is 0, the connection that writes also reads
    pool: int = 5  # PostgreSQL: maximum number of connections
    ready: int = 1  # PostgreSQL: connections created when the database opens
    name: str = "batuta"  # PostgreSQL: application_name of the connections
    # PostgreSQL: extra time that the client waits after the server's timeout. None means a quarter of that timeout.
    margin: timedelta | None = None

    @property
    def answer(self) -> timedelta:
        """How long the client waits for a statement. This time exceeds the server's timeout, so that the server times
        out first and the connection stays usable.
        """
        return self.statement + (self.statement / 4 if self.margin is None else self.margin)

    @property
    def row_lock(self) -> timedelta:
        """The server's timeout for row locks. It is shorter than the statement timeout, because a statement-timeout
        error would not mention the lock.
        """
        return min(self.lock, self.statement / 2)


class ChangeListener(Protocol):
    """Receives notifications about new work from any process. The owner calls ``probe`` once in every interval
    ``period``.
    """

    period: timedelta

    async def probe(self) -> None:
        """Check that the listener works, and deliver pending changes. Raises an error if the listener is broken."""
        ...

    async def close(self) -> None: ...


class Reading(Protocol):
    """The interface for queries that only read."""

    async def all(self, query: Query, **values: object) -> list[Row]: ...
    async def one(self, query: Query, **values: object) -> Row | None:
        return next(iter(await self.all(query, **values)), None)


CLOCK = Query("clock", "SELECT clock_timestamp() AS now", (), writes=False)


async def read_clock(within: Reading) -> datetime:
    """Return the current time by PostgreSQL's clock (not the transaction's start time)."""
    row = await within.one(CLOCK)
    assert row is not None
    now: datetime = row["now"]
    return now


class Statements(Protocol):
    """Executes queries and statements one after another, in a thread of the database (``Database.perform``)."""

    def one(self, query: Query, **values: object) -> Row | None: ...
    def run(self, query: Query, **values: object) -> int:
        """Execute a statement and return the number of affected rows."""
        ...


class Transaction(Reading, Protocol):
    """The interface for queries and statements that are committed together."""

    async def run(self, query: Query, **values: object) -> int:
        """Execute a statement and return the number of affected rows."""
        ...

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None: ...

    async def script(self, text: str) -> None:
        """Execute several statements without a time limit, for migrations."""
        ...

    def notify(self, queue: str | None) -> None:
        """Wake a queue's workers in every process after the commit; None means all queues. On PostgreSQL the call is
        unnecessary, because the statements that enqueue work contain ``pg_notify``.
        """
        return


class Database(Transaction, Protocol):
    """A database that executes queries and transactions. Each call outside a transaction block is a separate
    transaction, which is synced to disk when the call returns. On SQLite, concurrent calls share a commit.
    """

    @property
    def where(self) -> str:
        """The database's address without its password, for messages."""
        ...

    @property
    def dialect(self) -> Dialect: ...
    async def open(self) -> None: ...
    async def exists(self) -> bool:
        """Return whether the database exists. Opening creates a missing SQLite file. On PostgreSQL the result is always
        True.
        """
        ...

    async def close(self) -> None: ...

    def check_free(self) -> None:
        """Raise TransactionMisuse if the current asyncio task has an open transaction. Without this check, a task with
        an open transaction could wait for another task's write, and the two tasks could deadlock.
        """
        ...

    def check_file(self) -> None:
        """Raise StoreReplaced if the open database is a file that was deleted or replaced. Thread-safe."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction that commits if the block succeeds. Inside the block, run all statements through this
        transaction and do not open a second one.
        """
        ...

    async def perform(self, steps: Callable[[Statements], Result]) -> Result:
        """Call ``steps`` in the thread that writes to the SQLite file, in one transaction, and return its result after
        the commit. If ``steps`` raises a ``BatutaError``, undo all changes made by ``steps`` and raise the same error.

        Unlike in a ``transaction`` block, the event loop takes no part between two statements, so the statements
        continue while the event loop is busy. PostgreSQL does not support this method.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Reading]:
        """Open a snapshot: all reads inside the block see the same state. Writers are not blocked."""
        ...

    async def listen(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        """Call ``on_change`` with a queue's name when a process enqueues work in it. The name None means that any queue
        may have changed.
        """
        ...

    async def watch(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        """Call ``on_change`` when any process has changed a row that this process is waiting for. On PostgreSQL the
        argument names the change. On SQLite the function is called after every commit, with None.
        """
        ...

    async def empty_log(self) -> bool:
        """Move the write-ahead log of SQLite into the database file, so that the log does not keep data that was
        deleted. Return False if another process was reading an old state; call the method again later.
        """
        ...

    async def lock_migrations(self, transaction: Transaction) -> None:
        """Wait until no other process is migrating, and hold the migration lock until the transaction ends."""
        ...


class Held:
    """Raises an error if an asyncio task opens a second transaction while its first one is open, because the two
    transactions could deadlock.
    """

    def __init__(self) -> None:
        self._holder: ContextVar[asyncio.Task[Any] | None] = ContextVar("holder", default=None)

    def check(self, *call: str) -> None:
        """Raise TransactionMisuse if the current task has a transaction open. ``call`` is the name of the refused call,
        for the error message.
        """
        # A task started inside the block inherits the context variable, so compare the variable's value with the
        # current task.
        if self._holder.get() is not None and self._holder.get() is asyncio.current_task():
            why = Reason(
                "transaction_open",
                "{call} needs a transaction of its own, but this task has one open (an effect runs inside a transaction,"
                " which is its argument)",
                call=" ".join(call or ("another transaction",)),
            )
            raise TransactionMisuse(why=why)

    @contextmanager
    def by_this_task(self) -> Iterator[None]:
        self.check()
        token = self._holder.set(asyncio.current_task())
        try:
            yield
        finally:
            self._holder.reset(token)


class StatementGuard:
    """Enforces the rules of one transaction or snapshot: one statement at a time, and no statement after an error."""

    def __init__(self) -> None:
        self.failed = False
        self._runs = False
        self._ended = False

    @contextmanager
    def statement(self) -> Iterator[None]:
        if self._ended:
            raise TransactionMisuse(why="the transaction has ended")
        if self._runs:
            self.failed = True
            raise ConcurrentStatements
        if self.failed:
            raise TransactionMisuse(why="a statement of this transaction failed before")
        self._runs = True
        try:
            yield
        except BaseException:
            self.failed = True
            raise
        finally:
            self._runs = False

    def end(self) -> None:
        self._ended = True

    def check_commit(self) -> None:
        if self._runs:
            raise ConcurrentStatements
        if self.failed:
            raise TransactionMisuse(why="a statement of this transaction failed, so it cannot be committed")


def check_values(query: Query, values: Values) -> Values:
    """Return the values if they match the query's parameters and every instant among them has a time zone. Otherwise
    raise StatementRefused.
    """
    if values.keys() != set(query.parameters):
        expected, given = ", ".join(query.parameters) or "nothing", ", ".join(values) or "nothing"
        raise StatementRefused(why=f"query {query.name} takes {expected} and was given {given}")
    for name, value in values.items():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise StatementRefused(why=f"query {query.name}: {name} is an instant without a zone")
    return values
