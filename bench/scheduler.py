"""Figures for the scheduler: how late fires are, what many simultaneous fires cost, and how batch jobs affect live
work.

The clock runs sixty times as fast as real time (``RATE``). Every figure is in real milliseconds.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from statistics import quantiles
from zoneinfo import ZoneInfo

from app.composition.jobs import CATALOGUE
from batuta.dispatch.dispatcher import Dispatcher
from batuta.dispatch.job import Run
from batuta.engine.batuta import Batuta
from batuta.kernel.events import Event, ExecutionStarted
from batuta.schedule.cron import parse
from batuta.supervise.loop import Again
from batuta.supervise.supervisor import Supervisor
from batuta.testing import FakeClock, FastClock
from bench.report import markdown

RATE = 60.0
SECONDS = 20.0  # real time of each lateness measurement
CROWD = 10_000
FLOOD = 400
CRONS = 100_000
SAO_PAULO = ZoneInfo("America/Sao_Paulo")
MONDAY = datetime(2026, 1, 5, 12, 0, 30, tzinfo=UTC)


async def figures(url: str, *, quick: bool) -> str:
    seconds = SECONDS / 4 if quick else SECONDS
    lines = [["what", "figure"]]
    lines.append(
        [f"lateness of a fire, all jobs of Julia, {seconds:.0f} simulated minutes", await catalogue(url, seconds)]
    )
    lines.append([f"time to start {CROWD:,} jobs (functions) that are due at the same time", await crowd(f"{url}")])
    alone, flooded = await live(url, 0, seconds), await live(url, FLOOD, seconds)
    lines.append(["lateness of a live job while no batch jobs fire", alone])
    lines.append([f"lateness of a live job while {FLOOD} batch jobs fire per minute", flooded])
    return markdown(lines)


def next_fires() -> str:
    """Measure the time to compute the next fire of many different schedules, and return it as text."""
    chance = random.Random(7)
    texts = [f"{chance.randrange(60)} {chance.randrange(24)} * * {chance.randrange(7)}" for _ in range(CRONS)]
    crons = [parse(text) for text in texts]
    started = time.perf_counter()
    for cron in crons:
        cron.next_after(MONDAY, SAO_PAULO)
    return f"{time.perf_counter() - started:.2f} s"


async def catalogue(url: str, seconds: float) -> str:
    work = Batuta(url, clock=FastClock.start(MONDAY, RATE), lease=timedelta(minutes=10))
    for entry in CATALOGUE:
        if (schedule := entry.continuo) is not None:
            work.job(schedule, name=entry.name, category=entry.categoria)(nothing)
    return summarize(await lateness(work, seconds))


async def live(url: str, flood: int, seconds: float) -> str:
    """Measure the delay of a critical job that fires every minute while batch jobs occupy all slots of another
    category.
    """
    work = Batuta(url, clock=FastClock.start(MONDAY, RATE), lease=timedelta(minutes=10))
    work.job("* * * * *", name="mensagens", category="critico")(nothing)
    for number in range(flood):
        work.job("* * * * *", name=f"lote_{number}", category="grupos")(batch)
    return summarize([late for name, late in await _late(work, seconds) if name == "mensagens"])


async def crowd(url: str) -> str:
    """Measure the dispatcher's own work when many fires are due at the same instant. The jobs themselves do not run."""
    clock = FakeClock()
    work = Batuta(url, timezone="UTC", clock=clock)
    for number in range(CROWD):
        work.job("* * * * *", name=f"job_{number}")(nothing)
    async with fresh(work):
        scheduler = work.scheduler()
        await _until_idle(scheduler.dispatcher)
        clock.step(timedelta(minutes=1))
        started = time.perf_counter()
        await _until_idle(scheduler.dispatcher)
        took = time.perf_counter() - started
        await scheduler.runner.finish()
        rows = await work.reports.recent(before=clock.now() + timedelta(days=1), limit=2 * CROWD)
    return f"all {len(rows):,} within {took:.2f} s"


async def _until_idle(dispatcher: Dispatcher) -> None:
    while isinstance(await dispatcher.tick(), Again):
        await asyncio.sleep(0)


async def lateness(work: Batuta, seconds: float) -> list[float]:
    return [late for _, late in await _late(work, seconds)]


async def _late(work: Batuta, seconds: float) -> list[tuple[str, float]]:
    """Return the delay of each run in real milliseconds, from the fire to the delivery."""
    found: list[tuple[str, float]] = []

    def listen(event: Event) -> None:
        if isinstance(event, ExecutionStarted):
            found.append((event.job, event.late.total_seconds() * 1000 / RATE))

    work.events.subscribe(listen)
    supervisor = Supervisor(work.clock, work.events)
    for loop, policy in work.scheduler().loops():
        supervisor.add(loop, policy)
    stop = asyncio.Event()
    async with fresh(work):
        running = asyncio.create_task(supervisor.run(stop, timedelta(minutes=5)))
        await asyncio.sleep(seconds)
        stop.set()
        await running
    return found


@asynccontextmanager
async def fresh(work: Batuta) -> AsyncIterator[None]:
    """Open the database, and delete the rows of earlier measurements."""
    async with work:
        for table in ("job_executions", "job_schedules"):
            await work.database.script(f"DELETE FROM {table};")
        yield


async def nothing(run: Run) -> None: ...


async def batch(run: Run) -> None:
    await asyncio.sleep(0.02)


def summarize(late: Sequence[float]) -> str:
    cuts = quantiles(late, n=100, method="inclusive")
    return f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, worst {max(late):.1f} ms ({len(late):,} fires)"
