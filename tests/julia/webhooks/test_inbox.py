"""The gateway's events are processed once, even if they are repeated, late or malformed. The tests run on both
databases.
"""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.contexts.chips.service import Chips
from app.contexts.comum.conteudo import hash_do_texto
from app.contexts.comum.whatsapp import Entrega
from app.contexts.conversas.service import Conversas, Saida
from app.contexts.grupos.fila import FILA_GRUPOS
from app.contexts.grupos.service import Grupos
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.contexts.webhooks.api import EntregaDoWebhook, Ignorado
from app.contexts.webhooks.inbox import WEBHOOK_INBOX, Inbox, InboxWork
from app.integrations.evolution.events import delivery_of, facts_of
from batuta.kernel.ids import Ids
from batuta.queue.item import Lease, NewItem
from batuta.queue.outcome import after_seconds, settle
from batuta.reasons import code_of, decode
from batuta.stores.sql.database import Database
from batuta.stores.sql.queue.store import SqlQueue
from batuta.testing import FakeClock
from tests.engine.queue.contract import ANN, BEN
from tests.julia.tables import PHONE, add_chip, add_doctor, one, prune, rows, write

CHIP, GROUP, HIDDEN = "julia-sim", "120363000000000001@g.us", "999000111222333@lid"
JID = f"{PHONE}@s.whatsapp.net"


@dataclass
class Harness:
    """A webhook inbox, its worker, and helpers for tests."""

    database: Database
    clock: FakeClock
    ids: Ids
    numbers: Any = field(default_factory=lambda: iter(range(1, 10_000)))

    def __post_init__(self) -> None:
        dialect = self.database.dialect
        eventos = Eventos(dialect, self.ids)
        self.conversas = Conversas(dialect, self.ids, Mensagens(dialect), eventos)
        self.queue = SqlQueue(self.database, WEBHOOK_INBOX, self.ids, self.clock, own_time=True)
        self.inbox = Inbox(self.queue)
        self.fila = SqlQueue(self.database, FILA_GRUPOS, self.ids, self.clock, queue="pendente", own_time=True)
        self.work = InboxWork(
            lambda evento, payload: facts_of(evento, payload, self.clock.now()),
            self.conversas,
            Grupos(dialect, self.ids, self.conversas, self.fila),
            Chips(dialect, self.ids, eventos),
            self.clock.now,
        )

    async def hears(self, event: str, data: Any, *, instance: str = CHIP, at: datetime | None = None) -> bool:
        """Deliver an event. Return False if it was already stored."""
        sent_at = (at or self.clock.now()).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        body = {
            "event": event,
            "instance": instance,
            "data": data,
            "date_time": sent_at,
            "apikey": "chave-da-instancia",
        }
        delivery = delivery_of(body)
        assert isinstance(delivery, EntregaDoWebhook)
        return await self.inbox.keep(delivery)

    async def works(self) -> None:
        for lease in (await self.queue.settle_and_claim([], ANN, 100)).leases:
            settlement = settle(lease.attempt, await self.work.handle(lease), after_seconds([1]), random.random)
            assert await self.queue.conclude(lease, settlement)

    async def deliver(self, event: str, data: Any, **more: Any) -> None:
        await self.hears(event, data, **more)
        await self.works()

    def message(
        self, text: str = "Olá", jid: str = JID, *, id: str | None = None, mine: bool = False, **key: Any
    ) -> Any:
        return {
            "key": {"id": id or f"3EB0{next(self.numbers):08d}", "remoteJid": jid, "fromMe": mine, **key},
            "pushName": "Pessoa Teste",
            "message": {"conversation": text},
            "messageType": "conversation",
            "messageTimestamp": int(self.clock.now().timestamp()),
        }


@pytest.fixture
async def harness(julia: Database, clock: FakeClock, ids: Ids) -> Harness:
    await add_chip(julia, CHIP)
    return Harness(julia, clock, ids)


async def queued(harness: Harness, doctor: str, count: int = 1) -> list[str]:
    store = SqlQueue(harness.database, FILA_MENSAGENS, harness.ids, harness.clock, own_time=True)
    values = {"cliente_id": doctor, "telefone_destino": PHONE, "conteudo": "mensagem de teste"}
    return [id for id in await store.put([NewItem(values=values) for _ in range(count)]) if id is not None]


