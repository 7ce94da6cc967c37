"""Schedules in the database: each fire enqueues its task once, even if schedulers crash or restart."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from batuta import Batuta
from batuta.errors import InvalidSchedule, ScheduleTaken, UnknownWord
from batuta.sql import query_of
from batuta.testing import FakeClock

T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock
MINUTE = timedelta(minutes=1)
ROWS = query_of(
    "rows", "SELECT status, trigger, scheduled_for FROM job_executions ORDER BY scheduled_for", writes=False
)
SENT = query_of("sent", "SELECT count(*) AS tasks FROM tasks", writes=False)
AUDIT = query_of("audit", "SELECT action FROM audit_log ORDER BY at, id", writes=False)


def build(url: str, clock: FakeClock) -> Batuta:
    work = Batuta(url, clock=clock, timezone="UTC")

    @work.task()
    async def send(to: str, subject: str = "") -> None: ...

    @work.job("0 3 * * *")
    async def nightly() -> None: ...

    return work


async def pass_time(work: Batuta, clock: FakeClock, *minutes: float) -> None:
    for minute in minutes:
        clock.step(T0 + minute * MINUTE - clock.now())
        await work._schedules.fire(100)


async def statuses(work: Batuta) -> list[str]:
    return [row["status"] for row in await work.database.all(ROWS)]


async def sent(work: Batuta) -> int:
    row = await work.database.one(SENT)
    assert row is not None
    return int(row["tasks"])


async def state_of(work: Batuta, id: str) -> str:
    status = await work.status(id)
    assert status is not None
    return status.status


@pytest.mark.parametrize(
    ("when", "fires"),
    [
        ({"cron": "*/2 * * * *"}, [2, 4]),
        ({"every": 90}, [1.5, 3, 4.5]),
        ({"cron": "0 10 * * *", "timezone": "Europe/Lisbon"}, []),
        ({"cron": "2 12 * * *", "timezone": "Europe/Lisbon"}, [2]),
        ({"at": T0 + 3 * MINUTE}, [3]),
    ],
    ids=str,
)
async def test_each_fire_enqueues_the_task_once_on_two_schedulers(
    database_url: str, clock: FakeClock, when: dict[str, Any], fires: list[float]
) -> None:
    async with build(database_url, clock) as first, build(database_url, clock) as second:
        await first.schedules.create("resumo-42", task="send", args={"to": "x"}, overlap="allow", **when)
        for half in range(1, 11):
            clock.step(T0 + half / 2 * MINUTE - clock.now())
            for work in (first, second):
                await work._schedules.fire(100)
        rows = await first.database.all(ROWS)
        assert [row["scheduled_for"] for row in rows] == [T0 + fire * MINUTE for fire in fires]
        assert {row["status"] for row in rows} <= {"success"}
        assert await sent(first) == len(fires)


async def test_loop_of_the_scheduler_fires_and_the_worker_gets_the_arguments(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, every=60)
        (loop,) = (each.loop for each in work.supervisor("scheduler").running if each.loop.name == "schedules")
        clock.step(MINUTE)
        await loop.tick()
        assert await work.work_once("default", 10) == 1
        schedule = await work.schedules.get("one")
        assert schedule.last_task is not None
        assert await state_of(work, schedule.last_task) == "complete"


async def test_downtime_catches_up_the_latest_fire_and_records_the_others(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, cron="* * * * *")
        await pass_time(work, clock, 3.1)
        assert await statuses(work) == ["missed", "missed", "success"]
        assert await sent(work) == 1


@pytest.mark.parametrize(
    ("overlap", "tasks", "states"), [("skip", 1, "skipped"), ("allow", 2, "success"), ("replace", 2, "success")]
)
async def test_fire_during_the_previous_task_follows_the_overlap_rule(
    database_url: str, clock: FakeClock, overlap: Any, tasks: int, states: str
) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, every=60, overlap=overlap)
        await pass_time(work, clock, 1)
        first = (await work.schedules.get("one")).last_task
        assert first is not None
        await pass_time(work, clock, 2)
        assert await statuses(work) == ["success", states]
        assert await sent(work) == tasks
        assert await state_of(work, first) == ("cancelled" if overlap == "replace" else "queued")


async def test_one_fire_waits_for_the_previous_task(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, every=60, overlap="queue_one")
        await pass_time(work, clock, 1, 2, 3)
        assert await statuses(work) == ["success", "skipped"]
        await work.work_once("default", 10)
        await pass_time(work, clock, 3.1)
        assert await statuses(work) == ["success", "skipped", "success"]


async def test_edit_pause_resume_and_delete_fire_nothing_and_are_audited(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, cron="* * * * *", by="ana")
        clock.step(1.5 * MINUTE)
        edited = await work.schedules.edit("one", every=3600, args={"to": "y", "subject": "z"}, by="ana")
        assert (edited.schedule, edited.args) == ("@every 3600s", {"to": "y", "subject": "z"})
        await work.schedules.edit("one", cron="* * * * *", by="ana")
        await work.schedules.pause("one", by="ana")
        await pass_time(work, clock, 2, 3)
        resumed = await work.schedules.resume("one", by="ana")
        assert resumed.next_at == T0 + 4 * MINUTE
        await pass_time(work, clock, 3.5)
        assert await sent(work) == 0
        await work.schedules.delete("one", by="ana")
        await pass_time(work, clock, 5)
        assert await work.schedules.all() == []
        assert await sent(work) == 0
        actions = [row["action"] for row in await work.database.all(AUDIT)]
        assert actions == ["schedule.create", *["schedule.edit"] * 4, "schedule.delete"]


async def test_backfill_runs_the_fires_that_did_not_run_and_only_once(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, cron="* * * * *")
        await pass_time(work, clock, 4.1)
        assert await statuses(work) == ["missed", "missed", "missed", "success"]
        assert await work.schedules.backfill("one", T0 - MINUTE, T0 + 4 * MINUTE) == 5
        assert await work.schedules.backfill("one", T0 - MINUTE, T0 + 4 * MINUTE) == 0
        assert await statuses(work) == ["success"] * 6
        assert await sent(work) == 6
        with pytest.raises(InvalidSchedule, match="more than 1000 fires"):
            await work.schedules.backfill("one", T0 - timedelta(days=2), T0)


async def test_task_that_this_release_lacks_is_an_error_row(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work, Batuta(work_url, clock=clock, timezone="UTC") as other:
        await work.schedules.create("one", task="send", args={"to": "x"}, cron="* * * * *")
        await pass_time(other, clock, 1)
        assert await statuses(work) == ["error"]
        await pass_time(work, clock, 2)
        assert await statuses(work) == ["error", "success"]


async def test_a_program_pauses_and_resumes_its_jobs(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work:
        await work.pause("nightly", reason="stock-taking", seconds=60, by="ana")
        (key, switch), *others = (await work.switches.all()).items()
        assert (key, switch.on, switch.reason, switch.set_by, others) == (
            "pause.job.nightly",
            True,
            "stock-taking",
            "ana",
            [],
        )
        assert switch.until == clock.now() + MINUTE
        await work.resume("nightly")
        assert (await work.switches.all())[key].on is False
        with pytest.raises(UnknownWord, match="nightly"):
            await work.pause("nigthly")


async def test_pause_of_everything_holds_schedules(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work:
        await work.schedules.create("one", task="send", args={"to": "x"}, cron="* * * * *")
        await work.switches.set("pause.all", True, by="ana", reason="test", now=clock.now())
        await pass_time(work, clock, 1)
        assert await statuses(work) == ["skipped"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"task": "send", "args": {"to": "x"}}, "give one of cron=, every="),
        ({"task": "send", "args": {"to": "x"}, "every": 60, "cron": "* * * * *"}, "give one of cron=, every="),
        ({"task": "send", "args": {"to": "x"}, "at": T0}, "in the past"),
        ({"task": "send", "args": {"to": "x"}, "cron": "61 * * * *"}, "is not a minute"),
        (
            {"task": "send", "args": {"to": "x"}, "every": 60, "timezone": "Asia/Tokio"},
            "'Asia/Tokio' is not a time zone",
        ),
        ({"task": "send", "args": {"to": 5}, "every": 60}, "it is int"),
        ({"task": "send", "args": {"to": "x"}, "every": 60, "name": "Resumo 42"}, "a name consists of"),
        ({"task": "send", "args": {"to": "x"}, "every": 60, "name": "nightly"}, "a job in the code has this name"),
    ],
)
async def test_mistake_is_reported_when_the_schedule_is_created(
    work_url: str, clock: FakeClock, options: dict[str, Any], said: str
) -> None:
    async with build(work_url, clock) as work:
        with pytest.raises(InvalidSchedule) as refused:
            await work.schedules.create(options.pop("name", "one"), **options)
        assert said in str(refused.value)
        assert await work.schedules.all() == []


async def test_instant_without_a_zone_is_in_the_given_time_zone(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work:
        at = datetime(2026, 6, 1, 9, 0)
        made = await work.schedules.create("one", task="send", args={"to": "x"}, at=at, timezone="Europe/Lisbon")
        assert made.next_at == datetime(2026, 6, 1, 8, 0, tzinfo=UTC)
        edited = await work.schedules.edit("one", at=at, timezone="America/Sao_Paulo")
        assert edited.next_at == datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
        with pytest.raises(InvalidSchedule, match="needs a time zone"):
            await work.schedules.create("two", task="send", args={"to": "x"}, at=at)


async def test_unknown_names_and_wrong_arguments_are_reported(work_url: str, clock: FakeClock) -> None:
    async with build(work_url, clock) as work:
        with pytest.raises(UnknownWord, match="send"):
            await work.schedules.create("one", task="sent", args={"to": "x"}, every=60)
        with pytest.raises(InvalidSchedule, match="to"):
            await work.schedules.create("one", task="send", args={"two": "x"}, every=60)
        await work.schedules.create("one", task="send", args={"to": "x"}, every=60)
        with pytest.raises(ScheduleTaken, match="schedule 'one' already exists: edit it"):
            await work.schedules.create("one", task="send", args={"to": "x"}, every=60)
        with pytest.raises(UnknownWord, match="one"):
            await work.schedules.pause("ones")


async def test_schedule_with_one_instant_is_deleted_a_week_after_it_fired(database_url: str, clock: FakeClock) -> None:
    async with build(database_url, clock) as work:
        await work.schedules.create("once", at=T0 + MINUTE, task="send", args={"to": "a"})
        await work.schedules.create("held", at=T0 + MINUTE, task="send", args={"to": "b"})
        await work.schedules.create("daily", cron="2 12 * * *", task="send", args={"to": "c"})
        await work.schedules.pause("held")
        (schedules,) = (each for each in work.retentions() if each.table == "schedules")
        await pass_time(work, clock, 1, 6 * 24 * 60)
        assert await schedules.prune(10) == 0
        await pass_time(work, clock, 8 * 24 * 60)
        assert await schedules.prune(10) == 1
        assert [each.name for each in await work.schedules.all()] == ["daily", "held"]
