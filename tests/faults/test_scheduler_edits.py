"""Editing a schedule does not start a run."""

import asyncio
import random
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from batuta.dispatch.registry import JobRegistry
from batuta.kernel.leases import LeaseHolder
from batuta.runlog.execution import Registration
from batuta.schedule.window import Window
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import House
from tests.faults.figures import LONG, Figures, kind
from tests.faults.simulated import HOUR, SECOND, RecordingEndpoint, decide, declared, look

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
# Every field of a job, with values that would have been due a moment ago.
EDITS: list[dict[str, Any]] = [
    {"schedule": "* * * * *"},
    {"schedule": "*/5 * * * *"},
    {"schedule": "0 12 * * *"},
    {"schedule": "59 11 * * *"},
    {"zone": SAO_PAULO},
    {"zone": SAO_PAULO, "schedule": "0 9 * * *"},
    {"category": "other"},
    {"catch_up": "all", "max_age": timedelta(days=1)},
    {"catch_up": "skip"},
    {"overlap": "allow"},
    {"timeout": timedelta(seconds=5)},
    {"sla": timedelta(minutes=1), "critical": True},
    {"max_age": timedelta(days=1)},
    {"window": "morning"},
    {"autonomous": True},
    {},
]


def registries(endpoint: RecordingEndpoint, edit: dict[str, Any], count: int) -> JobRegistry:
    """Return a registry that has ``count`` jobs in each of two profiles. ``edit`` replaces options of every job."""
    timetable = JobRegistry(["one", "two"], windows={"morning": Window(opens=time(9), lasts=timedelta(hours=12))})
    for profile in ("one", "two"):
        for n in range(count):
            options = {"schedule": f"{n % 60} {n % 11} * * *", **edit}
            timetable.add(declared(endpoint, f"job_{n}", **options), [profile])
    return timetable


async def test_no_edit_fires_a_job(house: House, clock: FakeClock, database_url: str) -> None:
    count = 1000 if LONG else 100
    figures = Figures("T20", kind(database_url), f"every field of {count} schedules is edited and then restored")
    endpoint, chance = RecordingEndpoint(clock), random.Random(20260105)
    at, looks = T0 + 30 * SECOND, 0
    for edit in [each for change in EDITS for each in (change, {})]:
        scheduler = house.scheduler(registry=registries(endpoint, edit, count))  # as in a restart with other code
        for change in (None, *chance.sample(range(6), 3)):
            await _turn(house, change)
            # No schedule is due in the middle of a minute.
            await look(scheduler, clock, at)
            at += timedelta(milliseconds=200)
            looks += 1
    assert clock.now() < T0 + 59 * SECOND
    assert endpoint.receipts == {}
    assert await house.rows() == []
    figures.record_bare(
        count * 2 * len(EDITS), f"in {looks} ticks, the edits caused no run and no row in the execution log"
    )


async def _turn(house: House, change: int | None) -> None:
    now = house.clock.now()
    match change:
        case 0:
            await house.controls.use_profile("two", by="test", now=now)
        case 1:
            await house.controls.use_profile("one", by="test", now=now)
        case 2:
            opens = (now.astimezone(SAO_PAULO) - timedelta(minutes=1)).time().replace(second=0, microsecond=0)
            await house.controls.set_window(
                "morning", Window(opens=opens, lasts=timedelta(hours=10)), by="test", now=now
            )
        case 3:
            await house.pause("pause.all")
        case 4:
            await house.pause("pause.all", on=False)
        case 5:
            await house.pause("pause.category.default")
            await house.pause("pause.category.default", on=False)


async def test_end_of_a_pause_fires_nothing_that_the_pause_held(house: House, clock: FakeClock) -> None:
    endpoint = RecordingEndpoint(clock)
    timetable = registries(endpoint, {"schedule": "*/10 * * * *"}, 20)
    await look(house.scheduler(registry=timetable), clock, T0 + 30 * SECOND)
    await house.pause("pause.all")
    scheduler = house.scheduler(registry=timetable)
    while clock.now() < T0 + HOUR + 30 * SECOND:
        await look(scheduler, clock, clock.now() + 10 * SECOND)
    await house.pause("pause.all", on=False)
    for _ in range(5):
        await look(scheduler, clock, clock.now() + SECOND)
    assert endpoint.receipts == {}
    assert set(await house.statuses()) == {"skipped"}


async def test_registration_and_dispatch_never_deadlock(house: House, clock: FakeClock) -> None:
    """Two tasks keep registering schedules while a scheduler fires. PostgreSQL would report a deadlock as an error."""
    endpoint, chance = RecordingEndpoint(clock), random.Random(20260105)
    names = [f"job_{n}" for n in range(30)]
    timetable = registries(endpoint, {"schedule": "* * * * *"}, len(names))
    scheduler = house.scheduler(registry=timetable)
    await look(scheduler, clock, T0 + 30 * SECOND)

    async def register() -> None:
        for n in range(40):
            some = chance.sample(names, 20)
            schedule = f"{n} * * * *"
            await house.register(
                [Registration(job=name, category="default", schedule=schedule, zone="UTC") for name in some],
                LeaseHolder(owner="editor", lease=timedelta(seconds=30)),
                timetable.own().fingerprint,
            )

    async def fire() -> None:
        for _ in range(40):
            clock.step(timedelta(minutes=1))
            await decide(scheduler)

    async with asyncio.timeout(120):
        await asyncio.gather(register(), fire(), register())
        ended = asyncio.create_task(scheduler.runner.finish())
        # if a run's row is locked, the scheduler waits on this clock and then writes the run's end again
        while not ended.done():
            await clock.advance(1)
        await ended
    assert "success" in await house.statuses()
