"""Stores the items of function pipelines (``queue.steps``) in the engine's table ``pipeline_items``."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.clock import in_microseconds
from batuta.kernel.errors import BatchEnded, UnstorableValue
from batuta.kernel.reasons import Reason, decode, encode
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import refuse_unstorable, refuse_unstorable_key, refuse_unstorable_priority
from batuta.kernel.values import dataclass
from batuta.queue.item import ItemState, NewItem
from batuta.queue.limits import TaskLimits
from batuta.queue.outcome import LONGEST_ERROR, Writes, clamp_wait
from batuta.queue.steps import PIPELINE_ITEMS
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Transaction, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.history import is_uuid
from batuta.tasks.batch import BATCH_CANCELLED, Batch, BatchProgress, MemberCounts

# Value of ``batches.members`` for a batch with pipeline items.
BATCH_MEMBERS = "pipeline_items"
# Maximum items that one statement cancels.
CANCELLED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class ItemQueries:
    replace: Query
    move: Query
    label: Query
    unlabel: Query
    close_unused_lines: Query
    alive: Query
    prune: Query
    mark_batch: Query
    share_batch: Query
    unfinished_batches: Query
    count_batches: Query
    cancel_batch: Query


class SqlItems:
    """Converts items to rows, finds the unfinished item with a given key, and deletes items whose retention has
    ended.
    """

    unlimited: set[str]  # the stages without limits in all of this program's pipelines

    def __init__(self, database: Database, max_payload: int, now: Callable[[], datetime | None]) -> None:
        """Create the store of pipeline items. ``now`` returns the current time for the statements, or None if they must
        use the database's clock.
        """
        self.database = database
        self._max_payload = max_payload
        self._now = now
        self.queries = load_queries(ItemQueries, STATEMENTS / "items.sql", database.dialect)
        self.batch_members = PipelineMembers(self.queries, now)
        self.unlimited = set()

    def rows(self, pipeline: str, limits: Mapping[str, TaskLimits]) -> "PipelineRows":
        """Return the object that converts a pipeline's items to rows. ``limits`` maps the names of the pipeline's
        stages to their limits.
        """
        return PipelineRows(pipeline, limits, self)

    def encode(self, item: object) -> AsJson:
        if item is None:
            why = Reason("null_item", "it is null; an item may be any other JSON value")
            raise UnstorableValue(kind="pipeline item", why=why)
        refuse_unstorable(item, "pipeline item", self._max_payload)
        return AsJson(item)

    async def put(
        self, pipeline: str, first: SqlQueue, items: Sequence[NewItem], within: Transaction | None
    ) -> list[str]:
        """Insert items at the first stage and return their ids. If an unfinished item has the same key as a new item,
        return the id of the existing item instead.
        """
        ids = await first.put(items, within=within)
        return [
            id if id is not None else await self._find_alive(pipeline, first, item, within)
            for id, item in zip(ids, items, strict=True)
        ]

    async def join_batch(self, id: str, within: Transaction) -> None:
        """Lock a batch, so that it cannot end before the transaction ends. Raises BatchEnded if the batch accepts no
        items.
        """
        if not is_uuid(id):
            raise BatchEnded(id=id)
        await within.run(self.queries.mark_batch, id=id)
        row = await within.one(self.queries.share_batch, id=id)
        if row is None:
            raise BatchEnded(id=id)
        if row["members"] != BATCH_MEMBERS:
            raise ValueError("the batch has records of the program: use another batch for the items of a pipeline")

    async def prune(self, limit: int) -> int:
        return await self.database.run(self.queries.prune, now=self._now(), limit=limit)

    async def unlabel(self, limit: int) -> int:
        """Clear the limit key of about ``limit`` waiting items whose stage no longer has limits, so that the statement
        that claims items without limits finds them. Return the number of changed items.
        """
        if not self.unlimited:
            return 0
        stages = AsJson(sorted(self.unlimited))
        async with self.database.transaction() as transaction:
            count = await transaction.run(self.queries.unlabel, stages=stages, limit=limit)
            if count < limit:
                await transaction.run(self.queries.close_unused_lines, stages=stages)
        return count

    async def _find_alive(self, pipeline: str, first: SqlQueue, item: NewItem, within: Transaction | None) -> str:
        while True:
            row = await (within or self.database).one(self.queries.alive, pipeline=pipeline, key=item.key)
            if row is not None:
                return str(row["id"])
            # the item with this key has just ended, so insert the new item
            (id,) = await first.put([item], within=within)
            if id is not None:
                return id


@dataclass(frozen=True, slots=True)
class PipelineRows:
    """Converts the items of one pipeline to rows. At a stage with limits, the row also gets its limit key."""

    pipeline: str
    limits: Mapping[str, TaskLimits]
    items: SqlItems
    warned: set[str] = field(default_factory=set)  # stages that had an item without the field that their limit uses

    def values(self, stage: str | None, item: object, batch: str | None = None) -> Mapping[str, object]:
        known = {"pipeline": self.pipeline, "item": self.items.encode(item)}
        more = {"limit_key": self._key(stage, item), "batch_id": batch}
        return {**known, **{name: value for name, value in more.items() if value is not None}}

    def replace(self, id: str, stage: str | None, item: object) -> Writes:
        changed = {"id": id, "item": self.items.encode(item)}
        if not self.limits:
            return Writes(((self.items.queries.replace, changed),))
        return Writes(((self.items.queries.move, {**changed, "key": self._key(stage, item)}),))

    def label(self, id: str, stage: str | None, item: object) -> Writes | None:
        if not self.limits:
            return None
        return Writes(((self.items.queries.label, {"id": id, "key": self._key(stage, item)}),))

    def _key(self, stage: str | None, item: object) -> str | None:
        limits = self.limits.get(stage or "")
        if limits is None:
            return None
        by = None if limits.each is None else limits.each.by
        if by is not None and stage not in self.warned and not (isinstance(item, Mapping) and by in item):
            self.warned.add(limits.task)
            warnings.warn(
                f"an item of stage {stage} has no field '{by}', so Limits(by='{by}') does not apply to it: check the"
                " name in step(…, per_key=…)",
                stacklevel=2,
            )
        return limits.key_of_item(item)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadItem:
    """An item that failed at a stage after its last attempt. ``stage`` is the name of the stage's function."""

    id: str
    stage: str
    item: Json
    error: str | None
    attempts: int
    failed_at: datetime
    key: str | None


