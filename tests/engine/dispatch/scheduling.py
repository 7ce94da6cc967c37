"""A scheduler on a real database and a fake clock, driven tick by tick."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job, Run, make_job
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Lanes
from batuta.dispatch.scheduler import Scheduler
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.runlog.execution import Ending, Registration, Status
from batuta.runlog.log import ExecutionLog, Expected, OwnTimetable
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.controls import SqlControls, SqlSwitches
from batuta.stores.sql.tables.executions import SqlExecutionLog
from batuta.supervise.loop import Again
from batuta.testing import EventRecorder, FakeClock
from tests.stored import readable

UTC_ZONE = ZoneInfo("UTC")
LEASE = timedelta(seconds=30)
MINUTE = timedelta(minutes=1)


@dataclass
class Endpoint:
    """A fake target for job runs. It returns the answer that the test sets, and records every delivery."""

    repeatable: bool = True
    address: str = "/jobs/test"
    answer: Ending = field(default_factory=lambda: Ending(status=Status.SUCCESS))
    gate: asyncio.Event | None = None  # if None, deliveries end at once; otherwise they wait for this event
    runs: list[Run] = field(default_factory=list)

    async def deliver(self, run: Run) -> Ending:
        self.runs.append(run)
        if self.gate is not None:
            await self.gate.wait()
        return self.answer


class House:
    """A test setup with one database, on which the test can start any number of schedulers."""

    def __init__(self, database: Database, clock: FakeClock, events: EventRecorder) -> None:
        self.database = database
        self.clock = clock
        self.events = events
        self.ids = Ids(clock)
        self.switches = SqlSwitches(database, self.ids, events)
        self.controls = SqlControls(database, self.ids, events)
        self.log = SqlExecutionLog(database, self.switches, self.controls, self.ids, clock, own_time=True)

    def scheduler(
        self,
        *jobs: Job,
        registry: JobRegistry | None = None,
        release: str | None = None,
        lease: timedelta = LEASE,
        lanes: Lanes | None = None,
    ) -> Scheduler:
        if registry is None:
            registry = JobRegistry()
            for job in jobs:
                registry.add(job)
        return Scheduler(
            registry, self.log, self.clock, self.ids, self.events, lanes=lanes, lease=lease, release=release
        )

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, timetable: str = "edited"
    ) -> None:
        """Register the given jobs, as a scheduler does when its version becomes active."""
        await register(self.log, jobs, lease_holder, timetable)

    async def rows(self, columns: str = "*", where: str = "TRUE") -> list[dict[str, Any]]:
        text = f"SELECT {columns} FROM job_executions WHERE {where} ORDER BY coalesce(scheduled_for, started_at), id"
        query = in_dialect(query_of("rows", text, writes=False), self.database.dialect)
        return [readable(row) for row in await self.database.all(query)]

    async def statuses(self) -> list[str]:
        return [row["status"] for row in await self.rows("status, scheduled_for, started_at, id")]

    async def pause(self, key: str, on: bool = True) -> None:
        await self.switches.set(key, on, by="test", reason="by hand", now=self.clock.now())


async def register(
    log: ExecutionLog, jobs: Collection[Registration], lease_holder: LeaseHolder, timetable: str = "edited"
) -> frozenset[str]:
    """Register the given jobs. Retry if another scheduler registers at the same time."""
    await log.announce(OwnTimetable(fingerprint=timetable, jobs=len(jobs)), lease_holder)
    while True:
        active = next((each.fingerprint for each in await log.timetables(timetable) if each.is_active), None)
        expected = Expected(timetable=timetable, active=active, controls=await log.controls())
        if (changed := await log.register(jobs, lease_holder, expected)) is not None:
            return changed


def job(name: str = "pulse", schedule: str = "* * * * *", target: Any = None, **options: Any) -> Job:
    return make_job(name, schedule, target or Endpoint(), zone=options.pop("zone", UTC_ZONE), **options)


async def finish(scheduler: Scheduler) -> None:
    await scheduler.runner.finish()


async def tick_at(scheduler: Scheduler, clock: FakeClock, instant: datetime) -> None:
    """Set the clock, run one tick of the dispatcher and wait for the runs that it started."""
    clock.step(instant - clock.now())
    while isinstance(await scheduler.dispatcher.tick(), Again):
        pass
    await finish(scheduler)


async def watch_leases(clock: FakeClock, *schedulers: Scheduler) -> None:
    """Run the reapers, the loops that take over runs, at their usual interval until they have had time to take over a
    run whose owner no longer renews its lease.
    """
    for _ in range(6):
        for each in schedulers:
            await each.reaper.tick()
        await clock.advance(LEASE / 3)


Decide = Callable[[Mapping[str, Any]], Any]
