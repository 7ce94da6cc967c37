"""The engine's own actions in the dashboard: each changes its row and leaves an audit entry."""

import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
import pytest

from batuta.extension import Extension, Screen, Visit
from batuta.guard.base import Admit
from batuta.health.aggregator import HealthAggregator
from batuta.health.alerts import NewIncident, change_incident
from batuta.health.finding import Assessment, Check, Finding, Report, Severity
from batuta.health.finding import assess as health_of
from batuta.processes.restarts import NewRestart
from batuta.queue.outcome import TIMED_OUT
from batuta.stores.sql.queries import query_of
from batuta.testing.clock import START
from batuta.texts import LANGUAGES, Language, Texts
from batuta.texts.findings import message_of
from batuta.web.live import live_parts
from batuta.web.panel.pages import now
from batuta.web.panel.words import Words
from tests.engine.web.browser.panel import Panel, open_panel

BROWSER = {"Accept": "text/html"}
NOTE = query_of("note", "UPDATE tasks SET error = :error WHERE id = :id", writes=True)
KILL = query_of(
    "kill", "UPDATE tasks SET status = 'failed', finished_at = :now, error = 'broken' WHERE id = :id", writes=True
)
AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY at DESC, id DESC", writes=False)


@pytest.fixture
async def panel(tmp_path: Path, work_url: str) -> AsyncIterator[Panel]:
    opened = await open_panel(tmp_path, work_url)
    yield opened
    await opened.work.close()


async def act(panel: Panel, name: str, **data: str) -> httpx2.Response:
    """Open the form of an action as a browser does, submit it, and return the page that follows."""
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
    assert "pulse foi executada." in page.text
    rows = await panel.work.reports.recent(job="pulse", before=panel.clock.now() + timedelta(days=1), limit=1)
    assert (rows[0].trigger, rows[0].status) == ("manual", "success")
    assert page.url.path == f"/painel/execucoes/{rows[0].id}"
    assert await last_entry(panel) == ("local", "job.run", "pulse")


async def test_a_held_job_is_refused_with_the_reason_and_can_be_insisted_on(panel: Panel) -> None:
    refused = await act(panel, "job.run", tarefa="paused")
    assert refused.status_code == 422
    assert 'class="refused"' in refused.text
    assert "paused foi executada." in (await act(panel, "job.run", tarefa="paused", suspensa="sim")).text


async def test_form_and_result_of_a_paused_job_say_who_paused_it_and_offer_to_resume_it(panel: Panel) -> None:
    now = panel.clock.now()
    await panel.work.switches.set("pause.category.campanha", False, by="ana", reason="fim", now=now)
    await panel.work.switches.set(
        "pause.job.paused", True, by="rui", reason="manutenção", now=now, until=now + timedelta(hours=2)
    )
    form = (await panel.ask("/painel/acoes/job.run?tarefa=paused")).text
    until = f"{(now + timedelta(hours=2)).astimezone(panel.work.zone):%d/%m/%Y %H:%M}"
    (says,) = re.findall(r'class="says">([^<]+)', form)
    assert [each for each in ("rui", "manutenção", f"até {until}", "continuará suspensa") if each not in says] == []
    assert '<option value="sim" selected>' in form
    done = await act(panel, "job.run", tarefa="paused", suspensa="sim")
    assert "Ela continua suspensa" in done.text
    assert (done.url.path, "/painel/acoes/resume?alvo=job%3Apaused" in done.text) == ("/painel/tarefas/paused", True)


async def test_a_parameter_without_a_value_is_refused(panel: Panel) -> None:
    refused = await act(panel, "job.run", tarefa="pulse", parametros="day")
    assert "escreva um parâmetro por linha" in refused.text


async def test_pause_until_and_resume_set_the_switch_with_the_reason(panel: Panel) -> None:
    page = await act(panel, "pause", alvo="job:pulse", prazo="2h", motivo="teste", voltar="/painel/tarefas/pulse")
    assert "Pausa ativa até" in page.text
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
    assert "não há disparo previsto" in answer((await panel.ask("/painel/tarefas/broken?hora=08:47")).text)
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
    words = Words(Texts("pt-BR"), panel.work.zone, panel.clock.now())
    bad = Finding(severity=Severity.CRITICAL, source="jobs", cause="c", says="job_stale", facts={"job": "pulse"})
    note = Finding(severity=Severity.INFO, source="jobs", cause="d", says="processes_never_started")
    assert now.verdict(await look(panel, assess(0)), words).sentence == "Tudo em dia."
    assert now.verdict(await look(panel, assess(0, note)), words).level == "healthy"
    assert now.verdict(await look(panel, assess(0, bad)), words).level == "critical"
    low = now.verdict(await look(panel, assess(35)), words)
    assert low.level != "healthy"
    assert low.sentence != "Tudo em dia."


