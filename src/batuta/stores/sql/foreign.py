"""Enqueues tasks in a transaction that the caller opened with another library, so that the tasks and the caller's own
changes are committed together or not at all.

    async with pool.acquire() as connection, connection.transaction():   # asyncpg
        await connection.execute("INSERT INTO orders …")
        await enqueue_in(connection, charge, order)

``enqueue_in`` takes an asyncpg connection, an async psycopg connection, an SQLAlchemy ``AsyncSession`` or
``AsyncConnection``, or one of the engine's own transactions. ``enqueue_in_sync`` takes a psycopg, sqlite3 or Django
connection, or an SQLAlchemy ``Session`` or ``Connection``. The engine executes its statements through the object that
the caller passes, and neither commits nor rolls back.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from typing import Any, ParamSpec, TypeVar

from batuta.kernel.clock import SystemClock, microseconds
from batuta.kernel.errors import ForeignConnection, TransactionMisuse
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import dumps
from batuta.stores.sql.database import AsJson, Dialect, Query, Row, Transaction, Values, check_values
from batuta.tasks.handle import Handle
from batuta.tasks.task import NO_OPTIONS, BoundTask, Task

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_PLACE = re.compile(r"\$(\d+)")
_NOW = re.compile(r"\bnow\(\)")


async def enqueue_in(
    connection: object, task: Task[P, R] | BoundTask[P, R], *arguments: P.args, **named: P.kwargs
) -> Handle[R]:
    """Enqueue a call in the open transaction of an asyncpg, async psycopg or async SQLAlchemy connection or session, or
    in a transaction of ``work.database``.
    """
    within = connection if _is_own_transaction(connection) else _open(connection, is_sync=False)
    return await _bind(task).enqueue_within(within, *arguments, **named)


def enqueue_in_sync(
    connection: object, task: Task[P, R] | BoundTask[P, R], *arguments: P.args, **named: P.kwargs
) -> Handle[R]:
    """Enqueue a call in the open transaction of a psycopg, SQLAlchemy, Django or sqlite3 connection or session."""
    return _run_now(_bind(task).enqueue_within(_open(connection, is_sync=True), *arguments, **named))


def _bind(task: Task[P, R] | BoundTask[P, R]) -> BoundTask[P, R]:
    return task if isinstance(task, BoundTask) else BoundTask(task, NO_OPTIONS)


def _is_own_transaction(connection: object) -> bool:
    """Return whether the object is one of the engine's own transactions. The result is False for a Database object,
    because it commits each statement.
    """
    return Transaction in type(connection).__mro__ and not hasattr(connection, "transaction")


def _run_now(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine without an event loop and return its value. The coroutine must never wait, which is guaranteed if
    a synchronous connection executes its statements.
    """
    try:
        work.send(None)
    except StopIteration as done:
        value: T = done.value
        return value
    work.close()
    raise RuntimeError("the call waited for an event loop: use enqueue_in in asynchronous code")


# A statement's rows, with values by column name, and the number of affected rows.
Answer = tuple[list[dict[str, Any]], int]
Execute = Callable[[str, Mapping[str, Any]], Awaitable[Answer]]


class ForeignTransaction(Transaction):
    """A transaction of the engine whose statements run on another library's connection, in the transaction that the
    caller opened there.
    """

    def __init__(self, dialect: Dialect, execute: Execute) -> None:
        self.dialect = dialect
        self._execute = execute

    async def all(self, query: Query, **values: object) -> list[Row]:
        rows, _ = await self._execute(*render(query, values, self.dialect))
        return rows  # type: ignore[return-value]

    async def run(self, query: Query, **values: object) -> int:
        _, touched = await self._execute(*render(query, values, self.dialect))
        return touched

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        for values in rows:
            await self.run(query, **values)

    async def script(self, text: str) -> None:
        raise TransactionMisuse(why="a connection of another library runs no migrations")


