"""Schedulers lose access to the database for a while. Every fire runs once, or its row has the reason why it did
not.
"""

import asyncio
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from batuta.kernel.clock import SystemClock, exact
from batuta.stores import connect
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.testing import EventRecorder, FakeClock
from tests.engine.dispatch.scheduling import LEASE, Endpoint, House, job
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures
from tests.faults.harness import MINUTE, SECOND, Down, Plant, Spec, plant
from tests.faults.proxy import proxy
from tests.faults.simulated import HOUR
from tests.faults.test_scheduler_many import ONCE_A_DAY
from tests.faults.waiting import TIMEOUT
from tests.servers import postgres_server

POLICIES = ["latest", "all", "skip"]
RECOVERS = 50 * SECOND if LONG else HOUR / 2
AFTER = 70 * SECOND


def jobs() -> list[Spec]:
    """Return the jobs that the schedulers under test run. With ``FAULTS=long``, there is an additional job that is
    always running; the fires of that job are not judged.
    """
    slow = Spec(name="slow", path="slow", category="slow", takes=170)
    crons = ["* * * * *"] * 4 if LONG else ONCE_A_DAY
    return [slow] * LONG + [
        Spec(
            name=f"{policy}_{n}",
            schedule=cron,
            catch_up=policy,
            category=f"lane_{n % 8}",
            takes=2 * (n % 4),
            max_age=3600,
        )
        for policy in POLICIES
        for n, cron in enumerate(crons)
    ]


async def test_database_outage_loses_no_fire(places: Mapping[str, Path]) -> None:
    runs = [
        _locked(url, folder) if url.startswith("sqlite") else _cut_off(url, folder) for url, folder in places.items()
    ]
    if len(places) > 1:
        runs.append(_stopped(next(iter(places.values())).parent / "stopped"))
    await together(*runs)


async def _stopped(folder: Path) -> None:
    rate, rounds, away = (4.0, 2, 120 * SECOND) if LONG else (40.0, 1, 60 * SECOND)
    figures = Figures(
        "T12",
        "PostgreSQL",
        f"the database server is stopped for {exact(away)} of simulated time; number of faults: {rounds}",
    )
    downs = []
    folder.mkdir()
    with postgres_server() as server:
        assert server is not None
        async with plant(folder, server.url(), jobs(), rate=rate, lease=12, drain=600) as running:
            await running.begin_first()
            await running.begin_more(1)
            for _ in range(rounds):
                await _in_the_middle_of_a_minute(running)
                start = running.clock.now()
                await asyncio.to_thread(server.stop)
                await running.passes(away)
                await asyncio.to_thread(server.start)
                downs.append(_down(running, start))
                await running.passes(AFTER)
            await _judge(running, figures, downs)


async def _cut_off(url: str, folder: Path) -> None:
    """Cut one of two schedulers off from the database. Every fire must still run, because the other scheduler is
    available.
    """
    rate, rounds, away = (4.0, 1, 200 * SECOND) if LONG else (40.0, 1, 40 * SECOND)
    figures = Figures(
        "T12",
        "PostgreSQL",
        f"one of two schedulers loses its connection for {exact(away)} and is then frozen for the same time;"
        f" number of faults: {2 * rounds}",
    )
    parts = urlsplit(url)
    async with proxy(parts.port or 5432) as way, plant(folder, url, jobs(), rate=rate, lease=12, drain=600) as running:
        await running.begin_first(parts._replace(netloc=f"postgres@127.0.0.1:{way.port}").geturl())
        await running.begin_more(1)
        for harm in (way.cut, way.freeze) * rounds:
            await running.passes(20 * SECOND)
            harm()
            await running.passes(away)
            way.heal()
        await running.passes(AFTER)
        await _judge(running, figures, [])


async def _locked(url: str, folder: Path) -> None:
    rate, rounds, away = (4.0, 2, 120 * SECOND) if LONG else (40.0, 1, 60 * SECOND)
    figures = Figures(
        "T12",
        "SQLite",
        f"another program locks the database file for {exact(away)} of simulated time; number of faults: {rounds}",
    )
    downs = []
    async with plant(folder, url, jobs(), rate=rate, lease=12, drain=600) as running:
        await running.begin_first()
        await running.begin_more(1)
        for _ in range(rounds):
            await _in_the_middle_of_a_minute(running)
            other = sqlite3.connect(folder / "test.db", isolation_level=None, timeout=TIMEOUT)
            other.execute("BEGIN IMMEDIATE")
            start = running.clock.now()
            await running.passes(away)
            other.execute("ROLLBACK")
            other.close()
            downs.append(_down(running, start))
            await running.passes(AFTER)
        await _judge(running, figures, downs)


def _down(running: Plant, start: datetime) -> Down:
    """Return the period in which no scheduler could record a fire. The period includes the five seconds before the
    outage, because a decision that was in progress may be lost.
    """
    return Down(start - 5 * SECOND, running.clock.now(), running.clock.now() + RECOVERS)


async def test_long_file_lock_takes_no_run_from_a_living_scheduler(
    tmp_path: Path, clock: FakeClock, events: EventRecorder
) -> None:
    """While the file is locked, no scheduler can renew its lease. The first scheduler that can write again must not
    conclude that the others are dead.
    """
    database = connect(f"sqlite:///{tmp_path}/test.db", SystemClock())
    await database.open()
    await Migrator(database, engine_migrations(), clock, events).migrate()
    house, endpoint = House(database, clock, events), Endpoint(gate=asyncio.Event(), repeatable=False)
    living, other = (house.scheduler(job(target=endpoint)) for _ in range(2))
    for each in (living, other):
        await each.dispatcher.tick()
    clock.step(MINUTE)
    await living.dispatcher.tick()
    locking = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    locking.execute("BEGIN IMMEDIATE")
    clock.step(LEASE)
    looking = asyncio.create_task(other.reaper.tick())
    await asyncio.sleep(0.2)
    await clock.advance(LEASE)
    locking.execute("ROLLBACK")
    locking.close()
    await looking
    await other.reaper.tick()
    await living.leases.tick()
    await other.reaper.tick()
    assert await house.statuses() == ["running"]
    assert endpoint.gate is not None
    endpoint.gate.set()
    await living.runner.finish()
    assert await house.statuses() == ["success"]
    await database.close()


async def _in_the_middle_of_a_minute(running: Plant) -> None:
    """Wait for the middle of a minute, so that the outage does not end just after a fire became due. A scheduler that
    recovers at such an instant is still catching up an earlier fire of the same job, and would skip the due fire
    although it was on time.
    """
    await running.passes((30 - running.clock.now().second) % 60 * SECOND)


async def _judge(running: Plant, figures: Figures, downs: list[Down]) -> None:
    verdict = await running.verdict(RECOVERS, longest_run=10 * SECOND, downs=downs)
    if LONG and downs:  # no scheduler died, so no run may have been taken over
        assert await running.ask("SELECT * FROM job_executions WHERE attempt > 1") == []
    figures.record(verdict, f"fires recorded as missed: {verdict.explained}; repeated deliveries: {running.repeats()}")
