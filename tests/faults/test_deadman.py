"""A dead scheduler raises an alarm, both inside the system and at an external service. A live scheduler never raises
one, at any hour.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.jobs import CATALOGUE, PROFILES, WINDOWS
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Extension
from batuta.health.alert_hub import CALM, AlertHub
from batuta.health.alerts import Alert, AlertPolicy
from batuta.kernel.clock import SystemClock
from batuta.processes.address import listen
from batuta.supervise.loop import Again
from batuta.testing import FakeClock, FastClock
from batuta.texts import Texts
from batuta.texts.findings import FindingTexts
from batuta.web.api import serve
from simulador.main import create_app
from tests.engine.dispatch.scheduling import Endpoint
from tests.faults import forks
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures
from tests.faults.processes import ROOT
from tests.faults.waiting import slowness
from tests.faults.watched_plant import CLOCK

ORIGIN = datetime(2026, 3, 2, 15, 0, 20, tzinfo=UTC)  # a Monday, noon in São Paulo
BAR = timedelta(seconds=90)
RATE = 4 if LONG else 6  # speed of the clock, as a multiple of real time
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


class WatchedSystem:
    """Processes on a fast clock, and the simulated services that receive alerts from them."""

    def __init__(self, folder: Path, database_url: str, outside: str) -> None:
        # On a slow machine the clock is slower, so that the alarm comes in time.
        self.clock = FastClock.start(ORIGIN, RATE / max(1.0, slowness() / 2))
        self._folder = folder
        self._outside = outside
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BATUTA_")},
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "DATABASE_URL": database_url,
            "LOG_FORMAT": "json",
            "SLACK_WEBHOOK_URL": f"{outside}/slack/alertas",
            "DEADMAN_URL": f"{outside}/ping/scheduler",
            "BATUTA_LANG": "en",
            CLOCK: self.clock.text(),
        }
        self.processes: list[ForkServerProcess] = []

    def begin(self, role: str) -> ForkServerProcess:
        words = ("--app", "tests.faults.watched_plant:work", role)
        started = forks.begin_command(self._folder, self._environment, *words)
        self.processes.append(started)
        return started

    async def slack(self) -> list[str]:
        """Return the texts sent to Slack. On a busy machine the response to an alert may exceed its timeout (a sixth of
        the usual one), and the alert is then sent again. The short form of the fault tests ignores such repetitions.
        """
        texts = [each["payload"]["text"] for each in (await self._received())["slack"]]
        return texts if LONG else list(dict.fromkeys(texts))

    async def pings(self) -> int:
        return len((await self._received())["deadman"])

    async def until(self, what: str, true: Callable[[], Any], within: timedelta) -> timedelta:
        """Wait until ``true`` returns a true value. Return how long that took on the fast clock."""
        start = self.clock.now()
        while self.clock.now() - start < within:
            if await true():
                return self.clock.now() - start
            await asyncio.sleep(0.1)
        raise AssertionError(f"{what}: not within {within}\n{(self._folder / 'log').read_text()[-3000:]}")

    async def _received(self) -> dict[str, list[dict[str, Any]]]:
        async with httpx2.AsyncClient(trust_env=False) as client:
            found: dict[str, list[dict[str, Any]]] = (await client.get(f"{self._outside}/recebidos")).json()
            return found


@asynccontextmanager
async def watched_system(folder: Path, database_url: str) -> AsyncIterator[WatchedSystem]:
    await forks.processes_are_ready()
    listening, stop = listen("127.0.0.1", 0), asyncio.Event()
    serving = asyncio.create_task(serve(create_app(SystemClock()), listening, stop, SECOND))
    made = WatchedSystem(folder, database_url, f"http://127.0.0.1:{listening.getsockname()[1]}")
    try:
        yield made
    finally:
        for process in made.processes:
            forks.kill(process)
        stop.set()
        await serving


@pytest.mark.calm
@pytest.mark.timeout(900)  # starts first, because it takes longest
async def test_dead_scheduler_and_its_return_raise_alerts_within_ninety_seconds(places: dict[str, Path]) -> None:
    await together(*(_dies(url, folder) for url, folder in places.items()))


async def _dies(url: str, folder: Path) -> None:
    figures = Figures(
        "T34",
        "SQLite" if url.startswith("sqlite") else "PostgreSQL",
        "the only scheduler is killed while a worker continues",
    )
    async with watched_system(folder, url) as watched:
        scheduler = watched.begin("scheduler")
        await watched.until("the world outside hears that it ticks", watched.pings, 60 * MINUTE)
        watched.begin("worker")
        # Long enough for both processes to settle, and to send an unfounded alert if there is one.
        await watched.clock.sleep(100)
        assert await watched.slack() == []
        assert await watched.pings() >= 2
        forks.kill(scheduler)
        pings = await watched.pings()
        took = await watched.until("the alarm", watched.slack, BAR)
        (alarm,) = await watched.slack()
        assert "the scheduler has made no progress for" in alarm
        assert "batuta scheduler" in alarm
        assert await watched.pings() == pings  # the dead man's switch receives no ping either
        await _returns(watched)
        figures.record_bare(
            1, f"the alarm was raised after {took.total_seconds():.0f} s (limit: {BAR.total_seconds():.0f} s)"
        )


async def _returns(watched: WatchedSystem) -> None:
    async def is_over() -> bool:
        return len(await watched.slack()) > 1

    watched.begin("scheduler")
    await watched.until("the end of it", is_over, (2 if LONG else 60) * MINUTE)
    alerts = await watched.slack()
    assert len(alerts) == 2  # one alert for the cause, not one for each late job
    assert "resolved: the scheduler has made no progress" in alerts[1]


class Notebook:
    name = "notebook"

    def __init__(self) -> None:
        self.alerts: list[tuple[datetime, Alert]] = []
        self.now: Callable[[], datetime] = lambda: ORIGIN

    async def send(self, alert: Alert) -> None:
        self.alerts.append((self.now(), alert))


@pytest.mark.parametrize("profile", PROFILES if LONG else ["janelas"])
async def test_nights_and_a_weekend_raise_no_alarm(tmp_path: Path, profile: str) -> None:
    clock = FakeClock(datetime(2026, 2, 27, 20, 0, tzinfo=UTC))  # a Friday, five in the afternoon in São Paulo
    work = Batuta(
        f"sqlite:///{tmp_path}/week.db",
        clock=clock,
        extension=Extension(profiles=PROFILES, first_profile=profile, windows=WINDOWS),
    )
    for entry in CATALOGUE:
        for each in PROFILES:
            # Jobs that fire every minute behave like those that fire every five minutes. Leaving them out saves time.
            if (schedule := entry.schedule(each)) is not None and schedule != "* * * * *":
                options: dict[str, Any] = {
                    "critical": entry.critical,
                    "window": entry.window,
                    "replaces": entry.replaces,
                }
                work.add_job(entry.name, schedule, Endpoint(), entry.categoria, profiles=[each], **options)
    hours, span = (7 * 24, "a week") if LONG else (76, "Friday to Monday")
    figures = Figures("T34", "SQLite", f"the timetable `{profile}` runs for {span}, five minutes at a time")
    async with work:
        await work.reports.expect(now=clock.now())
        notebook = Notebook()
        notebook.now = clock.now
        words = FindingTexts(Texts("en"))
        hub = AlertHub(
            "a", work.health, work.observability.alerts, lambda: [notebook], AlertPolicy(zone=work.zone), words, clock,
            work.events, work.now,
        )  # fmt: skip
        hub._quiet_until = 0.0
        scheduler = work.scheduler()
        start = clock.now()
        for step in range(hours * 12):
            clock.step(start + step * 5 * MINUTE - clock.now())
            while isinstance(await scheduler.dispatcher.tick(), Again):
                pass
            await scheduler.runner.finish()
            if step % 6 == 0:
                # Check a moment after the fires, and at a different minute each time, so that some checks run while
                # work is unfinished.
                await clock.advance((step // 6 % 4) * MINUTE + CALM + 7 * SECOND)
                loops = {"dispatcher": {"last_progress_ago": 0.9, "failures": 0}}
                await work.beats.beat("s:1", "scheduler", loops, now=clock.now())
                await hub.tick()
        assert notebook.alerts == []
        assert await work.observability.incidents.list_between(start, clock.now()) == []
        await clock.advance(BAR)  # from now on the scheduler is silent
        await hub.tick()
        assert [alert.cause for _, alert in notebook.alerts] == ["scheduler.silent"]
    figures.record_bare(hours * 2, "false alarms of the checks: 0")
