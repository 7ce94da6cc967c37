"""Schedulers on nights on which the clocks change, and on machines whose clock is set forward or back."""

import asyncio
import resource
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from batuta.kernel.clock import exact
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import LEASE, Endpoint, House, job
from tests.faults.figures import LONG, Figures, kind
from tests.faults.simulated import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    RecordingEndpoint,
    as_registry,
    declared,
    fires_of,
    judged,
    look,
)
from tests.judges.evidence import Rules

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
# The instants at which São Paulo's clocks went back, forward and back.
CHANGES = [
    datetime(2018, 2, 18, 2, 0, tzinfo=UTC),
    datetime(2018, 11, 4, 3, 0, tzinfo=UTC),
    datetime(2019, 2, 17, 2, 0, tzinfo=UTC),
]
EXPRESSIONS = [
    "0 0 * * *", "30 23 * * 6", "*/15 * * * *", "30 0 * * *", "30 23 * * *", "0 1 * * *", "0 * * * *", "59 23 * * *",
    "30 0-2 * * *", "15,45 23 * * *", "*/10 0 * * *", "*/20 23 * * *", "0 0 * * 0", "0 0 4 11 *", "0 0 * * 6", "5 0 * * 0",
    "30 1 * * *", "0 2 * * *", "0 3 * * 0", "45 22-23 * * *", "0 22 * * *", "*/30 22-23 * * *", "1 0 * * *", "0 12 * * *",
    "15 0 1-18 * *", "0 0 17,18 * *", "30 23 17 * *", "30 0 18 * *", "0 */2 * * *", "0 */6 * * *", "7 */3 * * *",
    "0 0 15 * 0", "20-40/10 23 * * *", "0-10/5 0 * * *", "*/7 23,0 * * *", "* 0 * * *", "40 * * 2 *", "40 * * 11 0",
    "0 4 * * 1-5", "0 20 * * *",
]  # fmt: skip
STEPS = [timedelta(hours=1), timedelta(days=1), timedelta(days=3653)]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change:%Y-%m-%d}")
async def test_nights_of_sao_paulos_clock_changes_fire_as_the_oracle_says(
    house: House, clock: FakeClock, database_url: str, change: datetime
) -> None:
    around = 36 * HOUR if LONG else 3 * HOUR
    figures = Figures(
        "T15",
        kind(database_url),
        f"{len(EXPRESSIONS)} jobs run from {around // HOUR} h before to {around // HOUR} h after the change to or from"
        f" daylight saving time on {change:%Y-%m-%d}",
    )
    endpoint = RecordingEndpoint(clock)
    jobs = [declared(endpoint, f"job_{n}", text, SAO_PAULO, category=f"lane_{n}") for n, text in enumerate(EXPRESSIONS)]
    scheduler = house.scheduler(registry=as_registry(jobs))
    start, longest = change - around, 0.0
    await look(scheduler, clock, start)
    while clock.now() < change + around:
        began = time.process_time()
        await look(scheduler, clock, clock.now() + MINUTE)
        longest = max(longest, time.process_time() - began)
    targets = fires_of(jobs, start, clock.now())
    verdict = await judged(house, endpoint, targets, Rules(read_at=clock.now() + HOUR, epsilon=SECOND))
    figures.record(verdict, f"the longest tick took {longest * 1000:.0f} ms of processor time")
    assert {(each.job, each.scheduled_for) for each in endpoint.receipts.values()} == {
        (target.job, target.at) for target in targets
    }


@pytest.mark.parametrize("step", STEPS, ids=["an hour", "a day", "ten years"])
async def test_clock_set_forward_runs_each_job_at_most_once_and_quickly(
    house: House, clock: FakeClock, database_url: str, step: timedelta
) -> None:
    count = 500 if LONG else 50
    figures = Figures(
        "T17", kind(database_url), f"the clock of a scheduler with {count} jobs is set forward by {exact(step)}"
    )
    endpoint = RecordingEndpoint(clock)
    crons = ["* * * * *", "*/5 * * * *", "0 * * * *", "0 12 * * *", "0 0 1 1 *"]
    jobs = [declared(endpoint, f"job_{n}", crons[n % 5], SAO_PAULO, category=f"lane_{n % 50}") for n in range(count)]
    scheduler = house.scheduler(registry=as_registry(jobs))
    await look(scheduler, clock, T0 + MINUTE)
    await look(scheduler, clock, T0 + 2 * MINUTE)
    before, memory, began = len(endpoint.receipts), _memory(), time.process_time()
    ahead = T0 + 2 * MINUTE + step + 30 * SECOND
    await look(scheduler, clock, ahead)
    took = time.process_time() - began
    grown = _memory() - memory
    runs = [each for each in endpoint.receipts.values() if each.start == ahead]
    assert len({each.job for each in runs}) == len(runs) == len(endpoint.receipts) - before
    # seconds for ten ticks with fifty jobs in the long form, and for one tick in the short form
    assert took < (10 if LONG else 1)
    assert grown < 50
    await look(scheduler, clock, (ahead + MINUTE).replace(second=0))
    on_time = [each for each in endpoint.receipts.values() if each.scheduled_for == (ahead + MINUTE).replace(second=0)]
    assert {each.job for each in on_time} >= {job.name for job in jobs if job.cron.text == "* * * * *"}
    rows = await house.rows("id, scheduled_for, started_at")
    figures.record_bare(
        len(jobs),
        f"runs: {len(runs)}; rows in the execution log: {len(rows)}; processor time of the tick: {took:.2f} s;"
        f" additional memory: {grown:.0f} MB",
    )


