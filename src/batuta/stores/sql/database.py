"""The port. What is written once above it runs on both databases.

Rows read alike: TIMESTAMPTZ is an aware UTC datetime, JSONB a Python value, BOOLEAN a bool, UUID text. Instants without a
zone are refused at the door. Errors are ours (``kernel.errors``); no driver's exception passes.
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
    """A value for a JSONB column. SQLite cannot tell from the column that ``True`` is to be JSON, so the caller says it.

    ``AsJson(None)`` is SQL's NULL.
    """

    value: object


class Row(Protocol):
    """One row by column name; ``dict(row)`` works."""

    def __getitem__(self, column: str, /) -> Any: ...  # a driver hands us what the column holds
    def keys(self) -> Collection[str]: ...


class AnyDataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


Value = TypeVar("Value", bound=AnyDataclass)


def from_row(kind: type[Value], row: Row, **others: object) -> Value:
    """Make a value from the columns that its fields are named after; ``others`` are fields that no column is named after."""
    return kind(**{name: row[name] for name in kind.__dataclass_fields__ if name not in others}, **others)


@dataclass(frozen=True, slots=True)
class Query:
    """A named statement in one dialect. ``writes`` decides who may run it, not a look at its text."""

    name: str
    text: str
    parameters: tuple[str, ...]
    writes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Timeouts and numbers of connections of one path to the database."""

    connect: timedelta = timedelta(seconds=5)
    statement: timedelta = timedelta(seconds=30)  # the server's limit
    lock: timedelta = timedelta(seconds=10)  # to get a connection, the writer or a row
    idle_in_transaction: timedelta = timedelta(seconds=10)
    readers: int = 4  # SQLite: connections that read beside the writer
    pool: int = 5  # PostgreSQL: connections at most
    ready: int = 1  # PostgreSQL: connections made when it is opened
    name: str = "batuta"  # PostgreSQL: application_name of the connections

    @property
    def answer(self) -> timedelta:
        """The client's limit for a statement: longer than the server's, which ends the statement and keeps the connection."""
        return self.statement * 1.25

    @property
    def row_lock(self) -> timedelta:
        """The server's limit for a row lock: shorter than that of the statement, or the statement ends first and hides the lock."""
        return min(self.lock, self.statement / 2)


class ChangeListener(Protocol):
    """Hears that something was written, by whichever process."""

    async def probe(self) -> None:
        """Find out whether it still hears, or whether there is news. Raises when it has gone deaf."""
        ...

    async def close(self) -> None: ...


class Reading(Protocol):
    """Queries that change nothing."""

    async def all(self, query: Query, **values: object) -> list[Row]: ...
    async def one(self, query: Query, **values: object) -> Row | None:
        """The first row, or None."""
        return next(iter(await self.all(query, **values)), None)


CLOCK = Query("clock", "SELECT clock_timestamp() AS now", (), writes=False)


async def read_clock(within: Reading) -> datetime:
    """The time by PostgreSQL's clock: the present instant, not the beginning of the transaction."""
    row = await within.one(CLOCK)
    assert row is not None
    now: datetime = row["now"]
    return now


class Transaction(Reading, Protocol):
    """Queries and statements that are committed together."""

    async def run(self, query: Query, **values: object) -> int:
        """Rows touched."""
        ...

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None: ...

    async def script(self, text: str) -> None:
        """Several statements as they stand, without a time limit: for migrations."""
        ...


class Database(Transaction, Protocol):
    """Used directly, each call is a transaction of its own; on SQLite those that wait at the same time share a commit.

    A call returns when what it wrote is synced to disk.
    """

    @property
    def where(self) -> str:
        """The address for people: no password in it."""
        ...

    @property
    def dialect(self) -> Dialect: ...
    async def open(self) -> None: ...
    async def exists(self) -> bool:
        """False: opening would make it."""
        ...

    async def close(self) -> None: ...

    def check_file(self) -> None:
        """Raise StoreReplaced if the open database is a file and that file was deleted or replaced. Safe in any thread."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """All or nothing. Inside the block only the transaction may be used, and no second one opened."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Reading]:
        """Several reads of one state, beside the writers."""
        ...

    async def listen(self, said: Callable[[str | None], None]) -> ChangeListener:
        """``said`` is told what was rung for; None: it may be anything."""
        ...

    async def lock_migrations(self, transaction: Transaction) -> None:
        """Wait until no other process migrates; held until the transaction ends."""
        ...


class Held:
    """Knows which task has a transaction open, so that a second one is refused instead of waiting for the first for ever."""

    def __init__(self) -> None:
        self._holder: ContextVar[asyncio.Task[Any] | None] = ContextVar("holder", default=None)

    def check(self) -> None:
        # A task started inside the block inherits the variable but is somebody else: compare, do not just look.
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
    """Of one transaction or snapshot: one statement at a time, and none after one that failed."""

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
    """The values as given, if they are the ones the query names and every instant has a zone."""
    if values.keys() != set(query.parameters):
        expected, given = ", ".join(query.parameters) or "nothing", ", ".join(values) or "nothing"
        raise StatementRefused(why=f"query {query.name} takes {expected} and was given {given}")
    for name, value in values.items():
        if isinstance(value, datetime) and value.tzinfo is None:
            raise StatementRefused(why=f"query {query.name}: {name} is an instant without a zone")
    return values
