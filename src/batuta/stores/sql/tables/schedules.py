"""Stores the schedules that are created at run time, and enqueues their tasks when they fire."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job, Overlap
from batuta.dispatch.plan import facts_of, plan
from batuta.dispatch.task_schedules import TaskSchedule, job_of, next_look
from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, InvalidSchedule, ScheduleTaken, reason_of_error
from batuta.kernel.events import Events, ScheduleFailed
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import Reason, encode
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import mask_text
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass
from batuta.runlog.execution import LONGEST_ERROR, Opening, Status, Trigger
from batuta.runlog.log import Controls, Ledger
from batuta.schedule.due import MOMENT, CatchUp, fires
from batuta.schedule.kinds import Once
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row, Transaction, from_row, read_clock
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.audit import AuditLog
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.supervise.loop import Wakeup
from batuta.tasks.registry import TaskRegistry
from batuta.tasks.service import TaskService
from batuta.tasks.task import NO_OPTIONS, Call

# Maximum number of fires in one backfill.
MOST_BACKFILLED = 1_000
# If a schedule's fires cannot be computed, the next attempt follows after this time.
RETRY_AFTER = timedelta(minutes=1)
LOOK_AGAIN = timedelta(seconds=1)
# Name of the encrypted arguments column, for ``Encryption``, which authenticates it.
ARGUMENTS = "schedules.args"


@dataclass(frozen=True, slots=True)
class ScheduleQueries:
    listed: Query
    named: Query
    held: Query
    create: Query
    edit: Query
    delete: Query
    prune: Query
    due: Query
    next: Query
    decide: Query
    record: Query
    repeat: Query
    link: Query
    fail: Query
    is_alive: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSchedule:
    """The fields of a schedule that its creator chooses: the task and its arguments, when it fires, and how missed or
    overlapping fires are handled.
    """

    schedule: str
    timezone: str
    task: str
    args: Mapping[str, Json]
    jitter: timedelta
    overlap: Overlap
    catch_up: CatchUp
    paused: bool = False


class SqlSchedules:
    def __init__(
        self,
        database: Database,
        switches: SqlSwitches,
        tasks: TaskService[Transaction],
        registry: TaskRegistry,
        ids: Ids,
        clock: Clock,
        events: Events,
        wake: Callable[[str], None],
        *,
        own_time: bool = False,
        encryption: Encryption = PLAIN,
    ) -> None:
        """Create the store of schedules. ``wake`` is called with the name of each queue in which a schedule enqueued a
        task. ``encryption`` encrypts the tasks' arguments.
        """
        self._encryption = encryption
        self._database = database
        self._switches = switches
        self._tasks = tasks
        self._registry = registry
        self._ids = ids
        self._clock = clock
        self._events = events
        self._wake = wake
        self._own_time = own_time or database.dialect == "sqlite"
        self._ahead = timedelta(0)
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(ScheduleQueries, STATEMENTS / "schedules.sql", database.dialect)
        self.wakeup = Wakeup()

    async def all(self) -> list[TaskSchedule]:
        return [self._schedule(row) for row in await self._database.all(self._queries.listed)]

    async def find(self, name: str) -> TaskSchedule | None:
        row = await self._database.one(self._queries.named, name=name)
        return None if row is None else self._schedule(row)

    async def get(self, name: str) -> TaskSchedule:
        """Return a schedule. Raises UnknownWord, which suggests the nearest name, if the schedule does not exist."""
        if (found := await self.find(name)) is None:
            raise unknown("schedule", name, [each.name for each in await self.all()])
        return found

    async def create(self, name: str, new: NewSchedule, *, by: str) -> TaskSchedule:
        async with self._database.transaction() as transaction:
            now = await self._now(transaction)
            values = self._values(name, new, _first_look(name, new, now), now)
            del values["paused"]
            if not await transaction.run(self._queries.create, by=by, **values):
                raise ScheduleTaken(job=name)
            await self._note(transaction, "schedule.create", name, by, now, after=_describe(new))
        self.wakeup.set()
        return await self.get(name)

    async def edit(self, name: str, change: Callable[[TaskSchedule], NewSchedule], *, by: str) -> TaskSchedule:
        """Change some fields of a schedule. Fires that were due before the change are recorded as decided, so that the
        change does not start a task for them.
        """
        await self.get(name)
        async with self._database.transaction() as transaction:
            row = await transaction.one(self._queries.held, name=name)
            if row is None:
                raise unknown("schedule", name, [])
            old = self._schedule(row)
            new, now = change(old), await self._now(transaction)
            look = None if new.paused else _first_look(name, new, now, may_be_past=new.schedule == old.schedule)
            await transaction.run(self._queries.edit, **self._values(name, new, look, now))
            await self._note(
                transaction, "schedule.edit", name, by, now, before=_describe(parts_of(old)), after=_describe(new)
            )
        self.wakeup.set()
        return await self.get(name)

    async def delete(self, name: str, *, by: str) -> None:
        old = await self.get(name)
        async with self._database.transaction() as transaction:
            if await transaction.run(self._queries.delete, name=name):
                now = await self._now(transaction)
                await self._note(transaction, "schedule.delete", name, by, now, before=_describe(parts_of(old)))

    async def backfill(self, name: str, since: datetime, until: datetime, *, by: str) -> int:
        """Enqueue a task for every fire in [since, until] that has not run, and return the number of enqueued tasks."""
        schedule = await self.get(name)
        async with self._database.transaction() as transaction:
            now = await self._now(transaction)
            job = _job(schedule.name, schedule)
            range_of_fires = fires(job.cron, job.zone, since - MOMENT, min(until, now))
            found = list(islice(range_of_fires, MOST_BACKFILLED + 1))
            if len(found) > MOST_BACKFILLED:
                why = Reason(
                    "backfill_large", "the range has more than {most} fires: choose a shorter one", most=MOST_BACKFILLED
                )
                raise InvalidSchedule(job=name, why=why)
            started = [
                await self._start(transaction, schedule, fire, Trigger.CATCH_UP, now, self._queries.repeat)
                for fire in found
            ]
            count = len([each for each in started if each is not None])
            span: Json = {"since": since.isoformat(), "until": until.isoformat(), "fires": count}
            await self._note(transaction, "schedule.backfill", name, by, now, after=span)
        self._wake_queues([schedule.task])
        return count

    async def fire(self, limit: int) -> int:
        replaced: list[str] = []
        explained: list[Opening] = []
        async with self._database.transaction() as transaction:
            now = await self._now(transaction)
            rows = await transaction.all(self._queries.due, now=now, limit=limit)
            if not rows:
                return 0
            switches = await self._switches.all(transaction)
            for row in rows:
                ledger = Ledger(
                    now=now,
                    controls=Controls(),
                    accounted={row["name"]: row["decided_until"]},
                    running=await self._running(transaction, row),
                    switches=switches,
                )
                replaced += await self._decide(transaction, row, ledger, explained)
        for event in facts_of(explained):
            self._events.emit(event)
        self._wake_queues(row["task"] for row in rows)
        for id in replaced:
            await self._tasks.cancel(id, Reason("replaced", "a later fire replaced it"))
        return len(rows)

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete at most ``limit`` schedules that fire only once and whose fire was decided before the instant
        ``before``. Return how many were deleted.
        """
        return await self._database.run(self._queries.prune, before=before, limit=limit)

    async def next_at(self) -> datetime | None:
        row = await self._database.one(self._queries.next)
        at: datetime | None = None if row is None else row["at"]
        return None if at is None else at - self._ahead

    async def _decide(self, transaction: Transaction, row: Row, ledger: Ledger, explained: list[Opening]) -> list[str]:
        """Write an execution-log row for each due fire of a schedule, and enqueue a task for each fire that runs. Add
        each fire that does not run to the list ``explained``. Return the ids of earlier tasks that the new tasks
        replace.
        """
        name, last, replaced = str(row["name"]), row["last_task"], []
        try:
            schedule = self._schedule(row)
            job = _job(schedule.name, schedule)
            decisions = plan(job, ledger, {})
            following = ledger.now + LOOK_AGAIN if decisions.waits else next_look(job, ledger.now)
        # The row was edited by hand, or its encryption key is missing. Its fires will be decided later.
        except (BatutaError, ValueError, ArithmeticError) as error:
            self._events.emit(ScheduleFailed(name, error))
            await self._write(transaction, name, row["decided_until"], ledger.now + RETRY_AFTER, last)
            return []
        for opening in decisions.openings:
            fire = opening.scheduled_for
            assert fire is not None
            if opening.status is not Status.RUNNING:
                explained += [opening] if await self._explain(transaction, opening, ledger.now) else []
                continue
            query = self._queries.record
            started = await self._start(transaction, schedule, fire, opening.trigger, ledger.now, query)
            if started is not None:
                replaced += [last] if decisions.replaced and last is not None else []
                last = started
        until = decisions.accounted.get(name, schedule.decided_until)
        await self._write(transaction, name, until, following, last)
        return replaced

    async def _write(
        self, transaction: Transaction, name: str, until: datetime, next_at: datetime | None, task: str | None
    ) -> None:
        await transaction.run(self._queries.decide, name=name, until=until, next_at=next_at, task=task)

    async def _start(
        self,
        transaction: Transaction,
        schedule: TaskSchedule,
        fire: datetime,
        trigger: Trigger,
        now: datetime,
        query: Query,
    ) -> str | None:
        """Write the row for a fire and enqueue its task. Return None if the fire already has a row, or if the task
        cannot be enqueued.
        """
        id = self._ids.new()
        row = _execution(id, schedule.name, fire, trigger, Status.SUCCESS, now)
        if not await transaction.run(query, **row):
            return None
        try:
            known = self._registry.get(schedule.task)
            (task,) = await self._tasks.put(known, [Call((), schedule.args)], NO_OPTIONS, within=transaction)
        # this release does not define the task, or defines it with other parameters
        except (BatutaError, TypeError, ValueError) as refused:
            error = reason_of_error(refused) if isinstance(refused, BatutaError) else str(refused)
            words = encode(mask_text(error, LONGEST_ERROR), LONGEST_ERROR)
            await transaction.run(self._queries.fail, id=id, error=words)
            self._events.emit(ScheduleFailed(schedule.name, refused))
            return None
        await transaction.run(self._queries.link, id=id, result=AsJson({"task": task}))
        return task

    async def _explain(self, transaction: Transaction, opening: Opening, now: datetime) -> bool:
        """Write the row for a fire that does not run. Return False if the fire already has a row."""
        fire = opening.scheduled_for
        assert fire is not None
        row = _execution(self._ids.new(), opening.job, fire, opening.trigger, opening.status, now)
        row |= {"reason": encode(opening.reason), "result": AsJson(opening.covers and dict(opening.covers))}
        return bool(await transaction.run(self._queries.record, **row))

    async def _running(self, transaction: Transaction, row: Row) -> frozenset[str]:
        if row["last_task"] is None or row["overlap"] == Overlap.ALLOW:
            return frozenset()
        alive = await transaction.one(self._queries.is_alive, id=row["last_task"])
        return frozenset() if alive is None else frozenset({row["name"]})

    def _wake_queues(self, tasks: Iterable[str]) -> None:
        for queue in {known.queue for task in tasks if (known := self._registry.find(task)) is not None}:
            self._wake(queue)

    async def _note(
        self,
        transaction: Transaction,
        action: str,
        name: str,
        by: str,
        now: datetime,
        *,
        before: Json = None,
        after: Json = None,
    ) -> None:
        await self._audit.note(
            transaction, actor=by, action=action, subject=f"schedule:{name}", before=before, after=after, now=now
        )

    def _schedule(self, row: Row) -> TaskSchedule:
        return from_row(
            TaskSchedule,
            row,
            args=self._encryption.decrypt(row["args"], ARGUMENTS),
            jitter=timedelta(seconds=row["jitter_seconds"]),
            overlap=Overlap(row["overlap"]),
            catch_up=CatchUp(row["catch_up"]),
        )

    def _values(self, name: str, new: NewSchedule, next_at: datetime | None, now: datetime) -> dict[str, object]:
        return {
            "name": name,
            "schedule": new.schedule,
            "timezone": new.timezone,
            "task": new.task,
            "args": AsJson(self._encryption.encrypt(dict(new.args), ARGUMENTS)),
            "jitter": new.jitter.total_seconds(),
            "overlap": new.overlap.value,
            "catch_up": new.catch_up.value,
            "paused": new.paused,
            "next_at": next_at,
            "now": now,
        }

    async def _now(self, within: Reading) -> datetime:
        if self._own_time:
            return self._clock.now()
        now = await read_clock(within)
        self._ahead = now - self._clock.now()
        return now