# The inbox itself


async def test_delivery_is_stored_once_and_without_the_instances_key(harness: Harness) -> None:
    message = harness.message()
    assert await harness.hears("messages.upsert", message)
    await harness.works()
    assert not await harness.hears("messages.upsert", message, at=harness.clock.now() + timedelta(minutes=5))
    row = await one(harness.database, "SELECT payload, status, evento FROM webhook_inbox")
    assert (row["status"], row["evento"]) == ("processada", "messages.upsert")
    assert "apikey" not in row["payload"]
    assert "chave-da-instancia" not in str(row)


async def test_unfinished_delivery_is_processed_again_from_the_beginning(harness: Harness) -> None:
    await add_doctor(harness.database)
    await harness.hears("messages.upsert", harness.message())
    (lease,) = (await harness.queue.settle_and_claim([], ANN, 1)).leases
    await harness.work.handle(lease)  # the worker dies before it settles, so nothing was written
    assert await rows(harness.database, "SELECT id FROM interacoes") == []
    harness.clock.step(ANN.lease + timedelta(seconds=1))
    await harness.queue.rescue(10)
    await harness.works()
    assert len(await rows(harness.database, "SELECT id FROM interacoes")) == 1


async def test_worker_that_lost_its_delivery_writes_nothing(harness: Harness) -> None:
    await harness.hears("messages.upsert", harness.message())
    (late,) = (await harness.queue.settle_and_claim([], ANN, 1)).leases
    harness.clock.step(ANN.lease + timedelta(seconds=1))
    await harness.queue.rescue(10)
    await harness.queue.settle_and_claim([], BEN, 1)
    settlement = settle(1, await harness.work.handle(late), after_seconds([1]), random.random)
    assert not await harness.queue.conclude(late, settlement)
    assert await rows(harness.database, "SELECT id FROM interacoes") == []


@pytest.mark.parametrize("chat", [JID, GROUP])
def test_message_or_receipt_with_an_endless_id_is_ignored(chat: str) -> None:
    message: Any = {"key": {"id": "A" * 201, "remoteJid": chat}, "message": {"conversation": "oi"}}
    receipts: Any = [{"keyId": "A" * 201, "status": "READ"}, {"key": {"id": "A" * 201}, "status": "READ"}]
    for event, data in [("messages.upsert", message), *(("messages.update", each) for each in receipts)]:
        (fact,) = facts_of(event, {"instance": "julia-sim", "data": data}, datetime.now(UTC))
        assert isinstance(fact, Ignorado), (event, fact)


@pytest.mark.parametrize(
    ("event", "data"),
    [
        ("messages.upsert", {}), ("messages.upsert", []), ("messages.upsert", {"key": {"id": 5}}),
        ("messages.update", {"status": "READ"}),
        ("messages.upsert", {"key": {"id": "a", "remoteJid": "status@broadcast"}, "message": {"conversation": "x"}}),
        ("messages.upsert",
         {"key": {"id": "b", "remoteJid": JID}, "messageType": "protocolMessage", "message": {"protocolMessage": {}}}),
        ("messages.upsert",
         {"key": {"id": "c", "remoteJid": JID}, "message": {"conversation": "\x00 nulo"}, "messageTimestamp": 10**30}),
        ("messages.update", {"keyId": "d", "status": "DELETED"}), ("connection.update", {}), ("status.instance", {"status": 3}),
        ("send.message", {"key": {"id": "e", "remoteJid": GROUP}, "message": None}),
    ],
)  # fmt: skip
async def test_malformed_delivery_is_processed_without_effect(harness: Harness, event: str, data: Any) -> None:
    await harness.deliver(event, data)
    assert (await one(harness.database, "SELECT status FROM webhook_inbox"))["status"] == "processada"


