"""Actions on messages, forwards and files: requested over HTTP, and performed by the worker."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from app.contexts.mensagens.fila import TELEGRAM_SAIDA
from app.contexts.telegram.arquivos import LARGEST_FILE
from app.contexts.telegram.tarefas import TELEGRAM_ACOES
from app.web.api import create_app
from tests.julia.tables import one, rows, write
from tests.julia.telegram.escritorio import PHONE, Escritorio, open_office

OTHER = "5511900000002"


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Escritorio]:
    async with open_office(database_url) as office:
        yield office


@pytest.fixture
async def api(office: Escritorio) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=create_app(office.julia), client=("127.0.0.1", 5000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000/api/v1/telegram") as client:
        yield client


async def test_forward_leaves_through_the_outbox_and_reaches_the_person(
    office: Escritorio, api: httpx2.AsyncClient
) -> None:
    await _came_from_a_person(office, "A escala de março")
    acao = await _forward(office, api)
    seen = (await api.get(f"/acoes/{acao}")).json()
    assert (seen["acao"], seen["status"]) == ("encaminhar", "feita")
    queued = await office.message(seen["mensagem_id"])
    assert (queued["fila"], queued["status"], queued["tipo"]) == (TELEGRAM_SAIDA, "pendente", "manual")
    await office.works()
    assert (await office.message(seen["mensagem_id"]))["status"] == "enviada"
    (sent,) = office.receipts
    assert (sent.texto, sent.chat) == ("A escala de março", f"pessoa:{office.people[PHONE]}")
    copy = office.mundo.message(office.usuarios[sent_by(office)], sent.chat, sent.id)
    assert copy.encaminhada


async def test_forward_to_a_person_who_opted_out_is_blocked(office: Escritorio, api: httpx2.AsyncClient) -> None:
    await _came_from_a_person(office, "A escala de março")
    await write(office.database, "UPDATE clientes SET opt_out = TRUE, opted_out = TRUE WHERE telefone = :p", p=PHONE)
    acao = await _forward(office, api)
    await office.works()
    seen = (await api.get(f"/acoes/{acao}")).json()
    assert (await office.message(seen["mensagem_id"]))["outcome"] == "BLOCKED_OPTED_OUT"
    assert office.receipts == []


async def test_forward_whose_answer_is_lost_is_found_and_not_repeated(
    office: Escritorio, api: httpx2.AsyncClient
) -> None:
    await _came_from_a_person(office, "A escala de março")
    acao = await _forward(office, api)
    id = (await api.get(f"/acoes/{acao}")).json()["mensagem_id"]
    await office.telegram.servico.vincular(PHONE, office.people[PHONE])
    office.mundo.change({"lost_answers": 1.0})
    for _ in range(5):  # the search for the person may lose its answer first
        await office.works()
        if (await office.message(id))["envio_estado"] is not None:
            break
        office.mundo.change({"lost_answers": 0.0})
        await office.connect()
        conta = office.telegram.conexoes.linha(sent_by(office))
        assert conta is not None
        await conta.resolve(f"+{PHONE}", limit=timedelta(seconds=10))
        office.mundo.change({"lost_answers": 1.0})
        await office.is_due(id)
    assert (await office.message(id))["envio_estado"] == "unknown"
    office.mundo.restore()
    await office.settles_doubt(id)
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.receipts) == 1


async def test_forward_of_a_message_that_does_not_exist_fails_with_a_reason(
    office: Escritorio, api: httpx2.AsyncClient
) -> None:
    await _came_from_a_person(office, "Olá")
    acao = await _forward(office, api, mensagem=999)
    seen = (await api.get(f"/acoes/{acao}")).json()
    assert (seen["status"], seen["mensagem_id"]) == ("erro", None)
    assert "999" in seen["erro"]
    assert await rows(office.database, "SELECT 1 FROM fila_mensagens") == []


ENGLISH, PORTUGUESE = {"Accept-Language": "en"}, {"Accept-Language": "pt-BR"}


async def test_reasons_over_http_have_a_code_and_the_language_of_the_reader(
    office: Escritorio, api: httpx2.AsyncClient
) -> None:
    conta = await office.account()
    await office.doctor()
    await office.connect()
    office.mundo.change({"flood_wait": 300, "flood_methods": ["send_text"]})
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    english, portuguese = [
        (await api.get(f"/mensagens/{id}", headers=language)).json() for language in (ENGLISH, PORTUGUESE)
    ]
    assert english["erro"] == "Telegram accepts no send_text from this account for 300s"
    assert portuguese["erro"] == "o Telegram não aceita send_text desta conta por 300 s"
    for seen in (english, portuguese):
        assert (seen["erro_code"], seen["erro_facts"]) == ("telegram_flood", {"metodo": "send_text", "seconds": 300})
        assert (seen["outcome_reason"], seen["outcome_reason_code"], seen["outcome_reason_facts"]) == (None, None, None)
    office.mundo.revoke(office.usuarios[conta])
    await office.sync("SELECT 1 FROM telegram_contas WHERE estado = 'revogada'")
    health = "http://127.0.0.1:8000/health/telegram"
    (account,) = (await api.get(health, headers=PORTUGUESE)).json()["contas"]
    assert account["erro"].startswith("a sessão da conta do Telegram terminou")
    assert account["erro_code"] == "telegram_revogada"
    assert account["erro_facts"]["why"]


async def test_reason_of_an_ended_message_over_http_has_a_code(office: Escritorio, api: httpx2.AsyncClient) -> None:
    await office.account()
    await office.doctor(on_telegram=False)
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    seen = (await api.get(f"/mensagens/{id}", headers=PORTUGUESE)).json()
    assert (seen["status"], seen["outcome_reason_code"]) == ("erro", "telegram_inalcancavel")
    assert seen["outcome_reason"].startswith("a conta não")


@pytest.mark.parametrize("texto", ["a\0b", "  \n", "\x1b[2J"])
async def test_text_that_cannot_be_sent_is_refused(office: Escritorio, api: httpx2.AsyncClient, texto: str) -> None:
    await office.account()
    await office.doctor()
    refused = await api.post("/mensagens", json={"quem": PHONE, "texto": texto})
    assert refused.status_code == 422
    edit = {"acao": "editar", "chat": "pessoa:1", "mensagem": 1, "texto": texto}
    assert (await api.post("/contas/conta-1/acoes", json=edit)).status_code == 422
    assert await rows(office.database, "SELECT 1 FROM fila_mensagens") == []


async def test_message_of_a_person_is_marked_as_read_over_http(office: Escritorio, api: httpx2.AsyncClient) -> None:
    await _came_from_a_person(office, "Olá")
    body = {"acao": "ler", "chat": _chat(office, OTHER), "mensagem": 1}
    asked = await api.post("/contas/conta-1/acoes", json=body)
    assert asked.status_code == 202
    await office.works(TELEGRAM_ACOES.name)
    assert (await api.get(f"/acoes/{asked.json()['id']}")).json()["status"] == "feita"
    assert office.mundo.calls[(office.usuarios[sent_by(office)], "mark_read")] == 1


@pytest.mark.parametrize(
    "body",
    [
        {"acao": "editar", "chat": "pessoa:1", "mensagem": 1},
        {"acao": "encaminhar", "chat": "pessoa:1", "mensagem": 1},
        {"acao": "apagar", "chat": "pessoa:1", "mensagem": 1, "texto": "x"},
        {"acao": "ler", "chat": "pessoa:1", "mensagem": 0},
        {"acao": "dançar", "chat": "pessoa:1", "mensagem": 1},
    ],
)
async def test_incomplete_action_is_refused(office: Escritorio, api: httpx2.AsyncClient, body: dict[str, Any]) -> None:
    await office.account()
    assert (await api.post("/contas/conta-1/acoes", json=body)).status_code == 422


async def test_unknown_action_is_a_problem(api: httpx2.AsyncClient) -> None:
    answer = await api.get("/acoes/x")
    assert (answer.status_code, answer.json()["type"].rsplit("/", 1)[-1]) == (404, "telegram_action_unknown")


async def test_file_over_http_reaches_the_person_and_is_deleted_here(
    office: Escritorio, api: httpx2.AsyncClient
) -> None:
    await office.account()
    await office.doctor()
    await office.connect()
    asked = await _send_file(api, b"%PDF-1.7 synthetic")
    assert asked.status_code == 202
    id = asked.json()["id"]
    seen = (await api.get(f"/mensagens/{id}")).json()
    assert seen["status"] == "pendente"
    assert "metadata" not in seen
    assert seen["arquivo"] == {"nome": "escala.pdf", "mime": "application/pdf", "tamanho": 18}
    await office.works()
    assert (await api.get(f"/mensagens/{id}")).json()["status"] == "enviada"
    (sent,) = office.receipts
    assert (sent.texto, sent.midia) == ("Segue a escala", "escala.pdf")
    assert await rows(office.database, "SELECT 1 FROM telegram_arquivos") == []


async def test_repeated_request_for_a_file_queues_it_once(office: Escritorio, api: httpx2.AsyncClient) -> None:
    await office.account()
    await office.doctor()
    first, second = [await _send_file(api, b"synthetic", chave="escala-1") for _ in range(2)]
    assert first.json()["id"] is not None
    assert second.json() == {"id": None}
    assert len(await rows(office.database, "SELECT 1 FROM telegram_arquivos")) == 1


@pytest.mark.parametrize(
    ("content", "more"),
    [(b"", {}), (b"x" * (LARGEST_FILE + 1), {}), (b"x", {"texto": "x" * 1_025})],
    ids=["empty", "too large", "long text"],
)
async def test_file_beyond_the_limits_is_refused(
    office: Escritorio, api: httpx2.AsyncClient, content: bytes, more: dict[str, str]
) -> None:
    await office.account()
    await office.doctor()
    assert (await _send_file(api, content, **more)).status_code in (413, 422)
    assert await rows(office.database, "SELECT 1 FROM fila_mensagens") == []


async def test_inbound_attachment_is_stored_by_reference_with_limits(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    await office.connect()
    midia: dict[str, Any] = {
        "tipo": "documento",
        "sha256": "ab",
        "nome": "x" * 5_000,
        "mime": "y" * 5_000,
        "tamanho": 7_000_000,
    }
    office.mundo.says(person, office.usuarios[conta], "Segue", midia=midia)
    await office.sync("SELECT 1 FROM telegram_entrada")
    stored = (await one(office.database, "SELECT midia FROM telegram_entrada"))["midia"]
    assert (stored["tipo"], stored["referencia"], stored["tamanho"]) == ("documento", "ab", 7_000_000)
    assert max(len(stored["nome"]), len(stored["mime"])) <= 200


async def _came_from_a_person(office: Escritorio, texto: str) -> None:
    """Connect an account that has received a message from another doctor."""
    conta = await office.account()
    await office.doctor()
    _, person = await office.doctor(OTHER)
    await office.connect()
    office.mundo.says(person, office.usuarios[conta], texto)
    await office.sync("SELECT 1 FROM telegram_entrada")


async def _forward(office: Escritorio, api: httpx2.AsyncClient, mensagem: int = 1) -> str:
    body = {"acao": "encaminhar", "chat": _chat(office, OTHER), "mensagem": mensagem, "para": PHONE}
    asked = await api.post("/contas/conta-1/acoes", json=body)
    assert asked.status_code == 202, asked.text
    await office.works(TELEGRAM_ACOES.name)
    return str(asked.json()["id"])


async def _send_file(api: httpx2.AsyncClient, content: bytes, **more: str) -> httpx2.Response:
    data = {"quem": PHONE, "texto": "Segue a escala", **more}
    return await api.post("/arquivos", data=data, files={"arquivo": ("escala.pdf", content, "application/pdf")})


def _chat(office: Escritorio, telefone: str) -> str:
    return f"pessoa:{office.people[telefone]}"


def sent_by(office: Escritorio) -> str:
    """Return the account that sends the messages. The test has no other account."""
    (conta,) = office.usuarios
    return conta
