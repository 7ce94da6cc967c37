"""``/health/alerts``, ``/health/score`` and the health pages that an application adds."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.health.aggregator import HealthPage
from batuta.health.finding import QUEUES, Check, Finding, Report, Severity
from batuta.testing import FakeClock
from tests.command import Command

MINUTE = timedelta(minutes=1)
WEIGHTS = {"connectivity": 20, "fila": 20, "chips": 20, "circuits": 15, "jobs_and_workers": 25}


class Julia:
    def __init__(self, work: Batuta, settings: Settings, clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000)),
            base_url="http://127.0.0.1:8000",
        )

    async def ask(self, path: str, language: str = "en") -> httpx2.Response:
        return await self._client.get(path, headers={"Accept-Language": language})

    async def get(self, path: str, language: str = "en") -> Any:
        return (await self.ask(path, language)).json()

    async def later(self, by: timedelta) -> None:
        """Advance the wall clock and the monotonic clock, so that cached answers expire."""
        await self.clock.advance(by)


@pytest.fixture
async def julia(julia_url: str, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Julia]:
    settings = load_settings(Settings, {"DATABASE_URL": julia_url})

    work = build(settings, clock).work
    async with work:
        await work.reports.expect(now=clock.now())
        yield Julia(work, settings, clock)


async def test_new_installation_is_healthy_with_the_full_score(julia: Julia) -> None:
    found = await julia.get("/health/score")
    assert set(found) >= {"score", "max_score", "level", "color", "breakdown", "thresholds", "timestamp"}
    assert (found["score"], found["max_score"], found["level"], found["color"]) == (100, 100, "healthy", "green")
    full = {part: {"score": weight, "max": weight} for part, weight in WEIGHTS.items()}
    assert {part: found["breakdown"][part] for part in full} == full
    assert found["thresholds"] == {"healthy": 80, "attention": 60, "degraded": 40, "critical": 0}
    alerts = await julia.get("/health/alerts")
    assert alerts["alerts"] == []
    assert alerts["timestamp"].endswith("-03:00")


async def test_scheduler_that_never_started_is_critical_with_a_next_step(julia: Julia) -> None:
    await julia.later(2 * MINUTE)
    alerts = await julia.get("/health/alerts")
    assert alerts["status"] == "critical"
    first = alerts["alerts"][0]
    assert set(first) >= {"severity", "source", "message", "value", "threshold", "since", "next_step", "cause"}
    assert (first["severity"], first["source"], first["cause"]) == ("critical", "jobs", "scheduler.silent")
    assert first["threshold"] == 45
    assert "batuta scheduler" in first["next_step"]
    score = await julia.get("/health/score")
    assert (score["score"], score["level"], score["color"]) == (39, "critical", "red")
    assert score["breakdown"]["jobs_and_workers"] == {"score": 0, "max": 25}


async def test_status_code_reflects_health_only_with_strict(julia: Julia) -> None:
    await julia.later(2 * MINUTE)
    for path in ("/health/alerts", "/health/score"):
        assert (await julia.ask(path)).status_code == 200
        assert (await julia.ask(f"{path}?strict=1")).status_code == 503


async def test_alerts_are_in_the_readers_language(julia: Julia) -> None:
    await julia.later(2 * MINUTE)
    portuguese = (await julia.get("/health/alerts", "pt-BR"))["alerts"][0]
    assert "nenhuma tarefa agendada dispara" in portuguese["message"]
    assert portuguese["next_step"].startswith("inicie")


async def test_answer_is_cached_for_fifteen_seconds_with_its_timestamp(julia: Julia) -> None:
    first = await julia.get("/health/score")
    await julia.later(timedelta(seconds=14))
    assert (await julia.get("/health/score"))["timestamp"] == first["timestamp"]
    await julia.later(timedelta(seconds=1))
    assert (await julia.get("/health/score"))["timestamp"] > first["timestamp"]


async def test_failing_check_is_a_finding_and_never_a_failed_page(julia: Julia) -> None:
    async def ask() -> Report:
        raise KeyError("5511900000001")

    julia.work.health.add(Check(name="broken", section="chips", ask=ask))
    answer = await julia.ask("/health/score")
    assert answer.status_code == 200
    assert answer.json()["breakdown"]["chips"] == {"score": 0, "max": 20}
    assert "5511900000001" not in (await julia.ask("/health/alerts")).text


async def test_unavailable_database_is_reported_as_the_only_root_cause(julia: Julia) -> None:
    await julia.work.database.close()
    answer = await julia.ask("/health/alerts")
    assert answer.status_code == 200
    alerts = {each["cause"]: each for each in answer.json()["alerts"]}
    assert alerts["connectivity.database"]["severity"] == "critical"
    assert {each["explained_by"] for cause, each in alerts.items() if cause != "connectivity.database"} == {
        "connectivity.database"
    }
    await julia.work.database.open()


async def test_context_adds_its_own_page(julia: Julia) -> None:
    async def ask() -> dict[str, Any]:
        return {"status": "critical", "metrics": {"pendentes": 7}}

    julia.work.health.add_page(HealthPage(name="parte", ask=ask, aliases=("parte-worker",)))
    assert (await julia.get("/health/parte"))["metrics"] == {"pendentes": 7}
    assert (await julia.ask("/health/parte-worker?strict=1")).status_code == 503
    assert (await julia.ask("/health/nothing")).status_code == 404


async def test_worst_finding_decides_the_status_of_the_alerts(julia: Julia) -> None:
    found = [
        Finding(severity=severity, source="fila", cause=severity.value, says="part_down", facts={"part": "x"})
        for severity in (Severity.INFO, Severity.WARNING, Severity.ERROR)
    ]

    async def ask() -> Report:
        return Report(findings=tuple(found))

    julia.work.health.add(Check(name="many", section=QUEUES, ask=ask))
    alerts = await julia.get("/health/alerts")
    assert alerts["status"] == "error"
    assert [each["severity"] for each in alerts["alerts"] if each["source"] == "fila"] == ["error", "warning", "info"]


PROGRAM = """
from batuta import Batuta
work = Batuta("sqlite:///work.db")

