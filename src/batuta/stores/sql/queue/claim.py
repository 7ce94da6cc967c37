"""Settles items and claims the next items, on SQLite and on PostgreSQL. The two databases need different statements,
which have the same effect.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import count, pairwise
from typing import Any, ClassVar, NamedTuple, cast

from batuta.kernel.clock import Clock, in_microseconds, instant, microseconds
from batuta.kernel.errors import RowLocked, StoreConflict
from batuta.kernel.reasons import encode
from batuta.kernel.storage.json import Json, dumps, loads
from batuta.kernel.waiting import cancel_and_wait
from batuta.queue.item import ItemState, Lease, QueueTable
from batuta.queue.outcome import LONGEST_ERROR, Settlement, Writes, clamp_wait
from batuta.queue.store import ClaimResult, Endings
from batuta.stores.sql.database import AsJson, Database, Query, Row, Statements, Transaction
from batuta.stores.sql.queue.continuation import Continuation
from batuta.stores.sql.queue.statements import (
    lease_columns,
    postgres_claim_queries,
    row_columns,
    sqlite_claim_queries,
)

Asked = Mapping[str, object]
Claim = Callable[[Transaction, Asked, int], Awaitable[list[Lease]]]
_NUMBERS = {int, float, type(None)}
# On PostgreSQL, the queue usually settles and claims in one statement. If at least this many items are settled and at
# least this many may be claimed, it uses two concurrent statements instead: the second commit costs more, but two
# server processes share the work.
APART = 100
# The value of the column ``picked`` if no item is due.
NOTHING_PICKED = "[]"
# Errors that are raised when an invalid value is decoded, such as a value that was edited by hand.
_UNREADABLE = (ValueError, TypeError, OverflowError)


class Unwritten(NamedTuple):
    """The leases whose settlement was not written, either because the lease is lost or because another transaction has
    locked the row.
    """

    lost: list[Lease]
    unchecked: list[Lease]


class SomeLost(StoreConflict):
    """Raised if at least one of several leases was lost and it is unknown which one. Nothing was written."""

    def __init__(self) -> None:
        super().__init__(why="a lease was lost")


class PostgresClaims:
    def __init__(self, table: QueueTable, clock: Clock) -> None:
        self._table = table
        self._queries = postgres_claim_queries(table)
        self._round = Round()
        self._continuation = Continuation(table, clock)

    async def settle_and_claim(
        self, transaction: Transaction, endings: Endings, asked: Asked, limit: int
    ) -> tuple[list[Lease], list[Lease]]:
        """Settle items and claim the next items in one statement. Return the claimed leases and the lost leases. The
        statement waits for rows that other transactions have locked.
        """
        successes, others = split_endings(endings)
        rows = await transaction.all(
            self._queries.settle_and_claim,
            endings=AsJson([ending(self._table, *each) for each in others]),
            ids=",".join([lease.id for lease, _ in successes]),
            fences=",".join([str(lease.fence) for lease, _ in successes]),
            keeps=",".join([keep for _, keep in successes]),
            expected=len(endings),
            limit=limit,
            **asked,
        )
        first = rows[0]
        lost = []
        if first["settled_count"] < len(endings):
            lost = list_lost(endings, set(zip(first["settled_ids"] or (), first["settled_fences"] or (), strict=True)))
        if self._table.given is not None:
            return [] if first["lease_id"] is None else leases_of(self._table, rows), lost
        claimed = [_drop_settlement(dict(row)) for row in rows if row[self._table.id] is not None]
        return [lease_of(self._table, row) for row in claimed], lost

    async def settle_beside_claim(
        self, database: Database, endings: Endings, asked: Asked, limit: int, *, reversed: bool
    ) -> ClaimResult:
        """Settle items and claim the next items in two statements that run at the same time, each on its own connection
        and with its own commit. If a row is locked, all settlements are returned as unchecked.
        """
        claiming = asyncio.create_task(self.claim(database, asked, limit, reversed=reversed))
        try:
            unwritten = await self._settle_all(database, endings, asked)
        except BaseException:
            await cancel_and_wait(claiming)
            raise
        try:
            return ClaimResult(await claiming, *unwritten)
        except Exception as error:  # noqa: BLE001 - the settlements are written, so the caller must not repeat them
            return ClaimResult((), *unwritten, claim_error=error)

    async def _settle_all(self, database: Database, endings: Endings, asked: Asked) -> Unwritten:
        try:
            _, lost = await self.settle_and_claim(database, endings, asked, 0)
        except RowLocked:
            return Unwritten([], [lease for lease, _ in endings])
        return Unwritten(lost, [])

    async def settle(self, transaction: Transaction, endings: Endings, now: datetime | None) -> Unwritten:
        described = AsJson([ending(self._table, *each) for each in endings])
        rows = await transaction.all(self._queries.settle, endings=described, now=now)
        unwritten = list_lost(endings, {(row["id"], row["fence"]) for row in rows})
        if not unwritten:
            return Unwritten([], [])
        held = AsJson([{"id": lease.id, "fence": lease.fence} for lease in unwritten])
        leased = {(row["id"], row["fence"]) for row in await transaction.all(self._queries.still_leased, held=held)}
        unchecked = [lease for lease in unwritten if (lease.id, lease.fence) in leased]
        return Unwritten([lease for lease in unwritten if (lease.id, lease.fence) not in leased], unchecked)

    async def claim(self, transaction: Transaction, asked: Asked, limit: int, *, reversed: bool) -> list[Lease]:
        """Claim due items in the order of their priorities or, if ``reversed`` is true, the least urgent items first.

        A claim of many items continues after the last item of the previous claim. If it finds fewer items than it may
        claim, a claim from the beginning of the queue follows.
        """
        leases = await self._claim_after(transaction, asked, limit)
        left = limit - len(leases)
        if not left:
            return leases
        if reversed and self._table.priority:
            return leases + leases_of(
                self._table, await transaction.all(self._queries.claim_reversed, limit=left, **asked)
            )
        began = self._continuation.now()
        rows = await transaction.all(self._queries.claim, limit=left, **asked)
        found = leases_of(self._table, rows)
        if APART <= limit == len(found):
            self._continuation.begin(rows, found, began)
        return leases + found

    async def _claim_after(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        after = self._continuation.parameters() if limit >= APART else None
        if after is None:
            return []
        leases = leases_of(self._table, await transaction.all(self._queries.claim_after, limit=limit, **after, **asked))
        self._continuation.move(leases, limit)
        return leases

    async def claim_round_robin(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        return await self._round.claim_both(self._claim_groups, self._claim_ungrouped, transaction, asked, limit)

    async def _claim_groups(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        after = await self._round.place(transaction, self._queries.somewhere, asked)
        locked = await self._lock_groups(transaction, asked, after, limit)
        if not locked:
            return []
        self._round.move_to(locked[-1])
        groups = AsJson([{self._table.group: group} for group in locked])
        rows = await transaction.all(
            self._queries.claim_groups, groups=groups, **_values_for(self._queries.claim_groups, asked, limit=limit)
        )
        return leases_of(self._table, rows)

    async def _lock_groups(self, transaction: Transaction, asked: Asked, after: Any, limit: int) -> list[Any]:
        queries, known = self._queries, {**asked, "after": after}
        locked = await transaction.all(queries.lock_groups, **_values_for(queries.lock_groups, known, limit=limit))
        if after is not None and len(locked) < limit:
            more = await transaction.one(
                queries.has_more_groups, **_values_for(queries.has_more_groups, known, limit=limit)
            )
            if more is not None and more["has_more"]:
                left = limit - len(locked)
                locked += await transaction.all(
                    queries.lock_due_groups, **_values_for(queries.lock_due_groups, known, limit=left)
                )
        # A transaction may take the same advisory lock twice, so remove duplicates.
        return list(dict.fromkeys(row["value"] for row in locked))

    async def _claim_ungrouped(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        query = self._queries.claim_ungrouped
        return leases_of(self._table, await transaction.all(query, **_values_for(query, asked, limit=limit)))


class SqliteClaims:
    def __init__(self, table: QueueTable) -> None:
        self._table = table
        self._queries = sqlite_claim_queries(table)
        self._round = Round()
        self._unpack: Unpack | None = None

    @property
    def knows_columns(self) -> bool:
        """Whether the columns of the table are known, because an earlier claim has read them."""
        return self._unpack is not None

    async def settle_and_claim(
        self, database: Database, endings: Endings, now: datetime | None, asked: Asked, limit: int, *, reversed: bool
    ) -> list[Lease]:
        """Settle items and claim the next items in one transaction, which runs in the writer thread from its beginning
        to its end. Requires ``knows_columns``. If the number of changed rows shows that a lease was lost, raise
        SomeLost.
        """
        assert self._unpack is not None
        queries = self._queries
        successes, others = split_endings(endings)
        alike: dict[tuple[int, str], list[str]] = {}
        for lease, keep in successes:
            alike.setdefault((lease.fence, keep), []).append(lease.id)
        settling = [
            _values_for(
                queries.settle_successes, {"ids": dumps(ids), "fence": fence, "keep": _keep_value(keep), "now": now}
            )
            for (fence, keep), ids in alike.items()
        ]
        described = dumps([ending(self._table, *each) for each in others])
        pick = queries.pick_reversed if reversed else queries.pick
        picking, taking = _values_for(pick, asked, limit=limit), _values_for(queries.take, asked)

        def steps(on: Statements) -> bytes | None:
            if sum(on.run(queries.settle_successes, **values) for values in settling) < len(successes):
                raise SomeLost
            if others:
                ours = on.one(queries.ours, endings=described)
                if ours is None or len(loads(ours["places"])) < len(others):  # type: ignore[arg-type]
                    raise SomeLost
                on.run(queries.settle, endings=described, now=now)
            found = on.one(pick, **picking) if limit else None
            if found is None or found["picked"] == NOTHING_PICKED:
                return None
            on.run(queries.take, picked=found["picked"], **taking)
            held = on.one(queries.taken, picked=found["picked"])
            assert held is not None
            items: bytes = held["items"]
            return items

        items = await database.perform(steps)
        return [] if items is None else self._unpack.unpack(items)

    async def settle(self, transaction: Transaction, endings: Endings, now: datetime | None) -> Unwritten:
        described = dumps([ending(self._table, *each) for each in endings])
        found = await transaction.one(self._queries.ours, endings=described)
        assert found is not None
        ours = set(loads(found["places"]))  # type: ignore[arg-type]
        await transaction.run(self._queries.settle, endings=described, now=now)
        return Unwritten([lease for place, (lease, _) in enumerate(endings) if place not in ours], [])

    async def claim(self, transaction: Transaction, asked: Asked, limit: int, *, reversed: bool) -> list[Lease]:
        query = self._queries.pick_reversed if reversed else self._queries.pick
        return await self.take(transaction, await self._pick(transaction, query, asked, limit), asked)

    async def _pick(self, transaction: Transaction, query: Query, asked: Asked, limit: int) -> list[int]:
        row = await transaction.one(query, **_values_for(query, asked, limit=limit))
        return [] if row is None else loads(row["picked"])  # type: ignore[return-value]

    async def claim_round_robin(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        return await self._round.claim_both(self._claim_groups, self._claim_ungrouped, transaction, asked, limit)

    async def _claim_groups(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        after = await self._round.place(transaction, self._queries.somewhere, asked)
        query = self._queries.pick_in_turn
        picked = await self._pick(transaction, query, {**asked, "after": after}, limit)
        leases = await self.take(transaction, picked, asked)
        if leases:
            self._round.move_to(leases[-1].row[self._table.group or ""])
        return leases

    async def _claim_ungrouped(self, transaction: Transaction, asked: Asked, limit: int) -> list[Lease]:
        picked = await self._pick(transaction, self._queries.pick_ungrouped, asked, limit)
        return await self.take(transaction, picked, asked)

    async def take(
        self, transaction: Transaction, picked: list[int], asked: Asked, take: Query | None = None
    ) -> list[Lease]:
        """Lease the selected rows and return the leases. The argument ``take`` is the SQL statement to use; None
        selects the statement for items without limits.
        """
        if not picked:
            return []
        unpack = self._unpack or await self._read_columns(transaction)
        rows = dumps(picked)
        take = take or self._queries.take
        taking = {name: asked[name] for name in take.parameters if name in asked}
        await transaction.run(take, picked=rows, **taking)
        held = await transaction.one(self._queries.taken, picked=rows)
        assert held is not None
        return unpack.unpack(held["items"])

    async def _read_columns(self, transaction: Transaction) -> "Unpack":
        """Read the names and types of the table's columns. Call this method only after an item has been selected,
        because only then is it certain that the table exists.
        """
        types = {row["name"]: row["type"] for row in await transaction.all(self._queries.columns)}
        given = types if self._table.given is None else {name: types[name] for name in row_columns(self._table)}
        lease = [(name, types[name]) for name in lease_columns(self._table)]
        self._queries = sqlite_claim_queries(self._table, (*lease, *given.items()))
        self._unpack = Unpack(self._table, given)
        return self._unpack


class Round:
    """The position in the round robin over groups: the group from which this process last claimed items. The first
    group is random, so that short-lived processes do not always serve the same groups.
    """

    def __init__(self) -> None:
        self._after: Any = None
        self._claims = count()

    async def claim_both(
        self, groups: Claim, ungrouped: Claim, transaction: Transaction, asked: Asked, limit: int
    ) -> list[Lease]:
        """Claim items that have a group and items without a group, and return their leases. The kind that is claimed
        first alternates, so that neither kind starves.
        """
        first, second = (groups, ungrouped) if next(self._claims) % 2 else (ungrouped, groups)
        leases = await first(transaction, asked, limit)
        if left := limit - len(leases):
            leases += await second(transaction, asked, left)
        return leases

    async def place(self, transaction: Transaction, somewhere: Query, asked: Asked) -> Any:
        if self._after is None:
            asking = {name: asked[name] for name in somewhere.parameters}
            found = await transaction.one(somewhere, **asking)
            self._after = None if found is None else found["value"]
        return self._after

    def move_to(self, group: Any) -> None:
        self._after = group


class Unpack:
    """Decodes rows that the database returned as one JSON value, according to the declared types of their columns."""

    _READERS: ClassVar[dict[str, Callable[[Any], object]]] = {
        "TIMESTAMPTZ": instant,
        "BOOLEAN": bool,
        "DATE": date.fromisoformat,
        "BLOB": bytes.fromhex,
    }

    def __init__(self, table: QueueTable, types: Mapping[str, str]) -> None:
        """Create the decoder for rows that begin with the lease columns, followed by the columns in ``types``."""
        self._table = table
        self._names = list(types)
        self._readers = [self._READERS.get(type) for type in types.values()]

    def unpack(self, items: bytes) -> list[Lease]:
        """Decode claimed rows into leases. A value that cannot be decoded affects only the lease of its own row."""
        try:
            return self.leases_of(loads(items.decode()))
        except _UNREADABLE:
            return self.decode_each(loads(items.decode(errors="surrogateescape")))

    def leases_of(self, packed: Any) -> list[Lease]:
        """Decode claimed rows into leases, column by column. Raises an error if a value cannot be decoded."""
        found: list[Any] = list(zip(*packed, strict=True))
        (ids, fences, attempts, crashes, dues, created), columns = found[:6], found[6:]
        if not {*map(type, crashes), *map(type, dues), *map(type, created)} <= _NUMBERS:
            raise TypeError("a count or an instant is not a number")
        for place, read in enumerate(self._readers):
            if read is not None:
                columns[place] = [None if value is None else read(value) for value in columns[place]]
        rows = [dict(zip(self._names, values, strict=True)) for values in zip(*columns, strict=True)]
        are_last = [count + 1 >= self._table.crash_cap for count in crashes]
        return list(map(Lease, ids, fences, attempts, rows, are_last, dues, created))

    def decode_each(self, packed: Any) -> list[Lease]:
        """Decode claimed rows into leases, value by value. Each lease lists its undecodable columns, whose values
        become None.
        """
        return [self._decode(values) for values in packed]

    def _decode(self, values: list[Any]) -> Lease:
        table, known = self._table, lease_columns(self._table)
        readers = dict(zip(self._names, self._readers, strict=True)) | dict.fromkeys(known[4:], instant)
        found = dict(zip((*known, *self._names), values, strict=True))
        unreadable = [name for name, value in found.items() if not _is_readable(value, readers.get(name))]
        numbers = {name: found[name] for name in (table.fence, table.attempts, table.crashes)}
        unreadable += [name for name, value in numbers.items() if not isinstance(value, int) and name not in unreadable]
        found |= dict.fromkeys(unreadable)
        fence, attempts, crashes = (found[name] or 0 for name in numbers)
        row = {
            name: found[name] if read is None or found[name] is None else read(found[name])
            for name, read in zip(self._names, self._readers, strict=True)
        }
        is_last, due, created = crashes + 1 >= table.crash_cap, found[table.available_at], found[table.created_at]
        return Lease(found[table.id], fence, attempts, row, is_last, due, created or 0, tuple(unreadable))


def _is_readable(value: Any, read: Callable[[Any], object] | None) -> bool:
    try:
        dumps(value).encode()
        return value is None or read is None or read(value) is not None
    except _UNREADABLE:
        return False


def _values_for(query: Query, known: Asked, **more: object) -> dict[str, object]:
    known = {**known, **more}
    return {name: known[name] for name in query.parameters if name in known}


# Represents unlimited retention in the statement that settles plain successes. The text is valid JSON.
FOR_EVER = "null"


def split_endings(endings: Endings) -> tuple[list[tuple[Lease, str]], list[tuple[Lease, Settlement]]]:
    """Return two lists: the plain successes, each with its retention in microseconds, and all other settlements. A
    plain success only marks its item as done, and has no result, effect or follow-up items.
    """
    successes: list[tuple[Lease, str]] = []
    others: list[tuple[Lease, Settlement]] = []
    # keyed by settlement object, because most items of a handler share one settlement object
    keeps: dict[int, str | None] = {}
    for lease, settlement in endings:
        try:
            keep = keeps[id(settlement)]
        except KeyError:
            keep = keeps[id(settlement)] = _keep_of_success(settlement)
        if keep is None:
            others.append((lease, settlement))
        else:
            successes.append((lease, keep))
    return successes, others


def _keep_value(keep: str) -> int | None:
    return None if keep == FOR_EVER else int(keep)


def _keep_of_success(settlement: Settlement) -> str | None:
    if not settlement.is_plain_success:
        return None
    return FOR_EVER if settlement.keep is None else str(in_microseconds(clamp_wait(settlement.keep)))


def leases_of(table: QueueTable, rows: Sequence[Row]) -> list[Lease]:
    """Create the leases of claimed PostgreSQL rows. If the table names the columns that handlers receive (``given``),
    decode the rows column by column, which is faster.
    """
    if table.given is None:
        return [lease_of(table, dict(row)) for row in rows]
    if not rows:
        return []
    names = row_columns(table)
    found: list[Any] = list(zip(*cast("Sequence[tuple[Any, ...]]", rows), strict=True))
    ids, fences, attempts, crashes, dues, created = found[:6]
    columns = found[6 : 6 + len(names)]
    unreadable: list[tuple[str, ...]] = [()] * len(rows)
    for place, name in enumerate(names):
        if name in table.documents:
            columns[place], unreadable = _decode_documents(name, columns[place], unreadable)
    given = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    are_last = [count + 1 >= table.crash_cap for count in crashes]
    return list(map(Lease, ids, fences, attempts, given, are_last, dues, created, unreadable))


def _decode_documents(
    name: str, texts: Sequence[str], unreadable: list[tuple[str, ...]]
) -> tuple[Any, list[tuple[str, ...]]]:
    """Decode the JSON column of all rows in one call. If a value cannot be decoded, decode the rows one by one, and add
    the column's name to ``unreadable`` for each row whose value is invalid.
    """
    with suppress(*_UNREADABLE, RecursionError):
        return loads(f"[{','.join(texts)}]"), unreadable
    values: list[Json] = []
    for text, columns in zip(texts, unreadable, strict=True):
        try:
            values.append(loads(text))
        except (*_UNREADABLE, RecursionError):
            values.append(None)
            unreadable[len(values) - 1] = (*columns, name)
    return values, unreadable


def lease_of(table: QueueTable, row: dict[str, Any]) -> Lease:
    is_last_chance = row[table.crashes] + 1 >= table.crash_cap
    due, created = row[table.available_at], row[table.created_at]
    times = microseconds(due), 0 if created is None else microseconds(created)
    return Lease(row[table.id], row[table.fence], row[table.attempts], row, is_last_chance, *times)


def _drop_settlement(row: dict[str, Any]) -> dict[str, Any]:
    del row["settled_ids"], row["settled_fences"], row["settled_count"]
    return row


def list_lost(endings: Endings, settled: set[tuple[str, int]]) -> list[Lease]:
    # Compare the fence too, because an item that was lost and claimed again may appear twice.
    return [lease for lease, _ in endings if (lease.id, lease.fence) not in settled]


def ending(table: QueueTable, lease: Lease, settlement: Settlement) -> dict[str, Json]:
    """Return one settlement as JSON for the statement that settles items. NULL values are omitted, so most settlements
    are short.
    """
    described: dict[str, Json] = {"id": lease.id, "fence": lease.fence}
    if (state := _state(table, settlement)) is not None:
        described["state"] = state
    if settlement.state is not ItemState.READY:
        described["ended"] = True
    if settlement.wait is not None:
        described["wait"] = in_microseconds(clamp_wait(settlement.wait))
    elif settlement.available_at is not None:
        described["available_at"] = microseconds(settlement.available_at)
    if settlement.gives_back:
        described["back"] = 1
    if settlement.stage is not None:
        described["resets"] = True
    if settlement.untried:
        described["untried"] = True
    if settlement.error is not None:
        described["error"] = encode(settlement.error, LONGEST_ERROR)
    if settlement.result is not None:
        described["result"] = settlement.result
    if settlement.keep is not None:
        described["keep"] = in_microseconds(clamp_wait(settlement.keep))
    if settlement.state is ItemState.DEAD and table.last_stage:
        described["last_stage"] = lease.row[table.state]
    return described


def _state(table: QueueTable, settlement: Settlement) -> str | None:
    match settlement.state:
        case ItemState.DONE:
            return settlement.stage or table.done
        case ItemState.DEAD:
            return table.dead
        case ItemState.CANCELLED:
            return table.cancelled
        case _:
            # A pipeline's table has no running value: its state column keeps the stage while the item runs.
            return settlement.stage or (table.ready[0] if table.running is not None else None)


def claims_for(table: QueueTable, dialect: str, clock: Clock) -> PostgresClaims | SqliteClaims:
    return PostgresClaims(table, clock) if dialect == "postgres" else SqliteClaims(table)


def merge_writes(effects: Iterable[Writes]) -> list[tuple[Query, list[Mapping[str, object]]]]:
    """Merge the statements of several effects, so that each statement runs once with the rows of all effects. All
    workers run the statements in the same order, so that they do not deadlock.
    """
    rows: dict[Query, list[Mapping[str, object]]] = {}
    shapes: set[tuple[Query, ...]] = set()
    for effect in effects:
        for query, values in effect.statements:
            rows.setdefault(query, []).append(values)
        shapes.add(tuple(query for query, _ in effect.statements))
    return [(query, sorted(rows[query], key=repr)) for query in order_statements(shapes)]


def order_statements(shapes: Iterable[tuple[Query, ...]]) -> list[Query]:
    """Return the statements in an order that is consistent with each item's list of statements: if an item lists A
    before B, A comes first. Statements are sorted by name if the lists define no order for them or contradict each
    other.
    """
    before: dict[Query, set[Query]] = {}
    for shape in shapes:
        # A statement that an item lists more than once runs at its last position, because it may need the changes that
        # earlier statements make.
        own = list(dict.fromkeys(reversed(shape)))[::-1]
        for query in own:
            before.setdefault(query, set())
        for earlier, later in pairwise(own):
            before[later].add(earlier)
    order: list[Query] = []
    while before:
        free = [query for query, earlier in before.items() if not earlier] or list(before)
        first = min(free, key=lambda query: (query.name, query.text))
        del before[first]
        for named_before in before.values():
            named_before.discard(first)
        order.append(first)
    return order
