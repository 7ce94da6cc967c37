"""A transaction stays open while the queue is under load (fault test T23). Nothing is lost, the queue's throughput is
measured, and the health check names the transaction that an operator should end.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import asyncpg

from batuta.health.checks import CAUSE, judge_transaction
from tests.faults.figures import LONG, Figures
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import slowness

RATE = 500 if LONG else 100  # items per second
BATCH = 0.1
BASE, HELD = (60.0, 600.0) if LONG else (2.0, 6.0)
THRESHOLD = 60.0 if LONG else 2.0
# Time after which the alert hub has run at least once and sent its alerts.
HUB = 40.0
MOST = 120.0


@dataclass
class Offering:
    """Enqueues items at a steady rate."""

    running: QueueWorkers
    accepted: list[str]

    async def offer(self) -> None:
        """Enqueue batches at a fixed rate. If a batch is late, the following ones are enqueued without a pause until
        they are back on schedule.
        """
        began, batches = time.monotonic(), 0
        while True:
            self.accepted += await self.running.work.enqueue_many("conta", [(0.0,)] * int(RATE * BATCH))
            batches += 1
            await asyncio.sleep(max(0.0, began + batches * BATCH - time.monotonic()))

    @asynccontextmanager
    async def going(self) -> AsyncIterator[None]:
        offering = asyncio.create_task(self.offer())
        try:
            yield
        finally:
            offering.cancel()
            await asyncio.gather(offering, return_exceptions=True)

    async def measure_rate(self, seconds: float) -> float:
        """Count the completed items for this many seconds, and return how many are completed per second."""
        before, began = await self._done(), time.monotonic()
        await asyncio.sleep(seconds)
        return (await self._done() - before) / (time.monotonic() - began)

    async def _done(self) -> int:
        (row,) = await self.running.ask("SELECT count(*) AS n FROM effects")
        return int(row["n"])


async def test_open_transaction_under_load_is_found_and_loses_nothing(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures(
        "T23",
        "PostgreSQL",
        f"a transaction keeps its snapshot open for {HELD:g} s while {RATE} items per second arrive",
    )
    async with queue_workers(tmp_path, postgres_url, lease=30.0, times_calls=True) as running:
        await running.begin_until_up(2)
        offering = Offering(running, [])
        async with offering.going():
            base = await offering.measure_rate(BASE)
            before_held = time.time()
            base_p99 = _p99(tmp_path, until=before_held)
            async with _hold_snapshot(postgres_url) as pid:
                found_after = await _time_to_finding(running, pid)
                await asyncio.sleep(max(0.0, HELD - BASE - (time.time() - before_held)))
                last = time.time()
                held = await offering.measure_rate(BASE)
                held_p99 = _p99(tmp_path, since=last)
                dead = await _dead_rows(running)
        await running.until_over()
        tally = await running.judge(offering.accepted, or_more=True)
        assert await running.work.observability.transactions.oldest() is None
    assert found_after <= THRESHOLD + 10 * slowness()
    assert not LONG or found_after + HUB <= MOST
    figures.record_items(
        tally,
        f"items per second: {base:.0f} before the transaction, {held:.0f} at its end; p99 of claims and renewals:"
        f" {base_p99 * 1000:.0f} ms before, {held_p99 * 1000:.0f} ms at its end; dead rows: {dead}; Batuta found the"
        f" transaction after {found_after:.0f} s (threshold: {THRESHOLD:g} s), and sends the alert at most {HUB:g} s later",
    )


@asynccontextmanager
async def _hold_snapshot(url: str) -> AsyncIterator[int]:
    """Hold a database snapshot open while the block runs, as a reporting tool would."""
    connection = await asyncpg.connect(url, server_settings={"application_name": "relatorio"})
    try:
        await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await connection.execute("SELECT 1")
        yield connection.get_server_pid()
    finally:
        await connection.close()


async def _time_to_finding(running: QueueWorkers, pid: int) -> float:
    """Return how many seconds pass until the health check reports the process that holds the transaction open."""
    began, threshold = time.monotonic(), timedelta(seconds=THRESHOLD)

    async def finding() -> bool:
        oldest = await running.work.observability.transactions.oldest()
        report = judge_transaction(oldest, threshold)
        return any(each.cause == CAUSE and each.facts["pid"] == pid for each in report.findings)

    await running.until("it is found", finding, THRESHOLD + 10)
    return time.monotonic() - began


async def _dead_rows(running: QueueWorkers) -> int:
    rows = await running.ask("SELECT n_dead_tup AS n FROM pg_stat_user_tables WHERE relname = 'tasks'")
    return int(rows[0]["n"])


def _p99(folder: Path, *, since: float = 0.0, until: float = float("inf")) -> float:
    calls = [line.split() for line in (folder / "calls").read_text().splitlines()]
    took = sorted(float(seconds) for at, seconds in calls if since <= float(at) <= until)
    return took[int(len(took) * 0.99)]
