"""The dashboard and the API, mounted in another FastAPI application."""

from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.stores.sql.queries import query_of
from batuta.web import create_api

AUDIT = query_of("audit", "SELECT action, subject FROM audit_log ORDER BY at DESC, id DESC", writes=False)


async def test_the_mounted_dashboard_keeps_its_links_its_actions_and_its_stream(work_url: str) -> None:
    settings = load_settings(EngineSettings, {"DATABASE_URL": work_url, "APP_ENV": "development"})
    work = Batuta(work_url, settings=settings)

    @work.job("0 6 * * *")
    async def report() -> None: ...

    shop = FastAPI()

    @shop.get("/orders")
    async def orders() -> list[str]:
        return []

    shop.mount("/ops", create_api(work, settings))
    transport = httpx2.ASGITransport(app=shop, client=("127.0.0.1", 5000))
    headers = {"Accept": "text/html", "Accept-Language": "en"}
    async with (
        work.running("api"),
        httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000", headers=headers) as browser,
    ):
        assert (await browser.get("/orders")).json() == []
        page = await browser.get("/ops/painel/tarefas/report")
        assert page.status_code == 200
        assert 'href="/ops/painel/filas"' in page.text
        assert 'src="/ops/painel/static/panel.js' in page.text
        assert 'href="/painel' not in page.text
        data = {"alvo": "job:report", "motivo": "stock-taking", "voltar": "/ops/painel/tarefas/report"}
        done = await browser.post("/ops/painel/acoes/pause", data=data)
        assert (done.status_code, done.headers["location"]) == (303, "/ops/painel/tarefas/report")
        row = await work.database.one(AUDIT)
        assert row is not None
        assert row["subject"] == "pause.job.report"
        assert "Resume" in (await browser.get("/ops/painel/tarefas/report")).text


@pytest.mark.parametrize(("fails", "code", "status"), [(False, 200, "success"), (True, 500, "error")])
async def test_function_of_a_job_runs_over_http_and_is_recorded(
    work_url: str, fails: bool, code: int, status: str
) -> None:
    work = Batuta(work_url, timezone="UTC")

    @work.job("0 3 * * *")
    async def nightly() -> None:
        if fails:
            raise ValueError

    api = create_api(work, load_settings(EngineSettings, {"APP_ENV": "development"}))
    transport = httpx2.ASGITransport(app=api, client=("127.0.0.1", 5000))
    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
        answer = await client.post("/jobs/nightly")
        assert (answer.status_code, answer.json()["status"]) == (code, status)
        (row,) = await work.reports.recent(job="nightly", before=work.clock.now() + timedelta(days=1), limit=5)
        assert (row.id, row.trigger) == (answer.json()["execution"], "manual")
        assert (await client.post("/jobs/nightl")).status_code == 404
