"""The Database interface: code above it runs on both databases.

Rows read alike: TIMESTAMPTZ is an aware UTC datetime, JSONB a Python value, BOOLEAN a bool, UUID text. Instants without a zone
are refused. Drivers' exceptions become errors of ``kernel.errors``.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from batuta.kernel.errors import ConcurrentStatements, StatementRefused, TransactionMisuse

Dialect: TypeAlias = Literal["sqlite", "postgres"]
DIALECTS: tuple[Dialect, ...] = ("sqlite", "postgres")
Values: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class AsJson:
    """A value for a JSONB column, marked because SQLite cannot tell it from the column. ``AsJson(None)`` is SQL's NULL."""

    value: object


class Row(Protocol):
    """One row by column name; ``dict(row)`` works."""

    def __getitem__(self, column: str, /) -> Any: ...  # the type depends on the column
    def keys(self) -> Collection[str]: ...


class AnyDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Value = TypeVar("Value", bound=AnyDataclass)


def from_row(kind: type[Value], row: Row, **others: object) -> Value:
    """Make a value from the columns named like its fields; ``others``: fields without such a column."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__ if name not in others}, **others)


@dataclass(frozen=True, slots=True)
class Query:
    """A named statement in one dialect. ``writes`` decides which connection runs it, whatever its text."""

    name: str
    text: str
    parameters: tuple[str, ...]
    writes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Timeouts and connection counts of one path to the database."""

    connect: timedelta = timedelta(seconds=5)
    statement: timedelta = timedelta(seconds=30)  # limit of the server
    lock: timedelta = timedelta(seconds=10)  # to get a connection, the writer or a row
    idle_in_transaction: timedelta = timedelta(seconds=10)
    readers: int = 4  # SQLite: reading connections
    pool: int = 5  # PostgreSQL: maximum of connections
    ready: int = 1  # PostgreSQL: connections made at opening
    name: str = "batuta"  # PostgreSQL: application_name of the connections

    @property
    def answer(self) -> timedelta:
        """Limit of a statement in the client: longer than the server's, whose timeout keeps the connection usable."""
        return self.statement * 1.25

    @property
    def row_lock(self) -> timedelta:
        """Limit of a row lock in the server: shorter than the statement's, whose timeout would hide the lock."""
        return min(self.lock, self.statement / 2)


class ChangeListener(Protocol):
    """Receives notice of writes by any process."""

    async def probe(self) -> None:
        """Check that the listener works, and look for changes. Raise if it is broken."""
        ...

    async def close(self) -> None: ...


class Reading(Protocol):
    """Queries that change nothing."""

    async def all(self, query: Query, **values: object) -> list[Row]: ...
    async def one(self, query: Query, **values: object) -> Row | None:
        return next(iter(await self.all(query, **values)), None)


CLOCK = Query("clock", "SELECT clock_timestamp() AS now", (), writes=False)


async def read_clock(within: Reading) -> datetime:
    """Return the present time of PostgreSQL's clock, not the start of the transaction."""
    row = await within.one(CLOCK)
    assert row is not None
    now: datetime = row["now"]
    return now


class Transaction(Reading, Protocol):
    """Queries and statements that commit together."""

    async def run(self, query: Query, **values: object) -> int:
        """Run a statement and return the number of affected rows."""
        ...

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None: ...

    async def script(self, text: str) -> None:
        """Run several statements without a time limit, for migrations."""
        ...


class Database(Transaction, Protocol):
    """Each direct call is a transaction, synced to disk on return; on SQLite, calls that wait together share a commit."""

    @property
    def where(self) -> str:
        """The address for messages, without a password."""
        ...

    @property
    def dialect(self) -> Dialect: ...
    async def open(self) -> None: ...
    async def exists(self) -> bool:
        """Return False if opening would create the database."""
        ...

    async def close(self) -> None: ...

    def check_file(self) -> None:
        """Raise StoreReplaced if the open database is a file that was deleted or replaced. Thread-safe."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """Open a transaction: all or nothing. Inside the block, use only the transaction and open no second one."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Reading]:
        """Run several reads on one state, without blocking writers."""
        ...

    async def listen(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        """Call ``on_change`` with the name that something was written for; None: possibly any name."""
        ...

    async def lock_migrations(self, transaction: Transaction) -> None:
        """Wait until no other process migrates. The lock lasts until the transaction ends."""
        ...


class Held:
    """Rejects a second transaction in a task that already has one open: the two would deadlock."""

    def __init__(self) -> None:
        self._holder: ContextVar[asyncio.Task[Any] | None] = ContextVar("holder", default=None)

    def check(self) -> None:
        # A task started inside the block inherits the variable: compare its value with the current task.
        if self._holder.get() is not None and self._holder.get() is asyncio.current_task():
            raise TransactionMisuse(why="this task has a transaction open already")

    @contextmanager
    def by_this_task(self) -> Iterator[None]:
        self.check()
        token = self._holder.set(asyncio.current_task())
        try:
            yield
        finally:
            self._holder.reset(token)


class StatementGuard:
    """Guards one transaction or snapshot: one statement at a time, and none after a failed one."""

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
    """Return the values if they are the query's parameters and every instant has a zone; raise StatementRefused otherwise."""
    if values.keys() != set(query.parameters):
        expected, given = ", ".join(query.parameters) or "nothing", ", ".join(values) or "nothing"
        raise StatementRefused(why=f"query {query.name} takes {expected} and was given {given}")
    for name, value in values.items():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise StatementRefused(why=f"query {query.name}: {name} is an instant without a zone")
    return values
