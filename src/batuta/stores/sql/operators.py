"""Runs queries that operators type. These queries can only read data, and use PostgreSQL's syntax on both databases."""

from typing import Any
from zoneinfo import ZoneInfo

from batuta.kernel.errors import QueryRefused, StatementRefused, StoreReadOnly
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sqlite.operator_sql import translate

_USE_ZONE = query_of("use_zone", "SELECT set_config('TimeZone', :zone, true)", writes=False)


async def read_for_operators(database: Database, text: str, zone: ZoneInfo) -> list[dict[str, Any]]:
    """Return the rows of one query, read from one consistent state of the database. A statement that writes raises an
    error.
    """
    try:
        return await _read(database, text.strip().rstrip(";"), zone)
    except (StatementRefused, StoreReadOnly) as error:
        raise QueryRefused(why=error.facts["why"]) from None


async def _read(database: Database, text: str, zone: ZoneInfo) -> list[dict[str, Any]]:
    if database.dialect == "sqlite":
        text = translate(text, zone)
    query = in_dialect(query_of("operator", text, writes=False), database.dialect)
    async with database.snapshot() as reading:
        if database.dialect == "postgres":
            await reading.all(in_dialect(_USE_ZONE, "postgres"), zone=zone.key)
        return [dict(row) for row in await reading.all(query)]