async def test_fires_without_a_row_are_drawn_as_missing(panel: Panel) -> None:
    html = (await panel.ask("/painel")).text
    lanes = html[html.index('id="dia"') :].split("</section>")[0]
    assert 'class="o-missing"' in lanes  # "overdue" fires every five minutes and ran 50 minutes ago
    assert re.search(r">\d+ sem registro<", lanes)


def test_every_finding_leads_to_a_page() -> None:
    async def read(visit: Visit) -> dict[str, object]:
        return {}

    screen = Screen(path="/chips", title="t", template="t", read=read)
    pages = {"grupos": "/vagas", "reminders_late": "/tarefas/remind"}
    extension = Extension(screens=[screen], finding_pages=pages)

    def page(source: str, says: str = "x") -> str:
        finding = Finding(severity=Severity.ERROR, source=source, cause="c", says=says)
        return now.next_step(finding, extension).page

    assert [page("chips"), page("grupos"), page("elsewhere")] == ["/chips", "/vagas", "/incidentes"]
    assert page("database", "part_down") == "/processos"
    late = Finding(severity=Severity.ERROR, source="reminders", cause="c", says="reminders_late")
    assert now.next_step(late, extension) == now.NextStep("/tarefas/remind", "job.run", {"tarefa": "remind"})


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_page_never_asks_for_a_terminal_where_it_has_a_button(language: Language) -> None:
    texts = Texts(language)
    words = Words(texts, ZoneInfo("UTC"), START)
    for says in {key.split(".")[0] for key in texts.group("finding")}:
        sentence = texts.get(f"finding.{says}.panel", "")
        assert "`" not in sentence, says
    facts = {"role": "worker", "last": "2 min"}
    dead = Finding(severity=Severity.CRITICAL, source="workers", cause="c", says="role_deserted", facts=facts)
    whole = health_of([("jobs_and_workers", Report(findings=(dead,), lost=25))], START)
    (shown,) = now.show_findings(whole, words, Extension(), {"/processos": "Processos"})
    assert (shown.page_title, "`" in shown.advice, "batuta worker" in shown.commands) == ("Processos", False, True)


async def test_two_runs_are_compared_and_differences_are_marked(panel: Panel) -> None:
    rows = await panel.work.reports.recent(job="broken", before=panel.clock.now() + timedelta(days=1), limit=2)
    query = "&".join(f"comparar={row.id}" for row in rows)
    html = (await panel.ask(f"/painel/tarefas/broken?{query}")).text
    compared = html[html.index('id="comparacao"') :].split("</section>")[0]
    assert compared.count('class="differs"') >= 3
    assert compared.index("com sucesso") < compared.index("HTTP 500")
    assert 'id="comparacao"' not in (await panel.ask(f"/painel/tarefas/pulse?{query}")).text


async def test_a_circuit_is_forced_open_for_a_time_and_probed(panel: Panel) -> None:
    panel.work.circuit("mail")
    panel.work.circuit("bank")
    page = await act(panel, "circuit.open", circuito="mail", prazo="2h", motivo="manutenção", voltar="/painel/freios")
    assert page.text.index("<b>mail</b>") < page.text.index("<b>bank</b>")  # an open circuit comes first
    assert "próximo teste" in page.text
    assert "aberto por local: manutenção" in page.text
    assert "opened by local: manutenção" in (await panel.ask("/painel/freios?lang=en")).text
    finding = (await panel.ask("/painel")).text
    assert ("o disjuntor mail está aberto: nenhuma chamada" in finding, "0 falhas seguidas" in finding) == (True, False)
    circuit = {each.name: each for each in await panel.work.circuits.look()}["mail"]
    assert circuit.tries_at == panel.clock.now() + timedelta(hours=2)
    assert await last_entry(panel) == ("local", "circuit.open", "mail")
    await act(panel, "circuit.probe", circuito="mail", motivo="voltou")
    assert isinstance(await panel.work.circuits.breaker("mail").admit(panel.clock.now()), Admit)
    assert await last_entry(panel) == ("local", "circuit.probe", "mail")
    refused = await panel.ask("/painel/acoes/circuit.probe?circuito=mail")
    assert "não está aberto" in refused.text


