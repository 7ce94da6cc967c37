"""Each restart is stored as one row, and restarts are listed newest first. The tests run on both databases."""

from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.kernel.ids import Ids
from batuta.processes.restarts import NewRestart, RestartReason
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.processes import LONGEST_STACK, SqlBeats, SqlRestarts
from batuta.supervise.retention import Pruner
from batuta.testing import FakeClock

MINUTE = timedelta(minutes=1)


@pytest.fixture
def restarts(database: Database, ids: Ids) -> SqlRestarts:
    return SqlRestarts(database, ids)


def of_process(pid: int = 7, **more: object) -> NewRestart:
    facts: dict[str, object] = {"worker_name": "worker", "reason": RestartReason.STALLED, "detail": "silent for 31 s"}
    return NewRestart(**{**facts, "host": "here", "pid": pid, **more})  # type: ignore[arg-type]


async def test_restart_reads_back_as_stored_newest_first(restarts: SqlRestarts, clock: FakeClock) -> None:
    start = clock.now()
    first = await restarts.add(
        of_process(worker_id="here:7:a", loop="outbound", reason=RestartReason.STUCK, stack="File a.py, line 1"),
        now=start,
    )
    clock.step(MINUTE)
    second = await restarts.add(of_process(exit_code=-9, restarts_in_window=3), now=clock.now())
    newest, oldest = await restarts.since(start)
    assert (newest.id, oldest.id) == (second, first)
    assert (oldest.worker_id, oldest.loop, oldest.reason, oldest.stack) == (
        "here:7:a",
        "outbound",
        "stuck",
        "File a.py, line 1",
    )
    assert (newest.loop, newest.exit_code, newest.restarts_in_window, newest.at) == (None, -9, 3, clock.now())
    assert await restarts.since(start, limit=1) == [newest]


async def test_host_and_pid_identify_the_newest_process(
    restarts: SqlRestarts, database: Database, clock: FakeClock
) -> None:
    beats = SqlBeats(database, "1")
    for boot in ("old", "new"):
        await beats.beat(boot, "worker", {}, now=clock.now(), host="here", pid=7)
        clock.step(MINUTE)
    await restarts.add(of_process(pid=7), now=clock.now())
    await restarts.add(of_process(pid=8), now=clock.now() + MINUTE)
    unknown, known = await restarts.since(clock.now())
    assert (known.worker_id, unknown.worker_id) == ("new", "here:8")


async def test_stall_is_recorded_for_a_running_child_and_not_for_an_offline_one(
    database: Database, clock: FakeClock
) -> None:
    beats = SqlBeats(database, "1")
    await beats.beat("a", "worker", {"l": {"failures": 0}}, now=clock.now(), host="here", pid=7)
    await beats.beat("b", "worker", {"l": {"failures": 0}}, now=clock.now(), host="here", pid=8, status="offline")
    assert await beats.record_stall(host="here", pid=7)
    assert not await beats.record_stall(host="here", pid=8)
    assert not await beats.record_stall(host="there", pid=7)


async def test_long_stack_is_cut_and_unstorable_characters_are_replaced(
    restarts: SqlRestarts, clock: FakeClock
) -> None:
    await restarts.add(of_process(stack="a\x00\ud800" + "b" * 10 * LONGEST_STACK), now=clock.now())
    (kept,) = await restarts.since(clock.now())
    assert kept.stack is not None
    assert kept.stack.startswith("a?b")
    assert len(kept.stack) < LONGEST_STACK + 10


async def test_pruner_deletes_old_restarts(restarts: SqlRestarts, clock: FakeClock) -> None:
    start = clock.now()
    await restarts.add(of_process(), now=start)
    await restarts.add(of_process(), now=start + MINUTE)
    assert await restarts.prune(before=start + MINUTE, limit=10) == 1
    assert len(await restarts.since(start)) == 1


async def test_engine_keeps_heartbeats_for_a_week_and_restarts_for_a_month(database_url: str, clock: FakeClock) -> None:
    start = clock.now()
    async with Batuta(database_url, clock=clock) as work:
        pruner = Pruner(work.retentions())
        await work.observability.beats.beat("here:1:a", "worker", {"queue": {"alive": True}}, now=start)
        await work.observability.restarts.add(of_process(), now=start)
        kept = []
        for days in (6, 2, 23):
            await clock.advance(timedelta(days=days))
            await pruner.tick()
            signs = await work.observability.beats.read_signs(within=timedelta(days=365), now=clock.now())
            kept.append((len(signs.beats), len(await work.observability.restarts.since(start))))
        assert kept == [(1, 1), (0, 1), (0, 0)]
