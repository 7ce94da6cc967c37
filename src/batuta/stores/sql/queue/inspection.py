"""Reads pages of a queue's items and groups of its errors for operators, and changes items in bulk."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreConflict
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import encode
from batuta.kernel.values import dataclass
from batuta.queue.inspection import BulkChange, BulkOperation, ErrorGroup, ItemFilter, Place, group_errors
from batuta.queue.item import ItemState, QueueTable
from batuta.queue.outcome import CANCELLED_BY, LONGEST_ERROR
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Reading, Row, Transaction
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries, load_text, read_sql
from batuta.stores.sql.queue.statements import queue_gaps
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.audit import AuditLog

TASKS = "tasks"
MOST_GROUPED = 20_000  # maximum number of dead items that are grouped by their error
MOST_ERRORS = 1_000
MOST_COUNTED = 20_000
MOST_SEARCHED = 10_000  # maximum number of items that are compared with an error group for one page
BATCH = 1_000
LAST = Place(datetime(9999, 1, 1, tzinfo=UTC), "ffffffff-ffff-ffff-ffff-ffffffffffff")
FIRST = Place(datetime(1, 1, 2, tzinfo=UTC), "00000000-0000-0000-0000-000000000000")
_FROM_THE_END = (ItemState.DEAD, ItemState.DONE, ItemState.CANCELLED)


@dataclass(frozen=True, slots=True)
class InspectionQueries:
    dead: Query
    ready: Query
    running: Query
    done: Query
    cancelled: Query
    errors: Query
    retry: Query
    discard: Query
    cancel: Query


_IS_TAGGED: Mapping[Dialect, str] = {
    "sqlite": "tags IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(tags) AS tag WHERE tag.value = :tag ->> 0)",
    "postgres": "tags IS NOT NULL AND tags @> :tag",
}


def _list_criteria(asked: ItemFilter, table: QueueTable) -> frozenset[str]:
    """Return the names of the filter criteria that the SQL statement must check. Name and tag are checked only for the
    engine's table, because an application's table has no columns for them.
    """
    given = {"before": asked.before, "key": asked.key if table.key else None}
    if table.name == TASKS:
        given |= {"name": asked.name, "tag": asked.tag}
    return frozenset(name for name, value in given.items() if value is not None)


@lru_cache(maxsize=256)
def _queries(table: QueueTable, dialect: Dialect, compared: frozenset[str] = frozenset()) -> InspectionQueries:
    conditions = {
        "name": "name = :name",
        "key": f"{table.key} = :key",
        "tag": _IS_TAGGED[dialect],
        "before": f"{table.created_at} <= :before",
    }
    gaps = dict(queue_gaps(table, dialect))
    named = "".join(f" AND {conditions[each]}" for each in sorted(compared))
    gaps |= {
        "name_column": name_column(table),
        "named": named,
        "or_limited": _write_limited_part(table, gaps, named),
        # In a pipeline, a finished row belongs to no stage, so the statement does not compare the stage.
        "of_whole": f" AND {table.queue} = :queue" if table.queue and table.queue != table.state else "",
    }
    text = read_sql(STATEMENTS / "inspection.sql").format_map(gaps)
    return load_text(InspectionQueries, text, f"inspection.sql of {table.name}", dialect)


def _write_limited_part(table: QueueTable, gaps: Mapping[str, str], named: str) -> str:
    """Return the part of a page's SQL that selects the waiting items of tasks with limits, or an empty string if the
    table supports no limits. The part is separate because these items are in two indexes of their own.
    """
    if table.limit_key is None:
        return ""
    order = f"{table.available_at}, {table.id}"
    return "".join(
        f" UNION ALL SELECT {table.id} FROM (SELECT {table.id} FROM {table.name} WHERE {gaps['is_waiting']}"
        f" AND {table.limit_key} IS NOT NULL AND {in_line}{gaps['in_queue']}{named} AND ({order}) > (:at, :id)"
        f" ORDER BY {order} LIMIT :limit) AS {name}"
        # Each of these conditions matches the condition of one index.
        for name, in_line in (("unfiled", "NOT in_line"), ("in_line", "in_line"))
    )


def name_column(table: QueueTable) -> str:
    """Return the SQL expression for the name of an item's function: a column or, for an application's table, which has
    no such column, an empty string.
    """
    return "name" if table.name == TASKS else "''"


def name_of(row: Row) -> str:
    """Return the name of an item's function, or an empty string if its table stores none."""
    return str(dict(row).get("name") or "")


def order_column(table: QueueTable, state: ItemState) -> str:
    columns = {
        ItemState.DEAD: table.finished_at,
        ItemState.READY: table.available_at,
        ItemState.RUNNING: table.lease_until,
    }
    return columns.get(state, table.created_at)


