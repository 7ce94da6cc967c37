"""Labelled points around a queue's database calls. A process can exit at one of the points, as in a power cut.

The product does not contain the points; a wrapper around its database does. ``before X`` and ``after X`` surround a
statement that runs in its own transaction. ``open X`` is inside a longer transaction, before its commit. ``committed
X>Y`` is after a commit, before the caller receives the result.
"""

import os
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from batuta.stores.sql.database import Database, Query, Row, Statements, Transaction

T = TypeVar("T")
GONE = 70  # exit code of a process that dies at a point


class Points:
    """The points in one process. ``dies_at`` is ``label#n``: the process exits when it passes that label for the n-th
    time. If it is empty, the process survives, and ``seen`` receives each label that the process passes.
    """

    def __init__(self, dies_at: str, seen: Callable[[str], None]) -> None:
        self.times: Counter[str] = Counter()
        self._dies_at = dies_at
        self._seen = seen
        self._reaching = threading.Lock()  # points are reached on the event loop and on SQLite's writer thread

    def reach(self, label: str) -> None:
        with self._reaching:
            self.times[label] += 1
            if self._dies_at == f"{label}#{self.times[label]}":
                os._exit(GONE)
            if not self._dies_at:
                self._seen(label)


class PointedTransaction:
    def __init__(self, transaction: Transaction, points: Points) -> None:
        self._transaction = transaction
        self._points = points
        self._begun = False
        self.written: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transaction, name)

    async def all(self, query: Query, **values: object) -> list[Row]:
        self._begin(query)
        rows = await self._transaction.all(query, **values)
        self._points.reach(f"open {query.name}")
        return rows

    async def one(self, query: Query, **values: object) -> Row | None:
        return next(iter(await self.all(query, **values)), None)

    async def run(self, query: Query, **values: object) -> int:
        self._begin(query)
        touched = await self._transaction.run(query, **values)
        self._points.reach(f"open {query.name}")
        return touched

    def _begin(self, query: Query) -> None:
        if not self._begun:
            self._points.reach(f"before {query.name}, to be continued")
        self._begun = True
        if query.writes:
            self.written.append(query.name)


class PointedStatements:
    """The statements of a transaction that runs entirely on SQLite's writer thread. They have the same labelled points
    as those of a PointedTransaction.
    """

    def __init__(self, statements: Statements, points: Points, written: list[str]) -> None:
        self._statements = statements
        self._points = points
        self._begun = False
        self._written = written

    def one(self, query: Query, **values: object) -> Row | None:
        self._begin(query)
        row = self._statements.one(query, **values)
        self._points.reach(f"open {query.name}")
        return row

    def run(self, query: Query, **values: object) -> int:
        self._begin(query)
        touched = self._statements.run(query, **values)
        self._points.reach(f"open {query.name}")
        return touched

    def _begin(self, query: Query) -> None:
        if not self._begun:
            self._points.reach(f"before {query.name}, to be continued")
        self._begun = True
        if query.writes:
            self._written.append(query.name)


class PointedDatabase:
    """A database with a labelled point before and after each call from a queue."""

    def __init__(self, database: Database, points: Points) -> None:
        self._database = database
        self._points = points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    async def all(self, query: Query, **values: object) -> list[Row]:
        self._points.reach(f"before {query.name}")
        rows = await self._database.all(query, **values)
        self._points.reach(f"after {query.name}")
        return rows

    async def one(self, query: Query, **values: object) -> Row | None:
        return next(iter(await self.all(query, **values)), None)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PointedTransaction]:
        async with self._database.transaction() as transaction:
            pointed = PointedTransaction(transaction, self._points)
            yield pointed
        self._points.reach(f"committed {'>'.join(pointed.written) or 'nothing'}")

    async def perform(self, steps: Callable[[Statements], T]) -> T:
        written: list[str] = []
        found = await self._database.perform(lambda on: steps(PointedStatements(on, self._points, written)))
        self._points.reach(f"committed {'>'.join(written) or 'nothing'}")
        return found
