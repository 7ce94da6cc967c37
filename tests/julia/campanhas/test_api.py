"""Campaigns as a manager uses them: over HTTP, in the terminal, and through the whole system to a simulated phone."""

import asyncio
import contextlib
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.campanhas.model import TipoDeCampanha
from app.contexts.campanhas.service import NovaCampanha
from app.contexts.mensagens.regras import WINDOW_OF
from batuta.access import Scope, mint
from batuta.kernel.clock import SystemClock
from batuta.stores import connect
from batuta.testing.clock import FastClock
from simulador.evolution.gateway import DEFAULT_INSTANCE
from tests.command import Command
from tests.end_to_end.test_whatsapp import QUICK, everything, until
from tests.julia.campanhas.test_service import OPEN, TRUSTED
from tests.julia.filled import ZONE, fill_office
from tests.julia.tables import add_chip, add_doctor, rows, write
from tests.julia.web.test_api import Julia, open_julia

UNUSED_ID = "00000000-0000-7000-8000-999999999999"
NEW = {"nome_template": "Março", "tipo_campanha": "discovery", "corpo": "Olá, {nome}"}
JULIA = ("--app", "app.main:work", "--lang", "en")


@pytest.fixture
async def julia(julia_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(julia_url)
    yield opened
    await opened.work.close()


async def post(julia: Julia, path: str, body: Any = None, **options: Any) -> httpx2.Response:
    content = None if body is None else json.dumps(body)  # ASCII, so that it can contain values that UTF-8 cannot
    headers = {"Accept-Language": "en", "Content-Type": "application/json"}
    return await julia.ask("POST", path, content=content, headers=headers, **options)


async def test_campaign_is_created_scheduled_paused_resumed_and_cancelled(julia: Julia) -> None:
    await add_doctor(julia.work.database, "5511900000001", now=julia.work.clock.now())
    await write(julia.work.database, "UPDATE clientes SET estado = 'SP'")
    made = await post(julia, "/campanhas", {**NEW, "audience_filters": {"regioes": ["SP"], "quantidade_alvo": 7}})
    assert (made.status_code, made.json()["avisos"]) == (201, [])
    document = made.json()
    id = document["id"]
    assert (document["status"], document["created_by"]) == ("rascunho", "local")
    assert document["audience_filters"] == {"regioes": ["SP"], "quantidade_alvo": 7}
    assert document["progresso"] == {
        "destinatarios": 0, "enfileiradas": 0, "na_fila": 0, "enviados": 0, "entregues": 0, "respostas": 0, "em_duvida": 0,
        "bloqueadas": {}, "canceladas": {}, "erros": {}, "excluidos": {},
    }  # fmt: skip
    body = {"agendar_para": "2030-01-07T10:00:00-03:00"}
    scheduled = {"id": id, "status": "agendada", "destinatarios": 1, "excluidos": {}}
    assert (await post(julia, f"/campanhas/{id}/agendar", body)).json() == scheduled
    assert (await julia.ask("GET", f"/campanhas/{id}")).json()["agendar_para"] == "2030-01-07T10:00:00-03:00"
    assert (await post(julia, f"/campanhas/{id}/pausar")).json() == {"id": id, "status": "pausada"}
    assert (await post(julia, f"/campanhas/{id}/retomar")).json() == {"id": id, "status": "agendada"}
    assert (await post(julia, f"/campanhas/{id}/cancelar")).json() == {"id": id, "status": "cancelada"}
    listed = (await julia.ask("GET", "/campanhas?status=cancelada")).json()["campanhas"]
    assert [each["id"] for each in listed] == [id]
    assert (await julia.ask("GET", "/campanhas?status=ativa")).json() == {"campanhas": []}
    log = await rows(julia.work.database, "SELECT actor, action FROM audit_log ORDER BY at, id")
    assert [each["action"].removeprefix("campanha.") for each in log] == [
        "criar", "agendar", "pausar", "retomar", "cancelar",
    ]  # fmt: skip


@pytest.mark.parametrize("tipo", ["discovery", "oferta", "oferta_plantao", "reativacao", "followup", "feedback"])
async def test_campaign_of_every_type_with_a_window_is_accepted(julia: Julia, tipo: str) -> None:
    made = await post(julia, "/campanhas", {**NEW, "tipo_campanha": tipo})
    assert (made.status_code, made.json()["tipo_campanha"], tipo in WINDOW_OF) == (201, tipo, True)


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "said"),
    [
        ("/campanhas", {**NEW, "corpo": "Olá, {hospital}"}, 422, "campanha_refused", "hospital"),
        ("/campanhas", {**NEW, "corpo": "  "}, 422, "campanha_refused", "no text"),
        ("/campanhas", {**NEW, "tipo_campanha": "pesquisa"}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "audience_filters": {"excluir_opt_out": False}}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "audience_filters": {"especialidade": "x"}}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "audience_filters": {"regioes": ["S\x00P"]}}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "audience_filters": {"especialidades": ["\ud800"]}}, 422, "invalid", ""),
        ("/campanhas/99/agendar", {"agendar_para": "9999-12-31T23:59:59-14:00"}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "audience_filters": {"clientes_especificos": ["x"]}}, 422, "invalid", ""),
        (
            "/campanhas",
            {**NEW, "audience_filters": {"clientes_especificos": [UNUSED_ID]}},
            404,
            "campanha_refused",
            "1 of",
        ),
        ("/campanhas", {**NEW, "audience_filters": {"quantidade_alvo": "5"}}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "pode_ofertar": 0}, 422, "invalid", ""),
        ("/campanhas", {**NEW, "nome_template": "a\u0002"}, 422, "invalid", ""),
        ("/campanhas/1/agendar", {"agendar_para": 0}, 422, "invalid", ""),
        ("/campanhas/99/pausar", None, 404, "campanha_unknown", "99"),
        ("/campanhas/99/agendar", {}, 404, "campanha_unknown", "99"),
        ("/campanhas/x/pausar", None, 422, "invalid", ""),
        ("/campanhas/1/pausar", None, 409, "campanha_state", "rascunho"),
        ("/campanhas/1/retomar", None, 409, "campanha_state", "pausada"),
        ("/campanhas/1/agendar", {"agendar_para": "2030-01-07T10:00:00"}, 422, "invalid", ""),
    ],
)
async def test_refused_request_is_a_problem_with_the_next_step(
    julia: Julia, path: str, body: Any, status: int, kind: str, said: str
) -> None:
    await post(julia, "/campanhas", NEW)
    answer = await post(julia, path, body)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem["type"] == f"/problemas/{kind}"
    assert said in problem["detail"]


