"""When a scheduler crashes, another scheduler on the same host takes over its runs immediately."""

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import Spec, plant

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel proves a crash through /proc")

RATE = 10.0
# Seconds of the plant's clock. A take-over long before the lease ends proves that no scheduler waited for the lease.
LEASE = 300 if LONG else 6000
ALLOWED = 2.0 if LONG else 300.0
RUNNING = "SELECT owner, attempt FROM job_executions WHERE status = 'running'"


async def test_runs_of_a_killed_scheduler_are_taken_over_before_their_lease_ends(places: Mapping[str, Path]) -> None:
    await together(*(_killed(url, folder) for url, folder in places.items()))


async def _killed(url: str, folder: Path) -> None:
    figures = Figures("T21", kind(url), "one of two schedulers is killed during its runs")
    jobs = [Spec(name=f"slow_{n}", takes=60, category=f"lane_{n}") for n in range(4)]
    async with plant(folder, url, jobs, rate=RATE, lease=LEASE, drain=1200) as running:
        await running.begin_first()
        await running.begin_more(1)
        await running.until("runs are going", lambda: running.ask(RUNNING))
        rows = await running.ask(RUNNING)
        victim = running.fired_last(rows[0]["owner"])
        assert victim is not None
        held = sum(running.fired_last(row["owner"]) is victim for row in rows)
        running.kill(victim)
        killed_at = time.monotonic()

        async def are_taken_over() -> bool:
            return bool(sum(row["attempt"] > 1 for row in await running.ask(RUNNING)) >= held)

        await running.until("they are taken over", are_taken_over, ALLOWED)
        took = time.monotonic() - killed_at
        ended = "SELECT id FROM job_executions WHERE status = 'success' AND attempt > 1"

        async def are_over() -> bool:
            return len(await running.ask(ended)) >= held

        await running.until("they are over", are_over)
        abandoned = await running.ask("SELECT id FROM job_executions WHERE status = 'abandoned'")
        assert abandoned == []
        figures.record_bare(
            held,
            f"the other scheduler took over the runs within {took:.2f} s of the kill; a lease lasted {LEASE / RATE:.0f} s",
        )
