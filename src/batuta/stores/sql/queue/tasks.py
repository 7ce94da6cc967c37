"""Stores tasks in the engine's own table, and finds waiting items that no queue or stage in this release serves."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from batuta.kernel.batcher import BatchLoader, Gatherer
from batuta.kernel.clock import Clock, SystemClock, in_microseconds
from batuta.kernel.errors import BatchEnded, DeadlineExceeded, ForeignConnection, TaskUnknown
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import Reason, decode
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import MAX_PAYLOAD, refuse_unstorable
from batuta.kernel.trace import HEADER, onward
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import with_timeout
from batuta.queue.inspection import ItemFilter
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import clamp_instant
from batuta.queue.store import Unserved
from batuta.stores.sql.database import AsJson, Database, Query, Row, Transaction, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.queue.endings import Endings
from batuta.stores.sql.queue.inspection import QueueInspection
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.history import is_uuid
from batuta.supervise.loop import note_progress
from batuta.tasks.ends import HELD_UNTIL, TASK_ENDS
from batuta.tasks.registry import RELAYED_TASKS, TASKS, TaskRegistry, TaskStatus
from batuta.tasks.task import BATCH, PROGRESS, RESULT, AnyTask, Call, EnqueueOptions, arguments_to_store

# The next step to suggest after a wait without result.
LOOK = {
    "task": "`batuta workers` shows whether a worker runs, `batuta queue list` whether the task waits",
    "batch": "`batuta batches list` shows its progress",
}


@dataclass(frozen=True, slots=True)
class TaskQueries:
    put_calls: Query
    next_due: Query
    occupied: Query
    alive: Query
    task: Query
    unserved: Query
    rehome: Query
    report: Query
    report_of_call: Query
    wanted: Query
    prune: Query
    await_end: Query
    unfinished: Query
    tagged: Query
    keyed: Query
    unlabel: Query
    close_unused_lines: Query
    open_period: Query
    period: Query
    set_period: Query
    replace: Query
    reschedule: Query
    prune_periods: Query
    share_batch: Query
    targets: Query
    wait_for: Query


@dataclass(eq=False)
class SqlTasks:
    """Stores tasks, and creates the queue objects from which workers claim them."""

    database: Database
    ids: Ids
    clock: Clock
    wake: Callable[[str], None]  # called with the name of the queue in which tasks were enqueued
    _: KW_ONLY
    own_time: bool = False
    liveness: Database | None = None  # connections for the queues; None means ``database``
    registry: TaskRegistry = field(default_factory=TaskRegistry)  # contains the limits that the queues enforce
    encryption: Encryption = PLAIN  # encrypts arguments, results and progress
    longest_wait: timedelta | None = None  # the longest real time to wait for a task to end, in tests on a fake clock

    def __post_init__(self) -> None:
        self._table = TASKS
        self._queues: dict[str, SqlQueue] = {}
        self._gatherers: dict[str, Gatherer[dict[str, Json], str]] = {}
        # The workers of a process poll at the same instants, so one statement reads for all of them.
        self._next_due: BatchLoader[str, Row] = BatchLoader(self._load_next_due)
        self._occupied: BatchLoader[str, Row] = BatchLoader(self._load_occupied)
        self._queries = load_queries(TaskQueries, STATEMENTS / "tasks.sql", self.database.dialect)
        self.endings = Endings(
            self.database, self.clock, await_end=self._queries.await_end, unfinished=self._queries.unfinished
        )

    def relay(self) -> None:
        """From now on, do not count a crash of the engine's worker as a crash of its tasks. Call this method if the
        tasks run in other processes (ARQ workers).
        """
        self._table = RELAYED_TASKS
        self._queues.clear()
        self._gatherers.clear()

    def queue(self, name: str) -> SqlQueue:
        if name not in self._queues:
            self._queues[name] = SqlQueue(
                self.database,
                self._table,
                self.ids,
                self.clock,
                queue=name,
                own_time=self.own_time,
                liveness=self.liveness,
                limits=self.registry.limits_in(name),
                encryption=self.encryption,
                next_due=self._next_due.get,
            )
        return self._queues[name]

    async def _load_next_due(self, queues: Sequence[str]) -> Mapping[str, Row]:
        asked = {"queues": AsJson(queues), "now": self._now()}
        rows = await (self.liveness or self.database).all(self._queries.next_due, **asked)
        return {row["queue"]: row for row in rows}

    async def is_empty(self, queue: str) -> bool:
        """Return whether a queue has no task that ``SqlQueue.pulse`` would count. Several calls share one statement."""
        return await self._occupied.get(queue) is None

    async def _load_occupied(self, queues: Sequence[str]) -> Mapping[str, Row]:
        rows = await self.database.all(self._queries.occupied, queues=AsJson(queues))
        return {row["queue"]: row for row in rows}

    async def enqueue(
        self,
        task: AnyTask,
        calls: Sequence[Call],
        options: EnqueueOptions,
        *,
        keys: Sequence[str | None],
        within: Any | None,
    ) -> list[str]:
        wanted, found = self.database.dialect, getattr(within, "dialect", self.database.dialect)
        if found != wanted:
            why = Reason(
                "foreign_mismatch",
                "its database is {found}, but the application uses {wanted}: pass a connection to the application's database",
                found=found,
                wanted=wanted,
            )
            raise ForeignConnection(kind=type(within).__name__, why=why)
        if within is None and (options.batch or options.after):
            async with self.database.transaction() as transaction:
                waiting = await self.enqueue(task, calls, options, keys=keys, within=transaction)
            self.wake(task.queue)
            self.wake(TASK_ENDS)
            return waiting
        carried: dict[str, Json] = {HEADER: onward()}
        if options.is_plain and task.limits is None and not any(keys):
            args = [arguments_to_store(call, carried, self.encryption) for call in calls]
            plain = await self._put_plain(task, args, options.priority, within)
            if within is None:
                self.wake(task.queue)
            return plain
        shared: dict[str, object] = {"name": task.name, "priority": options.priority}
        if options.tags:
            shared["tags"] = AsJson(options.tags)
        if options.batch and within is not None:
            await self._share_batch(options.batch, within)
            shared["batch_id"] = carried[BATCH] = options.batch
        due: dict[str, Any] = {"available_at": options.at} if options.at else {"delay": options.wait}
        if options.after:
            due = {"available_at": HELD_UNTIL}
        items = [
            NewItem(values=self._values(task, call, carried), key=key, **due)
            for call, key in zip(calls, keys, strict=True)
        ]
        ids: list[str | None]
        if options.is_unique:
            ids = [await self._put_unique(task, options, item, shared, within) for item in items]
        elif options.after and within is not None:
            ids = await self._put_waiting(task, options, items, shared, within)
        else:
            ids = await self.queue(task.queue).put(items, within=within, shared=shared)
        if within is None:
            self.wake(task.queue)
        return [
            id if id is not None else await self._find_alive(task.queue, item, shared, within)
            for id, item in zip(ids, items, strict=True)
        ]

    async def _put_unique(
        self, task: AnyTask, options: EnqueueOptions, item: NewItem, shared: Mapping[str, object], within: Any | None
    ) -> str:
        """Enqueue a call and return its id. If another task holds the call's key, because it is unfinished or has
        reserved the key for a period, return the id of that task. ``options.on_conflict`` decides whether the call
        changes that task if it has not started.
        """
        if within is None:
            async with self.database.transaction() as transaction:
                return await self._put_unique(task, options, item, shared, transaction)
        of_key = {"name": task.name, "key": item.key}
        length = in_microseconds(timedelta(seconds=options.unique_for))
        if length:
            opened = await within.run(self._queries.open_period, **of_key, length=length, now=self._now())
            period = None if opened else await within.one(self._queries.period, **of_key)
            if period is not None:
                return await self._change_waiting(str(period["task_id"]), options, item, within)
        (id,) = await self.queue(task.queue).put([item], within=within, shared=shared)
        if id is None:
            alive = await self._find_alive(task.queue, item, shared, within)
            id = await self._change_waiting(alive, options, item, within)
        if length:
            await within.run(self._queries.set_period, **of_key, id=id)
        return id

    async def _share_batch(self, id: str, within: Transaction) -> None:
        """Lock a batch, so that it cannot end before the transaction ends. Raises BatchEnded if the batch accepts no
        tasks.
        """
        if not is_uuid(id) or await within.one(self._queries.share_batch, id=id) is None:
            raise BatchEnded(id=id)

    async def _put_waiting(
        self,
        task: AnyTask,
        options: EnqueueOptions,
        items: Sequence[NewItem],
        shared: Mapping[str, object],
        within: Transaction,
    ) -> list[str | None]:
        """Enqueue calls that must wait for other tasks and batches, and return their ids. Raises TaskUnknown if an
        awaited task or batch does not exist.
        """
        known = [id for id in options.after if is_uuid(id)]
        found = {str(row["id"]) for row in await within.all(self._queries.targets, ids=AsJson(known))}
        for id in options.after:
            if id not in found:
                raise TaskUnknown(id=id)
        ids = await self.queue(task.queue).put(items, within=within, shared=shared)
        await within.run(
            self._queries.wait_for,
            ids=AsJson([id for id in ids if id is not None]),
            targets=AsJson(list(options.after)),
            runs_anyway=options.after_failure == "run",
            at=None if options.at is None else clamp_instant(options.at),
            delay=in_microseconds(options.wait or timedelta(0)),
            now=self._now(),
        )
        within.notify(TASK_ENDS)
        return ids

    async def _change_waiting(self, id: str, options: EnqueueOptions, item: NewItem, within: Any) -> str:
        if options.on_conflict != "keep":
            new = {"args": item.values["args"], "limit_key": item.values.get("limit_key"), "priority": options.priority}
            await within.run(self._queries.replace, id=id, **new)
        if options.on_conflict == "reschedule":
            delay = in_microseconds(options.wait or timedelta(0))
            await within.run(self._queries.reschedule, id=id, at=options.at, delay=delay, now=self._now())
        return id

    async def _put_plain(
        self, task: AnyTask, args: Sequence[list[Json]], priority: int, within: Any | None
    ) -> list[str]:
        """Enqueue calls without keys and delays, and return their ids. Concurrent callers that enqueue one call each
        share a statement and a commit.

        A call with a key needs a statement of its own, because its INSERT may wait for another transaction and would
        delay the other calls.
        """
        shared: dict[str, Json] = {"name": task.name, "priority": priority}
        if within is not None or len(args) > 1:
            return await self._put_calls(task.queue, shared, args, within)
        self.database.check_free()
        gatherer = self._gatherers.get(task.queue)
        if gatherer is None:
            gatherer = self._gatherers[task.queue] = Gatherer(partial(self._put_gathered, task.queue))
        ids = [await gatherer.ask({**shared, "args": each}) for each in args]
        note_progress()
        return ids

    async def _put_calls(
        self, queue: str, shared: dict[str, Json], args: Sequence[list[Json]], within: Any | None
    ) -> list[str]:
        """Insert one caller's calls in one statement, and return their ids. Columns with the same value for all calls
        are sent to PostgreSQL only once.
        """
        if self.database.dialect == "sqlite":
            return await self.queue(queue).put_rows([{"args": each} for each in args], shared, within)
        carried = args[0][2:] if args else []
        return await self._insert_calls(queue, shared, [each[:2] for each in args], carried, within)

    async def _put_gathered(self, queue: str, rows: Sequence[dict[str, Json]]) -> list[str]:
        """Insert calls from several concurrent callers, each of which enqueues one call, and return the ids. On
        PostgreSQL a faster statement is used if all calls have the same task and priority.
        """
        task = {"name": rows[0]["name"], "priority": rows[0]["priority"]}
        if self.database.dialect == "sqlite" or any(
            row["name"] != task["name"] or row["priority"] != task["priority"] for row in rows
        ):
            return await self.queue(queue).put_rows(rows)
        return await self._insert_calls(queue, task, [row["args"] for row in rows], [], None)

    async def _insert_calls(
        self, queue: str, shared: dict[str, Json], calls: Sequence[object], carried: Json, within: Any | None
    ) -> list[str]:
        if not calls:
            return []
        ids = self.ids.many(len(calls))
        values = {"ids": ",".join(ids), "calls": AsJson(calls), "carried": AsJson(carried), "now": self._now()}
        await (within or self.database).all(self._queries.put_calls, queue=queue, **shared, **values)
        return ids

    async def status(self, id: str) -> TaskStatus | None:
        row = await self._task(id)
        return None if row is None or row["is_over"] else self._status(row)

    async def why_waiting(self, id: str) -> Reason | None:
        """Return the limit that a waiting task is waiting for, or None if it is not waiting for a limit."""
        if (row := await self._task(id)) is None or row["status"] not in TASKS.ready:
            return None
        queue = self.queue(row["queue"])
        item = await queue.item(id)
        return None if item is None else (await queue.why_limited([dict(item)])).get(id)

    async def cancel(self, id: str, reason: str, *, by: str | None = None) -> bool:
        """Cancel a task. Return False if it has ended or does not exist. ``by`` is the operator to record in the audit
        log.
        """
        row = await self._task(id)
        is_cancelled = row is not None and await self.queue(row["queue"]).cancel(id, reason, by=by)
        self.endings.note_change()
        return is_cancelled

    async def retry(self, id: str, *, by: str | None = None) -> bool:
        """Make a failed task ready again. Return False if it has not failed, or if an unfinished task has the same key.
        ``by`` is the operator to record in the audit log.
        """
        row = await self._task(id)
        if row is None or not await self.queue(row["queue"]).revive(id, by=by):
            return False
        self.wake(row["queue"])
        return True

    async def failed(self, task: AnyTask, limit: int) -> list[str]:
        inspection = QueueInspection(self.queue(task.queue), self.database, self.database.dialect)
        rows, _ = await inspection.page(ItemFilter(state=ItemState.DEAD, name=task.name), None, limit)
        return [str(row["id"]) for row in rows]

    async def wait(self, id: str, timeout: timedelta | None, what: str = "task") -> None:
        if not is_uuid(id):
            return None
        if self.longest_wait is not None:
            return await self._wait_in_test(
                id, min(self.longest_wait, self.longest_wait if timeout is None else timeout), what
            )
        if timeout is None:
            return await self.endings.wait(id)
        try:
            await with_timeout(timeout, self.endings.wait(id), self.clock, f"{what} {id}")
        except DeadlineExceeded:
            seconds = f"{timeout.total_seconds():g}"
            raise TimeoutError(f"{what} {id} has not ended after {seconds} s: {LOOK[what]}") from None

    async def _wait_in_test(self, id: str, limit: timedelta, what: str) -> None:
        """Wait in real time until the task ends. A timeout on a test's fake clock would never expire, because that
        clock does not advance by itself and no worker is running.
        """
        try:
            await with_timeout(limit, self.endings.wait(id), SystemClock(), f"{what} {id}")
        except DeadlineExceeded:
            raise TimeoutError(
                f"{what} {id} has not ended, and no worker runs in a test: call `await kit.drain()` first, and"
                " `await kit.travel(seconds)` before it if the task has a delay or waits for a retry"
            ) from None

    async def find(self, queue: str, limit: int, *, tag: str | None = None, key: str | None = None) -> Sequence[Row]:
        """Return a queue's newest tasks that have this tag and this key. None means any tag or any key; the caller must
        pass a tag, a key or both.
        """
        if key is None:
            return await self.database.all(self._queries.tagged, queue=queue, tag=AsJson([tag]), limit=limit)
        rows = await self.database.all(self._queries.keyed, queue=queue, key=key, limit=limit)
        return [row for row in rows if tag is None or tag in (row["tags"] or ())]

    async def report(self, lease: Lease, progress: Json) -> None:
        refuse_unstorable(progress, "task progress", MAX_PAYLOAD)
        await self.database.run(self._queries.report, id=lease.id, fence=lease.fence, progress=AsJson(progress))

    async def report_of_call(self, lease: Lease, progress: Json) -> None:
        """Store the progress of a call that ARQ is running. The fence is not checked, because another relay may hold
        the task's lease by now.
        """
        refuse_unstorable(progress, "task progress", MAX_PAYLOAD)
        await self.database.run(self._queries.report_of_call, id=lease.id, progress=AsJson(progress))

    async def find_wanted(self, ids: Collection[str]) -> Collection[str]:
        rows = await self.database.all(self._queries.wanted, ids=AsJson(sorted(ids)))
        return {str(row["id"]) for row in rows}

    async def find_unserved(self, served: Collection[str]) -> list[Unserved]:
        """Return the waiting tasks in queues that are not in ``served``, grouped by queue and task name. The query is
        cheap, because it skips served queues in the index.
        """
        rows = await self.database.all(self._queries.unserved, served=AsJson(sorted(served)))
        return [
            Unserved(queue=row["queue"], name=row["name"], count=row["items"], oldest=row["oldest"]) for row in rows
        ]

    async def rehome(self, name: str, source: str, target: str, limit: int) -> int:
        """Move at most ``limit`` waiting tasks with this name to another queue, and return the number of tasks moved.
        The tasks keep their age and attempts.
        """
        moved = await self.database.run(self._queries.rehome, name=name, source=source, target=target, limit=limit)
        if moved:
            self.wake(target)
            self.database.notify(target)
        return moved

    async def unlabel(self, limited: Collection[str], limit: int) -> int:
        """Clear the limit key of at most ``limit`` waiting items whose task is not in ``limited``, so that the
        statement that claims tasks without limits finds them. Return the number of changed items.
        """
        names = AsJson(sorted(limited))
        async with self.database.transaction() as transaction:
            count = await transaction.run(self._queries.unlabel, limited=names, limit=limit)
            if count < limit:
                await transaction.run(self._queries.close_unused_lines, limited=names)
        return count

    async def prune(self, limit: int) -> int:
        await self.database.run(self._queries.prune_periods, now=self._now(), limit=limit)
        return await self.database.run(self._queries.prune, now=self._now(), limit=limit)

    async def _task(self, id: str) -> Row | None:
        return await self.database.one(self._queries.task, id=id, now=self._now()) if is_uuid(id) else None

    async def _find_alive(self, queue: str, item: NewItem, shared: Mapping[str, object], within: Any | None) -> str:
        """Return the id of the unfinished task that has the key. If that task has just ended, insert the new task and
        return its id instead.
        """
        while True:
            row = await (within or self.database).one(self._queries.alive, name=shared["name"], key=item.key)
            if row is not None:
                return str(row["id"])
            (id,) = await self.queue(queue).put([item], within=within, shared=shared)
            if id is not None:
                return id

    def _values(self, task: AnyTask, call: Call, carried: Json) -> dict[str, object]:
        values: dict[str, object] = {"args": AsJson(arguments_to_store(call, carried, self.encryption))}
        if task.limits is not None:
            values["limit_key"] = task.limits.key_of(*call)
        return values

    def _status(self, row: Row) -> TaskStatus:
        times = {"enqueue_time": row["created_at"], "start_time": row["started_at"], "finish_time": row["finished_at"]}
        found = {
            "key": row["unique_key"],
            "tags": tuple(row["tags"] or ()),
            "result": self.encryption.decrypt(row["result"], RESULT),
            "progress": self.encryption.decrypt(row["progress"], PROGRESS),
        }
        return from_row(TaskStatus, row, job_id=row["id"], error=decode(row["error"]), **times, **found)

    def _now(self) -> datetime | None:
        """Return this process's time, or None if the statement must use the database's clock."""
        return self.clock.now() if self.own_time else None


class UnservedIn(NamedTuple):
    items: Unserved
    through: SqlQueue


class UnservedItems:
    def __init__(self, tasks: SqlTasks, queues: Mapping[str, SqlQueue]) -> None:
        """Create an object that finds items that no worker serves. ``queues`` maps names to all queues and stages in
        this release.
        """
        self._tasks = tasks
        self.queues = queues

    async def of_tasks(self) -> list[UnservedIn]:
        served = [queue.name for queue in self.queues.values() if queue.table.name == TASKS.name]
        return [UnservedIn(each, self._tasks.queue(each.queue)) for each in await self._tasks.find_unserved(served)]

    async def is_empty(self, queue: SqlQueue) -> bool:
        """Return whether a queue has no item that its ``pulse`` would count. False if that is unknown."""
        return queue.table.name == TASKS.name and await self._tasks.is_empty(queue.name)

    async def of_stages(self) -> list[UnservedIn]:
        """Return the waiting items of stages that no longer exist. This method reads the complete table of every
        pipeline, so call it only every few minutes.
        """
        pipelines = {
            queue.table.name: queue for queue in self.queues.values() if queue.table.queue == queue.table.state
        }
        return [
            UnservedIn(each, stage)
            for stage in pipelines.values()
            for each in await stage.find_unserved([*self.queues])
        ]

    async def all(self) -> list[UnservedIn]:
        return [*await self.of_tasks(), *await self.of_stages()]
