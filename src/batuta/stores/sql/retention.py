"""Retentions of an application's tables, written as SQL."""

from datetime import datetime, timedelta
from pathlib import Path

from batuta.kernel.clock import Clock
from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import load_all
from batuta.supervise.pruner import Retention, keep_for


def retentions_in(file: Path, age: timedelta, database: Database, clock: Clock) -> list[Retention]:
    """A retention for each statement of a file. Each deletes at most ``:limit`` rows older than ``:before``."""
    return [keep_for(age, query.name, _Statement(database, query), clock) for query in load_all(file, database.dialect)]


class _Statement:
    def __init__(self, database: Database, query: Query) -> None:
        self._database = database
        self._query = query

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._query, before=before, limit=limit)
