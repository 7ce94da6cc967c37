"""SQLite connections: their pragmas, types, time limits and errors. An *act* is a function that a thread runs on a
connection.
"""

import sqlite3
from asyncio import Future
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

from batuta.kernel.clock import Clock, in_microseconds, instant, microseconds
from batuta.kernel.errors import (
    BatutaError,
    FileReadOnly,
    FolderMissing,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    StoreUnavailable,
)
from batuta.kernel.reasons import reason_of_os_error
from batuta.kernel.storage.json import dumps, loads
from batuta.stores.sql.database import AsJson, ConnectionLimits, Query, Row, Values, check_values
from batuta.stores.sqlite.identity import OpenFile
from batuta.stores.sqlite.operator_sql import local_day

# Number of SQLite virtual-machine steps between two checks of the time limit. That many steps take about a millisecond.
STEPS_BETWEEN_CHECKS = 50_000

_UNAVAILABLE = {"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOMEM", "SQLITE_PROTOCOL"}
_READ_ONLY = {"SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH"}
_BROKEN = {"SQLITE_CORRUPT", "SQLITE_NOTADB"}


def prepare(file: Path, *, makes_folder: bool) -> None:
    """Create the database file, readable only by its owner. If ``makes_folder`` is true, also create its folders.

    Without ``makes_folder`` the folder must exist, so that a misspelt path raises an error instead of creating a new,
    empty database.
    """
    register_types()
    try:
        if makes_folder:
            file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600, exist_ok=True)
    except OSError as error:
        if not file.parent.exists():
            raise FolderMissing(folder=str(file.parent.absolute())) from None
        raise FileReadOnly(where=str(file.absolute()), why=reason_of_os_error(error)) from None


def open_connection(file: Path, clock: Clock, limits: ConnectionLimits, *, writes: bool) -> sqlite3.Connection:
    connection = sqlite3.connect(
        file,
        timeout=limits.lock.total_seconds(),
        isolation_level=None,  # disables implicit transactions: the driver sends BEGIN itself
        check_same_thread=False,  # one thread at a time uses the connection, but not always the same thread
        detect_types=sqlite3.PARSE_DECLTYPES | sqlite3.PARSE_COLNAMES,
        cached_statements=512,
    )
    connection.row_factory = sqlite3.Row
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    connection.create_function("now", 0, lambda: microseconds(clock.now()))
    connection.create_function("local_day", 2, local_day, deterministic=True)
    pragmas = ["foreign_keys = ON", "temp_store = MEMORY", "journal_mode = WAL"]
    # FULL: an acknowledged commit is on disk, so it survives a power failure. Deleted content is overwritten with zeros;
    # most builds of SQLite do so by default.
    pragmas += ["synchronous = FULL", "secure_delete = ON"] if writes else ["query_only = ON"]
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")
    # the first query opens the write-ahead log and its index
    connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    connection.execute("PRAGMA shrink_memory")  # the pages with the schema are not needed again
    return connection


# Connections that stay open until the process ends. Closing them would write a log that was deleted or replaced into
# the database.
_ABANDONED: list[sqlite3.Connection] = []


def close(connection: sqlite3.Connection, file: OpenFile) -> None:
    """Close a connection without damaging a file that has replaced the open database file.

    If the database file was replaced, write the write-ahead log into the old file and then delete the log. Otherwise
    SQLite would apply the log to the new file. If only the log was deleted or replaced, keep the connection open until
    the process ends.
    """
    if file.find_loss() is None:
        connection.close()
    elif file.is_in_place:
        _ABANDONED.append(connection)
    else:
        if file.keeps_log:
            with suppress(sqlite3.Error):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if file.has_successor:
            file.remove_stale_log()
        connection.close()  # after a move of the file, SQLite does not checkpoint on close


@contextmanager
def time_limit(connection: sqlite3.Connection, clock: Clock, limit: timedelta | None) -> Iterator[None]:
    """Interrupt a statement that is still running when the time ``limit`` has passed since the block began. None means
    no limit.
    """
    if limit is None:
        yield
        return
    ends = clock.monotonic() + limit.total_seconds()
    connection.set_progress_handler(lambda: clock.monotonic() > ends, STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)


def bind(query: Query, values: Values) -> Mapping[str, object]:
    return {name: plain(value) for name, value in check_values(query, values).items()}