class QueueInspection:
    """Reads one queue for operators. ``reading`` may be a transaction, or a database with its own connections and
    timeouts.
    """

    def __init__(self, queue: SqlQueue, reading: Reading, dialect: Dialect) -> None:
        self.queue = queue
        self.table = queue.table
        self._reading = reading
        self._dialect = dialect

    async def page(self, asked: ItemFilter, after: Place | None, limit: int) -> tuple[list[Row], Place | None]:
        """Return the page of items that follows the position ``after`` (an instant and an id), and the position to pass
        for the next page. The second value is None if there are no more items.

        If the filter names an error group, a page may have fewer than ``limit`` items, because error groups are
        filtered after the query.
        """
        query: Query = getattr(
            _queries(self.table, self._dialect, _list_criteria(asked, self.table)), asked.state.value
        )
        start = after or (LAST if asked.state in _FROM_THE_END else FIRST)
        known = {
            "at": start.at,
            "id": start.id,
            "limit": limit,
            "queue": self.queue.name,
            "name": asked.name,
            "key": asked.key,
            "tag": AsJson([asked.tag]),
            "before": asked.before,
        }
        rows = await self._reading.all(query, **{name: known[name] for name in query.parameters})
        shown = [row for row in rows if asked.error is None or asked.matches(name_of(row), row[self.table.error])]
        if len(rows) < limit:
            return shown, None
        return shown, self._place(rows[-1], asked, start)

    async def full_page(self, asked: ItemFilter, after: Place | None, limit: int) -> tuple[list[Row], Place | None]:
        """Return a page of items, like the method ``page``. If the filter names an error group, search at most
        MOST_SEARCHED items until the page is full.
        """
        if asked.error is None:
            return await self.page(asked, after, limit)
        found: list[Row] = []
        place = after
        for _ in range(MOST_SEARCHED // BATCH):
            rows, place = await self.page(asked, place, BATCH)
            found += rows
            if place is None or len(found) > limit:
                break
        if len(found) <= limit:
            return found, place
        return found[:limit], self._place(found[limit - 1], asked, after or LAST)

    def _place(self, row: Row, asked: ItemFilter, start: Place) -> Place:
        return Place(row[order_column(self.table, asked.state)] or start.at, str(row[self.table.id]))

    async def count(self, asked: ItemFilter) -> int:
        """Return the number of items that a filter matches, at most MOST_COUNTED."""
        found, place = 0, None
        for _ in range(MOST_COUNTED // BATCH):
            rows, place = await self.page(asked, place, BATCH)
            found += len(rows)
            if place is None:
                break
        return found

    async def groups(self) -> list[ErrorGroup]:
        """Group the newest dead items by error, and return the groups, largest first."""
        query = _queries(self.table, self._dialect).errors
        known = {"most": MOST_GROUPED, "limit": MOST_ERRORS, "queue": self.queue.name}
        rows = await self._reading.all(query, **{name: known[name] for name in query.parameters})
        return group_errors(dict(row) for row in rows)


@dataclass(frozen=True, slots=True)
class BulkQueries:
    add: Query
    next: Query
    operation: Query
    recent: Query
    take: Query
    advance: Query
    finish: Query
    prune: Query


class SqlBulk:
    """Stores the bulk changes that operators request for items, and performs them in batches."""

    def __init__(
        self,
        database: Database,
        queues: Callable[[], Mapping[str, SqlQueue]],
        ids: Ids,
        clock: Clock,
        now: Callable[[], datetime | None],
    ) -> None:
        """Create the store of bulk changes. ``now`` returns the current time for the statements, or None if they must
        use the database's clock.
        """
        self._database = database
        self._now = now
        self._queues = queues
        self._ids = ids
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(BulkQueries, STATEMENTS / "bulk.sql", database.dialect)

    async def add(self, queue: str, change: BulkChange, asked: ItemFilter, expected: int, *, by: str) -> str:
        """Store a new bulk operation with its audit entry, and return its id."""
        id, now = self._ids.new(), self._clock.now()
        async with self._database.transaction() as transaction:
            await transaction.run(
                self._queries.add,
                id=id,
                queue=queue,
                change=change.value,
                filter=AsJson(asked.describe()),
                by=by,
                now=now,
                expected=expected,
            )
            await self._note(transaction, f"bulk.{change.value}", f"{queue}:{id}", by, asked.describe(), now)
        return id

    async def stop(self, id: str, *, by: str) -> bool:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            is_stopped = bool(await transaction.run(self._queries.finish, id=id, status="stopped", now=now))
            if is_stopped:
                await self._note(transaction, "bulk.stop", id, by, None, now)
        return is_stopped

    async def count(self, name: str, asked: ItemFilter) -> int:
        """Return the number of items in a queue that a filter matches. For an error group, only the newest dead items
        are counted.
        """
        queue = self._queues()[name]
        inspection = QueueInspection(queue, self._database, self._database.dialect)
        if asked.is_narrow:
            return await inspection.count(asked)
        depth = await queue.depth()
        if asked.state is not ItemState.DEAD:
            return depth.due + depth.later
        if asked.error is None and asked.name is None:
            return depth.dead
        wanted = (
            each
            for each in await inspection.groups()
            if asked.error in (None, each.signature) and asked.name in (None, each.name)
        )
        return min(sum(each.items for each in wanted), MOST_GROUPED)

    async def recent(self, queue: str, limit: int = 5) -> list[BulkOperation]:
        return [_operation(row) for row in await self._database.all(self._queries.recent, queue=queue, limit=limit)]

    async def find(self, id: str) -> BulkOperation | None:
        row = await self._database.one(self._queries.operation, id=id)
        return None if row is None else _operation(row)

    async def next(self) -> BulkOperation | None:
        row = await self._database.one(self._queries.next)
        return None if row is None else _operation(row)

    async def advance(self, operation: BulkOperation) -> bool:
        queue = self._queues().get(operation.queue)
        if queue is None:
            await self._database.run(self._queries.finish, id=operation.id, status="stopped", now=self._clock.now())
            return False
        try:
            return await self._advance(queue, operation)
        except StoreConflict:  # an unfinished item has the key of an item to retry
            return await self._advance_singly(queue, operation)

    async def _advance(self, queue: SqlQueue, operation: BulkOperation) -> bool:
        async with self._database.transaction() as transaction:
            if not await transaction.run(self._queries.take, id=operation.id, ticket=operation.ticket):
                return True
            rows, place = await self._read(transaction, queue, operation)
            wanted = [str(row[queue.table.id]) for row in rows if self._concerns(operation, queue.table, row)]
            changed = await self._change(transaction, queue, operation, wanted)
            await self._record(transaction, operation, len(rows), changed, place)
        return place is not None

    async def _advance_singly(self, queue: SqlQueue, operation: BulkOperation) -> bool:
        """Process the next batch of a bulk operation, item by item. An item is skipped if an unfinished item has the
        same key. Return whether more batches remain.
        """
        if not await self._database.run(self._queries.take, id=operation.id, ticket=operation.ticket):
            return True
        rows, place = await self._read(self._database, queue, operation)
        wanted = [str(row[queue.table.id]) for row in rows if self._concerns(operation, queue.table, row)]
        changed = sum([await queue.revive(id) for id in wanted])
        async with self._database.transaction() as transaction:
            await self._record(transaction, operation, len(rows), changed, place)
        return place is not None

    async def _record(
        self, transaction: Transaction, operation: BulkOperation, seen: int, changed: int, place: Place | None
    ) -> None:
        known = {"place_at": place and place.at, "place_id": place and place.id}
        await transaction.run(self._queries.advance, id=operation.id, seen=seen, changed=changed, **known)
        if place is None:
            await transaction.run(self._queries.finish, id=operation.id, status="done", now=self._clock.now())

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._queries.prune, before=before, limit=limit)

    async def _read(
        self, reading: Reading, queue: SqlQueue, operation: BulkOperation
    ) -> tuple[list[Row], Place | None]:
        inspection = QueueInspection(queue, reading, self._database.dialect)
        return await inspection.page(replace(operation.filter, error=None), operation.place, BATCH)

    def _concerns(self, operation: BulkOperation, table: QueueTable, row: Row) -> bool:
        """Return whether a bulk operation applies to an item. The item must match the operation's filter. A dead item
        must have failed, and any other item must have been created, before the operation began.
        """
        at = row[table.finished_at] if operation.filter.state is ItemState.DEAD else row[table.created_at]
        is_known = at is None or at <= operation.created_at
        return is_known and operation.filter.matches(name_of(row), row[table.error])

    async def _change(
        self, transaction: Transaction, queue: SqlQueue, operation: BulkOperation, ids: Sequence[str]
    ) -> int:
        if not ids:
            return 0
        reason = CANCELLED_BY(by=operation.created_by)
        known = {"ids": AsJson(list(ids)), "now": self._now(), "reason": encode(reason, LONGEST_ERROR)}
        query: Query = getattr(_queries(queue.table, self._database.dialect), operation.change.value)
        return await transaction.run(query, **{name: known[name] for name in query.parameters})

    async def _note(
        self, transaction: Transaction, action: str, subject: str, by: str, after: Any, now: datetime
    ) -> None:
        await self._audit.note(transaction, actor=by, action=action, subject=subject, after=after, now=now)


def _operation(row: Row) -> BulkOperation:
    place = None if row["place_at"] is None else Place(row["place_at"], str(row["place_id"]))
    return BulkOperation(
        id=str(row["id"]),
        queue=row["queue"],
        change=BulkChange(row["change"]),
        filter=ItemFilter.restore(row["filter"]),
        status=row["status"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        expected=row["expected"],
        seen=row["seen"],
        changed=row["changed"],
        finished_at=row["finished_at"],
        ticket=row["ticket"],
        place=place,
    )