async def test_a_circuit_is_closed_with_a_reason(panel: Panel) -> None:
    panel.work.circuit("mail")
    await act(panel, "circuit.open", circuito="mail", prazo="2h", motivo="manutenção")
    page = await act(panel, "circuit.close", circuito="mail", motivo="voltou", voltar="/painel/freios")
    assert "batuta circuits reset mail --reason voltou" in page.text
    history = await panel.work.circuits.history("mail", panel.clock.now() - timedelta(hours=1))
    assert "voltou" in str(history[0].reason)
    assert await last_entry(panel) == ("local", "circuit.reset", "mail")


async def test_incidents_restarts_actions_and_recoveries_share_one_timeline(panel: Panel) -> None:
    work, now = panel.work, panel.clock.now()
    new = NewIncident(from_status="healthy", to_status="critical", to_score=30, details={"causes": ["queue.mail"]})
    await work.observability.incidents.write(new, now=now)
    restart = NewRestart(worker_name="worker", reason="crashed", detail="exit code 1", host="box", pid=1)
    await work.observability.restarts.add(restart, now=now + timedelta(minutes=1))
    panel.clock.step(timedelta(minutes=2))
    await act(panel, "pause", alvo="job:pulse", motivo="teste")
    panel.clock.step(timedelta(minutes=3))
    recovered = NewIncident(from_status="critical", to_status="healthy", to_score=100, details={})
    await work.observability.incidents.write(recovered, now=panel.clock.now())
    html = (await panel.ask("/painel/incidentes")).text
    kinds = re.compile(r'<b class="ending t-\w+">([^<]+)</b>')
    assert kinds.findall(html) == ["recuperação", "reinício", "incidente"]
    with_actions = (await panel.ask("/painel/incidentes?acoes=sim")).text
    assert kinds.findall(with_actions)[:4] == ["recuperação", "ação", "reinício", "incidente"]
    assert [page.count('href="/painel/incidentes?acoes=sim"') for page in (html, with_actions)] == [1, 1]
    assert '<small class="cause anywhere">queue.mail</small>' in html
    exported = (await panel.ask("/painel/incidentes.csv")).text.splitlines()
    assert exported[0].startswith("started_at,resolved_at,seconds,from,to,score")
    assert ",300,healthy,critical,30," in exported[1]
    assert await last_entry(panel) == ("local", "access.export", "/painel/incidentes.csv")


@pytest.mark.parametrize(("language", "why"), [("pt-BR", "tempo limite esgotado"), ("en", "Job timeout exceeded")])
async def test_an_incident_names_its_causes_in_the_language_of_the_reader(
    panel: Panel, language: Language, why: str
) -> None:
    facts = {"check": "jobs", "why": TIMED_OUT()}
    failed = Finding(severity=Severity.CRITICAL, source="jobs", cause="check.jobs", says="check_failed", facts=facts)
    opened = change_incident(await look(panel, assess(20, failed)), None, None).opens
    assert opened is not None
    await panel.work.observability.incidents.write(opened, now=panel.clock.now())
    html = (await panel.ask(f"/painel/incidentes?lang={language}")).text
    (shown,) = re.findall(r'<small class="cause anywhere"><a href="/painel/processos">([^<]+)<', html)
    assert shown == message_of(failed, Texts(language))
    assert why in shown


async def test_the_brakes_say_what_waits_and_why(panel: Panel) -> None:
    @panel.work.task(concurrency=1)
    async def send(to: str) -> None: ...

    id = await panel.work.enqueue(send, "x")
    await panel.work.database.run(NOTE, id=id, error="the printer is busy")
    html = (await panel.ask("/painel/freios")).text
    assert "the printer is busy" in html
    assert "1 item em espera aqui" in html
    assert "1 ao mesmo tempo" in html
    assert 'href="/painel/tarefas/paused"' in html  # the page names the jobs that a pause stops


