"""Helpers for databases and rows in tests: a database that is closed even if its test fails, and rows in which stored
reasons are shown as text.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from batuta.kernel.reasons import decode
from batuta.stores.sql.database import Database, Row

D = TypeVar("D", bound=Database)


@asynccontextmanager
async def opened(database: D) -> AsyncIterator[D]:
    """Close the database even if the test fails, because a leaked connection would fail an unrelated test later."""
    await database.open()
    try:
        yield database
    finally:
        await database.close()


def readable(row: Row) -> dict[str, Any]:
    return {name: decode(value) if isinstance(value, str) else value for name, value in dict(row).items()}
