"""Several schedulers on one database: a fire happens once, whoever lives and whoever dies."""

import random
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from batuta.testing import Rules
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import MINUTE, SECOND, Plant, Spec, plant

CRONS = ["* * * * *", "*/2 * * * *", "1-59/2 * * * *", "*/5 * * * *", "0-30 * * * *", "* 12-13 * * 1"]
LAST = "SELECT owner FROM job_executions WHERE owner IS NOT NULL ORDER BY started_at DESC, id DESC LIMIT 1"


def many(count: int, takes: float = 0.0) -> list[Spec]:
    """Spread over categories, so that their lanes are no bottleneck."""
    return [
        Spec(name=f"job_{n}", schedule=CRONS[n % len(CRONS)], category=f"lane_{n % 12}", takes=takes * (n % 3))
        for n in range(count)
    ]


async def test_three_schedulers_fire_everything_once(places: Mapping[str, Path]) -> None:
    await together(*(_three_schedulers(url, folder) for url, folder in places.items()))


async def _three_schedulers(url: str, folder: Path) -> None:
    jobs, rate, lasts = (200, 12, timedelta(hours=1)) if LONG else (30, 30, 110 * SECOND)
    figures = Figures("T10", kind(url), f"three schedulers, {jobs} jobs, {lasts} at {rate} times the speed")
    async with plant(folder, url, many(jobs), rate=rate, lease=60) as running:
        await running.begin_first()
        await running.begin_more(2)
        await running.passes(lasts)
        rules = Rules(read_at=running.clock.now(), epsilon=(10 if LONG else 45) * SECOND)
        await running.stop()
        verdict = await running.verdict(rules)
        owners = await running.ask("SELECT DISTINCT owner FROM job_executions WHERE owner IS NOT NULL")
        figures.record(verdict, f"{len(owners)} of them fired")
        assert verdict.served >= jobs // 2


async def test_whoever_fired_last_is_killed_again_and_again_and_nothing_is_lost_or_doubled(
    places: Mapping[str, Path],
) -> None:
    await together(*(_kill_loop(url, folder) for url, folder in places.items()))


async def _kill_loop(url: str, folder: Path) -> None:
    rate, kills, lease, epsilon = (4.0, 60, 6, 10 * SECOND) if LONG else (25.0, 2, 20, 50 * SECOND)
    figures = Figures("T11", kind(url), f"{kills} times SIGKILL for the scheduler that fired last")
    chance = random.Random(20260105)
    async with plant(folder, url, many(24, takes=2), rate=rate, lease=lease) as running:
        await running.begin_first()
        await running.begin_more(2)
        for _ in range(kills):
            await _near_the_next_minute(running, chance)
            await _kill_the_one_that_fired_last(running)
            running.begin()
        healed = running.clock.now()
        await running.passes(MINUTE + 15 * SECOND)
        rules = Rules(
            read_at=running.clock.now(), epsilon=epsilon, longest_run=4 * SECOND, healed_at=healed, rto=MINUTE
        )
        await running.stop()
        verdict = await running.verdict(rules)
        (taken,) = await running.ask("SELECT count(*) AS runs FROM job_executions WHERE attempt > 1")
        figures.record(
            verdict, f"{taken['runs']} runs taken over, {running.repeats()} answered again without a second run"
        )


async def _near_the_next_minute(running: Plant, chance: random.Random) -> None:
    """Where killing hurts: fires are being decided, are on their way, or are going."""
    into = timedelta(seconds=running.clock.now().second, microseconds=running.clock.now().microsecond)
    await running.passes(MINUTE - into + chance.uniform(0, 6) * SECOND)


async def _kill_the_one_that_fired_last(running: Plant) -> None:
    rows = await running.ask(LAST)
    fired = rows and running.fired_last(rows[0]["owner"])
    running.kill(fired or running.schedulers[0])
