"""Every response from the gateway is mapped to one of a few results. In these tests the gateway is a real server on
loopback.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

import pytest

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.whatsapp import (
    Banned,
    Disconnected,
    Encontrada,
    Entrega,
    EstadoDaConexao,
    Grupo,
    Instancia,
    NotOnWhatsApp,
    Numero,
    RateLimited,
    Refused,
    SendResult,
    Sent,
    Unavailable,
    Unknown,
)
from app.integrations.evolution.client import EVENTS, EvolutionClient, Limits, Webhook
from app.integrations.evolution.http import LARGEST_ANSWER, Gateway
from batuta.kernel.clock import SystemClock
from batuta.reasons import code_of
from tests.servers import free_port

PHONE, KEY = "5511900000001", "chave-de-teste"
SHORT = Limits(call=timedelta(seconds=0.3), send=timedelta(seconds=0.3))
Handler: TypeAlias = Callable[[str, Any, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def gateway(handler: Handler, limits: Limits | None = None) -> AsyncIterator[EvolutionClient]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = next(
                (int(line[15:]) for line in head.lower().splitlines() if line.startswith("content-length:")), 0
            )
            body = json.loads(await reader.readexactly(length)) if length else None
            await handler(head, body, writer)
            await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        client = EvolutionClient(Gateway(url, KEY, SystemClock()), SystemClock(), limits)
        try:
            yield client
        finally:
            await client.close()


def says(status: int, body: object, **headers: str) -> Handler:
    async def handler(head: str, sent: Any, writer: asyncio.StreamWriter) -> None:
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        writer.write(f"HTTP/1.1 {status} X\r\n{lines}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode())
        writer.write(text)

    return handler


def envelope(status: int, message: object) -> dict[str, Any]:
    return {"status": status, "error": "X", "response": {"message": message}}


async def sent(handler: Handler, limits: Limits | None = None) -> SendResult:
    async with gateway(handler, limits) as client:
        return await client.send_text("julia-sim", PHONE, "Olá, teste")


MESSAGE = {"key": {"id": "3EB0A", "remoteJid": f"{PHONE}@s.whatsapp.net", "fromMe": True}, "status": "PENDING"}
SENTENCES = [['instance requires property "text"']]


@pytest.mark.parametrize(
    ("status", "body", "result"),
    [
        (201, MESSAGE, Sent("3EB0A", f"{PHONE}@s.whatsapp.net")),
        (201, {"key": {}}, Unknown("HTTP 201 without the message's id")),
        (200, b"<html>a proxy's page</html>", Unknown("HTTP 200 without the message's id")),
        (400, envelope(400, [{"jid": "x", "exists": False, "number": PHONE}]), NotOnWhatsApp()),
        (400, envelope(400, SENTENCES), Refused('HTTP 400: instance requires property "text"', permanent=True)),
        (400, envelope(400, [f"{PHONE} is bad"]), Refused("HTTP 400: [telefone] is bad", permanent=True)),
        (401, envelope(401, "Unauthorized"),
         Refused("HTTP 401: the gateway refuses the key; check EVOLUTION_API_KEY", needs_person=True)),
        (404, envelope(404, ['The "x" instance does not exist']),
         Refused('HTTP 404: The "x" instance does not exist', needs_person=True)),
        (402, envelope(402, "x"), Banned(402)),
        (403, envelope(403, "Forbidden"), Banned(403)),
        (406, envelope(406, "x"), Banned(406)),
        (408, b"", Refused("HTTP 408")),
        (500, envelope(500, "Connection Closed"), Disconnected()),
        (500, envelope(500, ["Error: Connection Closed"]), Disconnected()),
        (500, envelope(500, "the Connection Closed while we were saving"), Unknown("HTTP 500")),
        (500, envelope(500, "Internal Server Error"), Unknown("HTTP 500")),
        (502, b"<html>bad gateway</html>", Unknown("HTTP 502")),
        (503, {"error": "service not activated", "code": "LICENSE_REQUIRED"},
         Refused("the gateway requires its licence (LICENSE_REQUIRED): activate it, or run version 2.3.7", needs_person=True)),
        (503, {"error": "busy"}, Unknown("HTTP 503")),
        (307, b"", Refused("HTTP 307: the address redirects; set EVOLUTION_API_URL to its target", needs_person=True)),
    ],
)  # fmt: skip
async def test_every_answer_to_a_send_is_one_of_a_few_values(status: int, body: object, result: SendResult) -> None:
    assert await sent(says(status, body)) == result


async def test_rate_limit_carries_its_retry_after() -> None:
    assert await sent(says(429, b"", retry_after="90")) == RateLimited(timedelta(seconds=90))
    assert await sent(says(429, b"")) == RateLimited(None)
    past = await sent(says(429, b"", retry_after="Thu, 01 Jan 2026 00:00:00 GMT"))
    assert past == RateLimited(timedelta(0))


@pytest.mark.parametrize("said", ["999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"])
async def test_retry_after_is_capped_at_a_day(said: str) -> None:
    assert await sent(says(429, b"", retry_after=said)) == RateLimited(timedelta(days=1))


async def test_absurd_retry_after_is_ignored() -> None:
    assert await sent(says(429, b"", retry_after="9" * 5000)) == RateLimited(None)


async def test_missing_broken_or_slow_answer_is_unknown_and_not_a_failure() -> None:
    over = asyncio.Event()

    async def silent(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        await over.wait()

    async def cut(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def half(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 201 Created\r\nContent-Length: 500\r\n\r\n{"key"')

    async def endless(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 201 Created\r\nConnection: close\r\n\r\n" + b" " * (LARGEST_ANSWER + 1))

    found = await sent(silent, SHORT)
    assert found == Unknown("no answer within 0.3 s")
    assert code_of(found.why) == "sem_resposta_em"
    over.set()
    assert isinstance(await sent(cut), Unknown)
    assert isinstance(await sent(half), Unknown)
    assert await sent(endless) == Unknown("the answer is too long")


async def test_unreachable_gateway_received_nothing() -> None:
    client = EvolutionClient(Gateway(f"http://127.0.0.1:{free_port()}", KEY, SystemClock()), SystemClock())
    result = await client.send_text("julia-sim", PHONE, "Olá")
    await client.close()
    assert result == Refused("the gateway cannot be reached (ConnectError)")


async def test_send_is_one_request_with_the_key_and_an_escaped_instance() -> None:
    seen: list[tuple[str, Any]] = []

    async def notes(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        seen.append((head, body))
        await says(503, b"")(head, body, writer)

    async with gateway(notes) as client:
        await client.send_text("a/../b?c", PHONE, "Olá")
    ((head, body),) = seen
    assert head.startswith("POST /message/sendText/a%2F..%2Fb%3Fc HTTP/1.1")
    assert f"apikey: {KEY}" in head
    assert body == {"number": PHONE, "text": "Olá"}


def test_key_is_not_in_the_repr_of_the_client() -> None:
    assert KEY not in repr(Gateway("http://127.0.0.1", KEY, SystemClock()))


@pytest.mark.parametrize(
    ("word", "state"),
    [("open", EstadoDaConexao.OPEN), ("connecting", EstadoDaConexao.CONNECTING), ("odd", EstadoDaConexao.CLOSE)],
)
async def test_unknown_connection_state_counts_as_closed(word: str, state: EstadoDaConexao) -> None:
    async with gateway(says(200, {"instance": {"instanceName": "x", "state": word}})) as client:
        assert await client.connection("x") is state


async def test_instances_have_their_number_and_disconnection_code() -> None:
    listed = [
        {
            "name": "a",
            "connectionStatus": "open",
            "ownerJid": f"{PHONE}@s.whatsapp.net",
            "disconnectionReasonCode": None,
        },
        {"name": "b", "connectionStatus": "close", "ownerJid": None, "disconnectionReasonCode": 403},
    ]
    async with gateway(says(200, listed)) as client:
        assert await client.instances() == [
            Instancia(name="a", state=EstadoDaConexao.OPEN, telefone=PHONE),
            Instancia(name="b", state=EstadoDaConexao.CLOSE, code=403),
        ]


@pytest.mark.parametrize("body", [[{"name": "a", "connectionStatus": "open"}, {"odd": 1}], {"odd": 1}, b"<html>"])
async def test_partly_unreadable_list_of_instances_is_refused(body: object) -> None:
    async with gateway(says(200, body)) as client:
        assert isinstance(await client.instances(), Unavailable)


async def test_group_is_reduced_to_its_name() -> None:
    jid, asked = "120363000000000001@g.us", []

    async def answer(head: str, sent: Any, writer: asyncio.StreamWriter) -> None:
        asked.append(head.split()[1])
        group = {"id": jid, "subject": " Plantões Teste ", "participants": [{"id": f"{PHONE}@s.whatsapp.net"}]}
        await says(200, group)(head, sent, writer)

    async with gateway(answer) as client:
        assert await client.group("i", jid) == Grupo(jid=jid, nome="Plantões Teste")
    assert asked == ["/group/findGroupInfos/i?groupJid=120363000000000001%40g.us"]
    async with gateway(says(200, {"id": "2@g.us", "subject": "outro"})) as client:
        assert isinstance(await client.group("i", jid), Unavailable)
    async with gateway(says(404, envelope(404, ["Error fetching group"]))) as client:
        unknown = await client.group("i", jid)
        assert isinstance(unknown, Unavailable)
        assert unknown.not_found


async def test_numbers_are_answered_in_the_order_asked_and_each_once() -> None:
    other = "5511900000002"
    listed = [
        {"jid": "y", "exists": False, "number": other},
        {"jid": "x", "exists": True, "number": PHONE, "lid": "1@lid"},
    ]
    async with gateway(says(200, listed)) as client:
        assert await client.numbers("i", [PHONE, other, PHONE]) == [
            Numero(telefone=PHONE, exists=True, jid="x", lid="1@lid"),
            Numero(telefone=other, exists=False, jid="y"),
        ]
        assert await client.numbers("i", []) == []


async def test_sent_messages_are_found_under_every_form_of_a_number() -> None:
    asked: list[str] = []
    at = 1_760_000_000

    async def store(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        jid = body["where"]["key"]["remoteJid"]
        asked.append(jid)
        row = {
            "key": {"id": f"id-{jid[:6]}", "remoteJid": jid, "fromMe": True}, "messageTimestamp": at,
            "message": {"conversation": "Olá,\n teste"}, "MessageUpdate": [{"status": "READ"}, {"status": "SERVER_ACK"}],
        }  # fmt: skip
        page = {"total": 1, "pages": 1, "currentPage": 1, "records": [row] if len(jid) == 27 else []}
        await says(200, {"messages": page})(head, body, writer)

    since = datetime.fromtimestamp(at - 60, UTC)
    async with gateway(store) as client:
        found = await client.list_sent("i", "5531988880001", since=since)
        assert await client.list_sent("i", "5531988880001", since=since + timedelta(hours=1)) == []
    assert asked[:2] == ["5531988880001@s.whatsapp.net", "553188880001@s.whatsapp.net"]
    assert found == [
        Encontrada(
            id="id-553188",
            jid="553188880001@s.whatsapp.net",
            em=datetime.fromtimestamp(at, UTC),
            conteudo_hash=hash_do_texto("Olá, teste"),
            entrega=Entrega.READ,
        )
    ]


async def test_unanswered_query_says_whether_a_retry_can_help() -> None:
    for status, permanent in ((401, True), (404, True), (429, False), (500, False), (503, False)):
        async with gateway(says(status, b"")) as client:
            for asked in (client.connection("i"), client.instances(), client.numbers("i", [PHONE])):
                answered = await asked
                assert isinstance(answered, Unavailable)
                assert answered.permanent is permanent


async def test_webhook_is_set_with_its_secret_and_read_back() -> None:
    seen: list[Any] = []

    async def notes(head: str, body: Any, writer: asyncio.StreamWriter) -> None:
        seen.append(body)
        row = {"url": "http://x/webhook/evolution", "enabled": True, "events": ["MESSAGES_UPSERT"]}
        await says(200, row)(head, body, writer)

    async with gateway(notes) as client:
        assert await client.set_webhook("i", "http://x/webhook/evolution", "segredo") is None
        found = await client.webhook("i")
    assert seen[0]["webhook"]["headers"] == {"X-Webhook-Secret": "segredo"}
    assert (seen[0]["webhook"]["events"], seen[0]["webhook"]["byEvents"]) == (list(EVENTS), False)
    assert isinstance(found, Webhook)
    assert "SEND_MESSAGE" in found.misses
    async with gateway(says(200, None)) as client:
        assert await client.webhook("i") is None
