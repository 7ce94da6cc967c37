"""Stores the items of pipelines of functions (``queue.steps``) in the engine's table ``pipeline_items``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from batuta.kernel.errors import UnstorableValue
from batuta.kernel.json import Json
from batuta.kernel.reasons import Reason
from batuta.kernel.storable import refuse_unstorable, refuse_unstorable_key, refuse_unstorable_priority
from batuta.queue.item import NewItem
from batuta.queue.outcome import Writes, clamp_wait
from batuta.stores.sql.database import AsJson, Database, Query, Transaction
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.queue.store import SqlQueue


@dataclass(frozen=True, slots=True)
class ItemQueries:
    replace: Query
    alive: Query
    prune: Query


class SqlItems:
    """Writes items into rows, finds the live item with a key, and deletes items whose retention has ended."""

    def __init__(self, database: Database, max_payload: int, now: Callable[[], datetime | None]) -> None:
        """Create the store. ``now`` returns None if the database's clock is used."""
        self._database = database
        self._max_payload = max_payload
        self._now = now
        self._queries = load_queries(ItemQueries, STATEMENTS / "items.sql", database.dialect)

    def values(self, pipeline: str, item: object) -> Mapping[str, object]:
        return {"pipeline": pipeline, "item": self._encode(item)}

    def replace(self, id: str, item: object) -> Writes:
        return Writes(((self._queries.replace, {"id": id, "item": self._encode(item)}),))

    def _encode(self, item: object) -> AsJson:
        if item is None:
            why = Reason("null_item", "it is null; an item may be any other JSON value")
            raise UnstorableValue(kind="pipeline item", why=why)
        refuse_unstorable(item, "pipeline item", self._max_payload)
        return AsJson(item)

    async def put(
        self, pipeline: str, first: SqlQueue, items: Sequence[NewItem], within: Transaction | None
    ) -> list[str]:
        """Insert items at the first stage and return their ids. If a live item has the key of a new one, return its id."""
        ids = await first.put(items, within=within)
        return [
            id if id is not None else await self._find_alive(pipeline, first, item, within)
            for id, item in zip(ids, items, strict=True)
        ]

    async def prune(self, limit: int) -> int:
        return await self._database.run(self._queries.prune, now=self._now(), limit=limit)

    async def _find_alive(self, pipeline: str, first: SqlQueue, item: NewItem, within: Transaction | None) -> str:
        while True:
            row = await (within or self._database).one(self._queries.alive, pipeline=pipeline, key=item.key)
            if row is not None:
                return str(row["id"])
            (id,) = await first.put([item], within=within)  # the live item has just ended
            if id is not None:
                return id


class ItemPipeline:
    """A pipeline of functions; ``work.pipeline`` creates it."""

    def __init__(self, name: str, first: SqlQueue, items: SqlItems, wake: Callable[[str], None]) -> None:
        self.name = name
        self._first = first
        self._items = items
        self._wake = wake

    async def put(
        self,
        item: Json,
        *,
        key: str | None = None,
        delay: float = 0,
        priority: int = 0,
        within: Transaction | None = None,
    ) -> str:
        """Put an item into the first stage and return its id. On return the item is synced to disk; with ``within``,
        when that transaction commits.

        ``key`` deduplicates: if a live item has the same key, its id is returned instead. ``delay`` is in seconds. A
        smaller ``priority`` is more urgent.
        """
        (id,) = await self._put([item], [key], delay, priority, within)
        return id

    async def put_many(
        self,
        items: Sequence[Json],
        *,
        keys: Sequence[str | None] | None = None,
        delay: float = 0,
        priority: int = 0,
        within: Transaction | None = None,
    ) -> list[str]:
        """Put several items in one transaction and return their ids. ``keys`` has one key, or None, per item."""
        if keys is not None and len(keys) != len(items):
            raise ValueError(
                f"{len(items)} items and {len(keys)} keys: give a key for each, None for those without one"
            )
        return await self._put(items, keys or [None] * len(items), delay, priority, within)

    async def _put(
        self,
        items: Sequence[Json],
        keys: Sequence[str | None],
        delay: float,
        priority: int,
        within: Transaction | None,
    ) -> list[str]:
        refuse_unstorable_priority(priority)
        for key in keys:
            refuse_unstorable_key(key)
        rows = [
            NewItem(
                values=self._items.values(self.name, item),
                key=key,
                priority=priority,
                delay=clamp_wait(timedelta(seconds=delay)),
            )
            for item, key in zip(items, keys, strict=True)
        ]
        ids = await self._items.put(self.name, self._first, rows, within)
        if within is None:
            self._wake(self._first.name)
        return ids
