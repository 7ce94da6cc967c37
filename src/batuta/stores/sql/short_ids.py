"""Ids that an operator types: the whole id, or an unambiguous beginning of it."""

import re
from uuid import UUID

from batuta.kernel.errors import AmbiguousId
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of

SHORTEST = 4
SHOWN = 5
_HEXADECIMAL = re.compile(r"[0-9a-f]+")


async def full_id(database: Database, table: str, written: str, *, column: str = "id") -> str | None:
    """The id of the one row whose id begins with ``written``; None: there is none. Raises AmbiguousId."""
    digits = written.strip().lower().replace("-", "")
    if not SHORTEST <= len(digits) <= 32 or not _HEXADECIMAL.fullmatch(digits):
        return None
    between = f"SELECT {column} AS id FROM {table} WHERE {column} >= :least AND {column} <= :most"
    query = in_dialect(
        query_of("full_id", f"{between} ORDER BY {column} LIMIT {SHOWN + 1}", writes=False), database.dialect
    )
    rows = await database.all(query, least=str(UUID(digits.ljust(32, "0"))), most=str(UUID(digits.ljust(32, "f"))))
    found = [str(row["id"]) for row in rows]
    if len(found) > 1:
        more = ", …" if len(found) > SHOWN else ""
        raise AmbiguousId(id=written, candidates=", ".join(found[:SHOWN]) + more)
    return found[0] if found else None
