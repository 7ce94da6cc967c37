"""Hand-offs over HTTP, in the terminal, and through the link that the person who posted the vacancy receives."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.plantoes.model import NovaVaga
from batuta.engine.batuta import Batuta
from tests.command import Command
from tests.julia.plantoes.mesa import UNKNOWN_ID
from tests.julia.plantoes.test_api import is_problem, post
from tests.julia.tables import add_doctor, one, rows, write
from tests.julia.web.test_api import TOKEN, Julia, open_julia

HANDOFFS, PAGE = "/api/v1/handoffs", "/handoffs/confirmar"
JULIA = ("--app", "app.main:work", "--lang", "en")
PUBLIC = {"APP_ENV": "production", "SECRET_KEY": "s" * 40, "PUBLIC_URL": "https://julia.example"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
async def julia(database_url: str) -> AsyncIterator[Julia]:
    opened = await open_julia(database_url, **PUBLIC)
    yield opened
    await opened.work.close()


async def parties(work: Batuta) -> tuple[str, str]:
    """Add a vacancy from a group and a doctor, and return their ids."""
    day = (work.clock.now().astimezone(work.zone) + timedelta(days=9)).date()
    nova = NovaVaga(
        hospital="Hospital Fictício", especialidade="pediatria", data=day, periodo=Periodo.NOTURNO, novo_hospital=True,
    )  # fmt: skip
    vaga = await julia_of(work).shifts.plantoes.criar(nova, por="gestora")
    change = "UPDATE vagas SET origem = 'grupo_whatsapp', contato_whatsapp = '5511900000088', contato_nome = 'Rute'"
    await write(work.database, change)
    return vaga, await add_doctor(work.database, "5511900000001")


async def opened(julia: Julia) -> tuple[str, str]:
    """Open a hand-off over HTTP. Return its id and the token of its link."""
    vaga, doctor = await parties(julia.work)
    answer = await post(julia, HANDOFFS, {"vaga": vaga, "medico": doctor, "motivo": "ligou"}, **BEARER)
    assert answer.status_code == 201, answer.text
    message = await one(julia.work.database, "SELECT conteudo FROM fila_mensagens WHERE tipo = 'handoff'")
    found = re.search(r"https://julia\.example/handoffs/confirmar\?token=([\w-]+)", message["conteudo"])
    assert found is not None
    return answer.json()["id"], found[1]


async def decide(julia: Julia, token: str, decisao: str) -> httpx2.Response:
    async with julia.client(address="203.0.113.9") as client:
        return await client.post(PAGE, data={"token": token, "decisao": decisao})


async def status(julia: Julia, id: str) -> tuple[str, str]:
    row = await one(
        julia.work.database,
        "SELECT handoff.status, vaga.status AS vaga FROM external_handoffs AS handoff"
        " JOIN vagas AS vaga ON vaga.id = handoff.vaga_id WHERE handoff.id = :id",
        id=id,
    )
    return row["status"], row["vaga"]


async def test_operator_opens_sees_and_decides(julia: Julia) -> None:
    id, _ = await opened(julia)
    listed = (await julia.ask("GET", HANDOFFS, headers=BEARER)).json()["handoffs"]
    assert [(each["id"], each["status"], each["telefone"]) for each in listed] == [(id, "pending", "…0088")]
    done = await post(julia, f"{HANDOFFS}/{id}/confirmar", {"motivo": "por telefone"}, **BEARER)
    assert done.json() == {"id": id, "status": "confirmed", "repetida": False}
    again = await post(julia, f"{HANDOFFS}/{id}/confirmar", {"motivo": "por telefone"}, **BEARER)
    assert again.json()["repetida"] is True
    other = await post(julia, f"{HANDOFFS}/{id}/recusar", {"motivo": "-"}, **BEARER)
    assert is_problem(other, 409, "handoff_refused")
    shown = (await julia.ask("GET", f"{HANDOFFS}/{id}", headers=BEARER)).json()
    assert (shown["vaga_status"], shown["via"], shown["por"]) == ("reservada", "pessoa", "API_TOKEN")
    assert [(line["para"], line["motivo"]) for line in shown["historico"]] == [
        ("pending", "ligou"),
        ("confirmed", "por telefone"),
    ]
    assert (await julia.ask("GET", HANDOFFS, headers=BEARER)).json() == {"handoffs": []}
    every = (await julia.ask("GET", f"{HANDOFFS}?todos=true", headers=BEARER)).json()["handoffs"]
    assert [each["id"] for each in every] == [id]


async def test_refusals_are_problems(julia: Julia) -> None:
    id, _ = await opened(julia)
    row = await one(julia.work.database, "SELECT vaga_id, cliente_id FROM external_handoffs")
    body = {"vaga": row["vaga_id"], "medico": row["cliente_id"], "motivo": "-"}
    assert is_problem(await post(julia, HANDOFFS, body, **BEARER), 409, "handoff_refused")
    unknown = await post(julia, f"{HANDOFFS}/{UNKNOWN_ID}/confirmar", {"motivo": "-"}, **BEARER)
    assert is_problem(unknown, 404, "handoff_unknown")
    assert (await post(julia, HANDOFFS, body)).status_code == 401
    assert await status(julia, id) == ("pending", "aguardando_confirmacao")


async def test_get_of_the_link_shows_the_vacancy_and_changes_nothing(julia: Julia) -> None:
    id, token = await opened(julia)
    for _ in range(3):
        async with julia.client(address="203.0.113.9") as client:
            page = await client.get(f"{PAGE}?token={token}")
        assert page.status_code == 200
        assert "Hospital Fictício" in page.text
        assert "5511900000001" not in page.text
    assert await status(julia, id) == ("pending", "aguardando_confirmacao")
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("decisao", "result"), [("confirmar", ("confirmed", "reservada")), ("recusar", ("not_confirmed", "aberta"))]
)
async def test_post_of_the_link_decides_once(julia: Julia, decisao: str, result: tuple[str, str]) -> None:
    id, token = await opened(julia)
    answer = await decide(julia, token, decisao)
    assert (answer.status_code, "Obrigada" in answer.text) == (200, True)
    assert await status(julia, id) == result
    row = await one(julia.work.database, "SELECT decidido_via, decidido_por FROM external_handoffs")
    assert (row["decidido_via"], row["decidido_por"]) == ("link", "divulgador")
    for other in ("confirmar", "recusar"):
        assert (await decide(julia, token, other)).status_code == 404
    assert (await julia.ask("GET", f"{PAGE}?token={token}")).status_code == 404
    assert await status(julia, id) == result
    assert len(await rows(julia.work.database, "SELECT jti FROM handoff_used_tokens")) == 1
    notice = await rows(julia.work.database, "SELECT id FROM fila_mensagens WHERE tipo = 'confirmacao'")
    assert len(notice) == 2


async def test_concurrent_posts_of_one_link_decide_once(julia: Julia) -> None:
    id, token = await opened(julia)
    answers = await asyncio.gather(*(decide(julia, token, each) for each in ("confirmar", "recusar") * 5))
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 9
    decided, vaga = await status(julia, id)
    assert (decided, vaga) in {("confirmed", "reservada"), ("not_confirmed", "aberta")}


@pytest.mark.parametrize("token", ["", "x", "A" * 96, "é", "'; DROP TABLE vagas"])
async def test_strange_tokens_get_a_page_and_decide_nothing(julia: Julia, token: str) -> None:
    id, _ = await opened(julia)
    assert (await decide(julia, token, "confirmar")).status_code == 404
    async with julia.client() as client:
        assert (await client.get(PAGE, params={"token": token})).status_code == 404
    assert await status(julia, id) == ("pending", "aguardando_confirmacao")


async def test_post_without_a_decision_decides_nothing(julia: Julia) -> None:
    id, token = await opened(julia)
    assert (await decide(julia, token, "talvez")).status_code == 404
    assert (await julia.ask("POST", f"{PAGE}?token={token}&decisao=confirmar")).status_code == 404
    assert await status(julia, id) == ("pending", "aguardando_confirmacao")


async def test_token_reaches_no_event_of_a_request(julia: Julia) -> None:
    _, token = await opened(julia)
    await julia.ask("GET", f"{PAGE}?token={token}")
    await decide(julia, token, "confirmar")
    answered = [event for event in julia.events.all if PAGE in repr(event)]
    assert len(answered) == 2
    assert [event for event in julia.events.all if token in repr(event)] == []


async def test_messages_have_no_link_without_a_public_address(database_url: str) -> None:
    other = await open_julia(database_url, SECRET_KEY="s" * 40)
    vaga, doctor = await parties(other.work)
    await post(other, HANDOFFS, {"vaga": vaga, "medico": doctor, "motivo": "-"})
    message = await one(other.work.database, "SELECT conteudo FROM fila_mensagens WHERE tipo = 'handoff'")
    assert "http" not in message["conteudo"]
    assert (await other.ask("GET", f"{PAGE}?token=x")).status_code == 404
    await other.work.close()


async def test_manual_call_of_the_job_answers_figures(julia: Julia) -> None:
    await opened(julia)
    answer: dict[str, Any] = (await julia.ask("POST", "/jobs/processar-handoffs", headers=BEARER)).json()
    figures = ("abertos", "lembretes_enfileirados", "lembretes_pausados", "expirados", "encerrados", "items_processed")
    assert [answer[name] for name in figures] == [1, 0, 0, 0, 0, 0]


def test_the_terminal_opens_shows_and_decides(folder: Path, batuta: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{folder}/julia.db")
    assert batuta(*JULIA, "handoffs", "listar")[1].strip() == "no hand-offs"
    vaga, doctor = asyncio.run(_parties(folder))
    code, out, err = batuta(
        *JULIA, "handoffs", "abrir", "--vaga", vaga[:13], "--medico", doctor, "--motivo", "ligou", "--json"
    )
    assert (code, err) == (0, "")
    id = json.loads(out)["id"]
    assert "waiting for the first" in batuta(*JULIA, "handoffs", "ver", id)[1]
    assert "Hospital Fictício" in batuta(*JULIA, "handoffs", "listar", "--json")[1]
    again = ("handoffs", "abrir", "--vaga", vaga, "--medico", doctor, "--motivo", "-")
    assert "no longer needs a doctor" in batuta(*JULIA, *again)[2]
    assert batuta(*JULIA, "handoffs", "confirmar", id, "--motivo", "-")[1].strip() == f"hand-off {id}: confirmed"
    assert "already confirmed" in batuta(*JULIA, "handoffs", "confirmar", id, "--motivo", "-")[1]
    assert batuta(*JULIA, "handoffs", "recusar", id, "--motivo", "-")[0] == 1


async def _parties(folder: Path) -> tuple[str, str]:
    opened = await open_julia(f"sqlite:///{folder}/julia.db")
    try:
        return await parties(opened.work)
    finally:
        await opened.work.close()