async def test_old_processed_deliveries_are_pruned_and_pending_ones_stay(harness: Harness) -> None:
    await harness.deliver("messages.upsert", harness.message())
    await harness.deliver("send.message", harness.message(mine=True))
    await harness.hears("messages.upsert", harness.message())
    before = harness.clock.now()
    assert await prune(harness.database, "webhooks", before=before) == {"webhook_inbox": 0, "provedor_mensagens": 0}
    later = before + timedelta(seconds=1)
    assert await prune(harness.database, "webhooks", before=later, limit=1) == {
        "webhook_inbox": 1,
        "provedor_mensagens": 1,
    }
    assert await prune(harness.database, "webhooks", before=later) == {"webhook_inbox": 1, "provedor_mensagens": 0}
    assert [row["status"] for row in await rows(harness.database, "SELECT status FROM webhook_inbox")] == ["pendente"]


# Inbound messages


async def test_message_is_recorded_with_its_author_chip_and_conversation(harness: Harness) -> None:
    doctor = await add_doctor(harness.database)
    await harness.deliver("messages.upsert", harness.message("Tenho interesse"))
    row = await one(harness.database, "SELECT * FROM interacoes")
    assert (row["tipo"], row["autor_tipo"], row["conteudo"]) == ("entrada", "medico", "Tenho interesse")
    assert (row["cliente_id"], row["telefone"]) == (doctor, PHONE)
    talk = await one(harness.database, "SELECT id, message_count, stage FROM conversations")
    assert (row["conversation_id"], talk["message_count"], talk["stage"]) == (talk["id"], 1, "respondeu")
    state = await one(harness.database, "SELECT permission_state, last_inbound_at FROM doctor_state")
    assert state == {"permission_state": "active", "last_inbound_at": harness.clock.now()}
    assert (await one(harness.database, "SELECT msgs_recebidas_hoje FROM chips"))["msgs_recebidas_hoje"] == 1


async def test_repeat_by_another_event_counts_nothing_twice(harness: Harness) -> None:
    await add_doctor(harness.database)
    message = harness.message()
    await harness.deliver("messages.upsert", message)
    await harness.deliver(
        "messages.upsert", {**message, "status": "DELIVERY_ACK"}
    )  # another delivery of the same message
    assert len(await rows(harness.database, "SELECT id FROM interacoes")) == 1
    assert (await one(harness.database, "SELECT message_count FROM conversations"))["message_count"] == 1
    assert (await one(harness.database, "SELECT msgs_recebidas_total FROM chips"))["msgs_recebidas_total"] == 1


async def test_doctor_is_known_with_and_without_the_ninth_digit(harness: Harness) -> None:
    doctor = await add_doctor(harness.database, "5531988880001")
    await harness.deliver("messages.upsert", harness.message(jid="553188880001@s.whatsapp.net"))
    assert (await one(harness.database, "SELECT cliente_id FROM interacoes"))["cliente_id"] == doctor


async def test_unknown_author_is_recorded_and_becomes_no_doctor(harness: Harness) -> None:
    await harness.deliver("messages.upsert", harness.message("quem é?"))
    row = await one(harness.database, "SELECT cliente_id, autor_tipo, telefone FROM interacoes")
    assert row == {"cliente_id": None, "autor_tipo": "externo", "telefone": PHONE}
    assert await rows(harness.database, "SELECT id FROM clientes") == []


async def test_hidden_address_is_never_stored_as_a_phone_and_is_resolved_later(
    harness: Harness,
) -> None:
    doctor = await add_doctor(harness.database)
    await harness.deliver("messages.upsert", harness.message("oi", jid=HIDDEN))
    row = await one(harness.database, "SELECT telefone, cliente_id, remote_jid FROM interacoes")
    assert row == {"telefone": None, "cliente_id": None, "remote_jid": HIDDEN}
    await harness.deliver("messages.upsert", harness.message("sou eu", jid=HIDDEN, remoteJidAlt=JID))
    assert {row["cliente_id"] for row in await rows(harness.database, "SELECT cliente_id FROM interacoes")} == {doctor}
    await harness.deliver("messages.upsert", harness.message("de novo", jid=HIDDEN))
    found = await rows(harness.database, "SELECT cliente_id FROM interacoes WHERE telefone = :phone", phone=PHONE)
    assert len(found) == 3


