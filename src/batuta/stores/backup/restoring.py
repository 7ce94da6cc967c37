"""What must survive the replacement of a database by an older copy, read from the old one and written into the new one.

A backup is older than the moment it is restored. If the replaced database can still be read, and is the one the backup was
taken from, its later facts win: what already ran, who may do what, which limits are used up. If not, nobody knows what
happened since, and whatever could have happened is not repeated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from batuta.stores.sql.database import AsJson, Dialect, Reading, Row, Transaction
from batuta.stores.sql.queries import in_dialect, query_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    taken_at: datetime
    restored_at: datetime
    has_old: bool  # False: what happened after taken_at is unknown
    by: str


class Restoring(Protocol):
    """One part of the program that has facts of its own. All of ``apply`` runs in the transaction of the restore."""

    async def collect(self, old: Reading, since: datetime) -> object:
        """Read from the database being replaced what must survive. ``since``: when the backup was taken."""
        ...

    async def apply(self, new: Transaction, collected: Any, restored: Restored) -> Mapping[str, int]:
        """Write it into the restored database. ``collected``: None if there is no old database. Return counts by name."""
        ...


def as_values(rows: Iterable[Row], json: Sequence[str] = ()) -> list[dict[str, object]]:
    """Rows as values of an INSERT. ``json``: the columns of type JSONB."""
    return [{name: AsJson(value) if name in json else value for name, value in dict(row).items()} for row in rows]


async def insert(
    new: Transaction, dialect: Dialect, table: str, rows: Sequence[Mapping[str, object]], conflict: str = "DO NOTHING"
) -> int:
    """Insert rows as they are. ``conflict``: what happens with a row that is there already."""
    if not rows:
        return 0
    columns = list(rows[0])
    text = (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(f':{column}' for column in columns)})"
        f" ON CONFLICT {conflict}"
    )
    query = in_dialect(query_of(f"insert_{table}", text, writes=True), dialect)
    return sum([await new.run(query, **row) for row in rows])