def plain(value: object) -> object:
    match value:
        case None | str() | int() | float() | bytes():
            return value
        case datetime():
            return microseconds(value)
        case timedelta():
            return in_microseconds(value)
        case date():
            return value.isoformat()
        case AsJson(value=None):
            return None
        case AsJson(value=json):
            return dumps(json)
        case Decimal() | UUID():
            return str(value)
        case list() | tuple():
            return dumps(value)  # a JSON list for json_each(:ids), the equivalent of PostgreSQL's = ANY(:ids)
        case _:
            raise StatementRefused(why=f"a {type(value).__name__} cannot be stored")


def register_types() -> None:
    """Register decoders for declared column types, because SQLite stores these types as text or numbers."""
    sqlite3.register_converter("TIMESTAMPTZ", _none_if_invalid(lambda raw: instant(int(raw))))
    sqlite3.register_converter("JSONB", _none_if_invalid(loads))
    sqlite3.register_converter("BOOLEAN", lambda raw: raw != b"0")
    sqlite3.register_converter("DATE", _none_if_invalid(lambda raw: date.fromisoformat(raw.decode())))


def _none_if_invalid(read: Callable[[bytes], object]) -> Callable[[bytes], object]:
    """Wrap a decoder so that it returns None for an invalid value, such as a value that was edited by hand, instead of
    making the whole query fail.
    """

    def lenient(raw: bytes) -> object:
        try:
            return read(raw)
        except ValueError:
            return None

    return lenient


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise to_batuta_error(error, where) from error


def to_batuta_error(error: sqlite3.Error, where: str) -> BatutaError:
    code: str = getattr(error, "sqlite_errorname", "") or ""
    primary = "_".join(code.split("_")[:2])
    why = str(error)
    if isinstance(error, sqlite3.IntegrityError):
        return StoreConflict(why=why)
    if primary == "SQLITE_INTERRUPT":
        return StoreTimeout(where=where, why="the statement took too long")
    if primary == "SQLITE_BUSY":
        return StoreTimeout(where=where, why="another process is writing")
    if primary in _UNAVAILABLE:
        return StoreUnavailable(where=where, why=why)
    if primary in _READ_ONLY:
        return FileReadOnly(where=where, why=why)
    if primary in _BROKEN:
        return StoreUnavailable(where=where, why=f"{why}: restore a backup, or name another file in DATABASE_URL")
    return StatementRefused(why=why)


Act: TypeAlias = Callable[[sqlite3.Connection], Any]


class ActFactory:
    """Converts queries into acts (functions that a thread runs on a connection). Values are converted on the event
    loop; rows are read in the thread.
    """

    def __init__(self, clock: Clock, limits: ConnectionLimits) -> None:
        self._clock = clock
        self._limit = limits.statement

    def all(self, query: Query, values: Values) -> Act:
        ready = bind(query, values)

        def act(connection: sqlite3.Connection) -> list[Any]:
            with time_limit(connection, self._clock, self._limit):
                return connection.execute(query.text, ready).fetchall()

        return act

    def run(self, query: Query, values: Values) -> Act:
        ready = bind(query, values)

        def act(connection: sqlite3.Connection) -> int:
            with time_limit(connection, self._clock, self._limit):
                return connection.execute(query.text, ready).rowcount

        return act

    def run_many(self, query: Query, rows: Sequence[Values]) -> Act:
        ready = [bind(query, values) for values in rows]

        def act(connection: sqlite3.Connection) -> None:
            with time_limit(connection, self._clock, self._limit):
                connection.executemany(query.text, ready)

        return act


class StatementsInThread:
    """Executes queries on a connection, in the thread that uses the connection."""

    def __init__(self, connection: sqlite3.Connection, acts: ActFactory) -> None:
        self._connection = connection
        self._acts = acts

    def one(self, query: Query, **values: object) -> Row | None:
        rows: list[Row] = self._acts.all(query, values)(self._connection)
        return rows[0] if rows else None

    def run(self, query: Query, **values: object) -> int:
        touched: int = self._acts.run(query, values)(self._connection)
        return touched


def attempt(act: Act, connection: sqlite3.Connection, where: str) -> tuple[Any, BatutaError | None]:
    try:
        return act(connection), None
    except BatutaError as error:
        return None, error
    except sqlite3.Error as error:
        return None, to_batuta_error(error, where)
    except Exception as error:  # noqa: BLE001 - the thread must outlive any statement, or every later writer waits without end
        return None, StatementRefused(why=f"{type(error).__name__} while reading its rows")


def settle(future: "Future[Any]", result: object, error: BatutaError | None) -> None:
    """Set a future's result or error, on the event loop. If the future's caller was cancelled, do nothing."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