async def test_concurrent_deliveries_about_the_same_people_lose_and_double_nothing(harness: Harness) -> None:
    doctor = await add_doctor(harness.database)
    for n in range(15):
        await harness.hears("messages.upsert", harness.message(f"mensagem {n}"))
        await harness.hears("messages.upsert", harness.message(f"vaga fictícia {n}", GROUP, participant=JID))
        await harness.hears(
            "messages.update", {"keyId": "3EB0A", "fromMe": True, "status": ("SERVER_ACK", "READ")[n % 2]}
        )

    async def one_of_them(lease: Lease) -> bool:
        settlement = settle(1, await harness.work.handle(lease), after_seconds([1]), random.random)
        return await harness.queue.conclude(lease, settlement)

    leases = (await harness.queue.settle_and_claim([], ANN, 100)).leases
    assert len(leases) == 15 + 15 + 2  # a repeated receipt is the same delivery
    assert all(await asyncio.gather(*(one_of_them(lease) for lease in leases)))
    assert (await one(harness.database, "SELECT message_count FROM conversations"))["message_count"] == 15
    assert (await one(harness.database, "SELECT total_interacoes FROM clientes WHERE id = :id", id=doctor))[
        "total_interacoes"
    ] == 15
    assert (await one(harness.database, "SELECT msgs_recebidas_total FROM chips"))["msgs_recebidas_total"] == 15
    assert (await one(harness.database, "SELECT total_mensagens FROM grupos_whatsapp"))["total_mensagens"] == 15
    assert (await one(harness.database, "SELECT total_mensagens FROM contatos_grupo"))["total_mensagens"] == 15
    assert (await one(harness.database, "SELECT delivery_status FROM provedor_mensagens"))["delivery_status"] == "read"


async def test_future_timestamp_is_replaced_by_now(harness: Harness) -> None:
    await add_doctor(harness.database)
    ahead = int((harness.clock.now() + timedelta(hours=6)).timestamp())
    await harness.deliver("messages.upsert", {**harness.message(), "messageTimestamp": ahead})
    assert (await one(harness.database, "SELECT last_inbound_at FROM doctor_state"))[
        "last_inbound_at"
    ] == harness.clock.now()


# Opt-out


async def test_opt_out_takes_effect_at_once(harness: Harness) -> None:
    doctor, other = await add_doctor(harness.database), await add_doctor(harness.database, "5511900000002")
    waiting = await queued(harness, doctor, 3)
    (kept,) = await queued(harness, other)
    await harness.deliver("messages.upsert", harness.message("Não me mande mais mensagens"))
    person = await one(
        harness.database, "SELECT opt_out, opted_out, opted_out_at FROM clientes WHERE id = :id", id=doctor
    )
    assert person == {"opt_out": True, "opted_out": True, "opted_out_at": harness.clock.now()}
    states = await rows(harness.database, "SELECT permission_state FROM doctor_state")
    assert states == [{"permission_state": "opted_out"}]
    found = await rows(harness.database, "SELECT id, status, outcome FROM fila_mensagens")
    by_id = {row["id"]: (row["status"], row["outcome"]) for row in found}
    assert {by_id[id] for id in waiting} == {("cancelada", "BLOCKED_OPTED_OUT")}
    assert by_id[kept] == ("pendente", None)
    event = await one(harness.database, "SELECT event_type, cliente_id, event_props FROM business_events")
    assert event == {"event_type": "medico_optout", "cliente_id": doctor, "event_props": {"canceladas": 3}}
    assert (await one(harness.database, "SELECT stage FROM conversations"))["stage"] == "optout"


async def test_opt_out_asks_a_running_send_to_stop_and_keeps_a_doubt(harness: Harness) -> None:
    doctor = await add_doctor(harness.database)
    running, doubted = await queued(harness, doctor, 2)
    until = harness.clock.now() + timedelta(minutes=1)
    await write(
        harness.database,
        "UPDATE fila_mensagens SET status = 'processando', lease_until = :t WHERE id = :id",
        t=until,
        id=running,
    )
    await write(
        harness.database,
        "UPDATE fila_mensagens SET envio_estado = 'unknown', envio_desde = :now WHERE id = :id",
        now=harness.clock.now(),
        id=doubted,
    )
    await harness.deliver("messages.upsert", harness.message("parar"))
    found = await rows(harness.database, "SELECT id, status, cancelamento_pedido, envio_estado FROM fila_mensagens")
    assert {row["id"]: (row["status"], row["cancelamento_pedido"], row["envio_estado"]) for row in found} == {
        running: ("processando", True, None),
        doubted: ("pendente", True, "unknown"),
    }