async def test_read_scope_starts_nothing_and_operate_scope_stops_but_does_not_send(julia: Julia) -> None:
    id = (await post(julia, "/campanhas", NEW)).json()["id"]
    work = julia.work
    allowed: dict[Scope, dict[str, int]] = {}
    for n, scope in enumerate((Scope.READ, Scope.OPERATE, Scope.SEND)):
        token, text = mint(scope.value, [scope], by="ana", now=work.clock.now(), chance=lambda k, n=n: f"{n}c" * k)  # type: ignore[misc]
        await work.tokens.keep(token)
        asked = {"Authorization": f"Bearer {text}"}
        async with julia.client("192.0.2.7") as client:
            allowed[scope] = {"show": (await client.get(f"/campanhas/{id}", headers=asked)).status_code}
            for word in ("agendar", "pausar", "retomar", "cancelar"):
                answer = await client.post(f"/campanhas/{id}/{word}", headers=asked)
                allowed[scope][word] = 403 if answer.status_code == 403 else 200
    assert allowed[Scope.READ] == {"show": 200, "agendar": 403, "pausar": 403, "retomar": 403, "cancelar": 403}
    assert allowed[Scope.OPERATE] == {"show": 200, "agendar": 403, "pausar": 200, "retomar": 403, "cancelar": 200}
    assert allowed[Scope.SEND] == {"show": 200, "agendar": 200, "pausar": 403, "retomar": 200, "cancelar": 403}