async def test_the_first_limit_of_a_task_appears_on_an_open_page(panel: Panel) -> None:
    before = live_parts((await panel.ask("/painel/freios")).text)

    @panel.work.task(concurrency=1)
    async def send(to: str) -> None: ...

    after = live_parts((await panel.ask("/painel/freios")).text)
    assert "1 ao mesmo tempo" in after.since(before)["limites-tarefas-lugar"]


async def test_a_schedule_is_created_edited_paused_and_deleted(panel: Panel) -> None:
    @panel.work.task()
    async def send(to: str) -> None: ...

    assert "batuta schedules create" in (await panel.ask("/painel/programacoes")).text
    given = {"nome": "night", "tarefa": "send", "fuso": "UTC"}
    refused = await act(panel, "schedule.create", **given, quando="amanhã", argumentos="to=x")
    assert "escreva a programação como cron" in refused.text
    # the argument "to" is missing
    assert (await act(panel, "schedule.create", **given, quando="0 3 * * *")).status_code == 422
    page = await act(panel, "schedule.create", **given, quando="0 3 * * *", argumentos="to=x")
    assert (page.url.path, "night" in page.text) == ("/painel/programacoes", True)
    assert await last_entry(panel) == ("local", "schedule.create", "schedule:night")
    await act(panel, "schedule.edit", programacao="night", quando="5m")
    stored = await panel.work.schedules.get("night")
    assert (stored.schedule, stored.args, stored.timezone) == ("@every 300s", {"to": "x"}, "UTC")
    await act(panel, "schedule.edit", programacao="night", quando="5m", sobreposicao="replace", atraso="10s")
    stored = await panel.work.schedules.get("night")
    assert (stored.overlap, stored.jitter) == ("replace", timedelta(seconds=10))
    assert (await act(panel, "schedule.edit", programacao="night", quando="5m", sobreposicao="x")).status_code == 422
    past = {"programacao": "night", "desde": "01/01/2020 00:00"}
    refused = await act(panel, "schedule.backfill", **past, ate="ontem")
    assert "escreva &#39;ontem&#39; como dia e hora" in refused.text
    assert (await act(panel, "schedule.backfill", **past, ate="2019-12-31 00:00")).status_code == 422
    page = await act(panel, "schedule.backfill", **past, ate="2020-01-01 00:10")
    assert "3 disparos enfileirados" in page.text
    assert await last_entry(panel) == ("local", "schedule.backfill", "schedule:night")
    await act(panel, "schedule.pause", programacao="night")
    assert (await panel.work.schedules.get("night")).paused
    await act(panel, "schedule.resume", programacao="night")
    await act(panel, "schedule.delete", programacao="night")
    assert await panel.work.schedules.all() == []
    assert await last_entry(panel) == ("local", "schedule.delete", "schedule:night")


async def test_a_finding_offers_its_next_step_as_a_button(panel: Panel) -> None:
    html = (await panel.ask("/painel")).text
    assert 'href="/painel/acoes/job.run?tarefa=overdue&amp;voltar=%2Fpainel"' in html
    assert 'href="/painel/tarefas/overdue"' in html


REQUESTS = query_of("requests", "SELECT worker_id, request, asked_by FROM process_requests", writes=False)


async def test_a_process_is_asked_for_its_stack_and_to_restart(panel: Panel) -> None:
    await panel.work.beats.beat(
        "w:1", "worker", {"outbound": {"alive": True}}, now=panel.clock.now(), host="web1", pid=7
    )
    page = await act(panel, "process.stack", processo="web1:7", voltar="/painel/processos")
    assert "A captura da pilha de worker (web1:7) foi pedida" in page.text
    assert "batuta workers stack web1:7" in page.text
    assert "o processo ainda não respondeu" in page.text
    assert [dict(row) for row in await panel.work.database.all(REQUESTS)] == [
        {"worker_id": "w:1", "request": "stack", "asked_by": "local"}
    ]
    assert await last_entry(panel) == ("local", "process.stack", "worker web1:7")
    refused = await panel.ask("/painel/acoes/process.restart?processo=web1:8")
    assert refused.status_code == 422


