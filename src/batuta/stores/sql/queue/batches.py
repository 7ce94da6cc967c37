"""Stores batches, ends them, and releases or cancels the tasks that are waiting for other tasks or batches.

    add tasks:   lock the batch in share mode ──▶ insert the tasks (``SqlTasks``)            (refused after the end)
    end:         lock the batch ──▶ have all its tasks ended? ──▶ store the end and the counts
    release:     an awaited task or batch has ended ──▶ record it as an input ──▶ no wait left? ──▶ the task is due

The inputs of a task are the tasks and batches that it waited for. They are not pruned before the task has ended, so the
task can read their results after a delay, a pause or a retry.

Workers settle a batch's tasks like any other task. They neither write the batch's counts nor lock its row, so workers
and the code in this module cannot deadlock. On PostgreSQL one process at a time ends batches and releases tasks, under
a transaction-level advisory lock. This process skips rows that another transaction has locked, and handles them in a
later call.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.events import BatchFinished, Events
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import Reason, decode, encode
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import mask_text
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass
from batuta.queue.outcome import LONGEST_ERROR
from batuta.stores.sql.database import AsJson, Query, Reading, Row, Transaction, from_row
from batuta.stores.sql.queue.endings import ENDED
from batuta.stores.sql.queue.items import PipelineMembers
from batuta.stores.sql.queue.statements import more_queries
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.stores.sql.tables.audit import AuditLog
from batuta.stores.sql.tables.history import is_uuid
from batuta.tasks.batch import (
    BATCH_CANCELLED,
    BatchMembers,
    BatchProgress,
    MemberCounts,
    call_at_end,
    state_of_batch,
    takes_progress,
)
from batuta.tasks.ends import TASK_ENDS, Advance, ResolvedWait, follow, why_waiting
from batuta.tasks.registry import TASKS
from batuta.tasks.service import TaskService
from batuta.tasks.task import BoundTask, Call, arguments_to_store

# Maximum rows of each kind that one call changes.
AT_A_TIME = 500
# How long batches are kept after they have ended.
KEEP_BATCHES = timedelta(days=30)
NO_MEMBERS = MemberCounts()


@dataclass(frozen=True, slots=True)
class BatchQueries:
    add: Query
    set_on_end: Query
    close: Query
    cancel: Query
    members_of: Query
    closed: Query
    cancel_tasks: Query
    pending: Query
    lock: Query
    cancelled: Query
    ended: Query
    end: Query
    give_progress: Query
    resolved: Query
    drop_waits: Query
    keep_input: Query
    drop_wait: Query
    cancel_waiting: Query
    release: Query
    announce: Query
    batch: Query
    batches: Query
    abandoned: Query
    waits_of: Query
    prune_tasks: Query
    prune_waits: Query
    prune_inputs: Query
    prune: Query


class SqlBatches:
    def __init__(
        self,
        tasks: SqlTasks,
        service: TaskService[Transaction],
        ids: Ids,
        clock: Clock,
        events: Events,
        now: Callable[[], datetime | None],
        items: PipelineMembers,
    ) -> None:
        """Create the store of batches. ``service`` checks and enqueues the tasks. ``now`` returns the current time for
        the statements, or None if they must use the database's clock. ``items`` counts and cancels the pipeline items
        that belong to batches.
        """
        self._database = tasks.database
        self._tasks = tasks
        self._service = service
        self._ids = ids
        self._clock = clock
        self._events = events
        self._now = now
        self._audit = AuditLog(self._database.dialect, ids)
        self._queries = more_queries("batches.sql", TASKS, self._database.dialect, BatchQueries)
        self._items = items
        self._members: dict[str, BatchMembers] = {items.name: items}
        self.is_needed = True  # True until the first check shows whether batches exist

    def add_members(self, members: BatchMembers) -> None:
        if members.name == self._items.name:
            raise ValueError(f"the engine uses the name '{members.name}' for its own records: choose another name")
        self._members[members.name] = members

    async def create(
        self,
        name: str,
        on_end: BoundTask[..., Any] | None,
        *,
        members: str | None = None,
        id: str | None = None,
        within: Transaction | None = None,
    ) -> str:
        id = id or self._ids.new()
        if within is None:
            async with self._database.transaction() as transaction:
                await self._create(transaction, id, name, on_end, members)
            self._wake()
        else:
            await self._create(within, id, name, on_end, members)
        return id

    async def _create(
        self, transaction: Transaction, id: str, name: str, on_end: BoundTask[..., Any] | None, members: str | None
    ) -> None:
        now = self._clock.now()
        await transaction.run(self._queries.add, id=id, name=name, members=members, now=now)
        if on_end is not None:
            empty = _progress({"id": id, "name": name, "created_at": now, **_NOTHING})
            options = replace(on_end.options, after=(id,), after_failure="run")
            call = call_at_end(on_end.task, empty)
            (task,) = await self._service.put(on_end.task, [call], options, within=transaction)
            takes = takes_progress(on_end.task)
            await transaction.run(self._queries.set_on_end, id=id, task=task, takes_progress=takes)
        await self._announce(transaction, TASK_ENDS)

    async def close(self, id: str, *, by: str | None = None, within: Transaction | None = None) -> bool:
        if within is None:
            async with self._database.transaction() as transaction:
                is_closed = await self._change(transaction, self._queries.close, "batch.close", id, by)
            self._wake()
            return is_closed
        return await self._change(within, self._queries.close, "batch.close", id, by)

    async def cancel(self, id: str, reason: str, *, by: str | None = None, within: Transaction | None = None) -> bool:
        if within is not None:
            return await self._cancel(within, id, reason, by)
        async with self._database.transaction() as transaction:
            is_cancelled = await self._cancel(transaction, id, reason, by)
        self._wake()
        self._tasks.endings.note_change()
        return is_cancelled

    async def _cancel(self, transaction: Transaction, id: str, reason: str, by: str | None) -> bool:
        """Cancel a batch, at most AT_A_TIME of its tasks, and the program's own records in the batch (``BatchMembers``).
        The loop ``TaskEnds`` cancels the remaining tasks.
        """
        stored = encode(mask_text(reason, LONGEST_ERROR), LONGEST_ERROR)
        if not await self._change(transaction, self._queries.cancel, "batch.cancel", id, by, reason=stored):
            return False
        await self._cancel_tasks(transaction, id, stored)
        row = await transaction.one(self._queries.members_of, id=id)
        if row is not None and (members := self._members.get(row["members"])) is not None:
            await members.cancel(transaction, id, reason)
        return True

    async def _change(
        self, transaction: Transaction, query: Query, action: str, id: str, by: str | None, **values: Json
    ) -> bool:
        now = self._clock.now()
        if not is_uuid(id):
            raise unknown("batch", id, ())
        is_changed = bool(await transaction.run(query, id=id, now=now, **values))
        if is_changed and by is not None:
            await self._audit.note(
                transaction, actor=by, action=action, subject=f"batches:{id}", after=values or None, now=now
            )
        await self._announce(transaction, TASK_ENDS)
        return is_changed

    async def progress(self, id: str) -> BatchProgress | None:
        row = await self._database.one(self._queries.batch, id=id) if is_uuid(id) else None
        return None if row is None else (await self._with_members(self._database, [row]))[0]

    async def newest(self, limit: int) -> list[BatchProgress]:
        return await self._with_members(self._database, await self._database.all(self._queries.batches, limit=limit))

    async def _with_members(self, reading: Reading, rows: Sequence[Row]) -> list[BatchProgress]:
        """Return the batches' progress, including the program's own records in them (``BatchMembers``). The stored
        counts of an ended batch already include these records.
        """
        open_ = [row for row in rows if row["ended_at"] is None]
        counts = await self._count_members(reading, open_)
        return [_progress(row, counts.get(str(row["id"]), NO_MEMBERS)) for row in rows]

    async def _count_members(self, reading: Reading, rows: Sequence[Row]) -> dict[str, MemberCounts]:
        found: dict[str, MemberCounts] = {}
        for members, ids in self._by_members(rows):
            found.update(await members.count(reading, ids))
        return found

    def _by_members(self, rows: Sequence[Row]) -> list[tuple[BatchMembers, list[str]]]:
        """Group batches by the ``BatchMembers`` object that manages the records of the application in the batch. Omit a
        batch if this process has not registered its object.
        """
        return [
            (members, ids)
            for name, members in self._members.items()
            if (ids := [str(row["id"]) for row in rows if row["members"] == name])
        ]

    async def wait(self, id: str, timeout: timedelta | None) -> None:
        await self._tasks.wait(id, timeout, "batch")

    async def find_abandoned(self, age: timedelta) -> Sequence[Mapping[str, Any]]:
        """Return batches that were created more than ``age`` ago and are still open, although all their tasks have
        ended.
        """
        rows = await self._database.all(self._queries.abandoned, before=self._clock.now() - age, limit=AT_A_TIME)
        return [dict(row) for row in rows]

    async def explain(self, items: Sequence[Mapping[str, Any]]) -> dict[str, Reason]:
        """Return a mapping from task id to a reason that names the tasks and batches which the task is waiting for.
        Tasks that are not waiting are omitted.
        """
        waiting = [str(each["id"]) for each in items if each["status"] == "queued" and is_uuid(str(each["id"]))]
        found: dict[str, list[Row]] = {}
        for row in await self._database.all(self._queries.waits_of, ids=AsJson(waiting)) if waiting else ():
            found.setdefault(str(row["task_id"]), []).append(row)
        return {id: why_waiting([dict(row) for row in rows]) for id, rows in found.items()}

    async def prune(self, limit: int) -> int:
        now = self._now()
        count = await self._database.run(self._queries.prune_tasks, now=now, limit=limit)
        count += await self._database.run(self._queries.prune_waits, limit=limit)
        count += await self._database.run(self._queries.prune_inputs, limit=limit)
        before = self._clock.now() - KEEP_BATCHES
        return count + await self._database.run(self._queries.prune, before=before, limit=limit)

    async def advance(self) -> Advance:
        pending = await self._database.one(self._queries.pending)
        assert pending is not None
        self.is_needed = pending["has_batches"] or pending["has_waits"]
        ready, unwanted = await self._look_at_members() if pending["has_members"] else ([], {})
        if not (pending["has_cancelled"] or pending["has_ended"] or pending["has_resolved"] or ready or unwanted):
            return Advance.NOTHING
        ended, changed = list[BatchProgress](), 0
        async with self._database.transaction() as transaction:
            lock = await transaction.one(self._queries.lock)
            if lock is None or not lock["is_mine"]:
                return Advance.BUSY
            for row in await transaction.all(self._queries.cancelled, limit=AT_A_TIME):
                changed += await self._cancel_tasks(transaction, str(row["id"]), row["reason"])
            for id, reason in unwanted.items():
                changed += await self._items.cancel_some(transaction, id, reason)
            for row in await transaction.all(self._queries.ended, without_unfinished=AsJson(ready), limit=AT_A_TIME):
                ended += await self._end(transaction, row)
            changed += await self._follow(transaction)
        for batch in ended:
            self._events.emit(BatchFinished(batch.id, batch.succeeded, batch.failed, batch.cancelled))
        self._tasks.endings.note_change()
        return Advance.SOME if ended or changed else Advance.NOTHING

    async def _cancel_tasks(self, within: Transaction, id: str, reason: str | None) -> int:
        why = encode(BATCH_CANCELLED(why=decode(reason) or "-"), LONGEST_ERROR)
        return await within.run(self._queries.cancel_tasks, id=id, reason=why, now=self._now(), limit=AT_A_TIME)

    async def _look_at_members(self) -> tuple[list[str], dict[str, str]]:
        """Check the program's own records (``BatchMembers``) in closed batches. Return two results: the ids of the
        batches whose records have all ended, and the cancelled batches that still have unfinished pipeline items, as a
        mapping from batch id to the reason for the cancellation. A pipeline stage may create such items even after the
        cancellation.
        """
        rows = await self._database.all(self._queries.closed)
        cancelled = {str(row["id"]): decode(row["reason"]) or "-" for row in rows if row["is_cancelled"]}
        ready, unwanted = list[str](), dict[str, str]()
        for members, ids in self._by_members(rows):
            unfinished = set(await members.find_unfinished(self._database, ids))
            ready += [id for id in ids if id not in unfinished]
            if members is self._items:
                unwanted = {id: cancelled[id] for id in unfinished if id in cancelled}
        return ready, unwanted

    async def _end(self, transaction: Transaction, locked: Row) -> list[BatchProgress]:
        """End a locked batch, pass the counts to its ``on_end`` task, and return them as a list with one element. If
        another task or record joined the batch before it was locked, do not end the batch, and return an empty list.
        """
        id = str(locked["id"])
        for each, _ in self._by_members([locked]):
            if await each.find_unfinished(transaction, [id]):
                return []
        counts = (await self._count_members(transaction, [locked])).get(id, NO_MEMBERS)
        ends = {name: getattr(counts, name) for name in ("succeeded", "failed", "cancelled")}
        if not await transaction.run(self._queries.end, id=id, now=self._clock.now(), **ends):
            return []
        row = await transaction.one(self._queries.batch, id=id)
        assert row is not None
        progress = _progress(row)
        if row["takes_progress"]:
            arguments, *_ = arguments_to_store(Call([progress.as_json()], {}), None, self._tasks.encryption)
            await transaction.run(self._queries.give_progress, id=row["on_end"], arguments=AsJson(arguments))
        if (members := self._members.get(row["members"])) is not None:
            await members.end(transaction, progress)
        await self._announce(transaction, ENDED + id)
        return [progress]

    async def _follow(self, transaction: Transaction) -> int:
        """Release the tasks whose awaited tasks and batches have all ended, and cancel the tasks whose awaited task or
        batch did not succeed. Return the number of waits that are over.
        """
        rows = await transaction.all(self._queries.resolved, limit=AT_A_TIME)
        waits = [from_row(ResolvedWait, row) for row in rows]
        followed, now = follow(waits), self._now()
        if followed.cancelled:
            dropped = [
                {"id": id, "reason": encode(why, LONGEST_ERROR), "now": now} for id, why in followed.cancelled.items()
            ]
            await transaction.run_many(self._queries.cancel_waiting, dropped)
            await transaction.run(self._queries.drop_waits, ids=AsJson(list(followed.cancelled)))
        if followed.over:
            pairs = [{"task": wait.task_id, "target": wait.for_id} for wait in followed.over]
            await transaction.run_many(self._queries.keep_input, pairs)
            await transaction.run_many(self._queries.drop_wait, pairs)
            due = {wait.task_id: wait.due_at for wait in followed.over}
            released = [{"id": id, "due_at": due_at, "now": now} for id, due_at in due.items()]
            await transaction.run_many(self._queries.release, released)
        for queue in {wait.queue for wait in followed.over}:
            await self._announce(transaction, queue)
        return len(rows)

    async def _announce(self, transaction: Transaction, name: str) -> None:
        """Send the notification ``name`` to every process after the commit."""
        if self._database.dialect == "postgres":
            await transaction.all(self._queries.announce, name=name)
        else:
            transaction.notify(name)

    def _wake(self) -> None:
        self.is_needed = True
        self._tasks.wake(TASK_ENDS)


_NOTHING: dict[str, Any] = dict.fromkeys(("waiting", "running", "succeeded", "failed", "cancelled"), 0) | dict.fromkeys(
    ("closed_at", "cancelled_at", "ended_at", "reason")
)


def _progress(row: Row | Mapping[str, Any], members: MemberCounts = NO_MEMBERS) -> BatchProgress:
    """Return a batch's progress: the task counts in ``row`` plus the counts of the program's own records."""
    counts = {each.name: int(row[each.name]) + getattr(members, each.name) for each in fields(MemberCounts)}
    return BatchProgress(
        id=str(row["id"]),
        name=row["name"],
        state=state_of_batch(closed_at=row["closed_at"], cancelled_at=row["cancelled_at"], ended_at=row["ended_at"]),
        total=sum(counts.values()),
        created_at=row["created_at"],
        ended_at=row["ended_at"],
        reason=decode(row["reason"]),
        **counts,
    )