class ItemPipeline:
    """A pipeline of functions; ``work.pipeline`` creates it."""

    def __init__(self, rows: PipelineRows, stages: Sequence[SqlQueue], wake: Callable[[str], None]) -> None:
        self.name = rows.pipeline
        self._first = stages[0]
        self._stages = {stage.name: stage for stage in stages}
        self._rows = rows
        self._items = rows.items
        self._wake = wake

    async def put(
        self,
        item: Json,
        *,
        key: str | None = None,
        delay: float = 0,
        priority: int = 0,
        batch: Batch | None = None,
        within: Transaction | None = None,
    ) -> str:
        """Put an item into the first stage, sync it to disk, and return its id. If ``within`` is given, the item is
        stored when that transaction commits.

        ``key`` deduplicates: if an unfinished item has the same key, nothing is inserted, and the id of that item is
        returned. ``delay`` is in seconds. A smaller ``priority`` is more urgent. If ``batch`` is given, the item
        belongs to that batch, and the batch does not end before the item has ended.
        """
        (id,) = await self.put_many([item], keys=[key], delay=delay, priority=priority, batch=batch, within=within)
        return id

    async def put_many(
        self,
        items: Sequence[Json],
        *,
        keys: Sequence[str | None] | None = None,
        delay: float = 0,
        priority: int = 0,
        batch: Batch | None = None,
        within: Transaction | None = None,
    ) -> list[str]:
        """Put several items into the first stage in one transaction, and return their ids. ``keys`` has one element per
        item: a key or None. Raises BatchEnded if ``batch`` has ended or was cancelled.
        """
        if keys is not None and len(keys) != len(items):
            raise ValueError(
                f"{len(items)} items and {len(keys)} keys: pass one key per item, or None for an item without a key"
            )
        rows = self._new_rows(items, keys or [None] * len(items), delay, priority, None if batch is None else batch.id)
        if batch is not None and within is None:
            async with self._items.database.transaction() as transaction:
                ids = await self._put(rows, batch, transaction)
        else:
            ids = await self._put(rows, batch, within)
        if within is None:
            self._wake(self._first.name)
        return ids

    async def dead(self, limit: int = 100) -> list[DeadItem]:
        """Return the items that failed after their last attempt, most recent failure first."""
        rows = [row for stage in self._stages.values() for row in await stage.list_items(ItemState.DEAD, limit)]
        rows.sort(key=lambda row: (row["finished_at"], str(row["id"])), reverse=True)
        return [
            DeadItem(
                id=str(row["id"]),
                stage=self._stage_of(row).name.removeprefix(f"{self.name}."),
                item=row["item"],
                error=decode(row["error"]),
                attempts=row["attempts"],
                failed_at=row["finished_at"],
                key=row["unique_key"],
            )
            for row in rows[:limit]
        ]

    async def retry(self, id: str) -> bool:
        """Run a dead item again, from the stage where it failed and with a full set of attempts. Return False if the
        pipeline has no such dead item, or if an unfinished item has the same key.
        """
        row = await self._first.item(id) if is_uuid(id) else None
        if row is None or row["pipeline"] != self.name:
            return False
        stage = self._stage_of(dict(row))
        if not await stage.revive(id):
            return False
        self._wake(stage.name)
        return True

    def _stage_of(self, row: Mapping[str, Any]) -> SqlQueue:
        """Return the stage at which a dead item failed, or the first stage if that stage no longer exists."""
        return self._stages.get(row["last_stage"] or "", self._first)

    async def _put(self, rows: Sequence[NewItem], batch: Batch | None, within: Transaction | None) -> list[str]:
        if batch is not None and within is not None:
            await self._items.join_batch(batch.id, within)
        return await self._items.put(self.name, self._first, rows, within)

    def _new_rows(
        self,
        items: Sequence[Json],
        keys: Sequence[str | None],
        delay: float,
        priority: int,
        batch: str | None,
    ) -> list[NewItem]:
        refuse_unstorable_priority(priority)
        for key in keys:
            refuse_unstorable_key(key)
        return [
            NewItem(
                values=self._rows.values(self._first.name, item, batch),
                key=key,
                priority=priority,
                delay=clamp_wait(timedelta(seconds=delay)),
            )
            for item, key in zip(items, keys, strict=True)
        ]


