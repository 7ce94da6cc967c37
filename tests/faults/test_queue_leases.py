"""A live worker keeps its leases even if a row is locked for longer than a lease, or if effects never return."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import TIMEOUT, slowness

TASKS = 10


async def test_row_locked_for_longer_than_a_lease_costs_its_worker_no_item(
    places: Mapping[str, Path],
) -> None:
    await together(*(_locked(url, folder) for url, folder in places.items()))


async def _locked(url: str, folder: Path) -> None:
    slow = slowness()
    lease, locked, short, long = (30.0, 60.0, 20.0, 75.0) if LONG else (slow, 3 * slow, 2 * slow, 4 * slow)
    what = "one row" if kind(url) == "PostgreSQL" else "the file"
    done = f"another program locks {what} for {locked:.0f} s while {TASKS} tasks run; their leases last {lease:.1f} s"
    figures = Figures("T07", kind(url), done)
    async with queue_workers(folder, url, lease=lease, limit=TASKS * 2) as running:
        await running.begin_until_up()
        plain = await running.work.enqueue_many("anota", [(short,), (long,)] * (TASKS // 4))
        ids = await running.work.enqueue_many("conta", [(short,), (long,)] * (TASKS // 4))
        ids += await running.work.enqueue_many("conta", [(short,)] * (TASKS % 4))
        await running.until("they run", lambda: len(running.runs()) == TASKS)
        await running.begin_until_up()  # the second worker would take over items that the first worker loses
        async with _lock(url, plain[0]):
            await asyncio.sleep(locked)
        await running.until_over()
        rows = await running.ask("SELECT id, status, attempts, crashes FROM tasks")
        assert {(row["status"], row["attempts"], row["crashes"]) for row in rows} == {("complete", 1, 0)}
        assert set(running.runs().values()) == {1}, await running.state_of_things()
        assert not [words for words in running.notes() if words[0] == "lost"]
        tally = await running.tally(ids)
        assert (tally.lost, tally.doubled, tally.effects) == (0, 0, len(ids))
        figures.record_items(tally, "no task started twice; no crash was counted")


@asynccontextmanager
async def _lock(url: str, id: str) -> AsyncIterator[None]:
    """Lock the row as an operator's database shell would. SQLite has no row locks, so there a transaction occupies the
    only writer instead.
    """
    if url.startswith("sqlite"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=TIMEOUT)
        file.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            file.execute("ROLLBACK")
            file.close()
        return
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM tasks WHERE id = $1::uuid FOR UPDATE", id)
            yield
    finally:
        await connection.close()


async def test_effects_that_never_return_fail_only_their_own_items(places: Mapping[str, Path]) -> None:
    await together(*(_hung(url, folder) for url, folder in places.items()))


async def _hung(url: str, folder: Path) -> None:
    hung, others, limit = (30, 500, 3.0) if LONG else (3, 40, 1.0)
    figures = Figures("T29", kind(url), f"{hung} of {others} tasks never return; the time limit of a task is {limit} s")
    async with queue_workers(folder, url, lease=1.5 * slowness(), effect_limit=limit) as running:
        stuck = await running.work.enqueue_many("presa", [()] * hung, priority=-1)
        ids = await running.work.enqueue_many("conta", [(0.05,)] * others)
        workers = await running.begin_until_up(2)
        await running.until_over()
        for row in [await running.row(id) for id in stuck]:
            assert (row["status"], row["error"]) == ("failed", "Job timeout exceeded")
        assert all(worker.is_alive() for worker in workers)
        assert await _effects_of(running, stuck) == 0
        tally = await running.tally(ids)
        assert (tally.lost, tally.doubled, tally.in_vain) == (0, 0, 0), await running.state_of_things()
        figures.record_items(tally, f"these {hung} tasks failed at their time limit and wrote nothing")


async def _effects_of(running: QueueWorkers, ids: list[str]) -> int:
    effects = await running.effects()
    return sum(effects[id] for id in ids)