async def test_later_message_does_not_revoke_an_opt_out(harness: Harness) -> None:
    await add_doctor(harness.database)
    await harness.deliver("messages.upsert", harness.message("parar"))
    await harness.deliver("messages.upsert", harness.message("bom dia"))
    assert (await one(harness.database, "SELECT permission_state FROM doctor_state"))["permission_state"] == "opted_out"


async def test_opt_out_of_an_unknown_number_counts(harness: Harness) -> None:
    await harness.deliver("messages.upsert", harness.message("pare"))
    row = await one(harness.database, "SELECT telefone, permission_state FROM external_contacts")
    assert row == {"telefone": PHONE, "permission_state": "opted_out"}


async def test_opt_out_of_a_hidden_address_counts_once_its_number_is_known(harness: Harness) -> None:
    doctor = await add_doctor(harness.database)
    await queued(harness, doctor)
    await harness.deliver("messages.upsert", harness.message("parar", jid=HIDDEN))
    assert (await one(harness.database, "SELECT status FROM fila_mensagens"))["status"] == "pendente"
    await harness.deliver("messages.upsert", harness.message("?", jid=JID, remoteJidAlt=HIDDEN))
    assert (await one(harness.database, "SELECT status FROM fila_mensagens"))["status"] == "cancelada"
    assert (await one(harness.database, "SELECT permission_state FROM doctor_state"))["permission_state"] == "opted_out"


# Outbound messages


@pytest.mark.parametrize(
    "order",
    [("SERVER_ACK", "DELIVERY_ACK", "READ"), ("READ", "SERVER_ACK", "DELIVERY_ACK"), ("DELIVERY_ACK", "READ", "ERROR")],
)
async def test_delivery_status_only_moves_forward(harness: Harness, order: tuple[str, ...]) -> None:
    doctor = await add_doctor(harness.database)
    async with harness.database.transaction() as transaction:
        await harness.conversas.saiu(transaction, saida(harness, doctor))
    for status in order:
        await harness.deliver("messages.update", {"keyId": "3EB0A", "remoteJid": JID, "fromMe": True, "status": status})
    assert (await one(harness.database, "SELECT delivery_status FROM interacoes"))["delivery_status"] == "read"
    assert (await one(harness.database, "SELECT delivery_status FROM provedor_mensagens"))["delivery_status"] == "read"


async def test_receipt_that_precedes_our_own_record_is_kept(harness: Harness) -> None:
    doctor = await add_doctor(harness.database)
    await harness.deliver(
        "messages.update", {"keyId": "3EB0A", "remoteJid": JID, "fromMe": True, "status": "DELIVERY_ACK"}
    )
    async with harness.database.transaction() as transaction:
        assert await harness.conversas.saiu(transaction, saida(harness, doctor))
        assert not await harness.conversas.saiu(transaction, saida(harness, doctor))
    assert (await one(harness.database, "SELECT delivery_status FROM interacoes"))["delivery_status"] == "delivered"


async def test_send_in_doubt_is_found_by_its_echo(harness: Harness) -> None:
    await add_doctor(harness.database)
    since = harness.clock.now() - timedelta(seconds=5)
    message = harness.message("Olá,  teste\n", id="3EB0A", mine=True)
    await harness.deliver(
        "messages.update", {"keyId": "3EB0A", "remoteJid": JID, "fromMe": True, "status": "SERVER_ACK"}
    )
    await harness.deliver("send.message", {**message, "status": "PENDING"})
    await harness.deliver("messages.upsert", message)
    (found,) = await harness.conversas.ecos(harness.database, PHONE, hash_do_texto("Olá, teste"), since=since)
    assert (found.provider_message_id, found.instance, found.entrega) == ("3EB0A", CHIP, Entrega.SENT)
    assert found.fila_id is None
    assert await harness.conversas.ecos(harness.database, PHONE, hash_do_texto("outra"), since=since) == []
    later = harness.clock.now() + timedelta(seconds=5)
    assert await harness.conversas.ecos(harness.database, PHONE, hash_do_texto("Olá, teste"), since=later) == []
    assert await rows(harness.database, "SELECT id FROM interacoes") == []  # an echo alone does not identify the sender


