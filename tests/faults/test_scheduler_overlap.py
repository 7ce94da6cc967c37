"""A run takes longer than the interval between two fires, and a process dies or shuts down normally during the run."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import LEASE, Endpoint, House, job, watch_leases
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import Spec, plant
from tests.faults.simulated import HOUR, MINUTE, SECOND

GOING = "SELECT owner FROM job_executions WHERE status = 'running' LIMIT 1"
T0 = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # start of the fake clock


@pytest.mark.calm
async def test_run_of_three_periods_never_overlaps_and_a_kill_leaves_no_lock(
    places: Mapping[str, Path],
) -> None:
    await together(*(_long_runs(url, folder) for url, folder in places.items()))


async def _long_runs(url: str, folder: Path) -> None:
    """A job fires every minute but takes three minutes. Skipped fires have a row with the reason."""
    rate, kills, lease = (10.0, 3, 6) if LONG else (80.0, 1, 40)
    figures = Figures(
        "T21",
        kind(url),
        f"each run of a job takes three times as long as the job's period; the scheduler is killed {kills} times during a run",
    )
    jobs = [Spec(name=f"slow_{n}", takes=180, category=f"lane_{n}") for n in range(4)]
    async with plant(folder, url, jobs, rate=rate, lease=lease, drain=1200) as running:
        await running.begin_first()
        await running.begin_more(1)
        for _ in range(kills):
            await running.passes((150 if LONG else 20) * SECOND)  # long enough that one run survives one or two kills
            await running.until("a run is going", lambda: running.ask(GOING))
            victim = running.fired_last((await running.ask(GOING))[0]["owner"])
            assert victim is not None
            running.kill(victim)
            running.begin()
        await running.passes(3 * MINUTE)
        verdict = await running.verdict(
            50 * SECOND if LONG else HOUR,
            longest_run=180 * SECOND,
            no_overlap=frozenset(each.name for each in jobs),
            known=lambda target: replace(target, must_run=False),
        )
        rows = await running.ask("SELECT status, attempt FROM job_executions")
        ran = sum(row["status"] == "success" for row in rows)
        taken = sum(row["attempt"] > 1 for row in rows)
        figures.record(
            verdict,
            f"runs: {ran}, of which {taken} were taken over; fires skipped because the previous run had not ended:"
            f" {verdict.explained}",
        )
        assert {row["status"] for row in rows} <= {"success", "skipped", "missed"}
        assert taken >= 1


async def test_new_scheduler_abandons_no_run_before_it_knows_the_jobs(house: House, clock: FakeClock) -> None:
    """The new scheduler's reaper may run before its dispatcher has read the operators' settings. The interrupted run is
    still delivered again.
    """
    endpoint = Endpoint(gate=asyncio.Event())
    dead, begun = (house.scheduler(job(target=endpoint)) for _ in range(2))
    await dead.dispatcher.tick()
    clock.step(MINUTE)
    await dead.dispatcher.tick()
    clock.step(LEASE)
    await begun.reaper.tick()
    await begun.dispatcher.tick()
    await watch_leases(clock, begun)
    assert [run.execution.attempt for run in endpoint.runs] == [1, 2]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await begun.runner.finish()
    await dead.runner.finish()
    assert await house.statuses() == ["success"]


async def test_orderly_stop_releases_only_own_runs(house: House, clock: FakeClock) -> None:
    """The first scheduler was presumed dead, so the second has taken over its run. When the first one stops, the second
    keeps the run.
    """
    endpoint = Endpoint(gate=asyncio.Event())
    first, second, third = (house.scheduler(job(target=endpoint)) for _ in range(3))
    for each in (first, second, third):
        clock.step(T0 - clock.now())
        await each.dispatcher.tick()
    clock.step(MINUTE)
    await first.dispatcher.tick()
    await watch_leases(clock, second)
    stopping = asyncio.create_task(first.runner.drain(10 * SECOND))
    await clock.advance(9 * SECOND)
    await stopping
    await third.reaper.tick()
    assert [run.execution.attempt for run in endpoint.runs] == [1, 2]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await second.runner.finish()
    assert [(row["status"], row["attempt"]) for row in await house.rows()] == [("success", 2)]
