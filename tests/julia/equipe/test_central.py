"""Conversations that the team handles are opened in the help desk and mirrored there in order, each message once. Team
members answer and end them there. The tests send real requests to the simulated Chatwoot, on both databases.
"""

import hashlib
import hmac
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from app.composition.julia import julia_of
from app.contexts.equipe.espelho import FILA
from app.contexts.mensagens.service import NaDevolucao
from app.contexts.webhooks.api import EntregaDoWebhook, Ignorado
from app.contexts.webhooks.inbox import WEBHOOK_INBOX
from app.integrations.chatwoot.events import delivery_of, is_proved
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.errors import MissingBeside
from batuta.guards import CircuitState
from batuta.testing import FakeClock
from simulador.chatwoot import INBOX, TOKEN
from tests.julia.envio.sending import LIMITS, MINUTE, OPEN, PHONE, Office
from tests.julia.line import ScriptedLine
from tests.julia.respostas.test_respostas import receive
from tests.julia.tables import one, rows

HUMAN, QUESTION = "quero falar com um atendente", "qual o valor?"
SECRET = "segredo-de-teste"


class Desk:
    """The simulated Chatwoot for one test, and the api that receives its webhooks."""

    def __init__(self, office: Office, url: str) -> None:
        self.office, self.url = office, f"{url}/chatwoot"
        self._api = create_app(julia_of(office.work))

    async def show(self) -> dict[str, Any]:
        return dict((await self._call("GET", "/controle")).json())

    async def talk(self) -> dict[str, Any]:
        (found,) = (await self.show())["conversations"]
        return dict(found)

    async def said(self) -> list[tuple[str, str]]:
        return [(each["message_type"], each["content"]) for each in (await self.talk())["messages"]]

    async def fail(self, **how: Any) -> None:
        await self._call("PUT", "/controle/falhas", how)

    async def mirror(self) -> None:
        """Process the queue of changes for the help desk."""
        await self.office.work.work_once(FILA.name, 50)

    async def act(self, **action: Any) -> None:
        """Act as a team member who uses Chatwoot. Julia receives the resulting events and processes them."""
        before = await self._events()
        talk = await self.talk()
        await self._call("POST", f"/controle/conversas/{talk['id']}", action)
        for event in (await self._events())[len(before) :]:
            assert (await self.deliver(event["body"], event["headers"])).status_code == 200
        await self.office.work.work_once(WEBHOOK_INBOX.name, 50)

    async def deliver(self, body: str, headers: dict[str, str], query: str = "") -> httpx2.Response:
        transport = httpx2.ASGITransport(app=self._api, client=("203.0.113.9", 5000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://julia.test") as client:
            return await client.post(f"/webhook/chatwoot{query}", content=body.encode(), headers=headers)

    async def _events(self) -> list[dict[str, Any]]:
        return list((await self._call("GET", "/controle/eventos")).json())

    async def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        async with httpx2.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, f"{self.url}{path}", json=body)
            assert answer.is_success, answer.text
            return answer


def settings_of(database_url: str, url: str, **more: Any) -> Settings:
    return Settings(
        database_url=database_url,
        evolution_api_url="http://127.0.0.1:1",
        chatwoot_url=f"{url}/chatwoot",
        chatwoot_token=TOKEN,
        chatwoot_account_id=1,
        chatwoot_inbox_id=INBOX,
        chatwoot_webhook_secret=SECRET,
        **LIMITS,
        **more,
    )


@pytest.fixture
async def office(database_url: str, clock: FakeClock, tmp_path: Path, simulador: str) -> AsyncIterator[Office]:
    """Julia with the simulated Chatwoot."""
    clock.step(OPEN - clock.now())
    settings = settings_of(database_url, simulador, optout_journal=str(tmp_path / "optouts"))
    async with build(settings, clock=clock).work as work:
        yield Office(work, clock, ScriptedLine(clock), settings)


@pytest.fixture
async def desk(office: Office, simulador: str) -> Desk:
    found = Desk(office, simulador)
    await found._call("PUT", "/controle/webhook", {"secret": SECRET})
    return found


async def led(office: Office) -> tuple[str, str, str | None]:
    row = await one(office.work.database, "SELECT * FROM conversations")
    return row["status"], row["controlled_by"], row["responsavel"]


async def conversation(office: Office) -> str:
    return str((await one(office.work.database, "SELECT id FROM conversations"))["id"])


async def test_request_for_a_person_opens_and_labels_the_conversation_with_its_messages(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    shown = await desk.show()
    (contact,) = shown["contacts"]
    assert (contact["identifier"], contact["name"]) == (f"julia:{doctor}", "Médica Teste")
    assert PHONE not in str(shown)
    talk = await desk.talk()
    assert (talk["status"], sorted(talk["labels"])) == ("open", ["humano", "julia", "pede_pessoa"])
    assert [kind for kind, _ in await desk.said()] == ["incoming", "outgoing"]
    assert (await desk.said())[0] == ("incoming", HUMAN)
    stored = await one(office.work.database, "SELECT chatwoot_conversation_id FROM conversations")
    assert stored["chatwoot_conversation_id"] == talk["id"]


async def test_messages_of_a_conversation_with_a_person_are_mirrored_once_and_in_order(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN, "m1")
    await office.works()
    await desk.mirror()
    for n in range(2, 20):
        await office.later(MINUTE)
        await receive(office, f"mensagem {n}", f"m{n}")
    for _ in range(3):
        await desk.mirror()
    texts = [text for kind, text in await desk.said() if kind == "incoming"]
    assert texts == [HUMAN, *(f"mensagem {n}" for n in range(2, 20))]


async def test_a_lost_answer_makes_no_second_contact_conversation_or_message(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    # Number of requests before the lost answer: contact created, conversation created, first message, second message,
    # labels set.
    for skip in (1, 2, 3, 1, 2):
        await desk.fail(status=502, times=1, skip=skip, after=True)
        await desk.mirror()
        await office.later(240 * MINUTE)
    shown = await desk.show()
    assert (len(shown["contacts"]), len(shown["conversations"])) == (1, 1)
    assert len(await desk.said()) == 2
    assert sorted((await desk.talk())["labels"]) == ["humano", "julia", "pede_pessoa"]
    await desk.mirror()
    assert {row["status"] for row in await rows(office.work.database, "SELECT status FROM central_fila")} == {
        "processada"
    }
    assert len(await desk.said()) == 2


async def test_an_outage_opens_the_circuit_and_the_queue_continues_after_it(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await desk.fail(status=503, times=1000)
    for n in range(7):
        await receive(office, HUMAN, f"m{n}")
        await desk.mirror()
        await office.later(MINUTE / 2)
    states = {each.name: each.state for each in await office.work.circuits.look()}
    assert states["chatwoot"] is not CircuitState.CLOSED
    await office.later(20 * MINUTE)
    await desk.fail(times=0)
    espelho = julia_of(office.work).team.espelho
    assert espelho is not None
    assert len((await espelho.ask()).findings) == 1
    for _ in range(4):
        await desk.mirror()
        await office.later(20 * MINUTE)
    assert len(await desk.said()) >= 7
    assert (await espelho.ask()).findings == ()


async def test_message_of_a_person_is_sent_to_the_doctor_once_and_the_person_leads(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, QUESTION)
    await office.works()
    await desk.mirror()
    sent = len(office.line.receipts)
    await desk.act(person="Ana Teste", message="Bom dia, aqui é a Ana")
    assert await led(office) == ("active", "human", "chatwoot:Ana Teste")
    await office.later(2 * MINUTE)  # the pause between two messages to one number
    await office.works()
    assert [each.texto for each in office.line.receipts[sent:]] == ["Bom dia, aqui é a Ana"]
    assert await rows(office.work.database, "SELECT id FROM pendencias WHERE resolvida_em IS NULL") == []
    await desk.mirror()
    assert [text for _, text in await desk.said()].count("Bom dia, aqui é a Ana") == 1


async def test_a_message_that_cannot_be_sent_returns_as_a_private_note(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    await office.later(MINUTE)
    await receive(office, "PARAR", "m2")
    await desk.act(message="Oi, tudo bem?")
    await office.works()
    await desk.mirror()
    await desk.mirror()
    notes = [each for each in (await desk.talk())["messages"] if each["private"]]
    assert len(notes) == 1
    assert "não foi enviada" in notes[0]["content"]


async def test_assigning_unassigning_and_resolving_change_who_leads(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    held = await office.put(doctor)
    await desk.act(person="Ana Teste", assign=True)
    assert await led(office) == ("active", "human", "chatwoot:Ana Teste")
    await desk.act(unassign=True)
    assert await led(office) == ("escalated", "human", None)
    await desk.act(person="Bia Teste", assign=True)
    await desk.act(resolve=True)
    assert await led(office) == ("active", "ai", None)
    assert (await office.message(held))["status"] == "cancelada"
    assert await rows(office.work.database, "SELECT id FROM pendencias WHERE resolvida_em IS NULL") == []
    await desk.mirror()
    assert (await desk.talk())["status"] == "resolved"
    history = await rows(office.work.database, "SELECT acao, por FROM conversas_historico ORDER BY ordem")
    assert [(row["acao"], row["por"]) for row in history] == [
        ("escalar", "julia"), ("assumir", "chatwoot:Ana Teste"), ("escalar", "chatwoot:Ana Teste"),
        ("assumir", "chatwoot:Bia Teste"), ("devolver", "chatwoot:Bia Teste"),
    ]  # fmt: skip


async def test_the_label_continuar_lets_the_held_messages_continue(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    held = await office.put(doctor)
    await desk.act(label="continuar")
    await desk.act(resolve=True)
    assert (await office.message(held))["status"] == "pendente"


async def test_the_label_humano_asks_for_a_person(office: Office, doctor: str, chip: str, desk: Desk) -> None:
    await receive(office, QUESTION)
    await office.works()
    await desk.mirror()
    assert await led(office) == ("active", "ai", None)
    await desk.act(label="humano")
    assert await led(office) == ("escalated", "human", None)


async def test_hand_back_and_end_by_command_resolve_it_in_the_help_desk_and_a_take_over_opens_it_again(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    care = julia_of(office.work).messages.atendimento
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    talk = await conversation(office)
    await care.assumir(talk, por="ana", motivo="-")
    # the conversation has no assignee in Chatwoot, but the operator who took it over stays responsible
    await desk.act(unassign=True)
    assert await led(office) == ("active", "human", "ana")
    (pending,) = await julia_of(office.work).messages.pendencias.listar(limite=5)
    await julia_of(office.work).messages.pendencias.resolver(pending.id, por="ana", motivo="-")
    await care.devolver(talk, NaDevolucao.CONTINUAR, por="ana", motivo="-")
    await desk.mirror()
    shown = await desk.talk()
    assert (shown["status"], "humano" in shown["labels"]) == ("resolved", False)
    await care.assumir(talk, por="ana", motivo="-")
    await desk.mirror()
    assert (await desk.talk())["status"] == "open"
    await care.encerrar(talk, por="ana", motivo="-")
    await desk.mirror()
    assert (await desk.talk())["status"] == "resolved"


async def test_a_message_to_an_ended_conversation_opens_another_with_the_person(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    await julia_of(office.work).messages.atendimento.encerrar(await conversation(office), por="ana", motivo="-")
    await desk.mirror()
    sent = len(office.line.receipts)
    await desk.act(message="Esqueci de um detalhe")
    await office.later(2 * MINUTE)
    await office.works()
    assert [each.texto for each in office.line.receipts[sent:]] == ["Esqueci de um detalhe"]
    open_ones = await rows(
        office.work.database,
        "SELECT responsavel FROM conversations WHERE status = 'active' AND controlled_by = 'human'",
    )
    assert [row["responsavel"] for row in open_ones] == ["chatwoot:Atendente Teste"]


async def test_repeated_late_and_unsigned_events_change_nothing(
    office: Office, doctor: str, chip: str, desk: Desk
) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    await desk.act(message="Bom dia")
    event = (await desk._events())[-1]
    again = await desk.deliver(event["body"], event["headers"])
    assert again.json() == {"status": "ok", "new": False}
    assert (await desk.deliver(event["body"], {})).status_code == 401
    assert (await desk.deliver(event["body"] + " ", event["headers"])).status_code == 401
    assert (await desk.deliver(event["body"], {}, f"?token={SECRET}")).json() == {"status": "ok", "new": False}
    assert (await desk.deliver("[]", {}, f"?token={SECRET}")).status_code == 400
    await office.later(6 * MINUTE)
    assert (await desk.deliver(event["body"], event["headers"])).status_code == 401
    count = await rows(office.work.database, "SELECT id FROM fila_mensagens WHERE tipo = 'manual'")
    assert len(count) == 1


async def test_an_older_change_does_not_undo_a_newer_one(office: Office, doctor: str, chip: str, desk: Desk) -> None:
    await receive(office, HUMAN)
    await office.works()
    await desk.mirror()
    talk = (await desk.talk())["id"]
    base: dict[str, Any] = {
        "event": "conversation_updated",
        "id": talk,
        "inbox_id": INBOX,
        "status": "open",
        "labels": [],
    }
    changed: list[dict[str, Any]] = [{"assignee_id": {}}]
    now = office.clock.now().timestamp()
    new = {
        **base,
        "changed_attributes": changed,
        "meta": {"assignee": {"id": 1, "name": "Ana Teste"}},
        "updated_at": now,
    }
    old = {**base, "changed_attributes": changed, "meta": {"assignee": None}, "updated_at": now - 60}
    inbox = julia_of(office.work).inbox
    for body in (new, old):
        delivery = delivery_of(body, INBOX, None)
        assert await inbox.keep(delivery)  # type: ignore[arg-type]
        await office.work.work_once(WEBHOOK_INBOX.name, 10)
    assert await led(office) == ("active", "human", "chatwoot:Ana Teste")


async def test_another_inbox_and_published_messages_are_ignored() -> None:
    message: dict[str, Any] = {
        "event": "message_created", "id": 5, "content": "oi", "message_type": "outgoing", "private": False,
        "sender": {"id": 7, "name": "Ana Teste", "type": "user"}, "conversation": {"id": 3, "inbox_id": INBOX},
    }  # fmt: skip
    assert isinstance(delivery_of(message, INBOX, None), EntregaDoWebhook)
    ignored: list[dict[str, Any]] = [
        {"source_id": "julia:9"}, {"private": True}, {"message_type": "incoming"}, {"sender": {"type": "agent_bot"}},
        {"conversation": {"id": 3, "inbox_id": INBOX + 1}}, {"content": None}, {"event": "webwidget_triggered"},
    ]  # fmt: skip
    for change in ignored:
        assert isinstance(delivery_of({**message, **change}, INBOX, None), Ignorado), change
    assert delivery_of({"id": 1}, INBOX, None) is None


async def test_without_chatwoot_nothing_is_queued_and_the_webhook_is_closed(
    database_url: str, clock: FakeClock
) -> None:
    settings = Settings(database_url=database_url, evolution_api_url="http://127.0.0.1:1")
    async with build(settings, clock=clock).work as work:
        assert julia_of(work).team.espelho is None
        assert FILA.name not in work.queues
        transport = httpx2.ASGITransport(app=create_app(julia_of(work)), client=("127.0.0.1", 5000))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
            assert (await client.post("/webhook/chatwoot", json={})).status_code == 401


def test_incomplete_settings_name_the_missing_one() -> None:
    with pytest.raises(MissingBeside, match="CHATWOOT_TOKEN is not set, and CHATWOOT_URL needs it"):
        Settings(chatwoot_url="http://127.0.0.1:1")


def test_a_signature_needs_the_exact_body_and_a_recent_time(clock: FakeClock) -> None:
    stamp = str(int(clock.now().timestamp()))
    good = "sha256=" + hmac.digest(b"s", f"{stamp}.{{}}".encode(), hashlib.sha256).hex()
    headers = {"x-chatwoot-timestamp": stamp, "x-chatwoot-signature": good}
    assert is_proved("s", headers, {}, b"{}", clock.now())
    assert not is_proved("s", headers, {}, b"{ }", clock.now())
    assert not is_proved("t", headers, {}, b"{}", clock.now())
    assert not is_proved("s", headers, {}, b"{}", clock.now() + 6 * MINUTE)
    assert not is_proved("s", {}, {"token": "é"}, b"{}", clock.now())
    assert is_proved("s", {}, {"token": "s"}, b"{}", clock.now())