async def test_job_starts_a_campaign_and_every_recipient_can_be_queried(julia: Julia) -> None:
    for n in range(3):
        await add_doctor(julia.work.database, f"551190000000{n}", now=julia.work.clock.now())
    await write(julia.work.database, "UPDATE clientes SET opt_out = TRUE WHERE telefone = '5511900000001'")
    id = (await post(julia, "/campanhas", NEW)).json()["id"]
    await post(julia, f"/campanhas/{id}/agendar", {})
    answer = (await post(julia, "/jobs/processar-campanhas-agendadas")).json()
    assert (answer["status"], answer["items_processed"], answer["enfileiradas"]) == ("ok", 1, 2)
    progress = (await julia.ask("GET", f"/campanhas/{id}")).json()["progresso"]
    assert (progress["destinatarios"], progress["enfileiradas"], progress["enviados"]) == (2, 2, 0)
    assert progress["excluidos"] == {"optout": 1}
    people = (await julia.ask("GET", f"/campanhas/{id}/destinatarios")).json()["destinatarios"]
    assert [each["posicao"] for each in people] == [1, 2, 3]
    (out,) = (await julia.ask("GET", f"/campanhas/{id}/destinatarios?motivo=optout")).json()["destinatarios"]
    assert (out["situacao"], out["status"]) == ("excluido", None)
    assert len((await julia.ask("GET", f"/campanhas/{id}/destinatarios?depois_de=2")).json()["destinatarios"]) == 1
    unknown = await julia.ask("GET", f"/campanhas/{id}/destinatarios?motivo=optouttt")
    assert (unknown.status_code, unknown.json()["type"]) == (422, "/problemas/invalid")
    assert "'optout'" in str(unknown.json()["errors"])
    assert "'outra_campanha'" in str(unknown.json()["errors"])


async def test_campaign_without_recipients_is_not_scheduled_and_lists_the_reasons(julia: Julia) -> None:
    for n in range(2):
        await add_doctor(julia.work.database, f"551190000000{n}", now=julia.work.clock.now())
    await write(julia.work.database, "UPDATE clientes SET opt_out = TRUE, especialidade = 'Pediatria'")
    id = (await post(julia, "/campanhas", NEW)).json()["id"]
    refused = await post(julia, f"/campanhas/{id}/agendar", {})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problemas/campanha_refused")
    assert "optout 2" in refused.json()["detail"]
    assert (await julia.ask("GET", f"/campanhas/{id}")).json()["status"] == "rascunho"
    await write(julia.work.database, "UPDATE clientes SET opt_out = FALSE WHERE telefone = '5511900000001'")
    scheduled = {"id": id, "status": "agendada", "destinatarios": 1, "excluidos": {"optout": 1}}
    assert (await post(julia, f"/campanhas/{id}/agendar", {})).json() == scheduled
    asked = {**NEW, "audience_filters": {"especialidades": ["pediatria", "Pedreiro"], "regioes": ["Lua"]}}
    made = (await post(julia, "/campanhas", asked)).json()
    assert [each.split("'")[1] for each in made["avisos"]] == ["Pedreiro", "Lua"]
    refused = await post(julia, f"/campanhas/{made['id']}/agendar", {})
    assert (refused.status_code, "no doctor fits" in refused.json()["detail"]) == (409, True)


