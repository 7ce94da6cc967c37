"""The Database interface on PostgreSQL. Error messages omit the server's DETAIL line, because it may contain a phone
number.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import asyncpg

from batuta.kernel.clock import instant, microseconds
from batuta.kernel.errors import (
    BatutaError,
    ConcurrentStatements,
    PoolerNotDeclared,
    RowLocked,
    StatementRefused,
    StoreConflict,
    StoreNotOpen,
    StoreReadOnly,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
)
from batuta.kernel.storage.json import dumps, loads
from batuta.stores.postgres.server import REFUSED_PARAMETER, BehindPooler, PostgresServer
from batuta.stores.sql.database import (
    AsJson,
    ChangeListener,
    ConnectionLimits,
    Dialect,
    Held,
    Query,
    Reading,
    Result,
    Row,
    StatementGuard,
    Statements,
    Transaction,
    Values,
    check_values,
)

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Pooled: TypeAlias = PoolConnectionProxy[asyncpg.Record]
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record] | Pooled

DRIVERS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
_TIMEOUT = (
    TimeoutError,
    asyncpg.QueryCanceledError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_UNAVAILABLE = (
    OSError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,  # a deadlock or a serialisation failure, after which a retry can succeed
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InternalClientError,
)


@contextmanager
def translate_errors(where: str, *, connecting: bool = False) -> Iterator[None]:
    """Translate driver errors into the engine's errors. If ``connecting`` is true, every error becomes
    StoreUnavailable.
    """
    try:
        yield
    except DRIVERS as error:
        named = to_batuta_error(error, where)
        if connecting and not isinstance(named, StoreUnavailable):
            named = StoreUnavailable(where=where, why=_first_line(error))
        raise named from error


def to_batuta_error(error: Exception, where: str) -> BatutaError:
    why = getattr(error, "message", None) or _first_line(error)
    if isinstance(error, asyncpg.IntegrityConstraintViolationError):
        return StoreConflict(why=f"{error.constraint_name or error.column_name} of {error.table_name}")
    if isinstance(error, asyncpg.InFailedSQLTransactionError):
        return TransactionMisuse(why="a statement of this transaction failed before")
    if isinstance(error, asyncpg.LockNotAvailableError):
        return RowLocked(where=where, why=why or "no answer")
    if type(error) is TimeoutError:  # the client's own timeout, which is longer than the server's timeouts
        return StoreTimeout(where=where, why="no answer from the server")
    if isinstance(error, _TIMEOUT):
        return StoreTimeout(where=where, why=why or "no answer")
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return StoreReadOnly(where=where, why=why)
    if isinstance(error, asyncpg.DataError):
        return StatementRefused(why=type(error).__name__)
    if isinstance(error, asyncpg.InterfaceError):
        return _classify_interface_error(why) or StoreUnavailable(where=where, why=why)
    if isinstance(error, asyncpg.InvalidSQLStatementNameError | asyncpg.DuplicatePreparedStatementError):
        return PoolerNotDeclared(where=where, why=why)
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(where=where, why=why)
    return StatementRefused(why=why)


def _classify_interface_error(why: str) -> BatutaError | None:
    """Classify an asyncpg InterfaceError by its message, because such errors have no code. Return None if the message
    means that the connection was lost.
    """
    if "another operation is in progress" in why:
        return ConcurrentStatements()
    # asyncpg returns a lost connection to its pool, even within a transaction, and later calls fail with these
    # messages.
    if any(word in why for word in ("closed", "closing", "released back to the pool")):
        return None
    return StatementRefused(why=why)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


# Key of the advisory lock that a migrating process holds. The number is arbitrary, but the same in every process.
MIGRATION_LOCK = 7_211_405_563
CHANNEL = "batuta"
NOT_DIRECT = "its address for LISTEN leads to a transaction pooler: correct DATABASE_DIRECT_URL"
_READ_ONE_STATE = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
NO_LIMIT = 24 * 3600.0
# How many seconds a cancelled task waits for its rollback; after that, the rollback continues in the background.
CLEAN_UP_WITHIN = 1.0
# PostgreSQL counts microseconds from the year 2000.
_SINCE_2000 = microseconds(datetime(2000, 1, 1, tzinfo=UTC))


class PostgresDatabase(Transaction):
    dialect: Dialect = "postgres"

    def __init__(self, server: PostgresServer, limits: ConnectionLimits | Callable[[], ConnectionLimits]) -> None:
        """Create a database that is not open yet. ``limits`` may be a function, which is called each time the database
        opens.
        """
        self.server = server
        self.where = server.where
        self._limits_at_opening = limits if callable(limits) else lambda: limits
        self._limits = ConnectionLimits()
        self._held = Held()
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None
        self._cleaning: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._limits = self._limits_at_opening()
        with translate_errors(self.where, connecting=True):
            try:
                self._pool = await self._new_pool()
            except (BehindPooler, asyncpg.PostgresError) as error:
                if not isinstance(error, BehindPooler) and not self.server.refuses_parameters(error):
                    raise
                self.server.is_pooled = True
                self._pool = await self._new_pool()
            except ValueError as error:  # asyncpg cannot parse the address
                raise StoreUnavailable(where=self.where, why=str(error)) from None

    async def _new_pool(self) -> "asyncpg.Pool[asyncpg.Record]":
        limits, server = self._limits, self.server
        return await asyncpg.create_pool(
            server.url,
            # At least one connection is opened immediately, to detect a pooler.
            min_size=max(limits.ready, 1 if server.is_pooled is None else 0),
            max_size=limits.pool,
            timeout=limits.connect.total_seconds(),
            command_timeout=limits.answer.total_seconds(),
            connect=_connect,
            init=self._prepare,
            reset=_skip_reset,
            **server.connecting(limits),
        )

    async def _prepare(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        await self.server.recognise(connection)
        await _register_types(connection)

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        try:
            async with asyncio.timeout(self._limits.lock.total_seconds()):
                await pool.close()
        except TimeoutError:
            pool.terminate()

    async def all(self, query: Query, **values: object) -> list[Row]:
        if self.server.is_pooled:
            async with self.transaction() as transaction:
                return await transaction.all(query, **values)
        self._held.check("statement", query.name)
        async with self._connection() as connection:
            return await PostgresTransaction(connection, self.where).all(query, **values)

    async def run(self, query: Query, **values: object) -> int:
        if self.server.is_pooled:
            async with self.transaction() as transaction:
                return await transaction.run(query, **values)
        self._held.check("statement", query.name)
        async with self._connection() as connection:
            return await PostgresTransaction(connection, self.where).run(query, **values)

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        async with self.transaction() as transaction:
            await transaction.run_many(query, rows)

    async def script(self, text: str) -> None:
        async with self.transaction() as transaction:
            await transaction.script(text)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        with self._held.by_this_task():
            committed = False
            async with self._connection(is_done=lambda: committed) as connection:
                transaction = PostgresTransaction(connection, self.where)
                try:
                    await transaction.begin(self.server.beginning("BEGIN", self._limits))
                    yield transaction
                    transaction.guard.check_commit()
                finally:
                    transaction.guard.end()
                with translate_errors(self.where):
                    await connection.execute("COMMIT")
                committed = True

    async def perform(self, steps: Callable[[Statements], Result]) -> Result:
        raise StatementRefused(why="PostgreSQL executes statements one by one: use transaction()")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Reading]:
        with self._held.by_this_task():
            async with self._connection(is_done=lambda: False) as connection:
                snapshot = PostgresSnapshot(connection, self.where)
                await snapshot.begin(self.server.beginning(_READ_ONE_STATE, self._limits))
                yield snapshot

    async def listen(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        url = self.server.listens_at
        if url is None:
            return TimerListener(on_change)
        try:
            with translate_errors(self.where, connecting=True):
                return await self._open_listener(url, on_change)
        except StoreUnavailable as error:
            if self.server.direct_url is None or REFUSED_PARAMETER not in str(error):
                raise
            raise StoreUnavailable(where=self.where, why=NOT_DIRECT) from error

    async def watch(self, on_change: Callable[[str | None], None]) -> ChangeListener:
        return await self.listen(on_change)

    async def _open_listener(self, url: str, on_change: Callable[[str | None], None]) -> ChangeListener:
        connection = await _connect(
            url,
            timeout=self._limits.connect.total_seconds(),
            command_timeout=self._limits.lock.total_seconds(),
            statement_cache_size=0,
            server_settings={"application_name": "batuta-listener"},
        )
        listener = PostgresListener(connection, self.where)
        try:
            await connection.add_listener(CHANNEL, lambda _connection, _pid, _channel, payload: on_change(str(payload)))
            # Notifications may have been lost together with the connection.
            connection.add_termination_listener(lambda _connection: on_change(None))
            await listener.probe()
        except BaseException:
            connection.terminate()
            raise
        return listener

    @asynccontextmanager
    async def dedicated_connection(self) -> "AsyncIterator[asyncpg.Connection[asyncpg.Record]]":
        """Yield a connection outside the pool, without statement timeouts. Behind a transaction pooler, use it for one
        transaction only.
        """
        server = self.server
        if server.is_pooled is None:  # the pool was never opened: open it once to detect a pooler
            await self.open()
            await self.close()
        through_pooler = server.is_pooled and server.direct_url is None
        settings = {} if through_pooler else {"application_name": "batuta-backup", "timezone": "UTC"}
        with translate_errors(self.where, connecting=True):
            connection = await _connect(
                server.direct_url or server.url,
                timeout=self._limits.connect.total_seconds(),
                statement_cache_size=0,
                server_settings=settings,
            )
        try:
            await _register_types(connection)
            yield connection
        finally:
            connection.terminate()

    async def exists(self) -> bool:
        """Return True without asking the server. If the database does not exist, opening it raises an error instead of
        creating it.
        """
        return True

    def check_free(self) -> None:
        self._held.check("enqueue()")

    def check_file(self) -> None:
        """Do nothing: PostgreSQL has no local file to check, and the next statement detects a lost connection."""

    async def empty_log(self) -> bool:
        """Do nothing, because only the server can remove data from its write-ahead log."""
        return True

    async def lock_migrations(self, transaction: Transaction) -> None:
        await transaction.script(
            f"SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; SELECT pg_advisory_xact_lock({MIGRATION_LOCK});"
        )

    @asynccontextmanager
    async def _connection(self, is_done: Callable[[], bool] = lambda: True) -> "AsyncIterator[Pooled]":
        """Yield a connection from the pool. At the end of the block, the function ``is_done`` is called: if it returns
        False, a transaction is still open and is rolled back.
        """
        pool = self._pool
        if pool is None:
            raise StoreNotOpen(where=self.where)
        timeout = self._limits.lock.total_seconds()
        with translate_errors(self.where):
            try:
                # Use asyncio.timeout, because the pool's own timeout creates a task for every call.
                async with asyncio.timeout(timeout):
                    connection = await pool.acquire()
            except TimeoutError:
                raise StoreTimeout(where=self.where, why="no connection became available in time") from None
        try:
            if self._pool is not pool:
                connection.terminate()  # the pool may have opened this connection after closing all others
                raise StoreUnavailable(where=self.where, why="it was closed")
            yield connection
        except asyncio.CancelledError:
            await self._clean_up(self._release(pool, connection) if is_done() else self._undo(pool, connection))
            raise
        except BaseException:
            await (self._release(pool, connection) if is_done() else asyncio.shield(self._undo(pool, connection)))
            raise
        # asyncpg already shields the release from cancellation; another shield would cost a task and two more
        # iterations of the event loop.
        await (self._release(pool, connection) if is_done() else asyncio.shield(self._undo(pool, connection)))

    async def _clean_up(self, work: Coroutine[Any, Any, None]) -> None:
        """Wait for a cancelled statement's rollback, but only briefly, so that an unresponsive server does not block
        the cancelled task.
        """
        task = asyncio.create_task(work)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)
        await asyncio.wait([task], timeout=CLEAN_UP_WITHIN)

    async def _release(self, pool: "asyncpg.Pool[asyncpg.Record]", connection: "Pooled") -> None:
        with suppress(*DRIVERS):
            await pool.release(connection)

    async def _undo(self, pool: "asyncpg.Pool[asyncpg.Record]", connection: "Pooled") -> None:
        """Roll back and release the connection. Errors are ignored: if the rollback fails, the connection is closed, so
        the server rolls back.
        """
        try:
            # Send ROLLBACK even if no transaction is known, because a cancelled BEGIN may still reach the server.
            await connection.execute("ROLLBACK")
        except DRIVERS:
            with suppress(asyncpg.InterfaceError):  # the connection was lost and is already released
                connection.terminate()
        await self._release(pool, connection)


class PostgresListener:
    """A connection that receives notifications. ``probe`` detects a connection that has broken silently, and a session
    that a pooler has replaced.
    """

    period = timedelta(seconds=15)

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]", where: str) -> None:
        self._connection = connection
        self._where = where

    async def probe(self) -> None:
        with translate_errors(self._where):
            listens = await self._connection.fetchval("SELECT $1 IN (SELECT pg_listening_channels())", CHANNEL)
        if not listens:
            raise StoreUnavailable(where=self._where, why=NOT_DIRECT)

    async def close(self) -> None:
        self._connection.terminate()


class TimerListener:
    """A substitute for PostgresListener on connections that do not support LISTEN. It reports a possible change every
    second, so that new work starts within a second.
    """

    period = timedelta(seconds=1)

    def __init__(self, on_change: Callable[[str | None], None]) -> None:
        self._on_change = on_change
        self._timer = self._next()

    def _next(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self.period.total_seconds(), self._notify)

    def _notify(self) -> None:
        self._timer = self._next()
        self._on_change(None)

    async def probe(self) -> None:
        """Do nothing, because this listener uses a timer and has no connection that could break."""

    async def close(self) -> None:
        self._timer.cancel()


class PostgresTransaction(Transaction):
    def __init__(self, connection: "Connection", where: str) -> None:
        self._connection = connection
        self._where = where
        self.guard = StatementGuard()

    async def begin(self, statement: str) -> None:
        with self._statement():
            await self._connection.execute(statement)

    async def all(self, query: Query, **values: object) -> list[Row]:
        arguments = _order_values(query, values)
        with self._statement():
            return cast("list[Row]", await self._connection.fetch(query.text, *arguments))

    async def run(self, query: Query, **values: object) -> int:
        arguments = _order_values(query, values)
        with self._statement():
            return _row_count(await self._connection.execute(query.text, *arguments))

    async def run_many(self, query: Query, rows: Sequence[Values]) -> None:
        arguments = [_order_values(query, values) for values in rows]
        with self._statement():
            await self._connection.executemany(query.text, arguments)

    async def script(self, text: str) -> None:
        with self._statement():
            await self._connection.execute(text, timeout=NO_LIMIT)

    @contextmanager
    def _statement(self) -> Iterator[None]:
        with self.guard.statement(), translate_errors(self._where):
            yield


class PostgresSnapshot(Reading):
    def __init__(self, connection: "Connection", where: str) -> None:
        self._inner = PostgresTransaction(connection, where)

    async def begin(self, statement: str) -> None:
        await self._inner.begin(statement)

    async def all(self, query: Query, **values: object) -> list[Row]:
        if query.writes:
            raise StatementRefused(why=f"query {query.name} writes, and a snapshot only reads")
        return await self._inner.all(query, **values)


def _order_values(query: Query, values: Values) -> list[object]:
    given = check_values(query, values)
    ordered = (given[name] for name in query.parameters)
    return [value.value if isinstance(value, AsJson) else value for value in ordered]


def _row_count(tag: str) -> int:
    """Return the row count at the end of a command tag, as in ``UPDATE 3`` or ``INSERT 0 1``."""
    last = tag.rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


async def _connect(*where: Any, **how: Any) -> "asyncpg.Connection[asyncpg.Record]":
    """Connect in a separate task. Cancelling ``asyncpg.connect`` itself would raise an error in the background, where
    no caller can catch it.
    """
    making = asyncio.create_task(asyncpg.connect(*where, **how))
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_terminate)
        raise


def _terminate(made: "asyncio.Task[asyncpg.Connection[asyncpg.Record]]") -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().terminate()


async def _register_types(connection: "Connection") -> None:
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=dumps, decoder=loads)
    await connection.set_type_codec("uuid", schema="pg_catalog", encoder=str, decoder=str)
    # asyncpg cannot decode instants outside Python's calendar, and one undecodable instant would fail the whole result.
    await connection.set_type_codec(
        "timestamptz", schema="pg_catalog", format="tuple", encoder=_encode_instant, decoder=_decode_instant
    )


def _encode_instant(instant: datetime) -> tuple[int]:
    return (microseconds(instant) - _SINCE_2000,)


def _decode_instant(counted: tuple[int]) -> datetime:
    return instant(counted[0] + _SINCE_2000)


async def _skip_reset(connection: "Connection") -> None:
    """Do nothing. asyncpg calls this function to reset a connection before it returns to the pool, but no session state
    survives a transaction, so there is nothing to reset.
    """
