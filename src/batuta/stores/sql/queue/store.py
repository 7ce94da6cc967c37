"""SqlQueue: a queue on any table that a ``QueueTable`` describes."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from batuta.health.queues import HOUR, STUCK_AFTER, Pulse
from batuta.kernel.clock import Clock, in_microseconds, microseconds
from batuta.kernel.errors import InvalidName, RowLocked, StatementRefused, StoreConflict
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.kernel.reasons import Reason, decode, define, encode
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.storage.json import Json, dumps, loads
from batuta.kernel.storage.storable import mask_text, refuse_too_deep
from batuta.queue.item import ItemState, Lease, NewItem, QueueTable, pause_of_queue, require_identifier
from batuta.queue.limits import TaskLimits
from batuta.queue.outcome import LONGEST_ERROR, Settlement, Writes, clamp_instant, clamp_wait
from batuta.queue.store import ClaimResult, Depth, Endings, Lapsing, Rescued, Unserved
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Row, Transaction, from_row
from batuta.stores.sql.queue.claim import (
    APART,
    Asked,
    PostgresClaims,
    SomeLost,
    SqliteClaims,
    Unwritten,
    claims_for,
    merge_writes,
)
from batuta.stores.sql.queue.clock import QueueClock
from batuta.stores.sql.queue.limits import LimitedClaims
from batuta.stores.sql.queue.statements import RUNNING, QueueQueries, queue_queries
from batuta.stores.sql.tables.audit import AuditLog

DISCARDED = define("discarded", "discarded by an operator: no worker serves {queue}")


class SqlQueue:
    """A queue on a table. ``queue`` selects one of several queues in the table. If ``own_time`` is true, the queue uses
    this process's clock instead of the database's.
    """

    def __init__(
        self,
        database: Database,
        table: QueueTable,
        ids: Ids,
        clock: Clock,
        *,
        queue: str | None = None,
        own_time: bool = False,
        liveness: Database | None = None,
        limits: Mapping[str, TaskLimits] | None = None,
        encryption: Encryption = PLAIN,
        next_due: Callable[[str], Awaitable[Row | None]] | None = None,
    ) -> None:
        """Create the queue. ``liveness`` is a separate set of connections for renewing, settling, claiming and rescuing
        items; without it, the queue uses ``database``. ``limits`` maps the queue's tasks to their limits.
        ``encryption`` decrypts the tasks' arguments. If ``next_due`` is given, it is used instead of the statement
        ``next_at``, so that several queues in one table can share one query.
        """
        self.table = table
        self._next_due = next_due
        self.name = queue or table.name
        self._database = database
        self._liveness = liveness or database
        self._ids = ids
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock
        self._own_time = own_time
        self._queue = {} if table.queue is None else {"queue": self.name}
        self._holds = AsJson([pause_of_queue(self.name), "pause.all"])
        self._queries = queue_queries(table, database.dialect)
        self._claims = claims_for(table, database.dialect, clock)
        self.limited = (
            None
            if limits is None
            else LimitedClaims(
                table, self.name, limits, self._claims, ids, clock, own_time=own_time, encryption=encryption
            )
        )
        self._set_clock = QueueClock(table) if database.dialect == "sqlite" else None
        # Number of claims by all of the queue's workers in this process. Every eighth claim takes the least urgent
        # items first.
        self.claims = count(1)
        self._queries_by_columns: dict[tuple[tuple[str, ...], tuple[str, ...]], QueueQueries] = {}
        # Ids of items whose row was locked when they were settled. Until their settlement is written, transactions that
        # settle them skip locked rows.
        self._unchecked: set[str] = set()

    @property
    def where(self) -> str:
        return self._database.where

    async def put(
        self, items: Sequence[NewItem], within: Transaction | None = None, shared: Mapping[str, object] | None = None
    ) -> list[str | None]:
        """Insert items and return their ids; an id is None if an unfinished item has the same key. ``within`` is the
        caller's transaction. ``shared`` maps columns to a value that all items share.
        """
        if not items:
            return []
        own: dict[str, object] = {} if self.table.queue is None else {self.table.queue: self.name}
        every = {column: _encode(value, self._database.dialect) for column, value in {**own, **(shared or {})}.items()}
        rows = [
            _New(self._row(item, id), in_microseconds(clamp_wait(item.delay or _NOTHING)))
            for item, id in zip(items, self._ids.many(len(items)), strict=True)
        ]
        if within is not None or self._goes_at_once(rows):
            taken = await self._put(rows, every, within or self._database)
        else:
            async with self._database.transaction() as transaction:
                taken = await self._put(rows, every, transaction)
        return [id if id in taken else None for id in (str(new.row[self.table.id]) for new in rows)]

    async def put_rows(
        self,
        rows: Sequence[dict[str, Json]],
        shared: Mapping[str, object] | None = None,
        within: Transaction | None = None,
    ) -> list[str]:
        """Insert items that have neither a key nor a delay in one statement, and return the ids of the items. This
        method is faster than ``put``.

        All rows must have the same columns, without the id, which this method adds. A JSON column's value must be a
        list or a mapping that PostgreSQL can store.
        """
        if not rows:
            return []
        ids, into = self._ids.many(len(rows)), within or self._database
        for row, id in zip(rows, ids, strict=True):
            row[self.table.id] = id
        own: dict[str, object] = {} if self.table.queue is None else {self.table.queue: self.name}
        every = {column: _encode(value, self._database.dialect) for column, value in {**own, **(shared or {})}.items()}
        await self._insert((tuple(rows[0]), 0), rows, every, into)
        into.notify(self.name)
        return ids

    async def _put(self, rows: "Sequence[_New]", every: dict[str, Json], into: Transaction) -> set[str]:
        """Insert rows, using one statement for all rows that have the same columns and delay. Columns without a value
        get their default.

        Rows are sorted by key, so that two processes that insert the same keys do not deadlock.
        """
        taken: set[str] = set()
        of_one_shape: dict[_Shape, list[dict[str, Json]]] = {}
        for new in sorted(rows, key=lambda new: str(new.row.get(self.table.key or ""))):
            of_one_shape.setdefault(new.shape, []).append(new.row)
        for shape, some in of_one_shape.items():
            taken |= await self._insert(shape, some, every, into)
        for queue in {(new.row | every).get(self.table.queue or "", self.name) for new in rows}:
            into.notify(str(queue))
        return taken

    async def _insert(
        self, shape: "_Shape", rows: Sequence[dict[str, Json]], every: dict[str, Json], into: Transaction
    ) -> set[str]:
        columns, delay = shape
        queries = self._put_queries(columns, tuple(column for column in every if column not in columns))
        known = {
            "rows": AsJson(rows),
            "every": AsJson(every),
            "notified": self.name,
            "delay": delay,
            "now": self._query_time(),
        }
        values = {name: known[name] for name in queries.put.parameters}
        if self._database.dialect == "postgres":
            return {row["id"] for row in await into.all(queries.put, **values)}
        ids = {str(row[self.table.id]) for row in rows}
        match await into.run(queries.put, **values):
            case 0:
                return set()
            case touched if touched == len(rows):
                return ids
        present = await into.one(queries.present, ids=AsJson(sorted(ids)))
        return set() if present is None else set(loads(present["ids"]))  # type: ignore[arg-type]

    def _put_queries(self, own: tuple[str, ...], shared: tuple[str, ...]) -> QueueQueries:
        if (own, shared) not in self._queries_by_columns:
            for column in (*own, *shared):
                require_identifier(column, f"column of {self.table.name}", "it is not an SQL identifier")
            self._queries_by_columns[own, shared] = queue_queries(self.table, self._database.dialect, own, shared)
        return self._queries_by_columns[own, shared]

    def _goes_at_once(self, rows: "Sequence[_New]") -> bool:
        """Return whether a single statement can insert all rows. On SQLite more than one row needs two statements: one
        that inserts the rows, and one that reads which rows were inserted.
        """
        if self._database.dialect == "sqlite" and len(rows) > 1:
            return False
        return len({new.shape for new in rows}) == 1

    async def settle_and_claim(
        self, endings: Endings, lease_holder: LeaseHolder, limit: int, *, reversed: bool = False
    ) -> ClaimResult:
        asked = {"owner": lease_holder.owner, "holds": self._holds, **self._queue, **self._time(lease_holder)}
        if self.table.group is not None:
            return await self._turn_by_group(endings, asked, limit)
        if self.limited and limit:
            return await self._turn_with_limits(self.limited, endings, asked, limit, reversed=reversed)
        return await self._turn(endings, asked, limit, reversed=reversed)

    async def _turn(self, endings: Endings, asked: Asked, limit: int, *, reversed: bool) -> ClaimResult:
        plain = not any(settlement.follow_ups or settlement.effect for _, settlement in endings)
        claims = self._claims
        if isinstance(claims, PostgresClaims) and plain and self._expects_no_lock(endings):
            if min(len(endings), limit) >= APART:
                result = await claims.settle_beside_claim(self._liveness, endings, asked, limit, reversed=reversed)
                self._defer_unchecked(endings, result.unchecked)
                return result
            if limit and not reversed:
                try:
                    return ClaimResult(*await claims.settle_and_claim(self._liveness, endings, asked, limit))
                except RowLocked:
                    self._unchecked |= {lease.id for lease, _ in endings}
        if isinstance(claims, SqliteClaims) and plain and claims.knows_columns:
            turn = endings, self._query_time(), asked, limit
            with suppress(SomeLost):
                leases = await claims.settle_and_claim(self._liveness, *turn, reversed=reversed)
                self._notify_stages(self._liveness, [settlement for _, settlement in endings])
                return ClaimResult(leases)
        # Effects are application code and may be slow, so they run on the handlers' connections.
        path = self._database if any(settlement.effect for _, settlement in endings) else self._liveness
        async with path.transaction() as transaction:
            unwritten = await self._settle(transaction, endings)
            leases = await claims.claim(transaction, asked, limit, reversed=reversed) if limit else []
        self._defer_unchecked(endings, unwritten.unchecked)
        return ClaimResult(leases, *unwritten)

    async def _turn_with_limits(
        self, limited: LimitedClaims, endings: Endings, asked: Asked, limit: int, *, reversed: bool
    ) -> ClaimResult:
        """Settle items and claim the next items in a queue that has tasks with limits. If no item with limits may
        start, the transaction is the same as for a queue without limits.
        """
        work = await limited.find_work(self._liveness, endings, asked)
        if not work:
            result = await self._turn(endings, asked, limit, reversed=reversed)
            return replace(result, leases=await limited.label(self._liveness, result.leases, asked))
        path = self._database if any(settlement.effect for _, settlement in endings) else self._liveness
        async with path.transaction() as transaction:
            unwritten = await self._settle(transaction, endings)
            limited_first = limited.next_order()
            leases = await limited.claim(transaction, work, asked, limit) if limited_first else []
            left = limit - len(leases)
            plain = await self._claims.claim(transaction, asked, left, reversed=reversed) if left else []
            left -= len(plain)
            if left and not limited_first:
                leases = await limited.claim(transaction, work, asked, left)
        self._defer_unchecked(endings, unwritten.unchecked)
        return ClaimResult([*leases, *await limited.label(self._liveness, plain, asked)], *unwritten)

    async def _turn_by_group(self, endings: Endings, asked: Asked, limit: int) -> ClaimResult:
        """Settle items in one transaction and claim the next items in another, so that only the claim is rolled back if
        another process claims the same group at the same time.
        """
        path = self._database if any(settlement.effect for _, settlement in endings) else self._liveness
        async with path.transaction() as transaction:
            unwritten = await self._settle(transaction, endings)
        try:
            async with self._liveness.transaction() as transaction:
                leases = await self._claims.claim_round_robin(transaction, asked, limit) if limit else []
        except StoreConflict:
            return ClaimResult((), *unwritten)
        return ClaimResult(leases, *unwritten)

    def _expects_no_lock(self, endings: Endings) -> bool:
        """Return whether the rows to settle are probably unlocked. Only then does the queue settle and claim in one
        statement, because that statement waits for row locks.
        """
        return not self._unchecked or not any(lease.id in self._unchecked for lease, _ in endings)

    def _defer_unchecked(self, endings: Endings, unchecked: Sequence[Lease]) -> None:
        if self._unchecked or unchecked:
            self._unchecked -= {lease.id for lease, _ in endings}
            self._unchecked |= {lease.id for lease in unchecked}

    async def conclude(self, lease: Lease, settlement: Settlement) -> bool:
        async with self._database.transaction() as transaction:
            unwritten = await self._settle(transaction, [(lease, settlement)])
            if unwritten.unchecked:
                raise RowLocked(where=self._database.where, why=f"item {lease.id} of {self.table.name}")
        return not unwritten.lost

    async def renew(self, leases: Collection[Lease], lease_holder: LeaseHolder) -> Renewed:
        held = AsJson([{"id": lease.id, "fence": lease.fence} for lease in leases])
        rows = await self._liveness.all(self._queries.renew, held=held, **self._time(lease_holder))
        ours = {(row["id"], row["fence"]) for row in rows}
        return Renewed(
            lost=frozenset(lease.id for lease in leases if (lease.id, lease.fence) not in ours),
            cancelled=frozenset(row["id"] for row in rows if row["cancelled"]),
            unchecked=frozenset(row["id"] for row in rows if not row["is_renewed"]),
        )

    async def lapsing(self, within: timedelta, limit: int) -> Sequence[Lapsing]:
        asked = {"within": in_microseconds(within), "limit": limit, "now": self._now()}
        rows = await self._liveness.all(self._queries.lapsing, **asked)
        return [Lapsing(row["id"], row["fence"], row["lease_until"]) for row in rows]

    async def rescue(self, limit: int, only: Sequence[Lapsing] | None = None) -> Sequence[Rescued]:
        # Read the time before the statement waits for a locked file. Other processes cannot renew their leases during
        # that wait, so a lease that expires during it must not be rescued.
        asked = {"limit": limit, "now": self._query_time()}
        if only is None:
            return self._rescues(await self._liveness.all(self._queries.rescue, **asked))
        leases = [[each.id, each.fence, microseconds(each.lease_until)] for each in only]
        return self._rescues(await self._liveness.all(self._queries.rescue_seen, seen=AsJson(leases), **asked))

    async def rescue_owned(self, owners: Collection[str], limit: int) -> Sequence[Rescued]:
        if not owners:
            return []
        asked = {"owners": AsJson(sorted(owners)), "limit": limit, "now": self._now()}
        return self._rescues(await self._liveness.all(self._queries.rescue_owned, **asked))

    def _rescues(self, rows: Sequence[Row]) -> list[Rescued]:
        if rows:
            self._liveness.notify(None)  # notify all queues, because the items may belong to any queue of the table
        ends = {self.table.dead: ItemState.DEAD, self.table.cancelled: ItemState.CANCELLED}
        return [
            Rescued(row["id"], ends.get(row["state"], ItemState.READY), row["crashes"], row["queue"], row["task"])
            for row in rows
        ]

    async def follow_clock(self, lease: timedelta) -> timedelta:
        if self._set_clock is None:
            return timedelta(0)
        return await self._set_clock.follow(self._liveness, self._clock.now(), lease)

    async def release_stray(self, owner: str, known: Collection[Lease]) -> Sequence[str]:
        ids = AsJson(sorted(lease.id for lease in known))
        rows = await self._liveness.all(
            self._queries.release_stray, owner=owner, known=ids, now=self._now(), **self._queue
        )
        if rows:
            self._liveness.notify(self.name)
        return [row["id"] for row in rows]

    async def owners(self) -> Sequence[str]:
        return [row["owner"] for row in await self._liveness.all(self._queries.owners)]

    async def note(self, lease: Lease, error: str | None) -> bool:
        return bool(
            await self._liveness.run(
                self._queries.note, id=lease.id, fence=lease.fence, error=encode(error, LONGEST_ERROR)
            )
        )

    async def last_error(self, id: str) -> tuple[str | None, datetime]:
        row = await self._liveness.one(self._queries.last_error, id=id, now=self._now())
        assert row is not None
        return decode(row["error"]), row["now"]

    async def next_at(self) -> datetime | None:
        """Return the instant at which the next item is due, or None if no item is waiting. The instant is converted to
        this process's clock, because a worker sleeps by that clock.
        """
        limited_at = await self.limited.next_at(self._liveness) if self.limited else None
        row = await (self._next_due(self.name) if self._next_due else self._next(self._liveness))
        if row is None or row["at"] is None:
            return limited_at
        at: datetime = row["at"]
        if not (self._own_time or self._database.dialect == "sqlite"):
            at = self._clock.now() + (at - row["now"])
        return at if limited_at is None else min(at, limited_at)

    async def _next(self, path: Database) -> Row | None:
        return await path.one(self._queries.next_at, now=self._now(), **self._queue)

    async def cancel(self, id: str, reason: str, *, by: str | None = None) -> bool:
        asked = {"reason": encode(mask_text(reason, LONGEST_ERROR), LONGEST_ERROR), "now": self._now()}
        if by is None:
            return bool(await self._database.run(self._queries.cancel, id=id, **asked))
        return await self._run_audited(self._queries.cancel, "queue.cancel", by, id=id, **asked)

    async def revive(self, id: str, *, by: str | None = None) -> bool:
        try:
            return await self._run_audited(self._queries.revive, "queue.retry", by, id=id, now=self._now())
        except StoreConflict:
            return False  # an unfinished item has the same key

    async def discard(self, id: str, *, by: str | None = None) -> bool:
        return await self._run_audited(self._queries.discard, "queue.discard", by, id=id)

    async def find_unserved(self, served: Collection[str] = ()) -> list[Unserved]:
        """Return the waiting items of stages that no longer exist. The query reads the whole table, so call this method
        only every few minutes. ``served`` lists the stages of the other pipelines in the same table.
        """
        if self.table.queue != self.table.state:
            return []
        table = self.table
        known = AsJson([*table.ready, *served, table.done, table.dead, table.cancelled])
        rows = await self._database.all(self._queries.unserved, known=known)
        return [Unserved(queue=row["queue"], name=None, count=row["items"], oldest=row["oldest"]) for row in rows]

    async def rehome(self, source: str, target: str, limit: int, *, by: str) -> int:
        """Move at most ``limit`` waiting items from one queue or stage to another, with an audit entry. Return the
        number of items moved.

        Raises StoreConflict if an unfinished item in the target queue or stage has the same key as a moved item; the
        operator must discard one of the two items.
        """
        if self.table.queue == self.table.state and target not in self.table.ready:
            raise InvalidName(name=target, kind="stage", why=f"the stages are {', '.join(self.table.ready)}")
        asked = {"source": source, "target": target, "limit": limit}
        return await self._run_many_audited(self._queries.rehome, "queue.rehome", by, {"queue": target}, asked)

    async def discard_waiting(self, source: str, limit: int, *, by: str) -> int:
        """Cancel at most ``limit`` waiting items of a queue or stage, and write an audit entry. Return the number of
        cancelled items.
        """
        asked = {"source": source, "limit": limit, "reason": encode(DISCARDED(queue=source), LONGEST_ERROR)}
        return await self._run_many_audited(self._queries.discard_waiting, "queue.discard_waiting", by, None, asked)

    async def _run_many_audited(
        self, query: Query, action: str, by: str, after: Json, asked: Mapping[str, object]
    ) -> int:
        known = {"now": self._now(), **asked}
        async with self._database.transaction() as transaction:
            count = await transaction.run(query, **{name: known[name] for name in query.parameters})
            transaction.notify(None)
            if count:
                await self._audit.note(
                    transaction,
                    actor=by,
                    action=action,
                    subject=f"{self.table.name}:{asked['source']}",
                    before={"items": count},
                    after=after,
                    now=self._clock.now(),
                )
        return count

    async def _run_audited(self, query: Query, action: str, by: str | None, *, id: str, **values: object) -> bool:
        async with self._database.transaction() as transaction:
            done = bool(await transaction.run(query, id=id, **values))
            transaction.notify(self.name)
            if done and by is not None:
                subject = f"{self.table.name}:{id.lower()}"
                await self._audit.note(transaction, actor=by, action=action, subject=subject, now=self._clock.now())
        return done

    async def item(self, id: str) -> Row | None:
        return await self._database.one(self._queries.item, id=id)

    async def list_items(self, state: str, limit: int, *, of: str | None = None) -> list[dict[str, Any]]:
        """Return the newest items in a state: ready, running, done, dead, cancelled, or a state value of the table.

        For a stage, the dead items are the items that failed at it. ``of`` selects another queue or stage of the table.
        """
        words: dict[str, tuple[str, ...]] = {
            ItemState.READY: (*self.table.ready, *([of] if of else [])),
            ItemState.RUNNING: (self.table.running or RUNNING,),
            ItemState.DONE: (self.table.done,),
            ItemState.DEAD: (self.table.dead,),
            ItemState.CANCELLED: (self.table.cancelled,),
        }
        states = AsJson(list(words.get(state, (state,))))
        queue = {"queue": of} if of and self._queue else self._queue
        rows = await self._database.all(self._queries.listed, states=states, limit=limit, **queue)
        return [dict(row) for row in rows]

    async def why_limited(self, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Reason]:
        """Return a mapping from row id to the limit that the row is waiting for. Rows that are not waiting for a limit
        are omitted.
        """
        if not self.limited:
            return {}
        waiting = [each for each in items if each[self.table.state] in self.table.ready]
        return await self.limited.explain(self._database, waiting)

    async def counts(self) -> dict[str, int]:
        return {row["state"]: row["items"] for row in await self._database.all(self._queries.counts, **self._queue)}

    async def depth(self) -> Depth:
        row = await self._database.one(self._queries.depth, now=self._now(), **self._queue)
        assert row is not None
        following = await self._next(self._database) if row["due"] else None
        oldest = None if following is None else following["at"]
        return Depth(
            due=row["due"],
            later=row["ready"] - row["due"],
            running=row["running"],
            dead=row["dead"],
            limited=row["limited"],
            oldest_due=timedelta(0) if oldest is None else max(timedelta(0), row["now"] - oldest),
        )

    async def pulse(self) -> Pulse:
        """Return exact counts of the queue's items. An item counts as stuck if its lease expired long ago and no rescue
        has released it.
        """
        row = await self._database.one(
            self._queries.pulse,
            now=self._now(),
            holds=self._holds,
            grace=in_microseconds(STUCK_AFTER),
            lately=in_microseconds(HOUR),
            **self._queue,
        )
        assert row is not None
        return from_row(Pulse, row)

    async def _settle(self, transaction: Transaction, endings: Endings) -> Unwritten:
        """Write the settlements, then the effects and follow-up items of the settlements that were written. Return the
        leases whose settlement was not written.
        """
        if not endings:
            return Unwritten([], [])
        unwritten = await self._claims.settle(transaction, endings, self._query_time())
        skipped = {(lease.id, lease.fence) for leases in unwritten for lease in leases}
        settled = [settlement for lease, settlement in endings if (lease.id, lease.fence) not in skipped]
        # Effects run before follow-ups are inserted, because a follow-up item may refer to rows that an effect writes.
        await self._run_effects(transaction, settled)
        await self.put([item for settlement in settled for item in settlement.follow_ups], within=transaction)
        self._notify_stages(transaction, settled)
        return unwritten

    def _notify_stages(self, transaction: Transaction, settled: Sequence[Settlement]) -> None:
        for stage in {settlement.stage for settlement in settled} - {None, self.name}:
            transaction.notify(stage)

    async def _run_effects(self, transaction: Transaction, settlements: Sequence[Settlement]) -> None:
        written: list[Writes] = []
        for settlement in settlements:
            match settlement.effect:
                case None:
                    continue
                case Writes() as writes:
                    written.append(writes)
                case effect:
                    await effect(transaction)
        for query, rows in merge_writes(written):
            await transaction.run_many(query, rows)

    def _row(self, item: NewItem, id: str) -> dict[str, Json]:
        table, dialect = self.table, self._database.dialect
        row: dict[str, Json] = {table.id: id}
        if item.available_at is not None:
            row[table.available_at] = _encode(clamp_instant(item.available_at), dialect)
        for column, value in item.values.items():
            row[column] = _encode(value, dialect)
        if table.key is not None and item.key is not None:
            row[table.key] = _encode(item.key, dialect)
        if table.priority is not None and item.priority is not None:
            row[table.priority] = item.priority
        return row

    def _time(self, lease_holder: LeaseHolder) -> dict[str, object]:
        return {"now": self._now(), "lease": in_microseconds(lease_holder.lease)}

    def _now(self) -> datetime | None:
        """Return this process's time, or None if the statement must use the database's clock."""
        return self._clock.now() if self._own_time else None

    def _query_time(self) -> datetime | None:
        """Return the time for a query, or None if the query must use the database's clock. On SQLite the result is
        never None, because SQL's ``now()`` would call Python for every row.
        """
        return self._clock.now() if self._database.dialect == "sqlite" else self._now()


class _New(NamedTuple):
    """A row to insert, with its delay in microseconds."""

    row: dict[str, Json]
    delay: int

    @property
    def shape(self) -> "_Shape":
        return tuple(self.row), self.delay


_Shape: TypeAlias = tuple[tuple[str, ...], int]
_NOTHING = timedelta(0)


def _encode(value: object, dialect: Dialect) -> Json:
    """Encode a value for a row that is passed as JSON. SQLite needs instants as numbers and JSON values as text;
    PostgreSQL accepts both as JSON.
    """
    match value:
        case datetime():
            return microseconds(value) if dialect == "sqlite" else value.isoformat()
        case AsJson(value=None):
            return None
        case str() if "\x00" in value:
            raise StatementRefused(
                why="a text with a NUL character, which PostgreSQL cannot store and SQLite would truncate"
            )
        case AsJson(value=inner):
            refuse_too_deep(inner, "item value")
            return dumps(inner) if dialect == "sqlite" else inner  # type: ignore[return-value]
        case _:
            return value  # type: ignore[return-value]
