"""While two versions of the code are running, only the schedules of the most recently deployed version fire."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta

from batuta.dispatch.job import Job
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.scheduler import Scheduler
from batuta.schedule.window import Window
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.loop import Again
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import LEASE, MINUTE, Endpoint, House, finish, job, tick_at

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock
STEP = LEASE / 3


async def let_run(clock: FakeClock, schedulers: Sequence[Scheduler], span: timedelta, step: timedelta = STEP) -> None:
    """Tick the dispatchers in the given order while the clock advances. The runs that they start end immediately."""
    ends = clock.now() + span
    while clock.now() < ends:
        for each in schedulers:
            while isinstance(await each.dispatcher.tick(), Again):
                pass
            await finish(each)
        await clock.advance(min(step, ends - clock.now()))


async def fires(house: House, name: str, since: datetime = T0) -> list[tuple[datetime, str]]:
    rows = await house.rows("job_name, scheduled_for, status, started_at, id")
    return [
        (row["scheduled_for"], row["status"])
        for row in rows
        if row["job_name"] == name and row["scheduled_for"] > since
    ]


def minutes(first: int, last: int, status: str = "success") -> list[tuple[datetime, str]]:
    return [(T0 + n * MINUTE, status) for n in range(first, last + 1)]


def x() -> Job:
    return job("x")


def z() -> Job:
    return job("z")


async def test_restarted_old_scheduler_does_not_silence_a_new_job(house: House, clock: FakeClock) -> None:
    new = house.scheduler(x(), z())
    await let_run(clock, [house.scheduler(x())], MINUTE / 2)
    await let_run(clock, [new], 2 * MINUTE)
    await let_run(clock, [house.scheduler(x())], STEP)  # the old version starts once more, and ends
    await let_run(clock, [new], 10 * MINUTE)
    assert await fires(house, "x") == minutes(1, 12)
    assert await fires(house, "z") == minutes(1, 12)


async def test_only_the_schedule_of_the_newer_version_fires_while_both_run(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(job("x", "*/5 * * * *")), house.scheduler(job("x", "0 13 * * *"))
    await let_run(clock, [old], MINUTE)
    await let_run(clock, [new, old], timedelta(hours=2))
    assert await fires(house, "x") == [(T0 + 60 * MINUTE, "success")]


def with_window(*jobs: Job) -> JobRegistry:
    registry = JobRegistry(windows={"manha": Window(opens=time(9), lasts=timedelta(hours=12))})
    for each in jobs:
        registry.add(each)
    return registry


async def test_window_that_moves_while_two_versions_run_silences_no_job(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(registry=with_window(x())), house.scheduler(registry=with_window(x(), z()))
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new, old], 2 * MINUTE)
    window = Window(opens=time(8), lasts=timedelta(hours=12))
    await house.controls.set_window("manha", window, by="test", now=clock.now())
    await let_run(clock, [new, old], 5 * MINUTE)
    assert await fires(house, "x") == minutes(1, 7)
    assert await fires(house, "z") == minutes(1, 7)


async def test_older_version_takes_over_when_the_newer_one_is_gone(house: House, clock: FakeClock) -> None:
    """After a crash or a rollback of the newer version, the older version's schedules fire again after a short timeout,
    and each fire has a row in the execution log.
    """
    old, new = house.scheduler(x()), house.scheduler(x(), z())
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new, old], 2 * MINUTE)
    await let_run(clock, [old], 5 * MINUTE)
    fired = await fires(house, "x")
    assert [at for at, _ in fired] == [at for at, _ in minutes(1, 7)]
    assert [status for _, status in fired[-3:]] == ["success"] * 3
    assert await fires(house, "z") == minutes(1, 2)


async def test_returning_version_records_the_fires_of_its_absence(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(x()), house.scheduler(x(), z())
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new, old], 2 * MINUTE)
    await let_run(clock, [old], 10 * MINUTE)
    await let_run(clock, [house.scheduler(x(), z()), old], 2 * MINUTE)
    assert [at for at, _ in await fires(house, "x")] == [at for at, _ in minutes(1, 14)]
    fired = await fires(house, "z")
    assert [at for at, _ in fired] == [at for at, _ in minutes(1, 14)]
    assert {status for _, status in fired} == {"success", "missed"}


async def test_short_pause_of_the_newer_version_changes_nothing(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(job("x", "*/2 * * * *")), house.scheduler(job("x", "*/3 * * * *"))
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new, old], MINUTE / 2)
    for _ in range(5):
        await let_run(clock, [old], LEASE)
        await let_run(clock, [new, old], MINUTE)
    assert {at.minute % 3 for at, _ in await fires(house, "x")} == {0}


async def test_frozen_old_scheduler_fires_nothing_when_it_wakes_up(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(job("x", "*/2 * * * *")), house.scheduler(job("x", "*/3 * * * *"))
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new], 30 * MINUTE)
    await let_run(clock, [old, new], 10 * MINUTE)
    assert {at.minute % 3 for at, _ in await fires(house, "x")} == {0}


async def test_standby_version_still_runs_a_job_by_hand(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint()
    gone = job("gone", target=endpoint)
    old, new = house.scheduler(gone), house.scheduler(x())
    await let_run(clock, [old], STEP)
    await let_run(clock, [new, old], 2 * STEP)
    await old.run_by_hand(gone)
    assert len(endpoint.runs) == 1


async def test_clock_change_does_not_change_the_active_version(house: House, clock: FakeClock) -> None:
    old, new = house.scheduler(job("x", "*/2 * * * *")), house.scheduler(job("x", "*/3 * * * *"))
    await let_run(clock, [old], MINUTE / 2)
    await let_run(clock, [new, old], MINUTE)
    for hours in (1, -2):
        clock.step(timedelta(hours=hours))
        await let_run(clock, [old, new], 4 * MINUTE)
    assert {
        at.minute % 3 for at, status in await fires(house, "x", T0 - timedelta(hours=2)) if status == "success"
    } == {0}


async def test_runs_in_progress_at_the_deploy_are_finished(house: House, clock: FakeClock) -> None:
    endpoint = Endpoint(gate=asyncio.Event())
    old, new = house.scheduler(job("gone", target=endpoint)), house.scheduler(x())
    await tick_at(old, clock, T0)
    clock.step(MINUTE)
    await old.dispatcher.tick()
    await let_run(clock, [new], 2 * STEP)
    assert endpoint.gate is not None
    endpoint.gate.set()
    await let_run(clock, [old, new], MINUTE)
    assert await fires(house, "gone") == minutes(1, 1)


async def test_rollback_with_a_release_name_is_active_at_once(house: House, clock: FakeClock) -> None:
    """An operator deploys the old code again and gives this deployment a new release name, so the old code counts as
    the newest version.
    """
    old, new = job("x", "*/2 * * * *"), job("x", "*/3 * * * *")
    await let_run(clock, [house.scheduler(old, release="1")], MINUTE / 2)
    newer = house.scheduler(new, release="2")
    await let_run(clock, [newer], MINUTE)
    await let_run(clock, [newer, house.scheduler(old, release="3")], 10 * MINUTE)
    assert {at.minute % 2 for at, _ in await fires(house, "x", T0 + 2 * MINUTE)} == {0}


async def test_removed_job_fires_no_more_and_its_missed_fires_are_recorded(house: House, clock: FakeClock) -> None:
    await let_run(clock, [house.scheduler(x(), z())], MINUTE / 2)
    clock.step(3 * MINUTE)
    await let_run(clock, [house.scheduler(x())], 2 * MINUTE)
    assert await fires(house, "z") == minutes(1, 3, "missed")


async def test_job_deactivated_by_hand_is_registered_again(house: House, clock: FakeClock) -> None:
    scheduler = house.scheduler(x())
    await let_run(clock, [scheduler], MINUTE / 2)
    text = "UPDATE job_schedules SET active = FALSE"
    await house.database.run(in_dialect(query_of("deactivate", text, writes=True), house.database.dialect))
    await let_run(clock, [scheduler], 5 * MINUTE)
    assert [at for at, _ in await fires(house, "x")][-3:] == [at for at, _ in minutes(3, 5)]


async def test_versions_with_leases_of_different_lengths_keep_their_order(house: House, clock: FakeClock) -> None:
    old = house.scheduler(job("x", "*/2 * * * *"), lease=timedelta(seconds=6))
    new = house.scheduler(job("x", "*/3 * * * *"), lease=timedelta(minutes=2))
    await let_run(clock, [old], MINUTE / 2, timedelta(seconds=1))
    await let_run(clock, [new, old], 4 * MINUTE, timedelta(seconds=1))
    assert {at.minute % 3 for at, _ in await fires(house, "x")} == {0}
