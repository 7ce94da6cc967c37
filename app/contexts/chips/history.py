"""What is known of the chips' past does not grow for ever. Their days and their changes of status stay."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class ChipHistoryBook:
    prune_history: Query
    prune_errors: Query


class ChipHistory:
    """How far chips were trusted, and their errors, oldest first."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._book = load(ChipHistoryBook, Path(__file__).parent / "history.sql", database.dialect)

    async def prune(self, *, before: datetime, limit: int) -> int:
        pruned = await self._database.run(self._book.prune_history, before=before, limit=limit)
        left = limit - pruned
        return pruned + (await self._database.run(self._book.prune_errors, before=before, limit=left) if left else 0)
