"""The engine's own actions in the dashboard: each changes its row and leaves an audit entry."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from batuta.health.aggregator import HealthAggregator
from batuta.health.finding import Assessment, Check, Finding, Report, Severity
from batuta.stores.sql.queries import query_of
from batuta.web.panel import now
from batuta.web.panel.words import Words
from tests.engine.web.browser.panel import Panel, open_panel

BROWSER = {"Accept": "text/html"}
AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY at DESC, id DESC", writes=False)


@pytest.fixture
async def panel(tmp_path: Path, work_url: str) -> AsyncIterator[Panel]:
    opened = await open_panel(tmp_path, work_url)
    yield opened
    await opened.work.close()


async def act(panel: Panel, name: str, **data: str) -> httpx2.Response:
    """Open the form of an action as a browser does, send it, and return the page that follows."""
    transport = httpx2.ASGITransport(app=panel.api, client=("127.0.0.1", 5000), raise_app_exceptions=False)
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8000", headers=BROWSER, follow_redirects=True
    ) as client:
        form = await client.get(f"/painel/acoes/{name}", params=data)
        assert form.status_code == 200, form.text
        return await client.post(f"/painel/acoes/{name}", data=data)


async def last_entry(panel: Panel) -> tuple[Any, ...]:
    row = (await panel.work.database.all(AUDIT))[0]
    return row["actor"], row["action"], row["subject"]


async def test_a_job_runs_now_with_its_parameters(panel: Panel) -> None:
    page = await act(panel, "job.run", tarefa="pulse", parametros="day=5", voltar="/painel/tarefas")
    assert "pulse rodou." in page.text
    rows = await panel.work.reports.recent(job="pulse", before=panel.clock.now() + timedelta(days=1), limit=1)
    assert (rows[0].trigger, rows[0].status) == ("manual", "success")
    assert page.url.path == f"/painel/execucoes/{rows[0].id}"
    assert await last_entry(panel) == ("local", "job.run", "pulse")


async def test_a_held_job_is_refused_with_the_reason_and_can_be_insisted_on(panel: Panel) -> None:
    refused = await act(panel, "job.run", tarefa="paused")
    assert refused.status_code == 422
    assert 'class="refused"' in refused.text
    assert "paused rodou." in (await act(panel, "job.run", tarefa="paused", suspensa="sim")).text


async def test_a_parameter_without_a_value_is_refused(panel: Panel) -> None:
    refused = await act(panel, "job.run", tarefa="pulse", parametros="day")
    assert "escreva cada parâmetro em uma linha" in refused.text


async def test_pause_until_and_resume_set_the_switch_with_the_reason(panel: Panel) -> None:
    page = await act(panel, "pause", alvo="job:pulse", prazo="2h", motivo="teste", voltar="/painel/tarefas/pulse")
    assert "Pausado até" in page.text
    switch = await panel.work.switches.read("pause.job.pulse")
    assert switch is not None
    assert (switch.on, switch.reason, switch.set_by) == (True, "teste", "local")
    assert switch.until == panel.clock.now() + timedelta(hours=2)
    assert (await last_entry(panel))[0] == "local"
    assert "acoes/resume?" in page.text
    await act(panel, "resume", alvo="job:pulse", motivo="fim")
    switch = await panel.work.switches.read("pause.job.pulse")
    assert switch is not None
    assert switch.on is False


@pytest.mark.parametrize("target", ["job:nada", "casa:x", "queue:nada"])
async def test_an_unknown_target_is_refused(panel: Panel, target: str) -> None:
    answer = await panel.ask(f"/painel/acoes/pause?alvo={target}")
    assert answer.status_code == 422
    assert 'class="refused"' in answer.text


async def test_the_page_of_a_job_explains_a_fire_that_did_not_run(panel: Panel) -> None:
    def answer(html: str) -> str:
        return re.sub(r"<[^>]+>", "", html[html.index('id="porque-titulo"') :].split("</section>")[0])

    failed = (await panel.ask("/painel/tarefas/broken?hora=08:45")).text
    assert "HTTP 500" in answer(failed) or "sem registro" in answer(failed)
    assert "a agenda não tem disparo" in answer((await panel.ask("/painel/tarefas/broken?hora=08:47")).text)
    assert "sem registro" in answer((await panel.ask("/painel/tarefas/broken?hora=03:00")).text)


def assess(score_lost: int, *findings: Finding) -> Check:
    async def ask() -> Report:
        return Report(findings=findings, lost=score_lost)

    return Check(name="jobs", section="jobs_and_workers", ask=ask)


async def look(panel: Panel, check: Check) -> Assessment:
    aggregator = HealthAggregator(panel.clock, panel.work.extension.sections)
    aggregator.add(check)
    return await aggregator.look()


async def test_the_verdict_is_never_better_than_the_score_or_the_worst_finding(panel: Panel) -> None:
    from batuta.texts import Texts

    words = Words(Texts("pt-BR"), panel.work.zone, panel.clock.now())
    bad = Finding(severity=Severity.CRITICAL, source="jobs", cause="c", says="job_stale", facts={"job": "pulse"})
    note = Finding(severity=Severity.INFO, source="jobs", cause="d", says="processes_never_started")
    assert now.verdict(await look(panel, assess(0)), words).sentence == "Tudo em dia."
    assert now.verdict(await look(panel, assess(0, note)), words).level == "healthy"
    assert now.verdict(await look(panel, assess(0, bad)), words).level == "critical"
    low = now.verdict(await look(panel, assess(35)), words)
    assert low.level != "healthy"
    assert low.sentence != "Tudo em dia."


async def test_a_finding_offers_its_next_step_as_a_button(panel: Panel) -> None:
    html = (await panel.ask("/painel")).text
    assert 'href="/painel/acoes/job.run?tarefa=overdue&amp;voltar=%2Fpainel"' in html
    assert 'href="/painel/tarefas/overdue"' in html
