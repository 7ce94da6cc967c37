"""Workers die, freeze and restart under load. No item is lost, and every fenced effect takes place once."""

import asyncio
import random
import signal
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import slowness


async def test_storm_of_kills_neither_loses_nor_doubles_an_item(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    tasks, kills, takes, pause = (10_000, 200, 0.2, (0.2, 1.0)) if LONG else (400, 8, 0.08, (0.1, 0.3))
    figures = Figures("T01", kind(url), f"three workers run {tasks} tasks; workers are killed (SIGKILL) {kills} times")
    chance = random.Random(20260105)
    async with queue_workers(folder, url, limit=20) as running:
        ids = await running.work.enqueue_many("conta", [(takes,) for _ in range(tasks)])
        async with running.kept(3):
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(*pause))
                living = [each for each in running.workers if each.is_alive()]
                if living:
                    chance.choice(living).kill()
            await running.until_over()
            dead = await _revive_dead_items(running)
            await running.until_over()
        tally = await running.judge(ids)
        note = (
            f"runs that ended with their worker: {tally.in_vain}; tasks that were declared dead after three crashes"
            f" and then retried by the test: {dead}"
        )
        figures.record_items(tally, note)


async def _revive_dead_items(running: QueueWorkers) -> int:
    """Revive items that died after three worker crashes, as an operator would. Return how many were revived."""
    dead = await running.ask("SELECT id, error, attempts FROM tasks WHERE status = 'failed'")
    for row in dead:
        assert row["error"] == "its worker died 3 times while running it"
        assert await running.work.queues["default"].revive(row["id"])
    return len(dead)


async def test_restarted_worker_takes_up_the_items_it_held_before(places: Mapping[str, Path]) -> None:
    await together(*(_restart(url, folder) for url, folder in places.items()))


async def _restart(url: str, folder: Path) -> None:
    figures = Figures("T03, T04", kind(url), "the only worker is killed and started again")
    takes = slowness()  # long enough that all of them still run when the worker is killed
    async with queue_workers(folder, url, lease=takes) as running:
        ids = await running.work.enqueue_many("conta", [(takes,) for _ in range(8)])
        (worker,) = await running.begin_until_up()
        await running.until("it works", lambda: running.runs().total() == len(ids))
        running.kill(worker)
        killed_at = time.monotonic()
        await running.begin_until_up()
        await running.until("all are taken up", lambda: running.runs().total() >= 2 * len(ids))
        took = time.monotonic() - killed_at
        assert not LONG or took < running.plan.lease + 5
        await running.until_over()
        figures.record_items(
            await running.judge(ids),
            f"the next worker took over all tasks within {took:.1f} s of the kill; a lease lasted {running.plan.lease:.1f} s",
        )


async def test_frozen_worker_that_resumes_writes_nothing(places: Mapping[str, Path]) -> None:
    await together(*(_frozen(url, folder) for url, folder in places.items()))


async def _frozen(url: str, folder: Path) -> None:
    figures = Figures("T06", kind(url), "a worker is frozen until its leases have expired, and then continues")
    takes = slowness()  # long enough that all of them still run when the worker is frozen
    async with queue_workers(folder, url, lease=takes, looks_every=0.5) as running:
        ids = await running.work.enqueue_many("conta", [(takes,) for _ in range(8)])
        (frozen,) = await running.begin_until_up()
        await running.until("it works", lambda: running.runs().total() == len(ids))
        await _freeze(running, frozen)
        await running.begin_until_up()
        await running.until_over()
        rows = await running.ask("SELECT * FROM tasks ORDER BY id")
        running.signal(frozen, signal.SIGCONT)
        lost = {"lost"}
        await running.until("it notices", lambda: sum(words[0] in lost for words in running.notes()) >= len(ids))
        assert await running.ask("SELECT * FROM tasks ORDER BY id") == rows
        await running.judge(ids)
        # The worker continues with items that it may still claim.
        more = await running.work.enqueue_many("conta", [(0.0,) for _ in range(40)])
        await running.until_over()
        figures.record_items(
            await running.judge([*ids, *more]), "after the worker continued, it wrote no results of these tasks"
        )


async def _freeze(running: QueueWorkers, worker: ForkServerProcess) -> None:
    """Freeze a worker while it is outside a transaction. If it were frozen inside one, it would lock the SQLite file
    for all other processes.
    """
    while True:
        running.signal(worker, signal.SIGSTOP)
        if running.work.database.dialect != "sqlite" or _is_free(running.plan.url.removeprefix("sqlite:///")):
            return
        running.signal(worker, signal.SIGCONT)
        await asyncio.sleep(0.03)


def _is_free(file: str) -> bool:
    with closing(sqlite3.connect(file, isolation_level=None, timeout=0.2)) as other:
        try:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
        except sqlite3.OperationalError:
            return False
    return True


async def test_slow_living_worker_keeps_its_items(places: Mapping[str, Path]) -> None:
    await together(*(_slow(url, folder) for url, folder in places.items()))


async def _slow(url: str, folder: Path) -> None:
    # All tasks end at the same time, and each is settled in its own transaction. Lease renewals have to wait their turn
    # among these transactions.
    tasks, lease, leases = (1_000, 5.0, 10) if LONG else (40, 0.5 * slowness(), 4)
    figures = Figures(
        "T07", kind(url), f"two workers run {tasks} tasks, each of which takes {leases} times as long as a lease lasts"
    )
    async with queue_workers(folder, url, lease=lease, limit=tasks // 2, looks_every=0.2) as running:
        ids = await running.work.enqueue_many("conta", [(leases * lease,) for _ in range(tasks)])
        await running.begin_until_up(2)
        await running.until_over()
        tally = await running.judge(ids)
        assert tally.in_vain == 0
        assert await running.ask("SELECT id FROM tasks WHERE attempts > 1 OR crashes > 0") == []
        figures.record_items(tally, f"tasks that ran twice: {tally.in_vain}")
