"""``work.schedules``: create, edit, pause, delete and backfill schedules while the program runs."""

from collections.abc import Container, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from batuta.config import find_zone
from batuta.dispatch.job import Overlap, schedule_text
from batuta.dispatch.task_schedules import TaskSchedule
from batuta.kernel.errors import InvalidCron, InvalidJob, InvalidSchedule, InvalidSetting
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import refuse_unstorable
from batuta.kernel.suggestions import check_options
from batuta.schedule.due import CatchUp
from batuta.schedule.kinds import at_text
from batuta.stores.sql.tables.schedules import NewSchedule, SqlSchedules, parts_of
from batuta.tasks.registry import TaskRegistry
from batuta.tasks.task import AnyTask, Call, TaskFunction

# The actor in the audit log if the caller passes no actor.
PROGRAM = "program"


class Schedules:
    """The schedules in the database. Each fire of a schedule enqueues a task. Every method that changes a schedule
    writes to the audit log.
    """

    def __init__(self, store: SqlSchedules, tasks: TaskRegistry, zone: ZoneInfo, jobs: Container[str]) -> None:
        self._store = store
        self._tasks = tasks
        self._zone = zone
        self._jobs = jobs

    @check_options
    async def create(
        self,
        name: str,
        *,
        task: AnyTask | TaskFunction | str,
        args: Mapping[str, Json] | None = None,
        cron: str | None = None,
        every: timedelta | float | None = None,
        at: datetime | None = None,
        timezone: str | None = None,
        jitter: timedelta | float = 0,
        overlap: Overlap | Literal["skip", "allow", "queue_one", "replace"] = Overlap.SKIP,
        catch_up: CatchUp | Literal["skip", "latest", "all"] = CatchUp.LATEST,
        by: str = PROGRAM,
    ) -> TaskSchedule:
        """Create a schedule. Pass exactly one of ``cron``, ``every`` (seconds) and ``at`` (a single instant, with a
        zone or together with ``timezone``). Raises ScheduleTaken if a schedule with this name exists, and
        InvalidSchedule for other mistakes.

        Each fire enqueues ``task`` with the named arguments ``args``. The other options are those of a job. ``by`` is
        the actor in the audit log.
        """
        if name in self._jobs:
            raise InvalidSchedule(
                job=name, why=Reason("schedule_is_job", "a job in the code has this name: choose another")
            )
        new = NewSchedule(
            schedule=_text(name, cron, every, _aware(name, at, timezone)),
            timezone=self._zone.key if timezone is None else _zone(name, timezone),
            **self._check(name, task, args or {}),
            jitter=_span(jitter),
            overlap=_word(name, Overlap, overlap, "overlap"),
            catch_up=_word(name, CatchUp, catch_up, "catch_up"),
        )
        return await self._store.create(name, new, by=by)

    @check_options
    async def edit(
        self,
        name: str,
        *,
        task: AnyTask | TaskFunction | str | None = None,
        args: Mapping[str, Json] | None = None,
        cron: str | None = None,
        every: timedelta | float | None = None,
        at: datetime | None = None,
        timezone: str | None = None,
        jitter: timedelta | float | None = None,
        overlap: Overlap | Literal["skip", "allow", "queue_one", "replace"] | None = None,
        catch_up: CatchUp | Literal["skip", "latest", "all"] | None = None,
        by: str = PROGRAM,
    ) -> TaskSchedule:
        """Change the given options of a schedule. The changed schedule applies only to the future: no past instant
        fires because of the change.
        """
        given: dict[str, Any] = {
            "schedule": _text(name, cron, every, _aware(name, at, timezone))
            if any(each is not None for each in (cron, every, at))
            else None,
            "timezone": None if timezone is None else _zone(name, timezone),
            "jitter": None if jitter is None else _span(jitter),
            "overlap": None if overlap is None else _word(name, Overlap, overlap, "overlap"),
            "catch_up": None if catch_up is None else _word(name, CatchUp, catch_up, "catch_up"),
        }

        def change(old: TaskSchedule) -> NewSchedule:
            wanted = old.args if args is None else dict(args)
            new = parts_of(old)
            if task is not None or args is not None:
                new = replace(new, **self._check(name, task or old.task, wanted))
            return replace(new, **{part: value for part, value in given.items() if value is not None})

        return await self._store.edit(name, change, by=by)

    async def pause(self, name: str, *, by: str = PROGRAM) -> TaskSchedule:
        """Pause a schedule until ``resume`` is called. Fires during the pause do not run later."""
        return await self._store.edit(name, lambda old: replace(parts_of(old), paused=True), by=by)

    async def resume(self, name: str, *, by: str = PROGRAM) -> TaskSchedule:
        """Let a paused schedule fire again from now on."""
        return await self._store.edit(name, lambda old: replace(parts_of(old), paused=False), by=by)

    async def delete(self, name: str, *, by: str = PROGRAM) -> None:
        """Delete a schedule, but keep its executions and the tasks that it enqueued."""
        await self._store.delete(name, by=by)

    async def backfill(self, name: str, since: datetime, until: datetime, *, by: str = PROGRAM) -> int:
        """Find the past fires from ``since`` to ``until`` that have not run, and enqueue the task for each of them.
        Return the number of enqueued tasks.
        """
        return await self._store.backfill(name, since, until, by=by)

    async def get(self, name: str) -> TaskSchedule:
        """Return the schedule with this name. If it does not exist, raise UnknownWord, like every other method that
        takes the name of an existing schedule.
        """
        return await self._store.get(name)

    async def all(self) -> list[TaskSchedule]:
        """Return every schedule sorted by name, including schedules whose last fire has passed."""
        return await self._store.all()

    def _check(self, name: str, task: AnyTask | TaskFunction | str, args: Mapping[str, Json]) -> dict[str, Any]:
        """Return the task's name and the arguments as JSON. Raises InvalidSchedule if the task does not accept the
        arguments.
        """
        known = self._tasks.get(task)
        try:
            known.refuse_call(Call((), args))
            stored = known.codec.encode((), args)[1] if known.codec.checks else dict(args)
            refuse_unstorable(stored, "task arguments")
        except TypeError as error:
            raise InvalidSchedule(job=name, why=str(error)) from None
        return {"task": known.name, "args": stored}