@pytest.mark.parametrize("back", [5 * SECOND, 50 * SECOND, HOUR, DAY], ids=["5 s", "50 s", "an hour", "a day"])
async def test_clock_set_back_doubles_no_fire_and_the_next_is_on_time(
    house: House, clock: FakeClock, database_url: str, back: timedelta
) -> None:
    figures = Figures("T18", kind(database_url), f"the scheduler's clock is set back by {exact(back)}")
    endpoint = RecordingEndpoint(clock)
    jobs = [
        declared(endpoint, f"job_{n}", text, catch_up=policy, category=f"lane_{n}")
        for n, (text, policy) in enumerate(
            (text, policy) for text in ("* * * * *", "*/7 * * * *", "0 * * * *") for policy in ("skip", "latest", "all")
        )
    ]
    scheduler = house.scheduler(registry=as_registry(jobs))
    await look(scheduler, clock, T0)
    for n in range(1, 71):
        await look(scheduler, clock, T0 + n * MINUTE + SECOND)
    end = clock.now()
    restarted, at = house.scheduler(registry=as_registry(jobs)), end - back
    while at <= min(end, end - back + 2 * HOUR):
        await look(scheduler, clock, at)
        at += 5 * SECOND
    await look(restarted, clock, clock.now() + SECOND)
    for _ in range(3):
        await look(restarted, clock, clock.now() + MINUTE)
    targets = {*fires_of(jobs, T0, end), *fires_of(jobs, end - back - 10 * SECOND, clock.now())}
    verdict = await judged(house, endpoint, targets, Rules(read_at=end + DAY, epsilon=11 * SECOND))
    figures.record(verdict)


@pytest.mark.parametrize("step", STEPS, ids=["an hour", "a day", "ten years"])
async def test_clock_corrected_after_being_ahead_silences_no_job(
    house: House, clock: FakeClock, database_url: str, step: timedelta
) -> None:
    figures = Figures(
        "T18",
        kind(database_url),
        f"for half a minute, the scheduler's clock is {exact(step)} ahead; then it is corrected",
    )
    endpoint = RecordingEndpoint(clock)
    jobs = [declared(endpoint, policy, "*/5 * * * *", catch_up=policy) for policy in ("skip", "latest", "all")]
    scheduler = house.scheduler(registry=as_registry(jobs))
    await look(scheduler, clock, T0)
    await look(scheduler, clock, T0 + 7 * MINUTE + step)
    await look(scheduler, clock, T0 + 7 * MINUTE + step + 30 * SECOND)
    ahead = set(endpoint.receipts)
    for n in range(8, 120):
        await look(scheduler, clock, T0 + n * MINUTE)
    ran = [each for key, each in endpoint.receipts.items() if key not in ahead]
    done_before = {(each.job, each.scheduled_for) for key, each in endpoint.receipts.items() if key in ahead}
    owed = {(each.job, each.at) for each in fires_of(jobs, T0 + 7 * MINUTE, clock.now())}
    assert {(each.job, each.scheduled_for) for each in ran} == owed - done_before
    assert all(each.scheduled_for == each.start for each in ran)
    rows = {row["id"]: row["status"] for row in await house.rows()}
    assert all(rows[each.key] == "success" for each in ran)
    figures.record_bare(len(owed), f"fires that had already run while the clock was ahead: {len(done_before & owed)}")


async def test_clock_set_forward_takes_no_run_from_a_living_scheduler(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event(), repeatable=False)
    living, other = (house.scheduler(job(target=endpoint)) for _ in range(2))
    await look(living, clock, T0)
    await look(other, clock, T0)
    clock.step(MINUTE)
    await living.dispatcher.tick()
    for each in (living, other):
        await each.reaper.tick()
    clock.step(HOUR)
    for each in (other, living):
        await each.reaper.tick()
    for _ in range(9):
        await living.leases.tick()
        await clock.advance(LEASE / 3)
        for each in (other, living):
            await each.reaper.tick()
    assert await house.statuses() == ["running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await living.runner.finish()
    assert await house.statuses() == ["success"]


async def test_clock_set_forward_hides_no_dead_scheduler(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    dead, other = (house.scheduler(job(target=endpoint)) for _ in range(2))
    await look(dead, clock, T0)
    await look(other, clock, T0)
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    await other.reaper.tick()
    clock.step(HOUR)
    for _ in range(8):
        await other.reaper.tick()
        await clock.advance(LEASE / 3)
    assert [run.execution.attempt for run in endpoint.runs] == [1, 2]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await other.runner.finish()
    await dead.runner.finish()


def _memory() -> float:
    """Return this process's peak memory use in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
