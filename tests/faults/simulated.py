"""Schedulers on a real database and a fake clock, driven by the test."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job, Run, make_job
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.scheduler import Scheduler
from batuta.runlog.execution import Ending, Status
from batuta.supervise.loop import Again
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import House
from tests.faults.harness import logged, walked
from tests.judges.evidence import Receipt, Rules, Target
from tests.judges.scheduler import Verdict, judge

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
UTC_ZONE = ZoneInfo("UTC")


class RecordingEndpoint:
    """An endpoint that executes one run for each idempotency key, without delay, and records the run."""

    repeatable = True
    address = "/jobs/simulated"

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.receipts: dict[str, Receipt] = {}

    async def deliver(self, run: Run) -> Ending:
        now, execution = self._clock.now(), run.execution
        if execution.id not in self.receipts:
            fire = execution.scheduled_for
            self.receipts[execution.id] = Receipt(execution.job, execution.id, fire, execution.attempt, now, now)
        return Ending(status=Status.SUCCESS)


def declared(
    endpoint: RecordingEndpoint, name: str, schedule: str, zone: ZoneInfo = UTC_ZONE, **options: object
) -> Job:
    return make_job(name, schedule, endpoint, zone=zone, **options)  # type: ignore[arg-type]


def as_registry(jobs: Iterable[Job]) -> JobRegistry:
    registry = JobRegistry()
    for job in jobs:
        registry.add(job)
    return registry


async def look(scheduler: Scheduler, clock: FakeClock, at: datetime) -> None:
    """Set the clock to ``at``, run one tick of the scheduler, and wait for the runs that it started."""
    clock.step(at - clock.now())
    await decide(scheduler)
    await scheduler.runner.finish()


async def decide(scheduler: Scheduler) -> None:
    """Tick the dispatcher until it has decided every due fire."""
    while isinstance(await scheduler.dispatcher.tick(), Again):
        pass


def fires_of(jobs: Iterable[Job], since: datetime, until: datetime) -> list[Target]:
    """Return every fire in (since, until], computed without the scheduler's code."""
    start = since.replace(second=0, microsecond=0)
    return [
        Target(job.name, fire)
        for job in jobs
        for fire in walked(job.cron.text, job.zone, start, until)
        if since < fire <= until
    ]


async def judged(house: House, endpoint: RecordingEndpoint, targets: Collection[Target], rules: Rules) -> Verdict:
    log = [logged(row) for row in await house.rows()]
    found = judge(targets, endpoint.receipts.values(), log, rules)
    assert found.ok, str(found)
    return found