def saida(harness: Harness, doctor: str) -> Saida:
    return Saida(
        message_id="3EB0A", jid=JID, telefone=PHONE, cliente_id=doctor, conversation_id=None, chip_id=None, campaign_id=None,
        texto="Olá", autor="julia", em=harness.clock.now(),
    )  # fmt: skip


# Chips


async def test_connection_that_comes_and_goes_changes_no_status(harness: Harness) -> None:
    for state in ("connecting", "open", "connecting"):
        await harness.deliver("connection.update", {"instance": CHIP, "state": state, "statusReason": 200})
        harness.clock.step(timedelta(seconds=1))
    chip = await one(harness.database, "SELECT status, evolution_connected FROM chips")
    assert chip == {"status": "active", "evolution_connected": False}
    await harness.deliver("connection.update", {"instance": CHIP, "state": "open", "statusReason": 200, "wuid": JID})
    chip = await one(harness.database, "SELECT status, evolution_connected, telefone FROM chips")
    assert chip == {"status": "active", "evolution_connected": True, "telefone": PHONE}


async def test_older_event_that_arrives_later_changes_nothing(harness: Harness) -> None:
    earlier = harness.clock.now() - timedelta(seconds=30)
    await harness.deliver("connection.update", {"state": "open", "statusReason": 200})
    await harness.deliver("connection.update", {"state": "close", "statusReason": 401}, at=earlier)
    chip = await one(harness.database, "SELECT status, evolution_connected FROM chips")
    assert chip == {"status": "active", "evolution_connected": True}


async def test_gateway_whose_clock_was_ahead_is_accepted_again(harness: Harness) -> None:
    await harness.deliver(
        "connection.update", {"state": "close", "statusReason": 428}, at=harness.clock.now() + timedelta(days=400)
    )
    assert not (await one(harness.database, "SELECT evolution_connected FROM chips"))["evolution_connected"]
    harness.clock.step(timedelta(seconds=5))
    await harness.deliver("connection.update", {"state": "open", "statusReason": 200})
    assert (await one(harness.database, "SELECT evolution_connected FROM chips"))["evolution_connected"]


@pytest.mark.parametrize("code", [402, 403, 406])
async def test_ban_marks_the_chip_permanently_whichever_event_reports_it(harness: Harness, code: int) -> None:
    await harness.deliver("connection.update", {"state": "close", "statusReason": code})
    await harness.deliver("status.instance", {"instance": CHIP, "status": "closed", "disconnectionReasonCode": code})
    harness.clock.step(timedelta(seconds=5))
    await harness.deliver("connection.update", {"state": "open", "statusReason": 200})
    chip = await one(harness.database, "SELECT status, ban_reason FROM chips")
    assert chip["status"] == "banned"
    assert code_of(decode(chip["ban_reason"])) == f"chip_banido_{code}"
    (moved,) = await rows(harness.database, "SELECT from_status, to_status FROM chip_transitions")
    assert moved == {"from_status": "active", "to_status": "banned"}
    assert len(await rows(harness.database, "SELECT id FROM business_events WHERE event_type = 'chip_banido'")) == 1


async def test_logged_out_phone_needs_an_operator(harness: Harness) -> None:
    await harness.deliver("connection.update", {"state": "close", "statusReason": 401})
    assert (await one(harness.database, "SELECT status FROM chips"))["status"] == "pending"
    await harness.deliver("connection.update", {"state": "open"}, instance="nobody's")  # an instance without a chip


# Groups


