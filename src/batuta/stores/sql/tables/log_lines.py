"""Stores the log lines of tasks, items and runs."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from batuta.kernel.errors import EncryptionError
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.values import dataclass
from batuta.runlog.lines import LogLine
from batuta.stores.sql.database import Database, Query, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.history import is_uuid

ABOUT: Final = "log_lines.line"
FIRST: Final = "00000000-0000-0000-0000-000000000000"
# How long log lines are kept after their item was deleted.
WITHOUT_ITEM: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class LineQueries:
    add: Query
    of_item: Query
    item: Query
    prune: Query


class SqlLogLines:
    def __init__(self, database: Database, encryption: Encryption = PLAIN) -> None:
        self._database = database
        self._encryption = encryption
        self._queries = load_queries(LineQueries, STATEMENTS / "log_lines.sql", database.dialect)

    async def add(self, lines: Sequence[LogLine]) -> None:
        kept = [
            {**asdict(line), "line": self._encryption.encrypt(line.line, ABOUT)}
            for line in lines
            if is_uuid(line.item_id)
        ]  # lines of other items are dropped: a table of the application may have ids that are not UUIDs
        if kept:
            async with self._database.transaction() as transaction:
                await transaction.run_many(self._queries.add, kept)

    async def of_item(self, id: str, *, after: str | None = None, limit: int = 1000) -> list[LogLine]:
        """Return the lines of a task, an item or a run that follow the line with the id ``after``, oldest first."""
        if not is_uuid(id) or not is_uuid(after or FIRST):
            return []
        rows = await self._database.all(self._queries.of_item, item_id=id, after=after or FIRST, limit=limit)
        return [
            from_row(LogLine, row, id=str(row["id"]), item_id=str(row["item_id"]), line=self._read(row["line"]))
            for row in rows
        ]

    def _read(self, stored: str) -> str:
        """Return a log line with its text decrypted. If the text cannot be decrypted, replace it with the reason."""
        try:
            return str(self._encryption.decrypt(stored, ABOUT))
        except EncryptionError as error:
            return str(error)

    async def items_between(self, least: str, most: str) -> list[str]:
        """Return at most two ids between ``least`` and ``most`` that belong to items with log lines. Two are enough to
        show that an abbreviated id is ambiguous.
        """
        return [str(row["item_id"]) for row in await self._database.all(self._queries.item, least=least, most=most)]

    async def prune(self, limit: int, *, now: datetime, longest: timedelta) -> int:
        """Delete all lines older than the duration ``longest``, and the lines older than a day whose item no longer
        exists. Return the number of deleted lines.
        """
        before = now - min(WITHOUT_ITEM, longest)
        return await self._database.run(self._queries.prune, before=before, oldest=now - longest, limit=limit)
