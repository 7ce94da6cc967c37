"""LimitedClaims: claims the items of tasks and stages with limits, so that the limits hold across all processes.

    enqueued, retried or rescued ──▶ [ unfiled ] ── due, seen by a claim ──▶ [ in line ] ── its line has room ──▶ leased

A *line* contains the due items of a task that have the same limit key; an *unfiled* item is not in a line yet. Each
leased row occupies one slot of its task and one of its key, so rescuing a dead worker's lease frees these slots. Each
start is a row of ``rate_tokens``. One process at a time claims the items of a task: it counts, decides
(``queue/limits.py``) and writes in one transaction. A claim reads only lines from which an item may start, so the
number of items in other lines does not affect its speed. In a pipeline, each stage has its own limits and lines, as a
task does.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.clock import Clock, in_microseconds, microseconds
from batuta.kernel.errors import EncryptionError, StoreUnavailable
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.storage.json import Json, loads
from batuta.kernel.values import dataclass
from batuta.queue.item import Lease, QueueTable
from batuta.queue.limits import NO_KEY, TaskLimits, Use, room, share, why_line_waits, why_task_waits
from batuta.queue.store import Endings
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Reading, Row, Transaction
from batuta.stores.sql.queue.claim import Asked, PostgresClaims, SqliteClaims, leases_of
from batuta.stores.sql.queue.statements import limit_name, more_queries
from batuta.tasks.task import arguments_of

# Maximum number of items that one claim assigns to lines.
FILED_AT_ONCE = 1_000
# A line whose rate is exhausted is checked at least this often, so that a raised limit or a corrected clock takes
# effect.
RECHECK_LINE = timedelta(minutes=10)
# Wait before the next claim if a slot may become free at any time.
RECHECK_SLOT = timedelta(seconds=1)
# The shortest wait before the next claim. It applies while another process is claiming items of the same task.
RECHECK_LOCK = timedelta(milliseconds=20)
_UNLIMITED = 1 << 40


@dataclass(frozen=True, slots=True)
class LimitQueries:
    work: Query
    lock: Query
    open_lines: Query
    file: Query
    lines: Query
    pick_in_line: Query
    take_in_line: Query
    count_starts: Query
    move_lines: Query
    close_lines: Query
    following: Query
    label: Query
    uses: Query


class LimitedClaims:
    def __init__(
        self,
        table: QueueTable,
        queue: str,
        limits: Mapping[str, TaskLimits],
        claims: PostgresClaims | SqliteClaims,
        ids: Ids,
        clock: Clock,
        *,
        own_time: bool,
        encryption: Encryption = PLAIN,
    ) -> None:
        """Create the object that claims the items of tasks and stages with limits. ``limits`` maps the names of the
        queue's tasks, or the name of the stage that the queue serves, to limits; tasks may be added later.
        ``encryption`` decrypts the arguments.
        """
        self._encryption = encryption
        self._table = table
        self._name = limit_name(table)
        self._queue = queue
        self._limits = limits
        self._claims = claims
        self._ids = ids
        self._clock = clock
        dialect: Dialect = "postgres" if isinstance(claims, PostgresClaims) else "sqlite"
        self._uses_own_clock = own_time or dialect == "sqlite"
        self._queries = more_queries("queue_limits.sql", table, dialect, LimitQueries)
        # tasks whose rate is exhausted, each with the instant at which the rate allows a start again
        self._full_until: dict[str, datetime] = {}
        self._first = 0  # index of the task with which the next claim begins
        self._limited_goes_first = False
        self._is_busy = False  # whether another process was claiming the same task's items at the same time
        self._misplaced: list[Lease] = []

    def __bool__(self) -> bool:
        return bool(self._limits)

    def next_order(self) -> bool:
        """Return whether the next claim takes items with limits before items without limits. The result alternates
        between calls, so that neither kind starves.
        """
        self._limited_goes_first = not self._limited_goes_first
        return self._limited_goes_first

    async def find_work(self, reading: Reading, endings: Endings, asked: Asked) -> list[TaskLimits]:
        """Return the tasks that may have due items, and whose limits will allow a start once the settlements in
        ``endings`` are written.
        """
        ended = Counter(lease.row.get(self._name) for lease, _ in endings)
        known = list(self._limits.values())
        rows = await reading.all(
            self._queries.work,
            tasks=AsJson([_describe(each) for each in known]),
            holds=asked["holds"],
            now=self._now(),
        )
        self._full_until.clear()
        found = []
        for row in rows:
            limits = self._limits[row["name"]]
            if not (row["is_unfiled"] or row["has_line"]):
                continue
            use = _use(row)
            use = use._replace(running=use.running - ended[limits.task])
            left = room(limits.whole.concurrency, limits.whole.window, use, 1)
            if left.free:
                found.append(limits)
            elif left.until is not None:
                self._full_until[limits.task] = left.until
        return found

    async def claim(
        self, transaction: Transaction, work: Sequence[TaskLimits], asked: Asked, limit: int
    ) -> list[Lease]:
        """Claim items of the given tasks and return their leases. Each call begins with a different task, so that no
        task starves.
        """
        self._is_busy = False
        self._first += 1
        leases: list[Lease] = []
        for n in range(len(work)):
            if len(leases) < limit:
                task = work[(self._first + n) % len(work)]
                leases += await self._claim_task(transaction, task, asked, limit - len(leases))
        return leases

    async def _claim_task(self, transaction: Transaction, limits: TaskLimits, asked: Asked, limit: int) -> list[Lease]:
        task = limits.task
        locked = await transaction.one(self._queries.lock, task=task, now=self._now())
        if locked is None or not locked["is_mine"]:
            self._is_busy = True
            return []
        now: datetime = locked["now"]
        filing = {"task": task, "now": now, "limit": FILED_AT_ONCE}
        if isinstance(self._claims, SqliteClaims):
            await transaction.run(self._queries.open_lines, **filing)
        await transaction.run(self._queries.file, queue=self._queue, **filing)
        rows = await self._read_lines(transaction, limits, now, limit)
        if not rows:
            return []
        use = Use(running=rows[0]["all_running"], started=rows[0]["all_started"])
        free = room(limits.whole.concurrency, limits.whole.window, use, limit).free
        rooms = {
            row["limit_key"]: room(limits.at_once(row["limit_key"]), limits.window(row["limit_key"]), _use(row), limit)
            for row in rows
        }
        waiting = {row["limit_key"]: int(row["waiting"]) for row in rows}
        shares = share(min(free, limit), {key: min(rooms[key].free, waiting[key]) for key in rooms})
        leases, taken = await self._take(transaction, task, shares, {**asked, "now": now}) if shares else ([], {})
        await self._count_starts(transaction, limits, taken, now)
        await self._move_lines(transaction, limits, rows, taken, now, limit)
        return leases

    async def _read_lines(
        self, transaction: Transaction, limits: TaskLimits, now: datetime, limit: int
    ) -> Sequence[Row]:
        whole, each = limits.whole.window, None if limits.each is None else limits.each.window
        return await transaction.all(
            self._queries.lines,
            task=limits.task,
            now=now,
            limit=limit,
            rate_key=_rate_key(limits),
            since=None if whole is None else now - whole.per,
            since_each=None if each is None else now - each.per,
            at_once=_UNLIMITED if limits.each is None else limits.each.concurrency or _UNLIMITED,
        )

    async def _take(
        self, transaction: Transaction, task: str, shares: Mapping[str, int], asked: Asked
    ) -> tuple[list[Lease], Mapping[str, int]]:
        """Lease the given number of items from each line (the due items with the same limit key). Return the leases,
        and the number of items leased from each line.
        """
        values = {name: asked[name] for name in self._queries.take_in_line.parameters if name in asked}
        if isinstance(self._claims, SqliteClaims):
            picks = {key: await self._pick(transaction, task, key, count) for key, count in shares.items()}
            picked = [each for some in picks.values() for each in some]
            leases = await self._claims.take(transaction, picked, values, self._queries.take_in_line)
            return leases, {key: len(some) for key, some in picks.items()}
        given = AsJson([{"key": key, "count": count} for key, count in shares.items()])
        rows = await transaction.all(self._queries.take_in_line, task=task, shares=given, **values)
        return leases_of(self._table, rows), Counter(str(row["limit_key"]) for row in rows)

    async def _pick(self, transaction: Transaction, task: str, key: str, count: int) -> list[int]:
        row = await transaction.one(self._queries.pick_in_line, task=task, key=key, limit=count)
        return [] if row is None else loads(row["picked"])  # type: ignore[return-value]

    async def _count_starts(
        self, transaction: Transaction, limits: TaskLimits, taken: Mapping[str, int], now: datetime
    ) -> None:
        starts: list[Json] = []
        for key, count in taken.items():
            for rate_key, window in (
                (_rate_key(limits), limits.whole.window),
                (_rate_key(limits, key), limits.window(key)),
            ):
                if window is not None:
                    per = in_microseconds(window.per)
                    starts += [{"id": self._ids.new(), "rate_key": rate_key, "per": per} for _ in range(count)]
        if starts:
            await transaction.run(self._queries.count_starts, starts=AsJson(starts), now=now)

    async def _move_lines(
        self,
        transaction: Transaction,
        limits: TaskLimits,
        rows: Sequence[Row],
        taken: Mapping[str, int],
        now: datetime,
        limit: int,
    ) -> None:
        """Update a task's lines; a line contains the due items with the same limit key. Delete empty lines. If a line's
        rate is exhausted, postpone the line until the rate allows a start. Move any other line from which items were
        taken to the end.
        """
        moved: list[Json] = []
        empty: list[Json] = []
        for row in rows:
            key, count = row["limit_key"], taken.get(row["limit_key"], 0)
            if row["waiting"] < limit and count >= row["waiting"]:
                empty.append(key)
                continue
            started = int(row["started"]) + count
            use = Use(started=started, first_start=row["first_start"] or now)
            until = room(None, limits.window(key), use, 1).until
            if until is not None or count:
                next_at = now if until is None else min(until, now + RECHECK_LINE)
                moved.append({"key": key, "next_at": microseconds(next_at)})
        if moved:
            await transaction.run(self._queries.move_lines, task=limits.task, lines=AsJson(moved))
        if empty:
            await transaction.run(self._queries.close_lines, task=limits.task, keys=AsJson(empty))

    async def next_at(self, reading: Reading) -> datetime | None:
        """Return the instant, by this process's clock, at which the next item with limits may start. None means that no
        such item is waiting.
        """
        if not self._limits:
            return None
        names = [name for name in self._limits if name not in self._full_until]
        row = await reading.one(self._queries.following, names=AsJson(names), now=self._now())
        assert row is not None
        now: datetime = row["now"]
        waits = [until - now for until in self._full_until.values()]
        waits += [row["later_at"] - now] if row["later_at"] is not None else []
        if row["item_at"] is not None:
            waits.append(max(row["item_at"] - now, RECHECK_LOCK))
        if row["line_at"] is not None and row["line_at"] <= now:
            waits.append(RECHECK_LOCK if self._is_busy else RECHECK_SLOT)
        return self._clock.now() + max(min(waits), RECHECK_LOCK) if waits else None

    async def label(self, database: Database, leases: Sequence[Lease], asked: Asked) -> list[Lease]:
        """Return the leases whose items may run. An item that was enqueued before its task had limits may not run yet,
        so this method undoes its claim and sets its limit key. If the store is unavailable, the next call to ``label``
        retries this.
        """
        self._misplaced += [lease for lease in leases if lease.row.get(self._name) in self._limits]
        if not self._misplaced:
            return list(leases)
        rows: list[dict[str, Any]] = [
            {"id": lease.id, "fence": lease.fence, "key": self._key_of(lease), "now": asked["now"]}
            for lease in self._misplaced
        ]
        kept = [lease for lease in leases if lease not in self._misplaced]
        with suppress(StoreUnavailable):
            await database.run_many(self._queries.label, rows)
            self._misplaced = []
        return kept

    async def explain(self, reading: Reading, items: Sequence[Mapping[str, Any]]) -> dict[str, Reason]:
        """Return a mapping from item id to the limit that the item is waiting for. Items that are not waiting for a
        limit are omitted.
        """
        limited = [each for each in items if each["limit_key"] is not None and each[self._name] in self._limits]
        if not limited:
            return {}
        asked = {name: _describe(self._limits[name]) for name in {each[self._name] for each in limited}}
        keys = {(each[self._name], each["limit_key"]) for each in limited}
        of_keys = [_describe(self._limits[name], key) for name, key in sorted(keys)]
        rows = await reading.all(self._queries.uses, asked=AsJson([*asked.values(), *of_keys]), now=self._now())
        uses = {(row["name"], row["limit_key"]): _use(row) for row in rows}
        found = {}
        for each in limited:
            limits, key = self._limits[each[self._name]], each["limit_key"]
            why = why_task_waits(limits, uses[limits.task, None]) or why_line_waits(limits, key, uses[limits.task, key])
            if why is not None:
                found[str(each["id"])] = why
        return found

    def _key_of(self, lease: Lease) -> str:
        limits = self._limits[lease.row[self._name]]
        if "item" in lease.row:
            return limits.key_of_item(lease.row["item"])
        try:
            return limits.key_of(*arguments_of(lease.row["args"], self._encryption))
        # the arguments cannot be decoded; the item reports this error when it runs
        except (EncryptionError, TypeError, ValueError, KeyError):
            return NO_KEY

    def _now(self) -> datetime | None:
        return self._clock.now() if self._uses_own_clock else None


def _use(row: Row) -> Use:
    return Use(running=row["running"], started=row["started"], first_start=row["first_start"])


def _rate_key(limits: TaskLimits, key: str | None = None) -> str:
    return f"{limits.kind}:{limits.task}" if key is None else f"{limits.kind}:{limits.task}:{key}"


def _describe(limits: TaskLimits, key: str | None = None) -> dict[str, Json]:
    window = limits.whole.window if key is None else limits.window(key)
    per = None if window is None else in_microseconds(window.per)
    return {"name": limits.task, "key": key, "rate_key": _rate_key(limits, key), "per": per}
