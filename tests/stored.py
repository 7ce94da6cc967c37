"""Databases and rows for tests: a database that is closed however its test ends, and rows with readable reasons."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from batuta.kernel.reasons import decode
from batuta.stores.sql.database import Database, Row

D = TypeVar("D", bound=Database)


@asynccontextmanager
async def opened(database: D) -> AsyncIterator[D]:
    """Close the database when the test fails, too: a leaked connection would fail an unrelated test later."""
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def readable(row: Row) -> dict[str, Any]:
    return {name: decode(value) if isinstance(value, str) else value for name, value in dict(row).items()}