def test_command_creates_schedules_pauses_resumes_cancels_and_shows(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    assert batuta(*JULIA, "campanhas", "listar")[:2] == (0, "no campaigns\n")
    code, out, _ = batuta(
        *JULIA, "campanhas", "criar", "--nome", "Março", "--tipo", "oferta", "--corpo", "Oi, {nome}",
        "--especialidade", "Pediatria", "--especialidade", "Ortopedia", "--quantidade", "5", "--json",
    )  # fmt: skip
    assert code == 0
    warned = [each.split("'")[1] for each in json.loads(out)["avisos"]]
    assert (json.loads(out)["id"], json.loads(out)["status"], warned) == (1, "rascunho", ["Pediatria", "Ortopedia"])
    at = ("campanhas", "agendar", "1", "--para", "07/01/2030 14:00")
    code, _, err = batuta(*JULIA, *at)
    assert (code, "no doctor fits the audience of campaign 1" in err) == (1, True)
    asyncio.run(fill_office("sqlite:///julia.db"))
    with contextlib.closing(sqlite3.connect("julia.db")) as database, database:
        database.execute("UPDATE clientes SET especialidade = 'Pediatria'")
    code, out, _ = batuta(*JULIA, *at)
    assert code == 0
    assert re.match(r"campaign 1 is scheduled; expected recipients: 5\nexcluded: ", out), out
    document = json.loads(batuta(*JULIA, "campanhas", "ver", "1", "--json")[1])
    assert document["agendar_para"] == "2030-01-07T14:00:00-03:00"
    assert document["audience_filters"] == {"especialidades": ["Pediatria", "Ortopedia"], "quantidade_alvo": 5}
    for word, status in (("pausar", "pausada"), ("retomar", "agendada"), ("cancelar", "cancelada")):
        assert json.loads(batuta(*JULIA, "campanhas", word, "1", "--json")[1]) == {"id": 1, "status": status}
    out = batuta(*JULIA, "campanhas", "ver", "1")[1]
    assert "campaign 1 Março (offer): cancelled" in out
    assert "recipients: 0; messages queued: 0 (still waiting: 0), sent: 0" in out
    assert "Março" in batuta(*JULIA, "campanhas", "listar")[1]


def test_command_and_api_say_why_a_due_campaign_waits(
    database_url: str, folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command and the API show the reason why a due campaign waits: its window is closed, or all campaigns are
    paused.
    """
    monkeypatch.setenv("DATABASE_URL", database_url)
    asyncio.run(fill_office(database_url))
    due = datetime.now(ZONE) - timedelta(minutes=1)
    asyncio.run(_schedule(database_url, due))
    assert batuta(*JULIA, "schedule", "use", "janelas")[0] == 0
    elsewhere = (due + timedelta(hours=12)).strftime("%H:%M")
    assert batuta(*JULIA, "windows", "set", "tarde", elsewhere, "--minutes", "60", "--days", "0-6")[0] == 0
    assert "waiting: outside the campaign's window" in batuta(*JULIA, "campanhas", "ver", "2")[1]
    assert "aguardando: fora da janela da campanha" in batuta("--lang", "pt-BR", *JULIA[:2], "campanhas", "ver", "2")[1]
    assert asyncio.run(_reason(database_url)) == "outside the campaign's window"
    assert batuta(*JULIA, "pause", "campanhas", "--reason", "teste")[0] == 0
    assert "waiting: switch campaigns.enabled is off" in batuta(*JULIA, "campanhas", "ver", "2")[1]
    assert "campaigns.enabled" in str(asyncio.run(_reason(database_url)))


async def _schedule(url: str, at: datetime) -> None:
    database = connect(url, SystemClock())
    await database.open()
    await write(database, "UPDATE campanhas SET agendar_para = :at WHERE id = 2", at=at)
    await database.close()


async def _reason(url: str) -> Any:
    """Return the reason why a campaign is waiting, read over HTTP."""
    julia = await open_julia(url)
    try:
        answer = await julia.ask("GET", "/campanhas/2", headers={"Accept-Language": "en"})
        return answer.json()["espera"]
    finally:
        await julia.work.close()


def test_command_reports_a_refusal_in_one_sentence(
    folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///julia.db")
    code, _, err = batuta(*JULIA, "campanhas", "pausar", "9")
    assert (code, "campaign 9 does not exist" in err) == (1, True)
    new = ("--nome", "x", "--tipo", "oferta", "--corpo", "Oi, {valor}")
    code, _, err = batuta("--app", "app.main:work", "--lang", "pt-BR", "campanhas", "criar", *new)
    assert (code, "tem o campo 'valor'" in err, len(err.strip().splitlines())) == (1, True, 1)


async def test_campaign_reaches_simulated_phones_once_and_counts_their_reactions(tmp_path: Path) -> None:
    how = replace(QUICK, reply_share=1, lost_answers=0.3, duplicated=0.5)
    async with everything(tmp_path, how, FastClock.start(OPEN, 5)) as (work, _, url):
        await add_chip(work.database, DEFAULT_INSTANCE)
        await write(work.database, TRUSTED)
        phones = [f"5511900000{n:03d}" for n in range(5)]
        for phone in phones:
            await add_doctor(work.database, phone, now=work.clock.now())
        campanhas = julia_of(work).campaigns.campanhas
        nova = NovaCampanha(nome="teste", tipo=TipoDeCampanha.DISCOVERY, corpo="Olá, {nome}. Teste.")
        id = await campanhas.criar(nova, by="ana")
        await campanhas.agendar(id, None, by="ana")
        await until(
            work, "SELECT id FROM campanhas WHERE status = 'concluida' AND respondidos = 5 AND entregues = 5", 1
        )
        async with httpx2.AsyncClient() as client:
            left = (await client.get(f"{url}/controle/evolution/recibos")).json()
        progress = await campanhas.progresso(id)
    assert sorted(each["number"] for each in left if "Teste." in each["text"]) == phones
    assert (progress.campanha["enviados"], progress.na_fila, progress.em_duvida) == (5, 0, 0)