def _job(name: str, schedule: TaskSchedule | NewSchedule) -> Job:
    options: dict[str, Any] = {
        "jitter": schedule.jitter,
        "overlap": schedule.overlap,
        "catch_up": schedule.catch_up,
    }
    return job_of(name, schedule.schedule, ZoneInfo(schedule.timezone), **options)


def _first_look(name: str, new: NewSchedule, now: datetime, *, may_be_past: bool = False) -> datetime | None:
    job = _job(name, new)
    if isinstance(job.cron, Once) and job.cron.at <= now and not may_be_past:
        raise InvalidSchedule(job=name, why=Reason("schedule_past", "its instant is in the past: give a later one"))
    return next_look(job, now)


def parts_of(schedule: TaskSchedule) -> NewSchedule:
    names = NewSchedule.__dataclass_fields__
    return NewSchedule(**{name: getattr(schedule, name) for name in names})


def _describe(new: NewSchedule) -> Json:
    described: dict[str, Json] = {**asdict(new), "jitter": new.jitter.total_seconds(), "args": sorted(new.args)}
    return described


def _execution(
    id: str, name: str, fire: datetime, trigger: Trigger, status: Status, now: datetime
) -> dict[str, object]:
    return {
        "id": id,
        "name": name,
        "fire": fire,
        "trigger": trigger.value,
        "status": status.value,
        "reason": None,
        "error": None,
        "result": AsJson(None),
        "now": now,
    }
