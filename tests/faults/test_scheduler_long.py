"""What only means something when it is long: hours of three schedulers, and every zone there is."""

import random
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from batuta.schedule.cron import parse
from batuta.testing import Rules
from tests.faults.conftest import together
from tests.faults.figures import Figures, kind
from tests.faults.harness import SECOND, plant
from tests.faults.test_scheduler_many import many
from tests.oracles import cron_fires

SECONDS_FOR_ZONES = 120
DAY = timedelta(days=1)


async def test_three_schedulers_fire_everything_once(places: Mapping[str, Path]) -> None:
    await together(*(_three_schedulers(url, folder) for url, folder in places.items()))


async def _three_schedulers(url: str, folder: Path) -> None:
    jobs, rate, lasts, epsilon = 200, 10, timedelta(minutes=40), 20 * SECOND
    figures = Figures("T10", kind(url), f"three schedulers, {jobs} jobs, {lasts} at {rate} times the speed")
    async with plant(folder, url, many(jobs), rate=rate, lease=30) as running:
        await running.begin_first()
        await running.begin_more(2)
        await running.passes(lasts)
        rules = Rules(read_at=running.clock.now(), epsilon=epsilon)
        await running.stop()
        verdict = await running.verdict(rules)
        owners = await running.ask("SELECT DISTINCT owner FROM job_executions WHERE owner IS NOT NULL")
        figures.record(verdict, f"{len(owners)} of them fired; {running.lateness(await running.log())}")
        assert verdict.served >= 4000


def test_any_cron_is_right_around_the_changes_of_any_zone() -> None:
    """For a while, as many as can be: a zone, one of its changes since 1972, and a cron, all by chance."""
    figures = Figures(
        "T16", "none", f"crons by chance around changes of all zones, 1972 to 2037, for {SECONDS_FOR_ZONES} s"
    )
    with ProcessPoolExecutor(2) as pool:
        counts = list(pool.map(_walk_zones, (1, 2)))
    figures.record_bare(
        sum(counts), f"spans of four days in {len(available_timezones())} zones, each equal to the oracle"
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
    """A day on which the zone changed its clocks, looked for from a day of chance on; that day itself, if there is none.

    Since 1972 every zone is whole minutes away from UTC, which the oracle takes for granted.
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
