"""A listener is called for each message that ends, in the transaction that settles the message. The tests run on both
databases.
"""

from datetime import datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.comum.whatsapp import NotOnWhatsApp, Unknown
from app.contexts.mensagens.api import Desfecho, MensagemEncerrada, Tipo
from app.contexts.mensagens.service import Mensagens, NaDevolucao
from batuta.kernel.leases import LeaseHolder
from batuta.sql import AsJson, Transaction
from tests.julia.envio.sending import MINUTE, Office, doctor_writes
from tests.julia.tables import rows, sending_through, write

DAY = timedelta(days=1)


class Listener:
    """A listener that records each call in ``heard``, or fails if the test requests it."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, MensagemEncerrada]] = []
        self.fails = False

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        self._hear("enviada", mensagem)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        self._hear("encerrada", mensagem)

    def _hear(self, what: str, mensagem: MensagemEncerrada) -> None:
        if self.fails:
            raise RuntimeError("a listener with a bug")
        self.heard.append((what, mensagem))

    @property
    def endings(self) -> list[tuple[str, str, Desfecho]]:
        return [(what, each.id, each.desfecho) for what, each in self.heard]


@pytest.fixture
def listener(office: Office) -> Listener:
    made = Listener()
    julia_of(office.work).messages.ouvintes.registrar([Tipo.FOLLOWUP_1], made)
    return made


@pytest.fixture
def mensagens(office: Office) -> Mensagens:
    return julia_of(office.work).messages.mensagens


async def put(office: Office, doctor: str, **values: Any) -> str:
    return await office.put(doctor, tipo="followup_1", **values)


async def take_over(office: Office, doctor: str) -> None:
    await write(
        office.work.database,
        "INSERT INTO conversations (id, cliente_id, controlled_by, created_at, updated_at)"
        " VALUES (:id, :id, 'human', :now, :now)",
        id=doctor,
        now=office.clock.now(),
    )


async def give_back(office: Office, doctor: str, mensagens: Mensagens, decisao: NaDevolucao) -> int:
    async with office.work.database.transaction() as transaction:
        count = await mensagens.devolver(transaction, doctor, decisao, now=office.clock.now())
    await write(office.work.database, "UPDATE conversations SET controlled_by = 'ai'")
    return count


async def test_sent_message_is_announced_once_with_its_facts(
    office: Office, doctor: str, chip: str, listener: Listener
) -> None:
    id = await put(office, doctor, metadata=AsJson({"estagio": "msg_enviada"}))
    await office.works()
    await office.put(doctor, texto="Outra", tipo="followup_2")
    await office.later(MINUTE)
    await office.works()
    assert len(office.line.receipts) == 2
    ((what, heard),) = listener.heard
    row = await office.message(id)
    assert (what, heard.id, heard.tipo, heard.cliente_id) == ("enviada", id, "followup_1", doctor)
    assert (heard.conversa_id, heard.desfecho, heard.em) == (row["conversa_id"], Desfecho.SENT, row["enviada_em"])
    assert heard.metadata == {"estagio": "msg_enviada"}


async def test_blocked_failed_and_refused_messages_are_announced(
    office: Office, doctor: str, chip: str, listener: Listener
) -> None:
    office.line.answers.append((NotOnWhatsApp(), False))
    refused = await put(office, doctor)
    await office.works()
    await write(office.work.database, "UPDATE clientes SET opted_out = TRUE")
    blocked = await put(office, doctor, texto="Outra")
    await office.works()
    assert listener.endings == [
        ("encerrada", refused, Desfecho.FAILED_VALIDATION),
        ("encerrada", blocked, Desfecho.BLOCKED_OPTED_OUT),
    ]


async def test_message_found_after_a_doubt_is_announced_as_sent(
    office: Office, doctor: str, chip: str, listener: Listener
) -> None:
    office.line.answers.append((Unknown("cut"), True))
    id = await put(office, doctor)
    await office.works()
    assert listener.heard == []
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    assert listener.endings == [("enviada", id, Desfecho.SENT)]


async def test_cancelled_messages_are_announced(
    office: Office, doctor: str, mensagens: Mensagens, listener: Listener
) -> None:
    id = await put(office, doctor)
    async with office.work.database.transaction() as transaction:
        outcome = Desfecho.BLOCKED_OPTED_OUT.value
        cancelled = await mensagens.cancelar(transaction, doctor, outcome=outcome, reason="-", now=office.clock.now())
    assert cancelled == 1
    assert listener.endings == [("encerrada", id, Desfecho.BLOCKED_OPTED_OUT)]


async def test_expired_message_is_announced(office: Office, doctor: str, listener: Listener) -> None:
    id = await put(office, doctor)
    await office.later(2 * DAY + MINUTE)
    async with office.work.database.transaction() as transaction:
        assert await office.registro.expire(transaction, id, "-", now=office.clock.now())
        assert not await office.registro.expire(transaction, id, "-", now=office.clock.now())
    assert listener.endings == [("encerrada", id, Desfecho.FAILED_EXPIRED)]


async def test_message_whose_workers_died_is_announced(office: Office, doctor: str, listener: Listener) -> None:
    id = await put(office, doctor)
    for _ in range(3):
        await office.store.settle_and_claim([], LeaseHolder(owner="ghost", lease=MINUTE), 1)
        await office.later(2 * MINUTE)
        await office.store.rescue(10)
        await office.later(20 * MINUTE)
    async with office.work.database.transaction() as transaction:
        assert await office.registro.store_dead_letters(transaction, now=office.clock.now(), limit=10) == 1
        assert await office.registro.store_dead_letters(transaction, now=office.clock.now(), limit=10) == 0
    assert listener.endings == [("encerrada", id, Desfecho.FAILED_TIMEOUT)]


async def test_settlement_and_listener_succeed_or_fail_together(
    office: Office, doctor: str, chip: str, listener: Listener
) -> None:
    listener.fails = True
    id = await put(office, doctor)
    await office.works()
    row = await office.message(id)
    assert (row["envio_estado"], row["enviada_em"]) == ("intent", None)
    assert await rows(office.work.database, "SELECT id FROM interacoes") == []
    listener.fails = False
    await office.later(10 * MINUTE)
    await office.store.rescue(10)
    await office.reconciler.look()
    assert listener.endings == [("enviada", id, Desfecho.SENT)]
    assert len(office.line.receipts) == 1


# A person handles the conversation


async def test_messages_wait_while_a_person_has_the_conversation(office: Office, doctor: str, chip: str) -> None:
    waits = await office.put(doctor)
    written = await office.put(doctor, tipo="manual", texto="Aqui é uma pessoa")
    await take_over(office, doctor)
    await office.works()
    assert [receipt.texto for receipt in office.line.receipts] == ["Aqui é uma pessoa"]
    row = await office.message(waits)
    assert (row["status"], row["tentativas"], row["erro"]) == (
        "pendente",
        0,
        "a team member has taken over the conversation",
    )
    assert (await office.message(written))["status"] == "enviada"


async def test_takeover_between_decision_and_intent_holds_the_message(
    office: Office, doctor: str, chip: str, mensagens: Mensagens, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await put(office, doctor)
    breaker = office.work.circuits.breaker("evolution")
    admit = breaker.admit

    async def person_takes_over(now: datetime) -> Any:
        async with office.work.database.transaction() as transaction:
            await mensagens.travar(transaction, doctor)
        await take_over(office, doctor)
        return await admit(now)

    monkeypatch.setattr(breaker, "admit", person_takes_over)
    await office.works()
    assert (office.line.receipts, (await office.message(id))["status"]) == ([], "pendente")


async def test_held_messages_do_not_expire_while_a_person_has_the_conversation(office: Office, doctor: str) -> None:
    id = await put(office, doctor)
    await take_over(office, doctor)
    await office.later(9 * DAY)
    jobs = sending_through(office.work, office.settings, office.line).jobs
    assert await jobs._expire() == 0
    assert (await office.message(id))["status"] == "pendente"


async def test_held_messages_continue_by_the_decision_of_the_person(
    office: Office, doctor: str, chip: str, mensagens: Mensagens
) -> None:
    await take_over(office, doctor)
    id, next_week = await put(office, doctor), office.clock.now() + 7 * DAY
    later = await put(office, doctor, texto="Depois", available_at=next_week, devida_em=next_week)
    await office.works()
    await office.later(5 * DAY)  # a Monday
    assert await give_back(office, doctor, mensagens, NaDevolucao.CONTINUAR) == 2
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    row = await office.message(later)
    assert (row["agendar_para"], row["devida_em"]) == (next_week, next_week)


async def test_held_messages_are_cancelled_by_the_decision_of_the_person(
    office: Office, doctor: str, mensagens: Mensagens, listener: Listener
) -> None:
    await take_over(office, doctor)
    id = await put(office, doctor)
    by_person = await office.put(doctor, tipo="manual", texto="Aqui é uma pessoa")
    assert await give_back(office, doctor, mensagens, NaDevolucao.CANCELAR) == 1
    assert (await office.message(id))["status"] == "cancelada"
    assert (await office.message(by_person))["status"] == "pendente"
    assert listener.endings == [("encerrada", id, Desfecho.FAILED_EXPIRED)]


# Triggers


@pytest.mark.parametrize("switch", ["pilot_mode", "discovery_automatico_enabled"])
async def test_message_queued_by_a_trigger_waits_after_the_switch_changes(
    office: Office, doctor: str, chip: str, switch: str
) -> None:
    switches, now = office.work.switches, office.clock.now()
    await switches.set("pilot_mode", False, by="ana", reason="-", now=now)
    await switches.set("discovery_automatico_enabled", True, by="ana", reason="-", now=now)
    id = await office.put(doctor, tipo="discovery")
    await switches.set(switch, switch == "pilot_mode", by="ana", reason="-", now=now)
    await office.works()
    row = await office.message(id)
    assert (office.line.receipts, row["status"], row["tentativas"]) == ([], "pendente", 0)
    assert row["erro"] == f"switch {switch} is holding back messages from this automatic trigger"
    await switches.set(switch, switch != "pilot_mode", by="ana", reason="-", now=office.clock.now())
    await office.later(10 * MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_switch_that_changes_before_the_intent_holds_the_message(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    switches = office.work.switches
    await switches.set("pilot_mode", False, by="ana", reason="-", now=office.clock.now())
    await switches.set("oferta_automatica_enabled", True, by="ana", reason="-", now=office.clock.now())
    id = await office.put(doctor, tipo="oferta", metadata=AsJson({"gatilho": "oferta_automatica_enabled"}))
    breaker = office.work.circuits.breaker("evolution")
    admit = breaker.admit

    async def pilot_begins(now: datetime) -> Any:
        await switches.set("pilot_mode", True, by="ana", reason="-", now=now)
        return await admit(now)

    monkeypatch.setattr(breaker, "admit", pilot_begins)
    await office.works()
    assert (office.line.receipts, (await office.message(id))["status"]) == ([], "pendente")


async def test_offer_of_a_person_and_an_unknown_trigger_in_pilot_mode(office: Office, doctor: str, chip: str) -> None:
    announced = await office.put(doctor, tipo="oferta")
    strange = await office.put(doctor, texto="Outra", tipo="oferta", metadata=AsJson({"gatilho": "sem_chave"}))
    await office.works()
    await office.later(MINUTE)
    await office.works()
    assert (await office.message(announced))["status"] == "enviada"
    assert (await office.message(strange))["status"] == "pendente"


# The proof of an answer to a message of the night


async def test_answer_to_a_message_of_the_night_is_sent_as_an_answer_in_the_morning(
    office: Office, doctor: str, chip: str
) -> None:
    await office.later(timedelta(hours=12))  # 23:00
    await doctor_writes(office, doctor, "NIGHT")
    await take_over(office, doctor)
    await write(office.work.database, "UPDATE conversations SET controlled_by = 'ai'")
    await write(
        office.work.database,
        "INSERT INTO mensagens_fora_horario (id, cliente_id, conversa_id, inbound_message_id, recebida_em, created_at)"
        " VALUES (:doctor, :doctor, :doctor, 'NIGHT', :now, :now)",
        doctor=doctor,
        now=office.clock.now(),
    )
    await office.later(timedelta(hours=10))
    await write(office.work.database, "UPDATE doctor_state SET permission_state = 'cooling_off'")
    id = await office.put(doctor, tipo="retomada", metadata=AsJson({"inbound_message_id": "NIGHT"}))
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    await office.later(timedelta(hours=4))
    late = await office.put(doctor, texto="Tarde", tipo="retomada", metadata=AsJson({"inbound_message_id": "NIGHT"}))
    await office.works()
    assert (await office.message(late))["outcome"] == "BLOCKED_COOLING_OFF"


async def test_answers_do_not_count_as_contacts(office: Office, doctor: str) -> None:
    for n, tipo in enumerate(("resposta", "retomada", "recebimento", "followup_1")):
        id = await office.put(doctor, texto=f"Texto {n}", tipo=tipo)
        await write(
            office.work.database,
            "UPDATE fila_mensagens SET status = 'enviada', enviada_em = :now WHERE id = :id",
            id=id,
            now=office.clock.now() - MINUTE,
        )
    await office.put(doctor)
    (lease,) = (await office.store.settle_and_claim([], LeaseHolder(owner="test", lease=MINUTE), 1)).leases
    fatos = await office.registro.facts(office.work.database, lease, "-", now=office.clock.now())
    assert fatos is not None
    assert fatos.medico.contacts_7d == 1
