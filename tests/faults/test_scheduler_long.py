"""Scheduler tests that run only with ``FAULTS=long``: three schedulers that run for hours, and cron expressions in
every time zone.
"""

import random
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from batuta.kernel.clock import exact
from batuta.schedule.cron import parse
from tests.faults.conftest import together
from tests.faults.figures import Figures, kind
from tests.faults.harness import SECOND, Spec, plant
from tests.faults.test_scheduler_many import many
from tests.judges.evidence import Target
from tests.oracles import cron_fires

SECONDS_FOR_ZONES = 120
DAY = timedelta(days=1)


async def test_three_schedulers_fire_everything_once(places: Mapping[str, Path]) -> None:
    await together(*(_three_schedulers(url, folder) for url, folder in places.items()))


async def _three_schedulers(url: str, folder: Path) -> None:
    jobs, rate, lasts, epsilon = 200, 10, timedelta(minutes=25), 30 * SECOND
    figures = Figures(
        "T10",
        kind(url),
        f"three schedulers run {jobs} jobs for {exact(lasts)} of a clock that is {rate} times as fast as real time",
    )
    async with plant(folder, url, many(jobs), rate=rate, lease=30) as running:
        await running.begin_first()
        await running.begin_more(2)
        await running.passes(lasts)
        verdict = await running.verdict(epsilon)
        owners = await running.ask("SELECT DISTINCT owner FROM job_executions WHERE owner IS NOT NULL")
        figures.record(verdict, f"schedulers that fired: {len(owners)}; {running.lateness(await running.log())}")
        assert verdict.served >= 2000


async def test_restarts_across_the_due_second_neither_skip_nor_double_a_fire(places: Mapping[str, Path]) -> None:
    await together(*(_restarts(url, folder) for url, folder in places.items()))


async def _restarts(url: str, folder: Path) -> None:
    rate, restarts = 6.0, 8
    figures = Figures(
        "T14", kind(url), f"the only scheduler shuts down and restarts {restarts} times, each time within 2 s of a fire"
    )
    chance = random.Random(20260105)
    async with plant(folder, url, many(24, takes=2), rate=rate, lease=12) as running:
        await running.begin_first()
        for _ in range(restarts):
            now = running.clock.now()
            minute = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
            await running.passes(minute - now + chance.uniform(-2, 2) * SECOND)
            await running.stop()
            running.begin()
            await running.passes(20 * SECOND)
        await running.passes(timedelta(minutes=2))
        verdict = await running.verdict(40 * SECOND, longest_run=4 * SECOND)
        figures.record(verdict, running.lateness(await running.log()))


async def test_clock_set_forward_and_back_under_running_processes_harms_no_fire(places: Mapping[str, Path]) -> None:
    await together(*(_stepped(url, folder) for url, folder in places.items()))


async def _stepped(url: str, folder: Path) -> None:
    """The clock jumps an hour forward and, a minute later, an hour back. One run continues during both changes and must
    stay with its process.
    """
    figures = Figures(
        "T18", kind(url), "the clock of two schedulers is set forward by 1 h and, a minute later, back by 1 h"
    )
    hour = timedelta(hours=1)
    jobs = [Spec(name="slow", path="slow", category="slow", takes=600), *many(24)]
    async with plant(folder, url, jobs, rate=6.0, lease=12) as running:
        await running.begin_first()
        await running.begin_more(1)
        await running.passes(100 * SECOND)
        before = running.clock.now()
        running.clock.step(hour)
        await running.passes(70 * SECOND)
        ahead = running.clock.now()
        running.clock.step(-hour)
        await running.passes(timedelta(minutes=4))
        end = running.clock.now()

        def known(target: Target) -> Target:
            """Return the expected result of a fire that the clock step skipped. The fire must have a row with the
            reason, unless the clock showed its minute a second time.
            """
            passed_over = before - 5 * SECOND < target.at <= before + hour and not ahead - hour < target.at <= end
            return replace(target, until=before + hour + 50 * SECOND, must_run=False) if passed_over else target

        verdict = await running.verdict(40 * SECOND, known=known, seen_until=ahead)
        assert await running.ask("SELECT * FROM job_executions WHERE attempt > 1") == []
        figures.record(verdict, "no run was taken from a running process")


def test_random_crons_are_right_around_clock_changes_of_all_zones() -> None:
    """Test as many random combinations of a zone, a clock change since 1972 and a cron expression as the time
    allows.
    """
    figures = Figures(
        "T16",
        "none",
        f"for {SECONDS_FOR_ZONES} s, fires of random cron expressions are computed around changes of the UTC offset in all"
        " time zones, 1972 to 2037",
    )
    with ProcessPoolExecutor(2) as pool:
        counts = list(pool.map(_walk_zones, (1, 2)))
    assert min(counts) > 0
    figures.record_bare(
        sum(counts),
        f"the engine and the oracle computed the same fires in spans of four days in {len(available_timezones())} time zones",
    )


def _walk_zones(seed: int) -> int:
    chance, spans, ends = random.Random(seed), 0, time.monotonic() + SECONDS_FOR_ZONES
    zones = sorted(available_timezones())
    while time.monotonic() < ends:
        zone = ZoneInfo(zones[(2 * spans + seed) % len(zones)])
        middle = _change(zone, chance)
        text = _cron(chance)
        start, end = middle - 2 * DAY, middle + 2 * DAY
        found, at, cron = [], start - timedelta(minutes=1), parse(text)
        while (at := cron.next_after(at, zone)) <= end:
            found.append(at)
        assert found == cron_fires(text, zone, start, end), (text, zone, start)
        spans += 1
    return spans


def _change(zone: ZoneInfo, chance: random.Random) -> datetime:
    """Starting from a random day, find a day on which the zone changed its clocks. If there is none, return the random
    day.

    The search begins in 1972, because since then every zone's offset from UTC has been a whole number of minutes, as
    the reference implementation of cron assumes.
    """
    first = datetime(1972, 2, 1, tzinfo=UTC) + chance.randrange(65 * 365) * DAY
    for n in range(400):
        day = first + n * DAY
        if day.astimezone(zone).utcoffset() != (day + DAY).astimezone(zone).utcoffset():
            return day
    return first


def _cron(chance: random.Random) -> str:
    minute, hour = _field(chance, 59), _field(chance, 23)
    day = chance.choice(["*", "*", "*", "1-15", "4", "15,18", "*/2", "28-31"])
    weekday = chance.choice(["*", "*", "0", "6", "7", "1-5", "6-7", "*/2"])
    return f"{minute} {hour} {day} * {weekday}"


def _field(chance: random.Random, high: int) -> str:
    low, top = sorted((chance.randint(0, high), chance.randint(0, high)))
    step = chance.randint(1, high)
    some = ",".join(str(chance.randint(0, high)) for _ in range(3))
    return chance.choice(["*", f"*/{step}", str(low), f"{low}-{top}", f"{low}-{top}/{step}", some])
