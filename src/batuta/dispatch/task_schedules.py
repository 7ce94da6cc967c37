"""Schedules that are created at run time: each fire enqueues a task.

A schedule follows the same rules as a job in code (see ``plan``): catch-up, overlap, jitter, pauses. One transaction
decides the fires, writes their rows and enqueues the tasks, so a scheduler that dies leaves no partial result.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job, Overlap, Run, make_job
from batuta.dispatch.plan import next_start
from batuta.kernel.clock import FARTHEST, Clock
from batuta.kernel.errors import InvalidJob, InvalidSchedule
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.runlog.execution import Ending
from batuta.schedule.due import CatchUp
from batuta.supervise.loop import Again, Idle, LoopPolicy, Pace, Wakeup

_NAME = re.compile(r"^[a-z0-9][a-z0-9_.:-]{0,99}$")
LOOK_EVERY = timedelta(seconds=1)
NOT_YET = timedelta(milliseconds=50)
AT_A_TIME = 100
SCHEDULES_POLICY = LoopPolicy(every=LOOK_EVERY, stuck_after=timedelta(minutes=1), max_failures=20, finishes_tick=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSchedule:
    """A stored schedule that enqueues a task. ``next_at`` is None if the schedule is paused or its only fire has
    passed.
    """

    name: str
    schedule: str  # a cron expression, ``@every 30s`` or ``@at <instant>``
    timezone: str
    task: str
    args: Mapping[str, Json]
    jitter: timedelta
    overlap: Overlap
    catch_up: CatchUp
    paused: bool
    decided_until: datetime
    next_at: datetime | None
    last_task: str | None
    created_by: str
    created_at: datetime
    updated_at: datetime


class _TaskTarget:
    """Placeholder target for a schedule's job, because a job needs a target. It is never called: the store enqueues the
    task.
    """

    repeatable = False
    address = "task"

    async def deliver(self, run: Run) -> Ending:
        raise AssertionError("a schedule enqueues its task in the transaction that decides its fire")


def job_of(name: str, schedule: str, zone: ZoneInfo, **options: Any) -> Job:
    """Convert the rules of a schedule to a job. Raises InvalidSchedule if they are invalid."""
    if not _NAME.match(name):
        why = "a name consists of lower-case letters, digits and any of . : _ -, at most 100"
        raise InvalidSchedule(job=name, why=Reason("schedule_name", why))
    try:
        job = make_job("schedule", schedule, _TaskTarget(), zone=zone, category="schedules", **options)
    except InvalidJob as error:
        raise InvalidSchedule(job=name, why=error.facts["why"]) from None
    return replace(job, name=name)


def next_look(job: Job, now: datetime) -> datetime | None:
    """Return the instant at which the job's next run starts, or None if the job will not fire again."""
    at = next_start(job, now)
    return None if at >= FARTHEST else at


class DueSchedules(Protocol):
    async def fire(self, limit: int) -> int:
        """Process the due fires of at most ``limit`` schedules: decide which fires run, and enqueue their tasks. Return
        the number of processed schedules.
        """

    async def next_at(self) -> datetime | None:
        """Return the instant at which the next schedule is due, according to this process's clock."""


class ScheduleLoop:
    name = "schedules"

    def __init__(self, schedules: DueSchedules, clock: Clock, wakeup: Wakeup) -> None:
        self.wakeup = wakeup
        self._schedules = schedules
        self._clock = clock

    async def tick(self) -> Pace:
        due = await self._schedules.next_at()
        if due is not None and due <= self._clock.now():
            # If the database's clock is slightly behind this process's clock, nothing is due in the database yet.
            return Again() if await self._schedules.fire(AT_A_TIME) else Idle(self._clock.now() + NOT_YET)
        return Idle(None if due is None else min(due, self._clock.now() + LOOK_EVERY))
