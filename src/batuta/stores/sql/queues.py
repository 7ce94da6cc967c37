"""Any table that ``QueueTable`` describes, as a queue."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreConflict
from batuta.kernel.ids import Ids
from batuta.kernel.json import Json, dumps
from batuta.kernel.writable import told
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.lease import Tenure
from batuta.queue.settle import LONGEST_ERROR, Settlement
from batuta.queue.store import Depth, Endings, Renewed, Rescued, Turned
from batuta.queue.table import QueueTable
from batuta.stores.sql.database import AsJson, Database, Dialect, Row, Transaction
from batuta.stores.sql.executions import microseconds
from batuta.stores.sql.queue_book import QueueBook, queue_book

_MICROSECOND = timedelta(microseconds=1)


class SqlQueue:
    """``queue`` names one of several in the same table. ``own_time``: the clock decides, not the database's."""

    def __init__(
        self,
        database: Database,
        table: QueueTable,
        ids: Ids,
        clock: Clock,
        *,
        queue: str | None = None,
        own_time: bool = False,
    ) -> None:
        self.table = table
        self.name = queue or table.name
        self._database = database
        self._ids = ids
        self._clock = clock
        self._own_time = own_time
        self._queue = {} if table.queue is None else {"queue": self.name}
        self._holds = AsJson([f"pause.queue.{self.name}", "pause.all"])
        self._book = queue_book(table, database.dialect)
        self._books: dict[tuple[str, ...], QueueBook] = {}

    async def put(self, items: Sequence[NewItem], within: Transaction | None = None) -> list[str | None]:
        """``within``: in the transaction of the business change they belong to."""
        if not items:
            return []
        now = self._clock.now()
        rows = [self._row(item, now) for item in items]
        if within is not None or len({frozenset(row) for row in rows}) == 1:
            taken = await self._put(rows, within or self._database)
        else:
            async with self._database.transaction() as transaction:
                taken = await self._put(rows, transaction)
        return [id if id in taken else None for id in (str(row[self.table.id]) for row in rows)]

    async def _put(self, rows: Sequence[dict[str, Json]], into: Transaction) -> set[str]:
        """A column that a row does not fill has its default: rows that fill others go in a statement of their own."""
        taken: set[str] = set()
        alike: dict[tuple[str, ...], list[dict[str, Json]]] = {}
        for row in rows:
            alike.setdefault(tuple(sorted(row)), []).append(row)
        for columns, some in alike.items():
            if columns not in self._books:
                self._books[columns] = queue_book(self.table, self._database.dialect, columns)
            written = await into.all(self._books[columns].put, rows=AsJson(some), bell=self.name)
            taken |= {row["id"] for row in written}
        return taken

    async def turn(self, endings: Endings, tenure: Tenure, limit: int, *, reversed: bool = False) -> Turned:
        plain = not any(settlement.follow_ups for _, settlement in endings)
        if self._database.dialect == "postgres" and plain and self.table.group is None and not reversed and limit:
            return await self._turn_at_once(endings, tenure, limit)
        if self.table.group is not None:
            return await self._turn_by_group(endings, tenure, limit)
        async with self._database.transaction() as transaction:
            lost = await self._settle(transaction, endings)
            leases = await self._claim(transaction, tenure, limit, reversed) if limit else []
        return Turned(leases, lost)

    async def _turn_by_group(self, endings: Endings, tenure: Tenure, limit: int) -> Turned:
        """In two steps: a claim that meets another's on the same group is undone, and what ended must not be undone with it."""
        async with self._database.transaction() as transaction:
            lost = await self._settle(transaction, endings)
        try:
            async with self._database.transaction() as transaction:
                leases = await self._claim_in_turn(transaction, tenure, limit) if limit else []
        except StoreConflict:
            return Turned((), lost)
        return Turned(leases, lost)

    async def conclude(self, lease: Lease, settlement: Settlement) -> bool:
        async with self._database.transaction() as transaction:
            if await self._settle(transaction, [(lease, settlement)]):
                return False
            if settlement.effect is not None:
                await settlement.effect(transaction)
        return True

    async def renew(self, leases: Collection[Lease], tenure: Tenure) -> Renewed:
        held = AsJson([{"id": lease.id, "fence": lease.fence} for lease in leases])
        rows = await self._database.all(self._book.renew, held=held, **self._time(tenure))
        ours = {(row["id"], row["fence"]) for row in rows}
        return Renewed(
            lost=frozenset(lease.id for lease in leases if (lease.id, lease.fence) not in ours),
            cancelled=frozenset(row["id"] for row in rows if row["cancelled"]),
        )

    async def rescue(self, limit: int) -> Sequence[Rescued]:
        # What was over when we asked: while a file is locked we wait, and the living with us, who could not renew.
        asked_at = self._clock.now() if self._database.dialect == "sqlite" else self._now()
        rows = await self._database.all(self._book.rescue, limit=limit, now=asked_at)
        ends = {self.table.dead: ItemState.DEAD, self.table.cancelled: ItemState.CANCELLED}
        return [Rescued(row["id"], ends.get(row["state"], ItemState.READY), row["crashes"]) for row in rows]

    async def next_at(self) -> datetime | None:
        row = await self._database.one(self._book.next_at, **self._queue)
        return None if row is None else row["at"]

    async def cancel(self, id: str, reason: str) -> bool:
        if await self._database.run(self._book.cancel, id=id, reason=told(reason, LONGEST_ERROR), now=self._now()):
            return True
        return bool(await self._database.run(self._book.wish_cancelled, id=id))

    async def revive(self, id: str) -> bool:
        try:
            return bool(await self._database.run(self._book.revive, id=id, now=self._now()))
        except StoreConflict:
            return False  # another with its key is alive

    async def discard(self, id: str) -> bool:
        return bool(await self._database.run(self._book.discard, id=id))

    async def item(self, id: str) -> Row | None:
        return await self._database.one(self._book.item, id=id)

    async def listed(self, state: str, limit: int) -> list[dict[str, Any]]:
        """The newest items in a state, in the words of the contract: ready, running, done, dead, cancelled."""
        words = {
            ItemState.READY: self.table.ready,
            ItemState.RUNNING: (self.table.running or "",),
            ItemState.DONE: (self.table.done,),
            ItemState.DEAD: (self.table.dead,),
            ItemState.CANCELLED: (self.table.cancelled,),
        }[ItemState(state)]
        rows = await self._database.all(self._book.listed, states=AsJson(list(words)), limit=limit, **self._queue)
        return [dict(row) for row in rows]

    async def counts(self) -> dict[str, int]:
        return {row["state"]: row["items"] for row in await self._database.all(self._book.counts, **self._queue)}

    async def depth(self) -> Depth:
        row = await self._database.one(self._book.depth, now=self._now(), **self._queue)
        assert row is not None
        oldest = await self.next_at() if row["due"] else None
        return Depth(
            due=row["due"],
            later=row["ready"] - row["due"],
            running=row["running"],
            dead=row["dead"],
            oldest_due=timedelta(0) if oldest is None else max(timedelta(0), row["now"] - oldest),
        )

    async def _turn_at_once(self, endings: Endings, tenure: Tenure, limit: int) -> Turned:
        rows = await self._database.all(
            self._book.turn,
            endings=AsJson([self._ending(lease, settlement) for lease, settlement in endings]),
            limit=limit,
            owner=tenure.owner,
            holds=self._holds,
            **self._queue,
            **self._time(tenure),
        )
        settled = set(zip(rows[0]["settled_ids"] or (), rows[0]["settled_fences"] or (), strict=True))
        leases = [self._lease(row) for row in rows if row[self.table.id] is not None]
        return Turned(leases, [lease for lease, _ in endings if (lease.id, lease.fence) not in settled])

    async def _settle(self, transaction: Transaction, endings: Endings) -> list[Lease]:
        if not endings:
            return []
        described = AsJson([self._ending(lease, settlement) for lease, settlement in endings])
        rows = await transaction.all(self._book.settle, endings=described, now=self._now())
        # By the fence as well: an item that was lost and claimed again may stand here twice.
        settled = {(row["id"], row["fence"]) for row in rows}
        ours = [(lease, settlement) for lease, settlement in endings if (lease.id, lease.fence) in settled]
        await self.put([item for _, settlement in ours for item in settlement.follow_ups], within=transaction)
        return [lease for lease, _ in endings if (lease.id, lease.fence) not in settled]

    async def _claim(self, transaction: Transaction, tenure: Tenure, limit: int, reversed: bool) -> list[Lease]:
        asked = {"owner": tenure.owner, "holds": self._holds, **self._queue, **self._time(tenure)}
        book = self._book
        if self._database.dialect == "postgres":
            query = book.claim_reversed if reversed and self.table.priority else book.claim
            return [self._lease(row) for row in await transaction.all(query, limit=limit, **asked)]
        levels = await self._levels(transaction)
        leases: list[Lease] = []
        for level in levels[::-1] if reversed else levels:
            left = limit - len(leases)
            if left:
                rows = await transaction.all(book.claim, limit=left, **level, **asked)
                leases += [self._lease(row) for row in rows]
        return leases

    async def _claim_in_turn(self, transaction: Transaction, tenure: Tenure, limit: int) -> list[Lease]:
        asked = {"owner": tenure.owner, "holds": self._holds, **self._queue, **self._time(tenure)}
        rows = await transaction.all(self._book.claim_in_turn, limit=limit, **asked)
        return [self._lease(row) for row in rows]

    async def _levels(self, reading: Any) -> list[dict[str, int]]:
        if self.table.priority is None:
            return [{}]
        rows = await reading.all(self._book.levels, **self._queue, now=self._now())
        return [{"level": row["value"]} for row in rows]

    def _lease(self, row: Row) -> Lease:
        table = self.table
        values = dict(row)
        return Lease(
            id=values[table.id],
            fence=values[table.fence],
            attempt=values[table.attempts],
            row=values,
            is_last_chance=values[table.crashes] + 1 >= table.crash_cap,
            due_at=values[table.available_at],
        )

    def _row(self, item: NewItem, now: datetime) -> dict[str, Json]:
        table, dialect = self.table, self._database.dialect
        values: dict[str, object] = {
            table.id: self._ids.new(),
            table.available_at: item.available_at or now,
            table.created_at: now,
            **self._queue_column(),
            **item.values,
        }
        if table.key is not None and item.key is not None:
            values[table.key] = item.key
        if table.priority is not None and item.priority is not None:
            values[table.priority] = item.priority
        return {column: _written(value, dialect) for column, value in values.items()}

    def _queue_column(self) -> dict[str, object]:
        return {} if self.table.queue is None else {self.table.queue: self.name}

    def _ending(self, lease: Lease, settlement: Settlement) -> dict[str, Json]:
        table = self.table
        ended = settlement.state is not ItemState.READY
        return {
            "id": lease.id,
            "fence": lease.fence,
            "state": self._state(settlement),
            "available_at": None if settlement.available_at is None else microseconds(settlement.available_at),
            "back": int(settlement.gives_back),
            "anew": settlement.stage is not None,
            "error": settlement.error,
            "ended": ended,
            "result": settlement.result,
            "expires_at": None if settlement.expires_at is None else microseconds(settlement.expires_at),
            "last_stage": lease.row.get(table.state)
            if settlement.state is ItemState.DEAD and table.last_stage
            else None,
        }

    def _state(self, settlement: Settlement) -> str | None:
        table = self.table
        match settlement.state:
            case ItemState.DONE:
                return settlement.stage or table.done
            case ItemState.DEAD:
                return table.dead
            case ItemState.CANCELLED:
                return table.cancelled
            case _:
                # A table without a running value kept its stage while it ran.
                return settlement.stage or (table.ready[0] if table.running is not None else None)

    def _time(self, tenure: Tenure) -> dict[str, object]:
        return {"now": self._now(), "lease": tenure.lease // _MICROSECOND}

    def _now(self) -> datetime | None:
        return self._clock.now() if self._own_time else None


def _written(value: object, dialect: Dialect) -> Json:
    """A value as it stands in a JSON row: SQLite takes instants as numbers and JSON as text, PostgreSQL both as JSON says."""
    match value:
        case datetime():
            return microseconds(value) if dialect == "sqlite" else value.isoformat()
        case AsJson(value=inner):
            return dumps(inner) if dialect == "sqlite" else inner  # type: ignore[return-value]
        case _:
            return value  # type: ignore[return-value]