class PipelineMembers:
    """Counts and cancels the pipeline items that belong to batches. Implements ``BatchMembers``."""

    name = BATCH_MEMBERS

    def __init__(self, queries: ItemQueries, now: Callable[[], datetime | None]) -> None:
        self._queries = queries
        self._now = now

    async def find_unfinished(self, reading: Reading, ids: Sequence[str]) -> set[str]:
        rows = await reading.all(self._queries.unfinished_batches, ids=AsJson(list(ids)))
        return {str(row["id"]) for row in rows}

    async def count(self, reading: Reading, ids: Sequence[str]) -> dict[str, MemberCounts]:
        rows = await reading.all(self._queries.count_batches, ids=AsJson(list(ids)))
        return {str(row["batch_id"]): from_row(MemberCounts, row) for row in rows}

    async def cancel(self, transaction: Transaction, id: str, reason: str) -> None:
        await self.cancel_some(transaction, id, reason)

    async def cancel_some(self, transaction: Transaction, id: str, reason: str) -> int:
        """Cancel a bounded number of a batch's pipeline items; for a running item, only request the cancellation.
        Return the number of affected items.
        """
        why = encode(BATCH_CANCELLED(why=reason), LONGEST_ERROR)
        keep = in_microseconds(PIPELINE_ITEMS.keep)
        return await transaction.run(
            self._queries.cancel_batch, id=id, reason=why, now=self._now(), keep=keep, limit=CANCELLED_AT_ONCE
        )

    async def end(self, transaction: Transaction, progress: BatchProgress) -> None:
        """Do nothing: the end of a batch changes none of its pipeline items."""
