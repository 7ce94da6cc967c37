"""What was told does not grow for ever."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class WebhookBook:
    prune_inbox: Query
    prune_told: Query


class WebhookHistory:
    """Deliveries and the gateway's word about sends, oldest first. What nobody worked on yet stays."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._book = load(WebhookBook, Path(__file__).parent / "webhooks.sql", database.dialect)

    async def prune(self, *, before: datetime, limit: int) -> int:
        pruned = await self._database.run(self._book.prune_inbox, before=before, limit=limit)
        left = limit - pruned
        return pruned + (await self._database.run(self._book.prune_told, before=before, limit=left) if left else 0)
