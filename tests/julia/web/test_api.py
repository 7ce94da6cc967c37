"""Julia's HTTP API, tested without a network."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from app.composition.julia import julia_of
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.access import Scope, mint
from batuta.config import EngineSettings, load_settings
from batuta.engine.batuta import Batuta
from batuta.health.aggregator import Part, Probe, State
from batuta.kernel.events import RequestAnswered, RequestCrashed
from batuta.queue.outcome import Done, Failed, Outcome
from batuta.receive.endpoints import JobCall
from batuta.receive.receiver import Reply
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from batuta.texts import Texts
from batuta.web import create_api
from batuta.web.api import READY_KEPT
from tests import ROOT

EVER = datetime.max.replace(tzinfo=UTC)
TOKEN = "test-token-" + "x" * 24
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Julia:
    """The application with HTTP clients. Requests made with ``ask`` come from this machine, those made with
    ``client_from`` from another one.
    """

    def __init__(self, api: FastAPI, work: Batuta) -> None:
        self.api = api
        self.work = work
        self.events = EventRecorder()
        work.events.subscribe(self.events)

    def client(self, address: str = "127.0.0.1", base: str = "http://127.0.0.1:8000") -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=self.api, client=(address, 5000), raise_app_exceptions=False)
        return httpx2.AsyncClient(transport=transport, base_url=base)

    async def ask(self, method: str, path: str, **options: object) -> httpx2.Response:
        async with self.client() as client:
            return await client.request(method, path, **options)  # type: ignore[arg-type]


async def open_julia(url: str, **env: str) -> Julia:
    """Open Julia on a migrated database. Pass ``julia_url`` for SQLite, or ``database_url`` to run the test on each
    kind of database.
    """
    settings = load_settings(Settings, {"DATABASE_URL": url, "API_TOKEN": TOKEN, **env})
    work = build(settings).work
    api = create_app(julia_of(work))

    async def conta(call: JobCall) -> Outcome:
        return Done(items=len(call.params), result={"params": dict(call.params)})

    async def quebra(call: JobCall) -> Outcome:
        return Failed("não deu")

    async def explode(call: JobCall) -> Outcome:
        raise KeyError("5511900000001")

    work.endpoints.add("conta", conta, manual=True)
    work.endpoints.add("quebra", quebra, manual=True)
    work.endpoints.add("explode", explode, manual=True)
    await work.open()
    return Julia(api, work)


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url)
    yield opened
    await opened.work.close()


@pytest.fixture
async def in_production(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url, APP_ENV="production", SECRET_KEY="k" * 32, WEBHOOK_SECRET="segredo-de-teste")
    yield opened
    await opened.work.close()


def is_problem(answer: httpx2.Response, status: int, slug: str) -> bool:
    content = answer.json()
    return (
        answer.headers["content-type"] == "application/problem+json"
        and answer.status_code == content["status"] == status
        and content["type"] == f"/problemas/{slug}"
        and bool(content["title"] and content["detail"] and content["request_id"])
    )


async def test_health_touches_nothing_and_needs_no_token(in_production: Julia) -> None:
    await in_production.work.close()  # not even with a closed database
    answer = await in_production.ask("GET", "/health")
    assert answer.status_code == 200
    assert answer.json()["status"] == "healthy"
    assert answer.json()["service"] == "julia-api"
    assert answer.json()["timestamp"].endswith("-03:00")


async def test_ready_lists_its_checks_and_strict_sets_the_status_code(julia: Julia) -> None:
    answer = await julia.ask("GET", "/health/ready")
    assert answer.json()["status"] == "ready"
    assert answer.json()["checks"] == {"database": "ok", "evolution": "unknown"}
    await julia.work.close()
    await julia.api.state.batuta.ready.get(fresh=True)
    assert (await julia.ask("GET", "/health/ready")).json()["status"] == "not_ready"
    assert (await julia.ask("GET", "/health/ready")).status_code == 200
    assert (await julia.ask("GET", "/health/ready?strict=1")).status_code == 503


async def test_failing_probe_is_a_failed_check_and_not_a_failed_page(julia: Julia) -> None:
    async def breaks() -> Part:
        raise OSError("10.0.0.1 refused it")

    julia.work.probes["disk"] = Probe(breaks, needed=True)
    answer = await julia.ask("GET", "/health/ready")
    assert (answer.status_code, answer.json()["status"]) == (200, "not_ready")
    assert answer.json()["checks"] == {"database": "ok", "evolution": "unknown", "disk": "error"}
    alerts = (await julia.ask("GET", "/health/alerts")).json()["alerts"]
    assert [each["severity"] for each in alerts if each["cause"] == "connectivity.disk"] == ["critical"]


async def test_ready_asks_its_probes_at_most_every_two_seconds(julia: Julia) -> None:
    asked = 0

    async def count() -> Part:
        nonlocal asked
        asked += 1
        return Part(State.OK)

    julia.work.probes["count"] = Probe(count, needed=True)
    julia.api.state.batuta.ready.clock = clock = FakeClock()
    answers = await asyncio.gather(*(julia.ask("GET", "/health/ready") for _ in range(20)))
    assert ({each.json()["status"] for each in answers}, asked) == ({"ready"}, 1)
    await clock.advance(READY_KEPT)
    await julia.ask("GET", "/health/ready")
    assert asked == 2


async def test_draining_process_is_not_ready(julia: Julia) -> None:
    julia.api.state.batuta.draining.set()
    answer = await julia.ask("GET", "/health/ready?strict=1")
    assert (answer.status_code, answer.json()["status"]) == (503, "draining")


async def test_production_requires_a_token_even_from_this_machine(in_production: Julia) -> None:
    refused = await in_production.ask("POST", "/jobs/conta")
    assert is_problem(refused, 401, "unauthorised")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert (await in_production.ask("POST", "/jobs/conta", headers=BEARER)).status_code == 200


@pytest.mark.parametrize(
    "header", ["Bearer wrong", "Bearer ", "Basic eDp5", f"bearer {TOKEN}x", "Bearer bat_" + "0" * 12 + "_" + "0" * 48]
)
async def test_wrong_token_opens_nothing(in_production: Julia, header: str) -> None:
    answer = await in_production.ask("GET", "/metrics", headers={"Authorization": header})
    was_sent = header.lower().startswith("bearer ") and header[7:].strip()
    assert is_problem(answer, 401, "wrong_token" if was_sent else "unauthorised")


async def test_wrong_token_is_refused_even_where_none_is_needed(julia: Julia) -> None:
    assert (await julia.ask("GET", "/metrics")).status_code == 200
    assert (await julia.ask("GET", "/metrics", headers={"Authorization": "Bearer wrong"})).status_code == 401


async def test_narrow_token_opens_only_its_scopes(in_production: Julia) -> None:
    work = in_production.work
    token, text = mint("painel", [Scope.READ], by="ana", now=work.clock.now(), chance=lambda n: "ab" * n)
    await work.tokens.keep(token)
    narrow = {"Authorization": f"Bearer {text}"}
    assert (await in_production.ask("GET", "/jobs", headers=narrow)).status_code == 200
    assert is_problem(await in_production.ask("POST", "/jobs/conta", headers=narrow), 403, "forbidden")
    await work.tokens.revoke(token.id, by="ana", now=work.clock.now())
    assert (await in_production.ask("GET", "/jobs", headers=narrow)).status_code == 401


async def test_local_program_needs_no_token_in_development(julia: Julia) -> None:
    for base in ("http://127.0.0.1:8000", "http://localhost:8000", "http://[::1]:8000"):
        async with julia.client(base=base) as client:
            assert (await client.post("/jobs/conta")).status_code == 200


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("192.0.2.7", {}),
        ("127.0.0.1", {"Host": "evil.example"}),
        ("127.0.0.1", {"Host": "127.0.0.1.evil.example"}),
        ("127.0.0.1", {"Origin": "https://evil.example"}),
        ("127.0.0.1", {"Origin": "http://127.0.0.1:3000"}),
        ("127.0.0.1", {"Origin": "null"}),
        ("127.0.0.1", {"Sec-Fetch-Site": "cross-site"}),
        ("127.0.0.1", {"Sec-Fetch-Site": "same-site"}),
        ("127.0.0.1", {"X-Forwarded-For": "203.0.113.9"}),
        ("127.0.0.1", {"Forwarded": "for=203.0.113.9"}),
    ],
)
async def test_loopback_exemption_excludes_other_machines_and_web_pages(
    julia: Julia, address: str, headers: dict[str, str]
) -> None:
    async with julia.client(address) as client:
        assert (await client.post("/jobs/conta", headers=headers)).status_code == 401
        assert (await client.post("/jobs/conta", headers={**headers, **BEARER})).status_code == 200


async def test_every_error_is_a_problem_in_the_callers_language(julia: Julia) -> None:
    assert is_problem(await julia.ask("GET", "/nowhere"), 404, "not_found")
    assert is_problem(await julia.ask("DELETE", "/health"), 405, "method_not_allowed")
    assert is_problem(await julia.ask("GET", "/health/ready?strict=perhaps"), 422, "invalid")
    portuguese = (await julia.ask("GET", "/nowhere")).json()
    english = (await julia.ask("GET", "/nowhere", headers={"Accept-Language": "en-GB"})).json()
    assert (portuguese["title"], english["title"]) == ("Não encontrado", "Not found")


async def test_validation_problem_names_the_field_and_never_the_value(julia: Julia) -> None:
    answer = await julia.ask("GET", "/health/ready?strict=5511900000001")
    assert answer.json()["errors"][0]["where"] == "query.strict"
    assert "5511900000001" not in answer.text


async def test_crash_is_a_problem_without_a_traceback_and_an_event_with_one(julia: Julia) -> None:
    @julia.api.get("/crash")
    async def crash() -> None:
        raise ValueError("segredo")

    answer = await julia.ask("GET", "/crash")
    assert is_problem(answer, 500, "crashed")
    assert "segredo" not in answer.text
    assert answer.headers["x-request-id"] == answer.json()["request_id"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert isinstance(julia.events.of(RequestCrashed)[0].error, ValueError)


async def test_unavailable_database_is_a_503_with_retry_after(julia: Julia) -> None:
    await julia.work.close()
    answer = await julia.ask("POST", "/jobs/conta")
    assert is_problem(answer, 503, "store_unavailable")
    assert answer.headers["retry-after"] == "5"


async def test_each_request_has_an_id_and_one_event_with_its_route(julia: Julia) -> None:
    answer = await julia.ask("POST", "/jobs/conta?telefone=5511900000001", headers={"X-Request-Id": "pedido-0001"})
    assert answer.headers["x-request-id"] == "pedido-0001"
    answered = julia.events.of(RequestAnswered)
    assert [(event.method, event.route, event.status, event.request_id) for event in answered] == [
        ("POST", "/jobs/{endpoint}", 200, "pedido-0001")
    ]
    forged = await julia.ask("GET", "/health", headers={"X-Request-Id": 'x" onload="'})
    assert len(forged.headers["x-request-id"]) == 36


async def test_body_over_the_limit_is_refused_with_or_without_content_length(julia: Julia) -> None:
    too_much = b"x" * (1024 * 1024 + 1)

    async def unannounced() -> AsyncIterator[bytes]:
        for _ in range(1025):
            yield b"x" * 1024

    @julia.api.post("/eat")
    async def eat(body: dict[str, str]) -> None: ...

    assert is_problem(await julia.ask("POST", "/eat", content=too_much), 413, "too_large")
    assert is_problem(await julia.ask("POST", "/eat", content=unannounced()), 413, "too_large")


async def test_body_that_arrives_too_slowly_times_out(tmp_path: Path, clock: FakeClock) -> None:
    work = Batuta(f"sqlite:///{tmp_path}/work.db", clock=clock)
    transport = httpx2.ASGITransport(app=create_api(work, EngineSettings(database_url="-")), client=("127.0.0.1", 5000))

    async def a_byte_at_a_time() -> AsyncIterator[bytes]:
        for _ in range(60):
            yield b"x"
            await clock.sleep(1)

    async with work, httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        for path in ("/painel/entrar", "/incidents"):
            asking = asyncio.create_task(client.post(path, content=a_byte_at_a_time(), headers=form))
            await settle()
            await clock.advance(29)
            assert not asking.done()
            await clock.advance(2)
            assert asking.done()
            assert is_problem(asking.result(), 408, "too_slow")
            assert asking.result().headers["connection"] == "close"


async def test_answers_carry_security_headers(julia: Julia) -> None:
    for path in ("/health", "/docs", "/nowhere"):
        headers = (await julia.ask("GET", path)).headers
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


async def test_job_answers_with_its_outcome(julia: Julia) -> None:
    answer = await julia.ask("POST", "/jobs/conta?tipo=manha")
    assert answer.json() == {"params": {"tipo": "manha"}, "status": "ok", "items_processed": 1}
    failed = await julia.ask("POST", "/jobs/quebra")
    assert (failed.status_code, failed.json()["status"]) == (500, "error")
    crashed = await julia.ask("POST", "/jobs/explode")
    assert crashed.status_code == 500
    assert "5511900000001" not in crashed.text


async def runs_of(work: Batuta, job: str) -> list[tuple[str, str, int | None]]:
    found = await work.reports.recent(job=job, before=EVER, limit=10)
    return [(each.trigger, each.status, each.items) for each in found]


async def test_call_by_hand_is_a_manual_run_of_its_job(database_url: str) -> None:
    opened = await open_julia(database_url)
    try:
        answer = await opened.ask("POST", "/jobs/limpar-historico")
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")
        assert await runs_of(opened.work, "limpar_historico") == [
            ("manual", "success", answer.json()["items_processed"])
        ]
        await opened.ask("POST", "/jobs/limpar-historico", headers={"Idempotency-Key": "of-a-scheduler"})
        assert len(await runs_of(opened.work, "limpar_historico")) == 1
        await opened.ask("POST", "/jobs/report-periodo?tipo=manha")
        assert [trigger for trigger, _, _ in await runs_of(opened.work, "report_manha")] == ["manual"]
    finally:
        await opened.work.close()


async def test_unknown_job_gets_the_nearest_name(julia: Julia) -> None:
    answer = await julia.ask("POST", "/jobs/comta")
    assert is_problem(answer, 404, "unknown_job")
    assert "conta" in answer.json()["detail"]


async def test_repeated_key_gets_the_first_result(julia: Julia) -> None:
    key = {"Idempotency-Key": "0192-abc"}
    first = await julia.ask("POST", "/jobs/conta?a=1", headers=key)
    again = await julia.ask("POST", "/jobs/conta?a=1", headers=key)
    assert (again.json(), again.headers["idempotency-replayed"]) == (first.json(), "true")
    assert is_problem(await julia.ask("POST", "/jobs/conta?a=2", headers=key), 422, "key_reused")


async def test_running_job_is_a_409(julia: Julia) -> None:
    started, gate = asyncio.Event(), asyncio.Event()

    async def espera(call: JobCall) -> Outcome:
        started.set()
        await gate.wait()
        return Done()

    julia.work.endpoints.add("espera", espera, manual=True)
    first = asyncio.create_task(julia.ask("POST", "/jobs/espera"))
    await started.wait()
    assert is_problem(await julia.ask("POST", "/jobs/espera"), 409, "already_running")
    gate.set()
    assert (await first).status_code == 200


async def test_deadline_of_the_request_is_enforced(julia: Julia) -> None:
    past = {"X-Batuta-Deadline": "2026-01-05T12:00:00Z"}
    assert (await julia.ask("POST", "/jobs/conta", headers=past)).status_code == 504
    naive = {"X-Batuta-Deadline": "2099-01-05T12:00:00"}
    assert is_problem(await julia.ask("POST", "/jobs/conta", headers=naive), 400, "deadline_without_zone")
    garbage = {"X-Batuta-Deadline": "tomorrow"}
    assert is_problem(await julia.ask("POST", "/jobs/conta", headers=garbage), 422, "invalid")


async def test_timeout_header_wins_over_a_deadline_of_another_clock(julia: Julia) -> None:
    """The scheduler's clock is an hour behind. By this machine's clock, the deadline that the scheduler sent has
    passed, although the scheduler will wait for another five minutes.
    """
    behind = {"X-Batuta-Deadline": "2020-01-05T12:00:00Z", "X-Batuta-Timeout": "300.000"}
    assert (await julia.ask("POST", "/jobs/conta", headers=behind)).status_code == 200
    for wrong in ("0", "-1", "nan", "inf", "1e300", "soon"):
        answer = await julia.ask("POST", "/jobs/conta", headers={"X-Batuta-Timeout": wrong})
        assert is_problem(answer, 422, "invalid")


async def test_metrics_count_requests_and_jobs_by_bounded_names(julia: Julia) -> None:
    await julia.ask("POST", "/jobs/conta")
    await julia.ask("GET", "/nowhere/5511900000001")
    text = (await julia.ask("GET", "/metrics")).text
    assert 'batuta_job_call_duration_seconds_count{endpoint="conta",outcome="ok"} 1.0' in text
    assert 'route="(none)"' in text
    assert "5511900000001" not in text


async def test_reference_page_lists_every_operation_and_loads_nothing_external(julia: Julia) -> None:
    page = (await julia.ask("GET", "/docs")).text
    document = (await julia.ask("GET", "/openapi.json")).json()
    for path in document["paths"]:
        assert path in page
    assert "http://" not in page.replace("http://127.0.0.1:8000", "")
    assert "https://" not in page
    assert "<script" not in page
    assert (await julia.ask("GET", "/docs/reference.css")).headers["content-type"].startswith("text/css")


async def test_operation_ids_are_stable(julia: Julia) -> None:
    document = (await julia.ask("GET", "/openapi.json")).json()
    names = {operation["operationId"] for path in document["paths"].values() for operation in path.values()}
    assert names == {
        "health", "ready", "health_jobs", "health_alerts", "health_score", "health_page",
        "health_circuits", "health_circuits_history", "health_rate_limit",
        "list_incidents", "incident_stats", "write_incident",
        "list_job_endpoints", "run_job", "metrics", "receive_evolution", "find_tasks", "show_task", "cancel_task", "show_log_lines",
        "list_schedules", "create_schedule", "edit_schedule", "delete_schedule", "pause_schedule", "resume_schedule",
        "backfill_schedule", "list_batches", "show_batch", "cancel_batch", "close_batch",
        "list_campanhas", "show_campanha", "list_campanha_people", "create_campanha", "schedule_campanha", "pause_campanha",
        "resume_campanha", "cancel_campanha",
        "create_vaga", "list_vagas", "show_vaga", "list_vaga_candidates", "announce_vaga", "want_vaga", "reserve_vaga",
        "release_vaga", "complete_vaga", "cancel_vaga",
        "list_revisao", "show_revisao", "approve_revisao", "reject_revisao", "list_fechamentos", "close_fechamento",
        "keep_fechamento", "list_autores", "block_autor", "lift_autor", "list_nomes", "forget_nome", "list_mensagens_grupo",
        "list_vagas_abertas",
        "list_handoffs", "show_handoff", "open_handoff", "confirm_handoff", "refuse_handoff",
        "import_appointments", "list_imports", "show_import", "list_appointments", "show_appointment", "create_appointment",
        "change_appointment", "reprocess_appointments", "export_appointments", "appointment_stats", "job_status",
        "add_doctors", "correct_doctor_state", "end_conversa", "list_conversas", "list_diretrizes", "list_doctor_states",
        "list_followups", "list_gatilhos", "receive_chatwoot", "simulate_gatilho", "pause_followups", "resume_followups",
        "correct_avaliacao", "list_avaliacoes", "show_avaliacao", "show_orientacao",
        "list_pendencias", "list_relatorios", "resend_relatorio", "resolve_pendencia", "return_conversa",
        "show_conversa", "show_diretriz", "show_doctor_state", "show_relatorio", "take_conversa",
        "answer_conversa",
        "list_chips", "decide_chip", "send_telegram", "see_telegram", "read_telegram", "list_telegram_histories",
        "pause_telegram", "resume_telegram", "send_telegram_file", "act_on_telegram", "see_telegram_action",
        "list_telegram_actions",
        "erase_person", "export_person", "list_lgpd_requests", "show_lgpd_request",
    }  # fmt: skip


async def test_reference_page_describes_every_operation_in_both_languages(julia: Julia) -> None:
    document = (await julia.ask("GET", "/openapi.json")).json()
    english = {
        operation["operationId"]: operation.get("description", "")
        for path in document["paths"].values()
        for operation in path.values()
    }
    assert [id for id, text in english.items() if not text.strip().endswith(".")] == []
    portuguese = Texts("pt-BR", [ROOT / "app" / "texts"]).group("operation")
    assert set(portuguese) == set(english)
    html = (await julia.ask("GET", "/docs?lang=pt-BR")).text
    assert [id for id, text in portuguese.items() if text not in html] == []


async def test_two_databases_are_never_confused(julia_url: str) -> None:
    from batuta.kernel.errors import MarkerMismatch

    env = {"DATABASE_URL": julia_url, "API_TOKEN": TOKEN, "APP_ENV": "production", "SECRET_KEY": "k" * 32}
    mine, yours = (
        build(load_settings(Settings, {**env, "SUPABASE_PROJECT_REF": name})).work for name in ("mine", "yours")
    )
    await mine.database.open()
    await mine.migrate()
    await mine.close()
    with pytest.raises(MarkerMismatch):
        await yours.open()


@pytest.mark.parametrize("query", ["tipo=%00", "%00=x", "tipo=a%1Bb"])
async def test_parameter_that_cannot_be_stored_is_refused(julia: Julia, query: str) -> None:
    assert is_problem(await julia.ask("POST", f"/jobs/conta?{query}"), 400, "unwritable_parameter")
    assert (await julia.ask("POST", "/jobs/conta?tipo=manh%C3%A3%0A")).status_code == 200


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_handler_that_tries_to_end_the_process_gives_a_failure(julia: Julia, kind: type[BaseException]) -> None:
    async def sai(call: JobCall) -> Outcome:
        raise kind

    julia.work.endpoints.add("sai", sai, manual=True)
    answer = await julia.ask("POST", "/jobs/sai")
    assert (answer.status_code, answer.json()["status"]) == (500, "error")
    assert (await julia.ask("POST", "/jobs/conta")).status_code == 200


async def test_answer_that_a_database_would_refuse_is_stored_and_repeated(database_url: str) -> None:
    async def estranha(call: JobCall) -> Outcome:
        return Done(items=2**40, result={"nome": "a\0b\ud800", "taxa": float("nan")})

    work = Batuta(database_url)
    work.endpoints.add("estranha", estranha)
    found = work.endpoints.find("estranha")
    assert found is not None
    async with work:
        first = await work.receiver.receive(found, {}, key="k", deadline=None)
        again = await work.receiver.receive(found, {}, key="k", deadline=None)
    assert isinstance(first, Reply)
    assert isinstance(again, Reply)
    assert (first.status, first.body["nome"], first.body["taxa"]) == (200, "a\ufffdb\ufffd", None)
    assert (again.body, again.replayed) == (first.body, True)
