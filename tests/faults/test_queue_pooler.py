"""Workers behind a transaction pooler. Every item is done once, and starts within about a second although LISTEN is
unavailable.
"""

import asyncio
import signal
import time
from functools import partial
from pathlib import Path

from tests.faults.figures import LONG, Figures
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import slowness
from tests.pooler import TransactionPooler, through


async def test_workers_behind_a_pooler_lose_nothing_and_start_soon(
    pooler: TransactionPooler, postgres_url: str, tmp_path: Path
) -> None:
    tasks, kills = (5_000, 20) if LONG else (300, 2)
    figures = Figures(
        "T01", "PostgreSQL", f"two workers behind a transaction pooler run {tasks} tasks and are killed {kills} times"
    )
    async with queue_workers(tmp_path, through(pooler.port, postgres_url), lease=2.0, looks_every=3600) as running:
        async with running.kept(2):
            ids = await running.work.enqueue_many("conta", [(0.1,)] * tasks)
            for _ in range(kills):
                await asyncio.sleep(1.0)
                running.signal(next(each for each in running.workers if each.is_alive()), signal.SIGKILL)
            await running.until_over()
            waits = []
            for _ in range(20 if LONG else 3):
                began, one = time.monotonic(), await running.work.enqueue("conta")
                await running.until("it has begun", partial(_has_begun, running, one))
                waits.append(time.monotonic() - began)
                ids.append(one)
            await running.until_over()
        tally = await running.judge(ids)
    assert max(waits) < 3.0 * slowness()
    figures.record_items(tally, f"longest time from an enqueue to the start, by polling: {max(waits):.1f} s")


def _has_begun(running: QueueWorkers, id: str) -> bool:
    return bool(running.runs()[id])