def render(query: Query, values: Values, dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """Return the statement with ``:name`` placeholders, and its values as plain strings and numbers.

    On PostgreSQL every value is passed as a string and converted by a cast, so that all drivers encode it in the same
    way, even if the caller has registered codecs. On SQLite a value replaces the function ``now()``, which the caller's
    connection does not define.
    """
    check_values(query, values)
    if dialect == "sqlite":
        given = {name: _for_sqlite(value) for name, value in values.items()}
        if given.get("now", 0) is None:
            given["now"] = microseconds(SystemClock().now())
        return _NOW.sub(":now", query.text), given
    casts = {name: _for_postgres(value) for name, value in values.items()}
    places = [casts[name][0].format(name=name) for name in query.parameters]
    text = _PLACE.sub(lambda place: places[int(place[1]) - 1], query.text)
    return text, {name: value for name, (_, value) in casts.items() if value is not None}


def _for_sqlite(value: object) -> Any:
    match value:
        case AsJson(value=None):
            return None
        case AsJson(value=json):
            return dumps(json)
        case datetime():
            return microseconds(value)
        case _:
            return value


def _for_postgres(value: object) -> tuple[str, str | None]:
    """Return the SQL expression for a value on PostgreSQL, and the string that is passed for its placeholder."""
    match value:
        case None | AsJson(value=None):
            return "NULL", None
        case AsJson(value=json):
            return "CAST(CAST(:{name} AS text) AS jsonb)", dumps(json)
        case datetime():
            return "CAST(CAST(:{name} AS text) AS timestamptz)", value.isoformat()
        case int():
            return "CAST(CAST(:{name} AS text) AS bigint)", str(value)
        case _:
            return "CAST(:{name} AS text)", str(value)


def _open(connection: Any, *, is_sync: bool) -> ForeignTransaction:
    """Return the transaction for a connection. The module name of the connection's class reveals its library, so the
    engine need not import that library.
    """
    modules = {kind.__module__.partition(".")[0] for kind in type(connection).__mro__}
    names = {kind.__name__ for kind in type(connection).__mro__}
    opened: ForeignTransaction | None = None
    if is_sync:
        if "sqlalchemy" in modules and not names & {"AsyncSession", "AsyncConnection", "async_scoped_session"}:
            opened = _of_sqlalchemy(connection)
        elif "psycopg" in modules and "AsyncConnection" not in names:
            opened = ForeignTransaction("postgres", _now(lambda text, values: _by_cursor(connection, text, values)))
        elif "django" in modules:
            dialect: Dialect = "sqlite" if connection.vendor == "sqlite" else "postgres"
            opened = ForeignTransaction(dialect, _now(lambda text, values: _by_cursor(connection, text, values)))
        elif "sqlite3" in modules:
            opened = ForeignTransaction("sqlite", _now(lambda text, values: _by_sqlite(connection, text, values)))
    elif "asyncpg" in modules:
        opened = ForeignTransaction("postgres", lambda text, values: _by_asyncpg(connection, text, values))
    elif "psycopg" in modules and "AsyncConnection" in names:
        opened = ForeignTransaction("postgres", lambda text, values: _by_async_cursor(connection, text, values))
    elif "sqlalchemy" in modules and names & {"AsyncSession", "AsyncConnection", "async_scoped_session"}:
        opened = _of_async_sqlalchemy(connection)
    if opened is None:
        other = "enqueue_in" if is_sync else "enqueue_in_sync"
        why = Reason(
            "foreign_unknown",
            "pass a connection or session of asyncpg, psycopg, SQLAlchemy, Django or sqlite3, or use {other}",
            other=other,
        )
        raise ForeignConnection(kind=type(connection).__qualname__, why=why)
    return opened


def _now(execute: Callable[[str, Mapping[str, Any]], Answer]) -> Execute:
    async def call(text: str, values: Mapping[str, Any]) -> Answer:
        return execute(text, values)

    return call


def _percent(text: str) -> str:
    """Convert a statement's placeholders to ``%(name)s``, the style that psycopg and Django use."""
    return re.sub(r"(?<![:\w]):([a-z_]\w*)", r"%(\1)s", text.replace("%", "%%"))


def _answer(cursor: Any) -> Answer:
    columns = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()] if columns else []
    return _with_text_ids(rows), cursor.rowcount


def _with_text_ids(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert ids to text, as the engine's own drivers do."""
    return [{**row, "id": str(row["id"])} if "id" in row else row for row in rows]


def _by_cursor(connection: Any, text: str, values: Mapping[str, Any]) -> Answer:
    with connection.cursor() as cursor:
        cursor.execute(_percent(text), values)
        return _answer(cursor)


def _by_sqlite(connection: Any, text: str, values: Mapping[str, Any]) -> Answer:
    cursor = connection.execute(text, values)
    return _answer(cursor)


async def _by_async_cursor(connection: Any, text: str, values: Mapping[str, Any]) -> Answer:
    async with connection.cursor() as cursor:
        await cursor.execute(_percent(text), values)
        columns = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(columns, row, strict=True)) for row in await cursor.fetchall()] if columns else []
        return _with_text_ids(rows), cursor.rowcount


async def _by_asyncpg(connection: Any, text: str, values: Mapping[str, Any]) -> Answer:
    names = list(values)
    numbered = re.sub(r"(?<![:\w]):([a-z_]\w*)", lambda match: f"${names.index(match[1]) + 1}", text)
    rows = [dict(row) for row in await connection.fetch(numbered, *values.values())]
    return _with_text_ids(rows), len(rows)


def _of_sqlalchemy(session: Any) -> ForeignTransaction:
    from sqlalchemy import text as statement

    bind = session.get_bind() if hasattr(session, "get_bind") else session

    def execute(text: str, values: Mapping[str, Any]) -> Answer:
        return _sqlalchemy_answer(session.execute(statement(text), values))

    return ForeignTransaction(_dialect_of(bind.dialect.name), _now(execute))


def _of_async_sqlalchemy(session: Any) -> ForeignTransaction:
    from sqlalchemy import text as statement

    bind = session.get_bind() if hasattr(session, "get_bind") else session

    async def execute(text: str, values: Mapping[str, Any]) -> Answer:
        return _sqlalchemy_answer(await session.execute(statement(text), values))

    return ForeignTransaction(_dialect_of(bind.dialect.name), execute)


def _sqlalchemy_answer(result: Any) -> Answer:
    rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
    return _with_text_ids(rows), result.rowcount


def _dialect_of(name: str) -> Dialect:
    if name not in ("sqlite", "postgresql"):
        why = Reason("foreign_dialect", "its database is {name}; use a connection to SQLite or PostgreSQL", name=name)
        raise ForeignConnection(kind="SQLAlchemy", why=why)
    return "sqlite" if name == "sqlite" else "postgres"
