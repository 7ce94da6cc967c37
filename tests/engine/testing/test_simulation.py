"""A simulation runs days of jobs and queued work in seconds."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from batuta import Batuta, TaskContext
from batuta.testing import JumpClock, Simulation

START = datetime(2026, 3, 2, 6, tzinfo=UTC)


async def test_a_day_of_jobs_and_tasks_happens_in_order(database_url: str) -> None:
    clock = JumpClock(START)
    work = Batuta(database_url, clock=clock, timezone="UTC")
    happened: list[tuple[str, int]] = []

    @work.task()
    async def remind(context: TaskContext, hour: int) -> None:
        happened.append(("reminded", hour))

    @work.job("0 */6 * * *")
    async def report() -> None:
        hour = clock.now().hour
        happened.append(("reported", hour))
        await work.enqueue(remind, hour, delay=3600)

    async with work, Simulation(work, clock) as simulation:
        await simulation.run_until(START + timedelta(days=1))
    hours = (12, 18, 0, 6)
    assert happened == [(what, hour) for hour in hours for what in ("reported", "reminded")][:-1]


async def test_a_batch_ends_and_releases_the_task_that_waits_for_it(database_url: str) -> None:
    clock = JumpClock(START)
    work = Batuta(database_url, clock=clock, timezone="UTC")
    happened: list[str] = []

    @work.task()
    async def send(to: str) -> None:
        happened.append(to)

    async with work, Simulation(work, clock) as simulation:
        async with work.batch("letters") as batch:
            await batch.add(send, ["ana", "rui"])
        await send.options(after=[batch]).enqueue("team")
        await simulation.settle()
        assert (await batch.progress()).state == "ended"
    assert happened[2:] == ["team"]


async def test_sleeper_wakes_by_time_or_by_a_jump() -> None:
    clock = JumpClock(START)
    await clock.sleep(0.001)
    clock.jump_to(START + timedelta(hours=2))
    assert timedelta(hours=2) <= clock.now() - START < timedelta(hours=2, minutes=1)
    clock.jump_to(START)
    assert clock.now() - START >= timedelta(hours=2)


async def test_clock_passes_every_hour_of_a_clock_change() -> None:
    zone = ZoneInfo("America/New_York")
    clock = JumpClock(datetime(2026, 11, 1, 0, 30, tzinfo=zone))
    clock.jump_to(datetime(2026, 11, 1, 2, 30, tzinfo=zone))
    assert clock.now() >= datetime(2026, 11, 1, 7, 30, tzinfo=UTC)
    assert clock.monotonic() >= timedelta(hours=3).total_seconds()
