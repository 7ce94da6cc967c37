"""Options of jobs on both databases: intervals, schedules with seconds, jitter, and the policies for overlapping fires."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from batuta import Batuta
from batuta.dispatch.plan import next_start
from batuta.dispatch.registry import JobRegistry
from batuta.errors import InvalidJob
from batuta.runlog.execution import Status
from batuta.targets.http import Answer, ending_of
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import LEASE, MINUTE, Endpoint, House, finish, job, tick_at

T0 = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def instants(endpoint: Endpoint) -> list[datetime | None]:
    return [run.execution.scheduled_for for run in endpoint.runs]


@pytest.mark.parametrize("schedule", ["@every 20s", "*/20 * * * * *"])
async def test_interval_and_seconds_fire_at_their_instants(house: House, clock: FakeClock, schedule: str) -> None:
    endpoint = Endpoint()
    scheduler = house.scheduler(job(schedule=schedule, target=endpoint))
    for second in range(0, 61, 5):
        await tick_at(scheduler, clock, T0 + second * SECOND)
    assert instants(endpoint) == [T0 + each * SECOND for each in (20, 40, 60)]


async def test_jitter_delays_the_start_and_keeps_the_instant(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    pulse = job(target=endpoint, jitter=50, catch_up="skip")
    delay = pulse.delay_of(T0 + MINUTE)
    assert timedelta(seconds=1) < delay < timedelta(seconds=50)
    first, second = house.scheduler(pulse), house.scheduler(pulse)
    for scheduler in (first, second):
        await tick_at(scheduler, clock, T0 + 55 * SECOND)
    assert next_start(pulse, T0 + 55 * SECOND) == next_start(pulse, T0 + MINUTE) == T0 + MINUTE + delay
    for scheduler in (first, second):
        await tick_at(scheduler, clock, T0 + MINUTE + delay - timedelta(microseconds=1))
    assert endpoint.runs == []
    for scheduler in (first, second):
        await tick_at(scheduler, clock, T0 + MINUTE + delay)
    assert instants(endpoint) == [T0 + MINUTE]
    (row,) = await house.rows("status, trigger, scheduled_for, started_at, id")
    assert (row["status"], row["trigger"]) == ("success", "schedule")


def test_delays_of_two_jobs_differ() -> None:
    assert job("a", jitter=50).delay_of(T0) != job("b", jitter=50).delay_of(T0)


async def run_on(house: House, clock: FakeClock, minutes: int, **options: Any) -> tuple[Any, Endpoint]:
    """Start a run that does not end. Then advance the clock by ``minutes`` minutes, so that one fire of the same job
    becomes due in each minute.
    """
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(target=endpoint, **options))
    await tick_at(scheduler, clock, T0)
    for n in range(1, minutes + 1):
        clock.step(T0 + n * MINUTE - clock.now())
        await scheduler.dispatcher.tick()
        await asyncio.sleep(0)
    return scheduler, endpoint


async def test_one_fire_waits_for_the_run_and_the_earlier_ones_are_skipped(house: House, clock: FakeClock) -> None:
    scheduler, endpoint = await run_on(house, clock, 4, overlap="queue_one")
    assert await house.statuses() == ["running", "skipped", "skipped"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    await tick_at(scheduler, clock, T0 + 4 * MINUTE + 20 * SECOND)
    assert instants(endpoint) == [T0 + MINUTE, T0 + 4 * MINUTE]
    assert await house.statuses() == ["success", "skipped", "skipped", "success"]


async def test_fires_that_waited_for_a_run_are_not_missed_after_its_end(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    scheduler = house.scheduler(job(schedule="* * * * * *", target=endpoint, overlap="queue_one"))
    await tick_at(scheduler, clock, T0)
    clock.step(SECOND)
    await scheduler.dispatcher.tick()
    await asyncio.sleep(0)
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    await tick_at(scheduler, clock, T0 + 4 * SECOND)
    assert await house.statuses() == ["success", "skipped", "skipped", "success"]


async def test_fire_replaces_the_run_of_the_same_process(house: House, clock: FakeClock) -> None:
    scheduler, endpoint = await run_on(house, clock, 2, overlap="replace")
    rows = await house.rows("status, reason, scheduled_for, started_at, id")
    assert [row["status"] for row in rows] == ["abandoned", "running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(scheduler)
    assert await house.statuses() == ["abandoned", "success"]


async def test_fire_replaces_the_run_of_another_scheduler(house: House, clock: FakeClock) -> None:
    first, endpoint = await run_on(house, clock, 1, overlap="replace")
    second = house.scheduler(job(target=endpoint, overlap="replace"))
    clock.step(MINUTE)
    await second.dispatcher.tick()
    await asyncio.sleep(0)
    await first.leases.tick()  # the renewal finds that the run has ended, and cancels it
    await finish(first)
    assert endpoint.gate is not None
    endpoint.gate.set()
    await finish(second)
    assert await house.statuses() == ["abandoned", "success"]


async def test_job_declared_after_the_scheduler_started_fires(house: House, clock: FakeClock) -> None:
    early, late = Endpoint(), Endpoint()
    registry = JobRegistry()
    registry.add(job("early", target=early))
    scheduler = house.scheduler(registry=registry)
    await tick_at(scheduler, clock, T0)
    registry.add(job("late", target=late))
    for n in range(1, 3):
        await tick_at(scheduler, clock, T0 + n * MINUTE)
        clock.step(LEASE / 3)
    assert instants(late) == [T0 + 2 * MINUTE]
    assert instants(early) == [T0 + MINUTE, T0 + 2 * MINUTE]


async def test_job_has_its_own_zone(clock: FakeClock) -> None:
    work = Batuta("sqlite:///never.db", clock=clock, timezone="UTC")

    @work.job("0 9 * * *", timezone="Europe/Lisbon")
    async def report() -> None: ...

    @work.job(every=30, jitter=5)
    async def ping() -> None: ...

    (lisbon, interval) = work.registry
    assert lisbon.zone == ZoneInfo("Europe/Lisbon")
    assert (interval.cron.text, interval.every, interval.sla) == ("@every 30s", 30 * SECOND, 90 * SECOND)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schedule": "* * * * *", "every": 30}, "either a schedule"),
        ({}, "either a schedule"),
        ({"every": 0.5}, "whole number of seconds"),
        ({"every": 0}, "from 1 second to 366 d"),
        ({"every": 30, "jitter": 30}, "shorter than the time between two fires"),
        ({"every": 30, "overlap": "queue_one", "catch_up": "all"}, "its catch_up must be latest"),
        ({"every": 30, "overlap": "replaced"}, "skip | allow | queue_one | replace"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], said: str, clock: FakeClock) -> None:
    work = Batuta("sqlite:///never.db", clock=clock)
    with pytest.raises(InvalidJob) as refused:

        @work.job(**options)
        async def ping() -> None: ...

    assert said in str(refused.value)


def test_http_job_accepts_any_answer_of_success_unless_it_expects_json() -> None:
    text, refused = Answer(204, {}, is_object=False), Answer(500, {}, is_object=False)
    assert ending_of(text, any_success=True).status is Status.SUCCESS
    assert ending_of(text).status is Status.ERROR
    assert ending_of(refused, any_success=True).status is Status.ERROR
    assert ending_of(Answer(200, {"status": "skipped", "reason": "x"}), any_success=True).status is Status.SKIPPED
