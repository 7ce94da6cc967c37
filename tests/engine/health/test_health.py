"""The counts in the health checks are exact, whatever other rows a table contains. The tests run on both databases."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.health.finding import Assessment, Severity
from batuta.health.workers import DEAD_AFTER, SCHEDULER_SILENT, judge_scheduler, judge_workers
from batuta.kernel.leases import LeaseHolder
from batuta.stores.sql.database import Database, Query, Row
from batuta.stores.sql.tables.processes import SqlBeats
from batuta.supervise.retention import Pruner
from batuta.testing import FakeClock
from batuta.testing.clock import settle

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
LEASE = LeaseHolder(owner="a:1", lease=30 * SECOND)


@pytest.fixture
async def work(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    made = Batuta(database_url, clock=clock)

    @made.task(retry=[60])
    async def mail(number: int) -> None: ...

    @made.task(queue="other")
    async def other() -> None: ...

    async with made:
        yield made


def causes(assessment: Assessment) -> dict[str, Severity]:
    return {finding.cause: finding.severity for finding in assessment.findings}


async def test_backlog_counts_only_due_items(work: Batuta, clock: FakeClock) -> None:
    now = clock.now()
    await work.enqueue_many("mail", [(n,) for n in range(7)])
    for priority in (1, 2, 9):
        await work.enqueue("mail", 100, priority=priority)
    await work.enqueue("mail", 200, delay=3600)  # due in an hour
    await work.enqueue("other")
    clock.step(MINUTE)
    pulse = await work.queues["default"].pulse()
    assert (pulse.due, pulse.oldest_due_at, pulse.stuck, pulse.dead) == (10, now, 0, 0)
    assert pulse.now == clock.now()


async def test_empty_queue_has_a_pulse(work: Batuta) -> None:
    pulse = await work.queues["default"].pulse()
    assert (pulse.due, pulse.oldest_due_at, pulse.stuck, pulse.dead, pulse.is_held) == (0, None, 0, 0, False)


@pytest.mark.parametrize(
    "change",
    [
        "available_at = available_at",  # waiting
        "lease_until = available_at, status = 'in_progress'",
        "finished_at = available_at, status = 'failed'",
        "limit_key = 'one'",  # no claim has seen it yet
    ],
)
async def test_queue_is_not_empty_while_its_pulse_may_count_an_item(work: Batuta, change: str) -> None:
    assert await empty_queues(work) == {"default", "other"}
    await work.enqueue("mail", 1)
    await work.database.script(f"UPDATE tasks SET {change}")
    assert await empty_queues(work) == {"other"}


async def test_queue_whose_items_have_ended_is_empty(work: Batuta) -> None:
    await work.enqueue("mail", 1)
    await work.database.script("UPDATE tasks SET finished_at = available_at, status = 'complete'")
    assert await empty_queues(work) == {"default", "other"}


async def empty_queues(work: Batuta) -> set[str]:
    return {queue.name for queue in work.observability.queues() if await queue.is_empty()}


async def test_one_statement_answers_for_all_empty_queues(work: Batuta, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, plain = list[str](), work.database.inner.all

    async def recorded(query: Query, **values: object) -> list[Row]:
        asked.append(query.name)
        return await plain(query, **values)

    monkeypatch.setattr(work.database.inner, "all", recorded)
    await work.enqueue("mail", 1)
    await work.health.look(fresh=True)
    assert (asked.count("occupied"), asked.count("pulse")) == (1, 1)


async def test_one_statement_reads_the_heartbeats_for_all_checks(work: Batuta, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, plain = list[str](), work.database.inner.all

    async def recorded(query: Query, **values: object) -> list[Row]:
        asked.append(query.name)
        return await plain(query, **values)

    monkeypatch.setattr(work.database.inner, "all", recorded)
    await work.health.look(fresh=True)
    assert asked.count("seen") == 1


async def test_stuck_counts_items_of_a_dead_worker_but_not_waiting_retries(work: Batuta, clock: FakeClock) -> None:
    await work.enqueue_many("mail", [(1,), (2,), (3,)])
    await work.enqueue("mail", 4, delay=900)  # due later, like an item that waits for a retry
    queue = work.queues["default"]
    await queue.settle_and_claim([], LEASE, 2)
    clock.step(LEASE.lease + 59 * SECOND)
    assert (await queue.pulse()).stuck == 0
    clock.step(2 * SECOND)
    pulse = await queue.pulse()
    assert (pulse.stuck, pulse.due) == (2, 1)
    assert (await work.queues["other"].pulse()).stuck == 0


async def test_dead_items_of_the_last_hour_are_also_counted_apart(
    work: Batuta, clock: FakeClock, database_url: str
) -> None:
    for _ in range(3):
        await work.enqueue("mail", 1)
    await work.database.script("UPDATE tasks SET status = 'failed', finished_at = available_at")
    clock.step(HOUR - SECOND)
    await work.enqueue("other")
    pulse = await work.queues["default"].pulse()
    assert (pulse.dead, pulse.dead_lately, pulse.due) == (3, 3, 0)
    clock.step(2 * SECOND)
    assert (await work.queues["default"].pulse()).dead_lately == 0
    assert (await work.queues["other"].pulse()).dead == 0


async def test_consumer_that_was_never_started_is_critical_within_two_minutes(work: Batuta, clock: FakeClock) -> None:
    await work.enqueue("mail", 1)
    assert causes(await work.health.look(fresh=True)) == {}
    clock.step(2 * MINUTE)
    seen = await work.health.look(fresh=True)
    assert causes(seen) == {"queue.deserted.default": Severity.CRITICAL}
    assert seen.score == 39


async def test_paused_queue_raises_no_finding(work: Batuta, clock: FakeClock) -> None:
    await work.enqueue("mail", 1)
    await work.switches.set("pause.queue.default", True, by="ana", reason="teste", now=clock.now())
    clock.step(2 * HOUR)
    seen = await work.health.look(fresh=True)
    assert causes(seen) == {"queue.held.default": Severity.INFO}
    assert seen.score == 100


async def test_health_lists_loops_of_live_workers_and_ignores_stopped_ones(work: Batuta, clock: FakeClock) -> None:
    stop = asyncio.Event()
    running = asyncio.create_task(work.supervisor().run(stop, 5 * SECOND))
    for _ in range(100):
        await settle()
        signs = await work.beats.read_signs(within=HOUR, now=clock.now())
        if signs.living_loops:
            break
    assert {"worker:default", "worker:other", "rescuer:default"} <= signs.living_loops
    stop.set()
    await running
    (ended,) = (await work.beats.read_signs(within=HOUR, now=clock.now())).beats
    assert (ended.role, ended.is_offline) == ("worker", True)
    clock.step(HOUR)
    assert causes(await work.health.look(fresh=True)) == {}


async def test_killed_worker_is_reported_dead(work: Batuta, clock: FakeClock) -> None:
    await work.beats.beat(
        "w:1", "worker", {"worker:default": {"last_progress_ago": 0.005, "failures": 0}}, now=clock.now()
    )
    clock.step(DEAD_AFTER + SECOND)
    assert causes(await work.health.look(fresh=True)) == {"workers.dead.worker": Severity.ERROR}


async def test_heartbeat_of_a_job_is_not_taken_for_a_process(work: Batuta, clock: FakeClock) -> None:
    await work.beats.beat("heartbeat", "heartbeat", {"execution": "1"}, now=clock.now())
    clock.step(HOUR)
    assert causes(await work.health.look(fresh=True)) == {}


async def test_beat_stores_the_age_of_a_tick_as_a_duration(database: Database, clock: FakeClock) -> None:
    """A heartbeat stores how long ago the last tick was. Unlike the instant of the tick, this duration is correct even
    if the clocks of two machines differ.
    """
    beats = SqlBeats(database, "1")
    await beats.beat("s:1", "scheduler", {"dispatcher": {"last_progress_ago": 1.5, "failures": 2}}, now=clock.now())
    (beat,) = (await beats.read_signs(within=HOUR, now=clock.now())).beats
    assert beat.loops["dispatcher"].worked_at == clock.now() - timedelta(milliseconds=1500)
    assert beat.loops["dispatcher"].failures == 2


async def test_beats_use_the_clock_of_the_database_when_none_is_given(database: Database) -> None:
    beats = SqlBeats(database, "1")
    await beats.beat("s:1", "scheduler", {"dispatcher": {"last_progress_ago": 0, "failures": 0}})
    signs = await beats.read_signs(within=HOUR)
    (beat,) = signs.beats
    assert timedelta(0) <= signs.now - beat.beat_at < MINUTE
    assert beat.lives(signs.now)


async def test_dead_process_stays_dead_when_the_clock_is_set_back(work: Batuta, clock: FakeClock) -> None:
    loops = {
        "dispatcher": {"last_progress_ago": 0, "failures": 0},
        "worker:default": {"last_progress_ago": 0, "failures": 0},
    }
    await work.beats.beat("old:1", "scheduler", loops, now=clock.now())
    await work.beats.beat("a:1", "api", {"x": {"failures": 0}}, now=clock.now())
    clock.step(-5 * HOUR)
    for second in range(120):
        if second % 10 == 0:
            await work.beats.beat("a:1", "api", {"x": {"failures": 0}}, now=clock.now())
        clock.step(SECOND)
    signs = await work.beats.read_signs(within=HOUR, now=clock.now())
    assert signs.living_loops == {"x"}
    assert [each.cause for each in judge_scheduler(signs, None).findings] == [SCHEDULER_SILENT]


async def test_heartbeats_of_other_processes_are_written_only_after_a_clock_step(
    work: Batuta, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, plain = list[str](), work.liveness.inner.run

    async def recorded(query: Query, **values: object) -> int:
        written.append(query.name)
        return await plain(query, **values)

    monkeypatch.setattr(work.liveness.inner, "run", recorded)
    await work.beats.beat("w:1", "worker", {}, now=clock.now())
    assert written == []
    clock.step(-HOUR)
    await work.beats.beat("w:2", "worker", {}, now=clock.now())
    assert written == ["put_back"]


async def test_live_processes_raise_no_finding_when_the_clock_is_set_back(work: Batuta, clock: FakeClock) -> None:
    loops = {"dispatcher": {"last_progress_ago": 0, "failures": 0}}
    for who in ("s:1", "w:1"):
        await work.beats.beat(who, "scheduler", loops, now=clock.now())
    clock.step(-5 * HOUR)
    for who in ("s:1", "w:1"):
        await work.beats.beat(who, "scheduler", loops, now=clock.now())
        signs = await work.beats.read_signs(within=HOUR, now=clock.now())
        assert judge_scheduler(signs, None).findings == judge_workers(signs).findings == ()
        clock.step(5 * SECOND)


async def test_pruner_deletes_processes_of_last_week(work: Batuta, clock: FakeClock) -> None:
    await work.beats.beat("w:1", "worker", {"a": {"failures": 0}}, now=clock.now() - timedelta(days=8))
    await work.beats.beat("w:2", "worker", {"a": {"failures": 0}}, now=clock.now() - timedelta(days=6))
    await Pruner(work.retentions()).tick()
    count = await work.beats.read_signs(within=timedelta(days=30), now=clock.now())
    assert [beat.worker_id for beat in count.beats] == ["w:2"]
