"""The send protocol on both databases: whatever the gateway answers, a message is sent at most once and its outcome is
recorded.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.contexts.comum.telefone import Address
from app.contexts.comum.whatsapp import (
    NO_LINE,
    Banned,
    Disconnected,
    EstadoDaConexao,
    NotOnWhatsApp,
    RateLimited,
    Refused,
    SendResult,
    Unavailable,
    Unknown,
)
from app.contexts.envio.envios_em_duvida import NotInDoubt
from app.contexts.envio.registro import Registro
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.guardrails import ASK_ABOUT_DECISION
from app.contexts.webhooks.api import Recebida
from app.main import build
from app.settings import Settings
from batuta.kernel.errors import StoreTimeout, StoreUnavailable
from batuta.kernel.events import ItemCrashed
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import code_of, decode
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Settlement, Snooze
from batuta.stores.sql.database import AsJson
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import FakeClock
from tests.julia.envio.sending import MINUTE, OPEN, PHONE, TRUSTED, Office, doctor_writes
from tests.julia.line import Receipt, ScriptedLine
from tests.julia.tables import add_chip, add_doctor, one, rows, write

ANOTHER = LeaseHolder(owner="another", lease=MINUTE)


async def test_message_is_sent_once_and_every_effect_is_written(office: Office, doctor: str, chip: str) -> None:
    id = await office.put(doctor)
    await office.works()
    (receipt,) = office.line.receipts
    assert (receipt.telefone, receipt.texto, receipt.instance) == (PHONE, "Bom dia", "julia-sim")
    row = await office.message(id)
    assert (row["status"], row["outcome"], row["envio_estado"]) == ("enviada", "SENT", None)
    assert (row["provider_message_id"], row["chip_id"]) == (receipt.id, chip)
    said = await one(office.work.database, "SELECT tipo, autor_tipo, conteudo, delivery_status FROM interacoes")
    assert said == {"tipo": "saida", "autor_tipo": "julia", "conteudo": "Bom dia", "delivery_status": "sent"}
    counted = await one(office.work.database, "SELECT msgs_enviadas_total, msgs_enviadas_hoje FROM chips")
    assert counted == {"msgs_enviadas_total": 1, "msgs_enviadas_hoje": 1}
    state = await one(office.work.database, "SELECT permission_state, last_outbound_at FROM doctor_state")
    assert state == {"permission_state": "initial", "last_outbound_at": office.clock.now()}


async def test_doctor_who_opted_out_gets_nothing_and_the_reason_is_recorded(
    office: Office, doctor: str, chip: str
) -> None:
    id = await office.put(doctor)
    await write(office.work.database, "UPDATE clientes SET opted_out = TRUE")
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == ("bloqueada", "BLOCKED_OPTED_OUT")
    assert office.line.receipts == []
    event = await one(office.work.database, "SELECT event_type, event_props FROM business_events")
    assert (event["event_type"], event["event_props"]["desfecho"]) == ("envio_bloqueado", "BLOCKED_OPTED_OUT")


@pytest.mark.parametrize(
    ("said_by", "known_as"),
    [("551199990001", "5511999990001"), ("5511999990001", "551199990001"), ("5511999990001", "5511999990001")],
)
async def test_opt_out_before_registration_counts_with_or_without_the_ninth_digit(
    office: Office, chip: str, said_by: str, known_as: str
) -> None:
    now = office.clock.now()
    asked = Recebida(
        message_id="m1",
        instance="julia-sim",
        de=Address(f"{said_by}@s.whatsapp.net", said_by),
        nome=None,
        texto="parar",
        midia=None,
        em=now,
    )
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, asked, now=now)
    doctor = await add_doctor(office.work.database, known_as, now=now)
    other = await add_doctor(office.work.database, "5511999990002", now=now)
    id = await office.put(doctor, telefone_destino=known_as)
    await office.put(other, telefone_destino="5511999990002")
    await office.works()
    assert (await office.message(id))["outcome"] == "BLOCKED_OPTED_OUT"
    assert [receipt.telefone for receipt in office.line.receipts] == ["5511999990002"]


async def test_message_waits_during_a_probable_opt_out_until_its_decision(office: Office, chip: str) -> None:
    now = office.clock.now()
    doctor = await add_doctor(office.work.database, "5511999990001", now=now)
    asked = Recebida(
        message_id="m1",
        instance="julia-sim",
        de=Address("551199990001@s.whatsapp.net", "551199990001"),
        nome=None,
        texto="de novo isso?",
        midia=None,
        em=now,
    )
    async with office.work.database.transaction() as transaction:
        await office.conversas.recebida(transaction, asked, now=now)
    id = await office.put(doctor, telefone_destino="5511999990001")
    await office.works()
    assert (office.line.receipts, (await office.message(id))["status"]) == ([], "pendente")
    await write(office.work.database, "UPDATE optouts_provaveis SET decisao = 'seguir'")
    await office.clock.advance(ASK_ABOUT_DECISION + MINUTE)
    await office.works()
    assert [receipt.telefone for receipt in office.line.receipts] == ["5511999990001"]


async def test_doctor_marked_as_opted_out_by_hand_gets_nothing(office: Office, doctor: str, chip: str) -> None:
    id = await office.put(doctor)
    await write(office.work.database, "UPDATE clientes SET status = 'optout'")
    await office.works()
    assert (office.line.receipts, (await office.message(id))["outcome"]) == ([], "BLOCKED_OPTED_OUT")


async def test_opt_out_between_decision_and_intent_is_respected(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await office.put(doctor)
    breaker = office.work.circuits.breaker("evolution")
    admit = breaker.admit

    async def opts_out_meanwhile(now: datetime) -> Any:
        await write(office.work.database, "UPDATE clientes SET opted_out = TRUE")
        return await admit(now)

    monkeypatch.setattr(breaker, "admit", opts_out_meanwhile)
    await office.works()
    assert office.line.receipts == []
    assert (await office.message(id))["outcome"] == "BLOCKED_OPTED_OUT"


async def test_message_at_night_waits_for_the_morning_without_an_attempt(
    office: Office, doctor: str, chip: str
) -> None:
    await office.later(timedelta(hours=11))
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["tentativas"]) == ("pendente", 0)
    assert row["agendar_para"] == datetime(2026, 3, 12, 11, 0, tzinfo=UTC)
    assert row["erro"] == "outside the sending hours"
    await office.later(timedelta(hours=10))
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_lost_answer_is_reconciled_and_nothing_is_sent_twice(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    assert (await office.message(id))["envio_estado"] == "unknown"
    await office.works()
    await office.reconciler.look()
    assert len(office.line.receipts) == 1
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    row = await office.message(id)
    assert (row["status"], row["outcome"], row["envio_estado"]) == ("enviada", "SENT", None)
    assert row["provider_message_id"] == office.line.receipts[0].id
    assert len(office.line.receipts) == 1


async def test_message_proved_absent_is_sent_again(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Unknown("timeout"), False)]
    id = await office.put(doctor)
    await office.works()
    await office.later(MINUTE)
    await office.reconciler.look()
    assert (await office.message(id))["envio_estado"] == "unknown"  # too early for a proof
    await office.later(2 * MINUTE)
    await office.reconciler.look()
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["tentativas"]) == ("enviada", 2)
    assert len(office.line.receipts) == 1


async def test_line_that_is_down_proves_nothing(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    office.line.state, office.line.remembers = EstadoDaConexao.CLOSE, False
    id = await office.put(doctor)
    await office.works()
    for _ in range(4):
        await office.later(9 * MINUTE)
        await office.reconciler.look()
    row = await office.message(id)
    assert (row["status"], row["envio_estado"]) == ("pendente", "parked")
    await office.works()
    assert len(office.line.receipts) == 1


async def test_gateway_that_lost_earlier_messages_proves_nothing(office: Office, doctor: str, chip: str) -> None:
    """The gateway may have restarted without its store, or may keep only a limited history or none. Its list of
    messages may then omit a message that it sent, so a missing message proves nothing.
    """
    await office.put(doctor)
    await office.works()
    await office.later(10 * MINUTE)
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor, conteudo="outra")
    await office.works()
    left, office.line.receipts = office.line.receipts, []
    await office.later(3 * MINUTE)
    assert await office.reconciler.look() == 0
    await office.works()
    assert (office.line.receipts, (await office.message(id))["envio_estado"]) == ([], "unknown")
    office.line.receipts = left[:1]  # the gateway lists the earlier message, but not the message in doubt
    await office.later(MINUTE)
    assert await office.reconciler.look() == 1
    await office.works()
    assert (await office.message(id))["tentativas"] == 2


@pytest.mark.parametrize("state", [EstadoDaConexao.CLOSE, EstadoDaConexao.CONNECTING, Unavailable("no answer")])
async def test_absence_on_a_line_that_is_down_proves_nothing(
    office: Office, doctor: str, chip: str, state: EstadoDaConexao | Unavailable
) -> None:
    """A message that is missing from the gateway's list may still have been sent. While the chip's connection is down,
    the list may omit such a message.
    """
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    left, office.line.receipts, office.line.state = office.line.receipts, [], state
    await office.later(3 * MINUTE)
    assert await office.reconciler.look() == 0
    await office.works()
    assert (office.line.receipts, (await office.message(id))["envio_estado"]) == ([], "unknown")
    # the connection is open again, and the gateway lists the message
    office.line.receipts, office.line.state = left, EstadoDaConexao.OPEN
    await office.reconciler.look()
    assert (await office.message(id))["provider_message_id"] == left[0].id


async def test_message_of_another_chip_is_not_a_proof(office: Office, doctor: str, chip: str) -> None:
    """An operator may have sent the same text to the same number by hand from another chip. This does not prove that
    the queued message was sent.
    """
    await add_chip(office.work.database, "julia-outro", status="paused")
    office.line.answers = [(Unknown("timeout"), False)]
    id = await office.put(doctor)
    await office.works()
    await office.echo(Receipt("OTHER", "julia-outro", PHONE, "Bom dia", office.clock.now()))
    await office.reconciler.look()
    assert (await office.message(id))["envio_estado"] == "unknown"
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["provider_message_id"]) == ("enviada", office.line.receipts[0].id)


@pytest.mark.parametrize("turns_up", [True, False])
async def test_one_of_two_reconcilers_settles_the_same_message(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch, turns_up: bool
) -> None:
    """The worker's loop and the scheduled job reconcile the same message concurrently, and only one of them settles it.
    The other is still querying the gateway at that moment.
    """
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor, max_tentativas=1)
    await office.works()
    left, office.line.receipts = office.line.receipts, []
    await office.later(3 * MINUTE)
    connection = office.line.connection

    async def meanwhile(instance: str) -> EstadoDaConexao | Unavailable:
        monkeypatch.undo()
        office.line.receipts = left if turns_up else []
        assert await office.reconciler.look() == 1
        return await connection(instance)

    monkeypatch.setattr(office.line, "connection", meanwhile)
    assert await office.reconciler.look() == 0
    assert (await office.message(id))["status"] == ("enviada" if turns_up else "erro")
    assert len(await rows(office.work.database, "SELECT id FROM fila_mensagens_dlq")) == (not turns_up)


async def test_finding_about_one_attempt_does_not_settle_the_next(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one reconciler is querying the gateway, another proves that the message was not sent. The message is
    retried, and it is then unknown whether the second attempt was sent. The first reconciler must not settle this
    second attempt.
    """
    office.line.answers = [(Unknown("timeout"), False), (Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    await office.later(3 * MINUTE)
    connection = office.line.connection

    async def meanwhile(instance: str) -> EstadoDaConexao | Unavailable:
        monkeypatch.undo()
        assert await office.reconciler.look() == 1
        await office.later(timedelta(seconds=5))
        await office.works()
        return await connection(instance)

    monkeypatch.setattr(office.line, "connection", meanwhile)
    assert await office.reconciler.look() == 0
    assert (await office.message(id))["envio_estado"] == "unknown"
    await office.works()
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize("how", ["gateway", "echo", "echo at the last moment"])
async def test_message_found_after_being_proved_absent_is_not_sent_again(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    left, office.line.receipts = office.line.receipts, []
    await office.later(3 * MINUTE)
    assert await office.reconciler.look() == 1
    assert (await office.message(id))["status"] == "pendente"
    if how == "gateway":
        office.line.receipts = left
    elif how == "echo":
        await office.echo(left[0])
    else:
        breaker = office.work.circuits.breaker("evolution")
        admit = breaker.admit

        async def it_comes_meanwhile(now: datetime) -> Any:
            await office.echo(left[0])
            return await admit(now)

        monkeypatch.setattr(breaker, "admit", it_comes_meanwhile)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["provider_message_id"], row["chip_id"]) == ("enviada", left[0].id, chip)
    assert len(office.line.receipts) == (how == "gateway")
    assert len(await rows(office.work.database, "SELECT conteudo FROM interacoes")) == 1


async def test_late_finding_takes_the_message_from_the_worker_about_to_resend_it(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    left, office.line.receipts = office.line.receipts, []
    await office.later(3 * MINUTE)
    (seen_by_the_slow,) = await office.registro.in_doubt(office.work.database, FILA_MENSAGENS.name, limit=10)
    assert await office.reconciler.look() == 1  # another reconciler proves that it was not sent
    (lease,) = (
        await office.store.settle_and_claim([], LeaseHolder(owner="next", lease=5 * MINUTE), 1)
    ).leases  # a worker claims the message again
    office.line.receipts = left
    assert await office.reconciler._settle(seen_by_the_slow)
    sent = await office.remetente.handle(lease)
    assert isinstance(sent, Snooze)
    assert (await office.store.settle_and_claim([(lease, Settlement(state=ItemState.DONE))], ANOTHER, 0)).lost == [
        lease
    ]
    row = await office.message(id)
    assert (row["status"], row["provider_message_id"], row["lease_until"]) == ("enviada", left[0].id, None)
    assert len(office.line.receipts) == 1


async def test_late_finding_does_not_disturb_a_send_in_progress(office: Office, doctor: str, chip: str) -> None:
    """A reconciler finds that the first attempt was sent, but too late to prevent the second one, whose outcome must be
    recorded.
    """
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    left, office.line.receipts = office.line.receipts, []
    await office.later(3 * MINUTE)
    (seen_by_the_slow,) = await office.registro.in_doubt(office.work.database, FILA_MENSAGENS.name, limit=10)
    await office.reconciler.look()

    async def found_now() -> None:
        office.line.receipts = left
        assert not await office.reconciler._settle(seen_by_the_slow)

    office.line.before_sending = found_now
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["provider_message_id"]) == ("enviada", office.line.receipts[1].id)


async def test_doubt_that_cannot_be_checked_delays_no_other(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.contexts.envio.envios_em_duvida.BATCH", 1)  # each check examines only one message
    office.line.answers = [(Unknown("timeout"), True)] * 2
    first = await office.put(doctor)
    await office.works()
    await office.later(2 * MINUTE)
    other = await add_doctor(office.work.database, "5511900000002", now=OPEN)
    second = await office.put(other, telefone_destino="5511900000002")
    await office.works()
    sent_to = office.line.list_sent

    async def fails_for_one(instance: str, telefone: str, *, since: datetime) -> Any:
        if telefone == PHONE:
            raise RuntimeError("an unexpected answer")
        return await sent_to(instance, telefone, since=since)

    monkeypatch.setattr(office.line, "list_sent", fails_for_one)
    await office.later(5 * MINUTE)
    for _ in range(2):
        await office.reconciler.look()
    assert [(await office.message(id))["envio_estado"] for id in (first, second)] == ["unknown", None]
    assert (await office.message(second))["status"] == "enviada"
    crashed = office.events.of(ItemCrashed)
    assert [(event.queue, event.item, type(event.error)) for event in crashed] == [
        (FILA_MENSAGENS.name, first, RuntimeError)
    ]
    await office.later(31 * MINUTE)
    await office.reconciler.look()
    row = await office.message(first)
    assert (row["envio_estado"], row["outcome_reason_code"]) == ("parked", "RuntimeError during the search")


async def test_database_outage_does_not_count_against_a_doubt(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    await office.later(31 * MINUTE)

    async def away(*arguments: Any, **named: Any) -> Any:
        raise StoreUnavailable(where="-", why="it restarts")

    monkeypatch.setattr(Registro, "record_delivery", away)
    with pytest.raises(StoreUnavailable):
        await office.reconciler.look()
    assert (await office.message(id))["envio_estado"] == "unknown"


async def test_message_cancelled_while_in_doubt_is_not_sent_again(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Unknown("timeout"), False)]
    id = await office.put(doctor)
    await office.works()
    assert await office.store.cancel(id, "no longer wanted")
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    await office.works()
    assert (await office.message(id))["status"] == "cancelada"
    assert office.line.receipts == []


@pytest.mark.parametrize("sent", [True, False])
async def test_person_decides_a_doubt_that_stays_unresolved(office: Office, doctor: str, chip: str, sent: bool) -> None:
    office.line.answers = [(Unknown("timeout"), sent)]
    office.line.remembers = False
    id = await office.put(doctor)
    await office.works()
    with pytest.raises(NotInDoubt):
        await office.reconciler.decide(id, sent=sent, by="test")
    await office.later(31 * MINUTE)
    await office.reconciler.look()
    await office.reconciler.decide(id, sent=sent, by="test")
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1
    noted = await one(office.work.database, "SELECT actor, action, subject FROM audit_log")
    assert noted == {"actor": "test", "action": "mensagem.decidir", "subject": id}


async def test_crash_after_the_intent_leaves_a_doubt_that_is_resolved(office: Office, doctor: str, chip: str) -> None:
    async def dies() -> None:
        raise KeyboardInterrupt

    id = await office.put(doctor)
    office.line.before_sending = dies
    await office.works()  # the handler may not exit the process: the item fails, and its intent stays
    row = await office.message(id)
    assert row["envio_estado"] == "intent"
    office.line.before_sending = None
    await office.later(3 * MINUTE)
    await office.works()
    assert office.line.receipts == []
    await office.reconciler.look()
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1


async def test_message_sent_by_a_dead_worker_is_not_rescued_after_it_was_found(
    office: Office, doctor: str, chip: str
) -> None:
    id = await office.put(doctor)
    (lease,) = (await office.store.settle_and_claim([], LeaseHolder(owner="ghost", lease=MINUTE), 1)).leases
    await office.remetente.handle(lease)  # the worker dies before it settles
    await office.later(3 * MINUTE)
    for _ in range(2):
        await office.reconciler.look()
        await office.store.rescue(10)
        await office.works()
    row = await office.message(id)
    assert (row["status"], row["envio_estado"], row["lease_until"]) == ("enviada", None, None)
    assert len(office.line.receipts) == 1


async def test_outdated_proof_of_absence_does_not_requeue_a_message_that_was_sent(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(Unknown("timeout"), False), (Unknown("timeout"), True)]
    id = await office.put(doctor)
    await office.works()
    await office.later(3 * MINUTE)
    (seen_by_the_sleeper,) = await office.registro.in_doubt(office.work.database, FILA_MENSAGENS.name, limit=10)
    await office.reconciler.look()  # another reconciler proves that it was not sent
    await office.works()  # the message is retried and sent, and the answer is lost
    async with office.work.database.transaction() as transaction:
        assert not await office.registro.absent(transaction, seen_by_the_sleeper.mensagem, now=office.clock.now())
    await office.works()
    assert (await office.message(id))["envio_estado"] == "unknown"
    assert len(office.line.receipts) == 1


async def test_second_reconciler_does_not_report_a_found_message_as_never_arrived(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(Unknown("timeout"), True)]
    id = await office.put(doctor)
    await write(office.work.database, "UPDATE fila_mensagens SET max_tentativas = 1")
    await office.works()
    await office.later(3 * MINUTE)
    (seen_by_the_second,) = await office.registro.in_doubt(office.work.database, FILA_MENSAGENS.name, limit=10)
    await office.reconciler.look()
    assert not await office.reconciler._settle(seen_by_the_second)
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == ("enviada", "SENT")
    assert await rows(office.work.database, "SELECT id FROM fila_mensagens_dlq") == []


async def test_number_without_whatsapp_is_an_error_in_the_dlq(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(NotOnWhatsApp(), False)]
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == ("erro", "FAILED_VALIDATION")
    dead_letter = await one(office.work.database, "SELECT mensagem_original_id, outcome FROM fila_mensagens_dlq")
    assert dead_letter == {"mensagem_original_id": id, "outcome": "FAILED_VALIDATION"}


@pytest.mark.parametrize(
    "answer",
    [Refused("HTTP 400: -", permanent=True), RateLimited(timedelta(minutes=7)), Banned(403)],
    ids=["refused", "rate limited", "banned"],
)
async def test_failing_chip_rests_immediately_and_another_chip_sends_the_message(
    office: Office, doctor: str, chip: str, answer: SendResult
) -> None:
    await write(office.work.database, "UPDATE chips SET trust_score = 95")
    other = await add_chip(office.work.database, "julia-outro")
    await write(office.work.database, TRUSTED + " WHERE instance_name = 'julia-outro'")
    await write(office.work.database, "UPDATE chips SET trust_score = 85 WHERE id = :id", id=other)
    office.line.answers = [(answer, False)]
    first = await office.put(doctor)
    second_doctor = await add_doctor(office.work.database, "5511900000002", now=office.clock.now())
    await office.works()
    second = await office.put(second_doctor, telefone_destino="5511900000002")
    await office.works()
    await office.later(5 * MINUTE)
    await office.works()
    assert {each.instance for each in office.line.receipts} == {"julia-outro"}
    assert {(await office.message(id))["status"] for id in (first, second)} == {"enviada"}
    status = await one(office.work.database, "SELECT status FROM chips WHERE id = :id", id=chip)
    assert status["status"] == ("banned" if isinstance(answer, Banned) else "active")


async def test_listener_never_sends_even_as_the_only_chip(office: Office, doctor: str) -> None:
    await add_chip(office.work.database, "ouvinte", tipo="listener")
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["erro"]) == ("pendente", "no chip may send now")
    assert (office.line.receipts, row["tentativas"]) == ([], 0)


async def test_disconnected_line_is_a_doubt_because_the_message_may_have_been_sent(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(Disconnected(), True)]
    id = await office.put(doctor)
    await office.works()
    assert (await office.message(id))["envio_estado"] == "unknown"
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize("known", [{}, {"evolution_api_url": "http://127.0.0.1:1"}], ids=["nothing", "no key"])
async def test_process_without_a_gateway_ends_no_message(
    office: Office, doctor: str, chip: str, database_url: str, known: dict[str, Any]
) -> None:
    """A process without a gateway leaves a message in the queue, because another process may have a gateway and can
    send the message.
    """
    id = await office.put(doctor)
    async with build(Settings(database_url=database_url, **known), clock=office.clock).work as beside:
        await beside.work_once(FILA_MENSAGENS.name, 1)
    row = await office.message(id)
    assert (row["status"], row["erro"], row["tentativas"]) == ("pendente", NO_LINE(), 0)
    await office.later(MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_message_that_failed_three_times_enters_the_dlq(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Refused("the gateway cannot be reached (refused)"), False)] * 3
    id = await office.put(doctor)
    for _ in range(3):
        await office.works()
        await office.later(10 * MINUTE)
    row = await office.message(id)
    assert (row["status"], row["outcome"], row["tentativas"]) == ("erro", "FAILED_PROVIDER", 3)
    assert len(await rows(office.work.database, "SELECT id FROM fila_mensagens_dlq")) == 1


async def test_pause_during_preparation_holds_the_message(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaker = office.work.circuits.breaker("evolution")
    admit = breaker.admit

    async def pauses_meanwhile(now: datetime) -> Any:
        await office.work.switches.set("pause.all", True, by="test", reason="-", now=now)
        return await admit(now)

    monkeypatch.setattr(breaker, "admit", pauses_meanwhile)
    id = await office.put(doctor)
    await office.works()
    assert office.line.receipts == []
    assert (await office.message(id))["status"] == "pendente"


async def test_paused_campaign_holds_its_queued_messages_and_continues_afterwards(
    office: Office, doctor: str, chip: str
) -> None:
    await write(
        office.work.database,
        "INSERT INTO campanhas (id, nome_template, tipo_campanha, status, created_at, updated_at)"
        " VALUES (7, 'teste', 'oferta', 'pausada', :now, :now)",
        now=office.clock.now(),
    )
    id = await office.put(doctor, campanha_id=7, tipo="campanha")
    await office.works()
    assert office.line.receipts == []
    await write(office.work.database, "UPDATE campanhas SET status = 'ativa'")
    await office.later(MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    campaign = await one(office.work.database, "SELECT enviados, entregues FROM campanhas")
    assert campaign == {"enviados": 1, "entregues": 0}


async def test_no_more_than_the_limit_is_sent_in_an_hour_and_nothing_is_lost(
    database_url: str, clock: FakeClock
) -> None:
    clock.step(OPEN - clock.now())
    settings = Settings(
        database_url=database_url, evolution_api_url="http://127.0.0.1:1", rate_limit_per_hour=3, send_min_gap_seconds=1
    )
    async with build(settings, clock=clock).work as work:
        office = Office(work, clock, ScriptedLine(clock), settings)
        await add_chip(work.database, "julia-sim")
        await write(work.database, TRUSTED)
        for n in range(7):
            phone = f"551190000010{n}"
            await office.put(await add_doctor(work.database, phone, now=OPEN), telefone_destino=phone)
        for _ in range(3):
            for _ in range(12):
                await office.works()
                await office.later(5 * MINUTE)
        sent = sorted(each.em for each in office.line.receipts)
    assert len(sent) == 7
    assert all(later - earlier >= timedelta(hours=1) for earlier, later in zip(sent, sent[3:], strict=False))


async def test_same_text_twice_reaches_a_doctor_once(office: Office, doctor: str, chip: str) -> None:
    first, second = await office.put(doctor), await office.put(doctor)
    await office.works()
    await office.later(MINUTE)
    await office.works()
    assert len(office.line.receipts) == 1
    assert {(await office.message(id))["outcome"] for id in (first, second)} == {"SENT", "DEDUPED"}


async def test_message_sent_before_a_restore_is_not_sent_again(office: Office, doctor: str, chip: str) -> None:
    id = await office.put(doctor)
    await office.works()
    await office.later(20 * MINUTE)
    # The state of a backup taken before the message left.
    await write(office.work.database, "DELETE FROM interacoes")
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET status = 'pendente', provider_message_id = NULL, enviada_em = NULL, envio_hash = NULL,"
        " chip_id = NULL, outcome = NULL, finalizada_em = NULL, tentativas = 0",
    )
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome_reason_code"]) == ("enviada", "the message was found at the gateway")
    assert len(office.line.receipts) == 1


async def test_message_sent_right_after_enqueue_is_found_after_a_restore(
    office: Office, doctor: str, chip: str
) -> None:
    await office.later(timedelta(milliseconds=700))
    id = await office.put(doctor)
    await office.works()
    await office.later(timedelta(seconds=10))
    await write(office.work.database, "DELETE FROM interacoes")
    await write(
        office.work.database,
        "UPDATE fila_mensagens SET status = 'pendente', provider_message_id = NULL, enviada_em = NULL, envio_hash = NULL,"
        " chip_id = NULL, outcome = NULL, finalizada_em = NULL, tentativas = 0",
    )
    office.work.opened_at = office.clock.now()  # all processes are stopped before a restore
    await office.works()
    assert (await office.message(id))["outcome_reason_code"] == "the message was found at the gateway"
    assert len(office.line.receipts) == 1


async def test_decision_that_is_too_old_does_not_send(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    intend = Registro.intend

    async def slowly(*arguments: Any, **named: Any) -> bool:
        await office.later(timedelta(seconds=3))
        return await intend(*arguments, **named)

    monkeypatch.setattr(Registro, "intend", slowly)
    id = await office.put(doctor)
    await office.worker.once(1)
    row = await office.message(id)
    assert (office.line.receipts, row["status"], row["envio_estado"]) == ([], "pendente", None)
    monkeypatch.undo()
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_message_is_decided_after_its_wait_for_a_slot_in_the_limits(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = office.work.rates.reserve

    async def slowly(*arguments: Any, **named: Any) -> Any:
        reserved = await reserve(*arguments, **named)
        await office.later(timedelta(seconds=3))
        return reserved

    monkeypatch.setattr(office.work.rates, "reserve", slowly)
    id = await office.put(doctor)
    await office.worker.once(1)
    assert (await office.message(id))["status"] == "enviada"
    await office.later(timedelta(hours=8, minutes=59, seconds=53))  # 19:59:56, and 19:59:59 when it has its slot
    second = await add_doctor(office.work.database, "5511900000002", now=office.clock.now())
    late = await office.put(second, telefone_destino="5511900000002")
    await office.worker.once(1)
    assert (await office.message(late))["erro"] == "outside the sending hours"
    assert len(office.line.receipts) == 1


async def test_expired_lease_sends_nothing_before_another_claim(office: Office, doctor: str, chip: str) -> None:
    id = await office.put(doctor)
    (lease,) = (await office.store.settle_and_claim([], LeaseHolder(owner="slow", lease=MINUTE), 1)).leases
    await office.later(MINUTE)
    assert isinstance(await office.remetente.handle(lease), Snooze)
    assert (office.line.receipts, (await office.message(id))["envio_estado"]) == ([], None)


async def test_cancellation_that_comes_with_the_intent_is_respected(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message is not sent if another process commits its cancellation at the last moment: after all checks, but
    before this process records its intent to send.
    """
    intend = Registro.intend

    async def unwanted_by_now(registro: Registro, transaction: Any, lease: Lease, *rest: Any, **named: Any) -> bool:
        wish = "UPDATE fila_mensagens SET cancelamento_pedido = TRUE WHERE id = :id"
        dialect = office.work.database.dialect
        await transaction.run(in_dialect(query_of("wish", wish, writes=True), dialect), id=lease.id)
        return await intend(registro, transaction, lease, *rest, **named)

    monkeypatch.setattr(Registro, "intend", unwanted_by_now)
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (office.line.receipts, row["status"], row["envio_estado"]) == ([], "cancelada", None)


@pytest.mark.parametrize("why", ["the database is away", "it is lost", "it took too long", "no chip is there"])
async def test_send_that_does_not_begin_releases_its_circuit_probe(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    """After an outage, one send probes the circuit. If that send does not begin, the next one may probe immediately."""
    for name in ("evolution", "chip:julia-sim"):
        await office.work.circuits.breaker(name).trip("an outage")
    await office.later(timedelta(hours=1))
    intend = Registro.intend

    async def in_vain(*arguments: Any, **named: Any) -> bool:
        if why == "the database is away":
            raise StoreUnavailable(where="-", why="it restarts")
        if why == "it took too long":
            await office.later(timedelta(seconds=3))
            return await intend(*arguments, **named)
        return False

    await office.put(doctor)
    if why == "no chip is there":
        await write(office.work.database, "UPDATE chips SET evolution_connected = FALSE")
    monkeypatch.setattr(Registro, "intend", in_vain)
    await office.worker.once(1)
    monkeypatch.undo()
    assert office.line.receipts == []
    await write(office.work.database, "UPDATE chips SET evolution_connected = TRUE")
    other = await add_doctor(office.work.database, "5511900000002", now=office.clock.now())
    await office.put(other, telefone_destino="5511900000002")
    await office.works()
    assert office.line.receipts


async def test_send_that_would_arrive_after_closing_time_does_not_begin(office: Office, doctor: str, chip: str) -> None:
    await office.later(timedelta(hours=9, seconds=-1))  # 19:59:59
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (office.line.receipts, row["erro"]) == ([], "outside the sending hours")
    assert row["agendar_para"] == datetime(2026, 3, 12, 11, 0, tzinfo=UTC)


async def test_gateway_that_needs_a_person_costs_no_attempt(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Refused("HTTP 401: the gateway refuses the key", needs_person=True), False)]
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["tentativas"]) == ("pendente", 0)
    assert row["erro"] == "HTTP 401: the gateway refuses the key"
    await office.later(2 * MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_reply_with_a_proven_inbound_message_is_sent_at_night(office: Office, doctor: str, chip: str) -> None:
    await office.later(timedelta(hours=14))
    await doctor_writes(office, doctor, "IN1")
    proved = await office.put(doctor, tipo="resposta", metadata=AsJson({"inbound_message_id": "IN1"}))
    claimed = await office.put(doctor, "Olá", tipo="resposta", metadata=AsJson({"inbound_message_id": "IN2"}))
    await office.works()
    assert (await office.message(proved))["status"] == "enviada"
    assert (await office.message(claimed))["status"] == "pendente"


async def test_nothing_is_sent_while_the_intent_cannot_be_written(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await office.put(doctor)

    async def away(*arguments: Any, **named: Any) -> Any:
        raise StoreUnavailable(where="-", why="the disk is full")

    monkeypatch.setattr(office.work.rates, "reserve", away)
    await office.works()
    assert office.line.receipts == []
    row = await office.message(id)
    assert (row["status"], row["envio_estado"]) == ("pendente", None)


async def test_gateway_without_history_does_not_hold_old_messages(office: Office, doctor: str, chip: str) -> None:
    office.line.remembers = False
    id = await office.put(doctor, available_at=OPEN + 10 * MINUTE)
    await office.later(11 * MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert isinstance(await office.line.list_sent("julia-sim", PHONE, since=OPEN), Unavailable)


async def test_slow_database_uses_up_no_attempt_of_a_message(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id, where = await office.put(doctor), office.work.database.where

    async def slow(*_: object, **__: object) -> None:
        raise StoreTimeout(where=where, why="the statement took too long")

    with monkeypatch.context() as patched:
        patched.setattr(office.registro, "intend", slow)
        for _ in range(10):
            await office.works()
            row = await office.message(id)
            assert (row["status"], row["tentativas"], code_of(decode(row["erro"]))) == ("pendente", 0, "store_away")
            await office.clock.advance(5 * MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.line.receipts) == 1
