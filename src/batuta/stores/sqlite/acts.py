"""What is done on a connection, wherever that connection is: an act is made on the event loop and performed in a thread."""

import sqlite3
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, StatementRefused
from batuta.stores.sql.database import Limits, Query, Values
from batuta.stores.sqlite.connection import bound, our_name_for, time_limit

Act: TypeAlias = Callable[[sqlite3.Connection], Any]


class Acts:
    """Queries as acts: values are bound here, on the event loop; rows are read where the connection is."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock = clock
        self._limit = limits.statement

    def all(self, query: Query, values: Values) -> Act:
        ready = bound(query, values)

        def act(connection: sqlite3.Connection) -> list[Any]:
            with time_limit(connection, self._clock, self._limit):
                return connection.execute(query.text, ready).fetchall()

        return act

    def run(self, query: Query, values: Values) -> Act:
        ready = bound(query, values)

        def act(connection: sqlite3.Connection) -> int:
            with time_limit(connection, self._clock, self._limit):
                return connection.execute(query.text, ready).rowcount

        return act

    def run_many(self, query: Query, rows: Sequence[Values]) -> Act:
        ready = [bound(query, values) for values in rows]

        def act(connection: sqlite3.Connection) -> None:
            with time_limit(connection, self._clock, self._limit):
                connection.executemany(query.text, ready)

        return act


def attempt(act: Act, connection: sqlite3.Connection, where: str) -> tuple[Any, BatutaError | None]:
    try:
        return act(connection), None
    except BatutaError as error:
        return None, error
    except sqlite3.Error as error:
        return None, our_name_for(error, where)
    except Exception as error:  # noqa: BLE001 - the thread must outlive any statement, or every writer after it waits for ever
        return None, StatementRefused(why=f"{type(error).__name__} while reading its rows")


def settle(future: "Future[Any]", result: object, error: BatutaError | None) -> None:
    """On the event loop. A future that is done was cancelled by its caller; what was committed stays committed."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
