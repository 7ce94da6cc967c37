"""``/health/jobs`` and the jobs that Julia implements, through the API and on a real database."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from app.composition.jobs import timetable
from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta import Outcome, Skipped
from batuta.config import load_settings
from batuta.engine.batuta import Batuta
from batuta.jobs import JobCall
from batuta.reasons import UNFINISHED
from batuta.runlog.execution import Ending, Status
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import FakeClock
from tests.engine.dispatch.scheduling import Endpoint, House, job, tick_at

MINUTE = timedelta(minutes=1)
FIELDS = {
    "last_run", "last_status", "runs_24h", "success_24h", "errors_24h", "timeouts_24h", "avg_duration_ms",
    "total_items_processed", "last_error", "sla_seconds", "is_stale", "seconds_since_last_run",
}  # fmt: skip


class Julia:
    """Julia's web application with an HTTP client and a fake clock."""

    def __init__(self, work: Batuta, settings: Settings, clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        self._client = httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000)),
            base_url="http://127.0.0.1:8000",
        )

    async def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = (await self._client.get(path)).json()
        return found

    async def post(self, path: str) -> httpx2.Response:
        return await self._client.post(path)

    async def status(self, path: str) -> int:
        return (await self._client.get(path)).status_code

    def house(self) -> House:
        return House(self.work.database, self.clock, self.work.events)  # type: ignore[arg-type]

    async def rows(self, text: str) -> list[dict[str, Any]]:
        query = in_dialect(query_of("rows", text, writes=False), self.work.database.dialect)
        return [dict(row) for row in await self.work.database.all(query)]


@pytest.fixture
async def julia(julia_url: str, clock: FakeClock) -> AsyncIterator[Julia]:
    settings = load_settings(Settings, {"DATABASE_URL": julia_url})

    work = build(settings, clock).work
    async with work:
        yield Julia(work, settings, clock)


async def test_every_job_is_listed_including_one_that_never_ran(julia: Julia) -> None:
    found = await julia.get("/health/jobs")
    assert set(found["jobs"]) == {each["name"] for each in timetable("continuo")}
    assert set(found["jobs"]["heartbeat"]) >= FIELDS
    assert set(found["alerts"]) == {
        "jobs_with_errors", "jobs_with_timeouts", "stale_jobs", "critical_stale", "missing_critical"
    }  # fmt: skip
    assert found["period"] == "24h"
    assert found["sla_config"]["sla_definitions"]["processar_grupos"] == 180
    assert "processar_grupos" in found["sla_config"]["critical_jobs"]


async def test_scheduler_that_never_started_shows_within_the_sla(julia: Julia) -> None:
    assert (await julia.get("/health/jobs"))["status"] == "healthy"
    julia.clock.step(5 * MINUTE)
    found = await julia.get("/health/jobs")
    assert found["status"] == "critical"
    assert await julia.status("/health/jobs?strict=1") == 503
    assert set(found["alerts"]["stale_jobs"]) == {
        "heartbeat",
        "processar_mensagens_agendadas",
        "processar_campanhas_agendadas",
        "processar_grupos",
    }  # the SLA of the others has not passed
    assert found["jobs"]["heartbeat"]["why_code"] == "no_scheduler"


async def test_critical_job_without_runs_is_critical(julia: Julia, clock: FakeClock) -> None:
    endpoint = Endpoint(answer=Ending(status=Status.SUCCESS, items=5))
    julia.work.registry._jobs["continuo"]["processar_grupos"] = job("processar_grupos", target=endpoint, critical=True)
    scheduler = julia.house().scheduler(registry=julia.work.registry)
    start = clock.now()
    for name in list(julia.work.registry._jobs["continuo"]):
        if name != "processar_grupos":
            del julia.work.registry._jobs["continuo"][name]
    for n in range(3):
        await tick_at(scheduler, clock, start + n * MINUTE)
    healthy = await julia.get("/health/jobs")
    assert healthy["status"] == "healthy"
    entry = healthy["jobs"]["processar_grupos"]
    assert (entry["runs_24h"], entry["success_24h"], entry["total_items_processed"]) == (2, 2, 10)
    clock.step(4 * MINUTE)
    silent = await julia.get("/health/jobs")
    assert silent["status"] == "critical"
    assert silent["alerts"]["critical_stale"] == ["processar_grupos"]
    assert await julia.status("/health/jobs") == 200
    assert await julia.status("/health/jobs?strict=1") == 503


async def test_job_that_always_fails_is_stale_and_shows_its_error(julia: Julia, clock: FakeClock) -> None:
    endpoint = Endpoint(answer=Ending(status=Status.ERROR, error="HTTP 500: boom", response_code=500))
    registry = julia.work.registry
    registry._jobs["continuo"] = {"processar_grupos": job("processar_grupos", target=endpoint, critical=True)}
    scheduler = julia.house().scheduler(registry=registry)
    start = clock.now()
    for n in range(6):
        await tick_at(scheduler, clock, start + n * MINUTE)
    found = await julia.get("/health/jobs")
    assert found["status"] == "critical"
    assert found["jobs"]["processar_grupos"]["last_error"] == "HTTP 500: boom"
    assert found["alerts"]["jobs_with_errors"] == ["processar_grupos"]


async def test_heartbeat_job_writes_a_heartbeat(julia: Julia) -> None:
    assert (await julia.post("/jobs/heartbeat")).json()["status"] == "ok"
    (beat,) = await julia.rows("SELECT worker_name, status, last_heartbeat_at FROM worker_heartbeats")
    assert beat == {"worker_name": "heartbeat", "status": "online", "last_heartbeat_at": julia.clock.now()}


async def test_old_history_is_deleted_and_recent_history_stays(julia: Julia, clock: FakeClock) -> None:
    scheduler = julia.house().scheduler(job())
    start = clock.now()
    for n in range(5):
        await tick_at(scheduler, clock, start + n * MINUTE)
    await tick_at(scheduler, clock, start + timedelta(days=31))
    before = len(await julia.rows("SELECT id FROM job_executions"))
    answer = (await julia.post("/jobs/limpar-historico")).json()
    left = await julia.rows("SELECT id FROM job_executions")
    assert answer["status"] == "ok"
    assert answer["items_processed"] == 4  # the successes of a month ago were deleted
    assert before + 1 - len(left) == 4  # the call itself adds a run


async def test_unfinished_job_is_skipped_with_its_reason(julia: Julia) -> None:
    async def report_unfinished(call: JobCall) -> Outcome:
        return Skipped(UNFINISHED())

    julia.work.endpoints.add("tarefa-nova", report_unfinished, finished=False)
    answer = (await julia.post("/jobs/tarefa-nova")).json()
    assert (answer["status"], answer["reason"]) == ("skipped", "não implementada")


async def test_pilot_mode_holds_a_trigger_also_when_called_over_http(julia: Julia) -> None:
    held = (await julia.post("/jobs/executar-oferta-autonoma")).json()
    assert (held["status"], held["reason"]) == ("skipped", "suspensa: chave pilot_mode ligada")
    set_switch = julia.work.switches.set
    await set_switch("pilot_mode", False, by="teste", reason="fim do piloto", now=julia.clock.now())
    held = (await julia.post("/jobs/executar-oferta-autonoma")).json()
    assert held["reason"] == "suspensa: chave oferta_automatica_enabled desligada"
    await set_switch("oferta_automatica_enabled", True, by="teste", reason="liberado", now=julia.clock.now())
    answer = (await julia.post("/jobs/executar-oferta-autonoma")).json()
    assert (answer["status"], answer["sem_selecao"]) == ("ok", "sem_candidatos")