@pytest.mark.parametrize(
    ("language", "title", "back", "reason"),
    [("pt-BR", "Pausar tudo", "Voltar", "MOTIVO"), ("en", "Pause everything", "Back", "REASON")],
)
async def test_the_form_names_what_it_pauses_and_shows_a_command_that_works(
    panel: Panel, language: str, title: str, back: str, reason: str
) -> None:
    html = (await panel.ask(f"/painel/acoes/pause?alvo=all:&lang={language}")).text
    assert f'<h1 id="acao-titulo">{title}</h1>' in html
    assert f">{title}</button>" in html
    assert f">{back}</a>" in html
    assert f"batuta pause all --reason {reason}<" in html
    panel.work.find_pause("all")
    one = (await panel.ask("/painel/acoes/resume?alvo=job:pulse")).text
    assert '<h1 id="acao-titulo">Retomar tarefa agendada pulse</h1>' in one
    assert "batuta resume job:pulse --reason MOTIVO<" in one


@pytest.mark.parametrize(
    ("language", "action", "facts", "paused"),
    [
        (
            *("pt-BR", "mudou uma chave, ou suspendeu ou retomou um trabalho"),
            *("posição: ligada · motivo: manutenção · até: 05/01/2026 11:00", "pausa: tarefa agendada pulse"),
        ),
        (
            "en",
            "set a switch, or paused or resumed something",
            "position: on · reason: manutenção · until: ",
            "pause: job pulse",
        ),
    ],
)
async def test_the_audit_log_shows_the_reason_in_the_language_and_zone_of_the_reader(
    panel: Panel, language: str, action: str, facts: str, paused: str
) -> None:
    await act(panel, "pause", alvo="job:pulse", prazo="2h", motivo="manutenção")
    html = (await panel.ask(f"/painel/auditoria?lang={language}")).text
    assert f'<span title="switch.set">{action}</span>' in html
    assert facts in html
    assert f'<span title="pause.job.pulse">{paused}</span>' in html
    assert action in (await panel.ask(f"/painel/incidentes?acoes=sim&lang={language}")).text


@pytest.mark.parametrize(
    ("language", "field"),
    [("pt-BR", "Executar mesmo que a tarefa agendada esteja suspensa"), ("en", "Run even if the job is held back")],
)
async def test_the_refusal_of_a_held_job_names_the_field_of_the_form(panel: Panel, language: str, field: str) -> None:
    await panel.keep("paused", timedelta(minutes=1), "skipped", duration_ms=0)
    form = (await panel.ask(f"/painel/acoes/job.run?tarefa=paused&lang={language}")).text
    assert "0 ms" not in form
    refused = await act(panel, "job.run", tarefa="paused", lang=language)
    message = refused.text.split('class="refused"')[1].split("</p>")[0]
    assert "--even-if-held" not in message
    assert "“" in message
    assert field in form


@pytest.mark.parametrize(
    ("language", "title"),
    [("pt-BR", "Tentar de novo os 2 itens"), ("en", "Retry these 2 items"), ("pt-BR", "Descartar os 2 itens")],
)
async def test_the_form_of_a_group_has_the_count_of_its_button(panel: Panel, language: str, title: str) -> None:
    @panel.work.task()
    async def send(to: str) -> None: ...

    for to in ("a", "b"):
        await panel.work.database.run(KILL, id=await panel.work.enqueue(send, to), now=panel.clock.now())
    name = "bulk.discard" if title.startswith("Desc") else "bulk.retry"
    html = (await panel.ask(f"/painel/acoes/{name}?fila=default&lang={language}")).text
    assert f'<h1 id="acao-titulo">{title}</h1>' in html
    assert f">{title}</button>" in html
    assert '<div id="lista" data-live>' in (await panel.ask("/painel/filas/default?estado=dead")).text


@pytest.mark.parametrize(("language", "hint"), [("pt-BR", "vale o tempo configurado"), ("en", "the configured time")])
async def test_the_hint_of_a_circuit_agrees_with_its_preview(panel: Panel, language: str, hint: str) -> None:
    panel.work.circuit("mail")
    html = (await panel.ask(f"/painel/acoes/circuit.open?circuito=mail&lang={language}")).text
    assert hint in html
    assert "a pausa dura" not in html