def _text(name: str, cron: str | None, every: timedelta | float | None, at: datetime | None) -> str:
    if len([each for each in (cron, every, at) if each is not None]) != 1:
        raise InvalidSchedule(
            job=name, why=Reason("schedule_kind", "give one of cron=, every= (seconds) and at= (an instant)")
        )
    try:
        return schedule_text(name, cron, every) if at is None else at_text(at)
    except InvalidJob as error:
        raise InvalidSchedule(job=name, why=error.facts["why"]) from None
    except InvalidCron as error:
        raise InvalidSchedule(job=name, why=str(error)) from None


def _aware(name: str, at: datetime | None, timezone: str | None) -> datetime | None:
    """Add the time zone ``timezone`` to an instant without a time zone, and return the instant. If ``timezone`` is
    None, the instant stays unchanged.
    """
    if at is None or at.tzinfo is not None or timezone is None:
        return at
    return at.replace(tzinfo=ZoneInfo(_zone(name, timezone)))


def _zone(name: str, timezone: str) -> str:
    try:
        return find_zone(timezone).key
    except InvalidSetting as error:
        raise InvalidSchedule(job=name, why=error.facts["why"]) from None


def _span(given: timedelta | float) -> timedelta:
    return given if isinstance(given, timedelta) else timedelta(seconds=given)


def _word(name: str, kind: Any, word: str, what: str) -> Any:
    try:
        return kind(word)
    except ValueError:
        why = "its {what} is '{word}', but must be {known}"
        raise InvalidSchedule(
            job=name, why=Reason("job_word", why, what=what, word=word, known=" | ".join(kind))
        ) from None


def describe(schedule: TaskSchedule) -> dict[str, Any]:
    """Return a schedule as JSON. Only the names of its arguments are included, because their values may be personal
    data.
    """
    return {
        "name": schedule.name,
        "schedule": schedule.schedule,
        "timezone": schedule.timezone,
        "task": schedule.task,
        "args": sorted(schedule.args),
        "jitter_seconds": schedule.jitter.total_seconds(),
        "overlap": schedule.overlap.value,
        "catch_up": schedule.catch_up.value,
        "state": state_of(schedule),
        "next_at": None if schedule.next_at is None else schedule.next_at.isoformat(),
        "last_task": schedule.last_task,
        "created_by": schedule.created_by,
    }


def state_of(schedule: TaskSchedule) -> str:
    if schedule.paused:
        return "paused"
    return "over" if schedule.next_at is None else "active"
