"""What groups said does not stay for ever: chatter goes; a message that told of a vaga stays with it."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class GroupHistoryBook:
    prune_chatter: Query
    prune_asked: Query


class GroupHistory:
    """Messages of which nothing came, and what a model was asked, oldest first. What nobody worked on yet stays."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._book = load(GroupHistoryBook, Path(__file__).parent / "history.sql", database.dialect)

    async def prune(self, *, before: datetime, limit: int) -> int:
        pruned = await self._database.run(self._book.prune_chatter, before=before, limit=limit)
        left = limit - pruned
        return pruned + (await self._database.run(self._book.prune_asked, before=before, limit=left) if left else 0)