async def test_a_pause_counts_jobs_and_items_apart(panel: Panel) -> None:
    html = (await panel.ask("/painel/acoes/pause?alvo=all:")).text
    active = panel.work.registry.timetable(await panel.work.controls.read())
    assert f"Tarefas agendadas afetadas: {len(active)};" in html
    assert "itens afetados" not in html


async def test_a_short_run_is_not_shown_as_zero_seconds(panel: Panel) -> None:
    words = Words(Texts("pt-BR"), panel.work.zone, panel.clock.now())
    assert [words.lasts(timedelta(milliseconds=each)) for each in (230, 45_000)] == ["230 ms", "45 s"]


@pytest.mark.parametrize(
    ("language", "gone", "up", "replaced", "step"),
    [
        ("pt-BR", "sem sinal", "no ar", "substituído", "inicie um na máquina web1, com <code>batuta up</code>"),
        ("en", "silent", "running", "replaced", "start one on the machine web1, with <code>batuta up</code>"),
    ],
)
async def test_a_killed_process_is_missing_until_another_replaces_it(
    panel: Panel, language: str, gone: str, up: str, replaced: str, step: str
) -> None:
    async def pills() -> list[str]:
        html = (await panel.ask(f"/painel/processos?lang={language}")).text
        assert (step in html) == (f"</svg>{gone}</span>" in html)
        return re.findall(r"</svg>([^<]+)</span> <b>sender</b>", html)

    beats, loops = panel.work.beats, {"outbound": {"alive": True}}
    await beats.beat("s:1", "sender", loops, now=panel.clock.now(), host="web1", pid=7)
    assert await pills() == [up]
    panel.clock.step(timedelta(seconds=2))
    killed = NewRestart(worker_name="sender", reason="crashed", detail="SIGKILL", host="web1", pid=7)
    await panel.work.observability.restarts.add(killed, now=panel.clock.now())
    assert await pills() == [gone]
    panel.clock.step(timedelta(seconds=2))
    await beats.beat("s:2", "sender", loops, now=panel.clock.now(), host="web1", pid=8)
    assert await pills() == [up, replaced]


@pytest.mark.parametrize(("language", "restarted"), [("pt-BR", "reiniciado às"), ("en", "restarted at")])
async def test_a_restarted_process_says_when_and_why_it_was_restarted(
    panel: Panel, language: str, restarted: str
) -> None:
    beats, loops = panel.work.beats, {"outbound": {"alive": True}}
    await beats.beat("s:1", "sender", loops, now=panel.clock.now(), host="web1", pid=7)
    await beats.beat("s:2", "sender", loops, now=panel.clock.now(), host="web2", pid=7)
    panel.clock.step(timedelta(minutes=5))
    killed = NewRestart(worker_name="sender", reason="crashed", detail="killed by SIGKILL", host="web1", pid=7)
    await panel.work.observability.restarts.add(killed, now=panel.clock.now())
    await beats.beat("s:2", "sender", loops, now=panel.clock.now(), host="web2", pid=7)
    panel.clock.step(timedelta(seconds=3))
    at = panel.clock.now().astimezone(panel.work.zone)
    await beats.beat("s:3", "sender", loops, now=panel.clock.now(), host="web1", pid=8)
    html = (await panel.ask(f"/painel/processos?lang={language}")).text
    (said,) = re.findall(rf"<small[^>]*>({restarted} .*?)</small>", html)
    assert re.sub("<[^>]+>", "", said).startswith(f"{restarted} {at:%H:%M}, ")
    assert said.endswith(": killed by SIGKILL")
    assert html.index('id="processo-s:3"') < html.index(said) < html.index("</li>", html.index('id="processo-s:3"'))


async def test_a_process_that_started_long_after_a_restart_did_not_come_from_it(panel: Panel) -> None:
    beats, loops = panel.work.beats, {"outbound": {"alive": True}}
    killed = NewRestart(worker_name="sender", reason="crashed", detail="killed by SIGKILL", host="web1", pid=7)
    await panel.work.observability.restarts.add(killed, now=panel.clock.now())
    panel.clock.step(timedelta(minutes=12))  # the process that replaced it is gone, because the program was restarted
    await beats.beat("s:3", "sender", loops, now=panel.clock.now(), host="web1", pid=9)
    html = (await panel.ask("/painel/processos")).text
    assert ("<b>sender</b>" in html, "reiniciado às" in html) == (True, False)