async def test_group_message_through_several_chips_is_stored_once(harness: Harness) -> None:
    await add_chip(harness.database, "escuta", tipo="listener")
    message = harness.message("Vaga teste: plantão fictício", GROUP, participant=JID)
    for chip in (CHIP, "escuta"):
        await harness.deliver("messages.upsert", message, instance=chip)
    row = await one(harness.database, "SELECT * FROM mensagens_grupo")
    assert (row["status"], row["texto"], row["sender_nome"]) == (
        "pendente",
        "Vaga teste: plantão fictício",
        "Pessoa Teste",
    )
    assert (row["timestamp_msg"], row["is_forwarded"], row["instance_name"]) == (harness.clock.now(), False, CHIP)
    assert (await one(harness.database, "SELECT jid, total_mensagens FROM grupos_whatsapp")) == {
        "jid": GROUP,
        "total_mensagens": 1,
    }
    assert (await one(harness.database, "SELECT telefone FROM contatos_grupo"))["telefone"] == PHONE
    assert await rows(harness.database, "SELECT id FROM interacoes") == []


async def test_caption_is_a_text_and_an_empty_message_is_discarded(harness: Harness) -> None:
    picture = {"messageType": "imageMessage", "message": {"imageMessage": {"caption": "Plantão fictício 12h"}}}
    await harness.deliver("messages.upsert", {**harness.message(jid=GROUP, participant=JID), **picture})
    bare = {"messageType": "imageMessage", "message": {"imageMessage": {"contextInfo": {"isForwarded": True}}}}
    await harness.deliver("messages.upsert", {**harness.message(jid=GROUP, participant=JID), **bare})
    await harness.deliver("messages.upsert", harness.message("ok", GROUP, participant=JID))
    await harness.deliver("messages.upsert", harness.message("dito por nós", GROUP, mine=True))
    found = await rows(harness.database, "SELECT status, tem_midia, is_forwarded FROM mensagens_grupo ORDER BY id")
    assert [(row["status"], row["tem_midia"], row["is_forwarded"]) for row in found] == [
        ("pendente", True, False), ("ignorada_midia", True, True), ("ignorada_curta", False, False),
    ]  # fmt: skip


async def test_quoted_message_is_stored_with_the_reply(harness: Harness) -> None:
    answer = {"messageType": "extendedTextMessage", "message": {"extendedTextMessage": {
        "text": "vaga preenchida", "contextInfo": {"stanzaId": "3EB0FICTICIO", "participant": JID}}}}  # fmt: skip
    await harness.deliver("messages.upsert", {**harness.message(jid=GROUP, participant=JID), **answer})
    beside = {"contextInfo": {"stanzaId": "3EB0OUTRA"}}
    await harness.deliver("messages.upsert", {**harness.message("plantão fechado", GROUP, participant=JID), **beside})
    await harness.deliver("messages.upsert", harness.message("uma vaga", GROUP, participant=JID))
    found = await rows(harness.database, "SELECT citada FROM mensagens_grupo ORDER BY id")
    assert [row["citada"] for row in found] == ["3EB0FICTICIO", "3EB0OUTRA", None]


async def test_group_message_that_reveals_a_hidden_address_applies_its_opt_out(harness: Harness) -> None:
    await add_doctor(harness.database)
    await harness.deliver("messages.upsert", harness.message("parar", jid=HIDDEN))
    await harness.deliver("messages.upsert", harness.message("uma vaga", GROUP, participant=HIDDEN, participantAlt=JID))
    assert (await one(harness.database, "SELECT permission_state FROM doctor_state"))["permission_state"] == "opted_out"


async def test_hidden_author_has_no_phone_until_a_message_reveals_it(harness: Harness) -> None:
    await harness.deliver("messages.upsert", harness.message("primeira vaga", GROUP, participant=HIDDEN))
    assert (await one(harness.database, "SELECT jid, telefone FROM contatos_grupo")) == {
        "jid": HIDDEN,
        "telefone": None,
    }
    await harness.deliver(
        "messages.upsert", harness.message("segunda vaga", GROUP, participant=HIDDEN, participantAlt=JID)
    )
    assert (await one(harness.database, "SELECT telefone FROM contatos_grupo"))["telefone"] == PHONE
