"""The simulated WhatsApp: messages arrive, people answer, groups talk, and configured faults occur.

The tests use real sockets on loopback and a fake clock.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.whatsapp import (
    Disconnected,
    Entrega,
    EstadoDaConexao,
    NotOnWhatsApp,
    RateLimited,
    Refused,
    Sent,
    Unknown,
)
from app.integrations.evolution.client import EvolutionClient, Limits
from app.integrations.evolution.http import Gateway
from app.integrations.evolution.secret import is_proved
from batuta.kernel.clock import SystemClock
from batuta.processes.address import listen
from batuta.supervise.loop import Again
from batuta.testing import FakeClock
from batuta.web.api import serve
from simulador.evolution.gateway import DEFAULT_INSTANCE, KEY
from simulador.main import create_app

NUMBER = "5511900000001"
CONTROL = "/controle/evolution"


class World:
    """A simulator, a receiver for its webhooks, and a client that acts as Julia."""

    def __init__(self, clock: FakeClock, seed: int = 0) -> None:
        self.clock = clock
        self.heard: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.answers: list[int] = []  # next answers of the receiver; afterwards 200
        self.app = create_app(clock, seed=seed)
        self.stop = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []
        self.url = self._serve(self.app)
        self.receiver = self._serve(Starlette(routes=[Route("/{rest:path}", self._hear, methods=["POST"])]))
        machine = SystemClock()
        self.client = EvolutionClient(Gateway(f"{self.url}/evolution", KEY, machine), machine)
        self.http = httpx2.AsyncClient(base_url=self.url, trust_env=False)

    async def listen(self, **webhook: Any) -> None:
        wanted = {"enabled": True, "url": f"{self.receiver}/hook", **webhook}
        answer = await self.http.post(
            f"/evolution/webhook/set/{DEFAULT_INSTANCE}", headers={"apikey": KEY}, json={"webhook": wanted}
        )
        assert answer.status_code == 201

    async def behave(self, **how: Any) -> None:
        assert (await self.http.patch(f"{CONTROL}/", json=how)).status_code == 200

    async def receipts(self) -> list[dict[str, Any]]:
        left: list[dict[str, Any]] = (await self.http.get(f"{CONTROL}/recibos")).json()
        return left

    async def passes(self, seconds: float) -> None:
        """Let time pass in steps of a tenth of a second, so that events that follow from others are delivered in
        order.
        """
        for _ in range(int(seconds * 10)):
            await self.clock.advance(0.1)
            while isinstance(await self.app.state.evolution.carteiro.tick(), Again):
                pass

    def events(self) -> list[str]:
        return [f"{each['event']} {each['data'].get('status', '')}".strip() for each in self.heard]

    async def close(self) -> None:
        await self.client.close()
        await self.http.aclose()
        await self.app.state.evolution.carteiro.drain(timedelta(0))
        self.stop.set()
        await asyncio.gather(*self.tasks)

    def _serve(self, app: Starlette) -> str:
        listening = listen("127.0.0.1", 0)
        self.tasks.append(asyncio.create_task(serve(app, listening, self.stop, timedelta(seconds=1))))
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    async def _hear(self, request: Request) -> Response:
        status = self.answers.pop(0) if self.answers else 200
        self.headers.append(dict(request.headers))
        if status == 200:
            self.heard.append(await request.json())
        return Response(status_code=status)


@pytest.fixture
async def world(clock: FakeClock) -> AsyncIterator[World]:
    made = World(clock)
    yield made
    await made.close()


async def test_message_is_echoed_acknowledged_and_stored_until_it_is_read(world: World) -> None:
    await world.listen(headers={"X-Webhook-Secret": "segredo"})
    await world.behave(read_share=1)
    sent = await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "Olá, teste")
    assert isinstance(sent, Sent)
    await world.passes(6)
    assert world.events() == [
        "send.message PENDING", "messages.update SERVER_ACK", "messages.update DELIVERY_ACK", "messages.update READ",
    ]  # fmt: skip
    assert all(each["x-webhook-secret"] == "segredo" for each in world.headers)
    assert world.heard[0]["data"]["key"]["id"] == world.heard[3]["data"]["keyId"] == sent.id
    since = world.clock.now() - timedelta(minutes=1)
    found = await world.client.list_sent(DEFAULT_INSTANCE, NUMBER, since=since)
    assert isinstance(found, list)
    assert [(each.id, each.conteudo_hash, each.entrega) for each in found] == [
        (sent.id, hash_do_texto("Olá, teste"), Entrega.READ)
    ]


@pytest.mark.parametrize(
    ("how", "result", "left"),
    [
        ({"lost_answers": 1}, Unknown("RemoteProtocolError"), ["cut"]),
        ({"broken_answers": 1}, Unknown("HTTP 500"), ["500"]),
        ({"connection_closed": True}, Disconnected(), []),
        ({"too_many": 90}, RateLimited(timedelta(seconds=90)), []),
        ({"unknown_numbers": [NUMBER]}, NotOnWhatsApp(), []),
    ],
)
async def test_send_fails_as_configured_and_receipts_list_the_sent_messages(
    world: World, how: dict[str, Any], result: object, left: list[str]
) -> None:
    await world.behave(**how)
    assert await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "Olá") == result
    receipts = await world.receipts()
    assert [each["answer"] for each in receipts] == left
    assert await world.client.connection(DEFAULT_INSTANCE) is EstadoDaConexao.OPEN
    assert [each["number"] for each in receipts] == [NUMBER] * len(left)
    await world.http.delete(f"{CONTROL}/")
    assert isinstance(await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "Olá"), Sent)


async def test_answer_that_is_too_slow_is_unknown_and_the_message_was_sent(world: World) -> None:
    await world.behave(slow_seconds=60)
    machine, soon = SystemClock(), Limits(send=timedelta(seconds=2))
    hasty = EvolutionClient(Gateway(f"{world.url}/evolution", KEY, machine), machine, soon)
    assert await hasty.send_text(DEFAULT_INSTANCE, NUMBER, "Olá") == Unknown("no answer within 2 s")
    await hasty.close()
    assert len(await world.receipts()) == 1
    await world.clock.advance(60)  # release the pending answer


async def test_gateway_without_a_licence_refuses_and_needs_a_person(world: World) -> None:
    await world.behave(licence=True)
    result = await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "Olá")
    assert isinstance(result, Refused)
    assert result.needs_person
    assert await world.receipts() == []


async def test_webhooks_are_doubled_reordered_and_lost_as_configured(world: World) -> None:
    await world.listen()
    await world.behave(duplicated=1, read_share=1)
    await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "a")
    await world.passes(10)
    assert sorted(world.events()) == sorted(2 * ["send.message PENDING", "messages.update SERVER_ACK", "messages.update DELIVERY_ACK", "messages.update READ"])  # fmt: skip  # noqa: E501
    world.heard.clear()
    await world.behave(duplicated=0, late=0.5)
    for n in range(8):
        await world.client.send_text(DEFAULT_INSTANCE, NUMBER, f"b{n}")
    await world.passes(45)
    orders = [[each["data"].get("status") for each in world.heard if each["data"].get("keyId") == id] for id in {each["id"] for each in await world.receipts()}]  # fmt: skip  # noqa: E501
    assert any(order and order != sorted(order, key=["SERVER_ACK", "DELIVERY_ACK", "READ"].index) for order in orders)
    world.heard.clear()
    await world.behave(late=0, lost=1)
    await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "c")
    await world.passes(10)
    assert world.events() == []


async def test_failed_delivery_is_retried_and_a_refused_one_is_not(world: World) -> None:
    await world.listen(events=["SEND_MESSAGE"])
    world.answers = [503, 500]
    await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "a")
    await world.passes(1)
    assert world.events() == []
    await world.passes(25)
    assert world.events() == ["send.message PENDING"]
    world.answers = [401]
    await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "b")
    await world.passes(30)
    assert len(world.heard) == 1


async def test_jwt_of_the_simulator_is_valid_for_julia(world: World) -> None:
    await world.listen(headers={"jwt_key": "segredo"}, events=["SEND_MESSAGE"])
    await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "a")
    await world.passes(1)
    (headers,) = world.headers
    assert is_proved("segredo", headers, {}, world.clock.now())
    assert not is_proved("outro", headers, {}, world.clock.now())
    assert not is_proved("segredo", headers, {}, world.clock.now() + timedelta(hours=1))


async def test_people_answer_opt_out_and_hide_their_number(world: World) -> None:
    await world.listen(events=["MESSAGES_UPSERT"])
    await world.behave(reply_share=0.5, opt_out_share=0.2, hidden_share=0.3)
    for n in range(40):
        await world.client.send_text(DEFAULT_INSTANCE, f"55119000{n:05d}", "Olá")
    await world.passes(12)
    texts = [each["data"]["message"]["conversation"] for each in world.heard]
    stops = [text for text in texts if not text.startswith("[SIMULADO]")]
    jids = [each["data"]["key"]["remoteJid"] for each in world.heard]
    assert 0 < len(stops) < len(texts) < 40
    assert 0 < sum(jid.endswith("@lid") for jid in jids) < len(jids)


async def test_people_in_conversation_reply_to_the_message_and_not_to_its_answer(world: World) -> None:
    await world.listen(events=["MESSAGES_UPSERT"])
    await world.behave(conversation=True)
    for n in range(20):
        await world.client.send_text(DEFAULT_INSTANCE, f"55119000{n:05d}", "Temos um plantão em aberto")
        await world.client.send_text(DEFAULT_INSTANCE, f"55119000{n:05d}", "Tudo bem, obrigada por avisar.")
    await world.passes(21)
    texts = [each["data"]["message"]["conversation"] for each in world.heard]
    assert "Aceito!" in texts
    assert 1 < len(set(texts)) <= len(texts) < 20


async def test_groups_talk_on_command_and_at_their_rate(world: World) -> None:
    await world.listen(events=["MESSAGES_UPSERT"])
    assert (await world.http.post(f"{CONTROL}/grupos", json={"messages": 20})).status_code == 201
    await world.http.post(
        f"{CONTROL}/grupos", json={"text": "[SIMULADO] dito por um teste", "group": "1203630009@g.us"}
    )
    await world.passes(1)
    texts = [each["data"]["message"]["conversation"] for each in world.heard]
    assert texts[-1] == "[SIMULADO] dito por um teste"
    assert any("Plantão" in text for text in texts)
    assert all(each["data"]["key"]["participant"] for each in world.heard)
    await world.behave(group_messages_per_minute=60)
    await world.app.state.evolution.falatorio.tick()
    await world.passes(1)
    assert len(world.heard) == 22


async def test_line_is_banned_logs_out_flaps_and_is_paired_again(world: World) -> None:
    await world.listen(events=["CONNECTION_UPDATE", "STATUS_INSTANCE"])
    where = f"{CONTROL}/instancias/{DEFAULT_INSTANCE}"
    await world.http.post(where, json={"state": "close", "code": 403})
    await world.passes(1)
    assert [(each["event"], each["data"].get("statusReason")) for each in world.heard] == [
        ("connection.update", 403), ("status.instance", None),
    ]  # fmt: skip
    assert await world.client.send_text(DEFAULT_INSTANCE, NUMBER, "a") == Disconnected()
    instances = await world.client.instances()
    assert isinstance(instances, list)
    assert (instances[0].state, instances[0].code) == (EstadoDaConexao.CLOSE, 403)
    world.heard.clear()
    await world.http.post(where, json={"state": "close"})  # a transient close posts no event
    await world.http.post(where, json={"flap": 3, "every": 0.5})
    await world.passes(4)
    assert [each["data"]["state"] for each in world.heard] == ["connecting", "open"] * 3
    key = {"apikey": KEY}
    assert (await world.http.delete(f"/evolution/instance/logout/{DEFAULT_INSTANCE}", headers=key)).status_code == 200
    paired = await world.http.get(f"/evolution/instance/connect/{DEFAULT_INSTANCE}", headers=key)
    assert paired.json()["pairingCode"] == "SIMULADO"
    await world.passes(3)
    assert await world.client.connection(DEFAULT_INSTANCE) is EstadoDaConexao.OPEN


async def test_same_seed_gives_the_same_world_and_another_seed_another() -> None:
    async def play(seed: int, order: list[int]) -> dict[str, tuple[str, str]]:
        made = World(FakeClock(), seed)
        await made.behave(lost_answers=0.5)
        for n in order:
            await made.client.send_text(DEFAULT_INSTANCE, f"55119000{n:05d}", "Olá")
        left = {each["number"]: (each["id"], each["answer"]) for each in await made.receipts()}
        await made.close()
        return left

    forwards, backwards = list(range(8)), list(range(7, -1, -1))
    first = await play(1, forwards)
    assert first == await play(1, backwards)
    assert first != await play(2, forwards)
    assert {how for _, how in first.values()} == {"cut", "answered"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/", {"nonsense": 1}), ("PATCH", "/", {"lost_answers": 2}), ("PATCH", "/", {"lost_answers": "x"}),
        ("PATCH", "/", {"connection_closed": 1}), ("PATCH", "/", {"unknown_numbers": [1]}), ("POST", "/mensagens", {}),
        ("POST", "/grupos", {"messages": 0}), ("POST", f"/instancias/{DEFAULT_INSTANCE}", {"state": "odd"}),
        ("GET", "/recibos?depois=x", None),
    ],
)  # fmt: skip
async def test_invalid_command_is_refused(world: World, method: str, path: str, body: dict[str, Any] | None) -> None:
    answer = await world.http.request(method, CONTROL + path, json=body)
    assert answer.status_code == 400
    assert answer.json()["title"]