@work.job("* * * * *")
async def pulse(): ...
"""


def test_command_shows_the_score_and_succeeds_unless_critical(folder: Path, batuta: Command) -> None:
    (folder / "program.py").write_text(PROGRAM.partition("@work.job")[0])
    code, out, _ = batuta("--lang", "en", "health")
    assert (code, out.splitlines()[0]) == (0, "100/100 healthy")
    assert "no problem" in out


def test_command_says_that_no_process_has_run_on_a_new_database(folder: Path, batuta: Command) -> None:
    (folder / "program.py").write_text(PROGRAM)
    code, out, _ = batuta("--lang", "en", "health")
    assert (code, out.splitlines()[0]) == (0, "79/100 needs attention")
    assert "no process has run on this database yet" in out
    assert "→ start every process with `batuta up`" in out


def test_command_shows_reasons_and_next_steps_and_exits_with_one_when_critical(folder: Path, batuta: Command) -> None:
    (folder / "program.py").write_text(PROGRAM)
    assert batuta("migrate")[0] == 0
    _served_since_yesterday(folder)
    code, out, _ = batuta("--lang", "en", "health")
    assert code == 1
    assert "39/100 critical" in out
    assert "no scheduler has sent a heartbeat" in out
    assert "→ start a scheduler with `batuta scheduler`" in out
    code, out, _ = batuta("health", "--json")
    assert code == 1
    document = json.loads(out)
    assert document["findings"][0]["cause"] == "scheduler.silent"


def _served_since_yesterday(folder: Path) -> None:
    import sqlite3

    with sqlite3.connect(folder / "work.db") as connection:
        connection.execute(
            "INSERT INTO app_settings VALUES ('jobs_expected_since', '\"2026-01-01T00:00:00+00:00\"', 1767225600000000)"
        )
