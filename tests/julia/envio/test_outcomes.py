"""How sending affects limits, chips, circuits and outcomes, and what is checked immediately before a send."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from app.composition.envio import limits
from app.contexts.comum.whatsapp import Banned, Disconnected, NotOnWhatsApp, RateLimited, Refused, SendResult, Unknown
from app.contexts.mensagens.fila import FILA_MENSAGENS
from batuta.kernel.leases import LeaseHolder
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import AsJson
from batuta.testing import EventRecorder
from tests.julia.envio.sending import MINUTE, OPEN, PHONE, TRUSTED, Office, doctor_writes
from tests.julia.tables import add_chip, add_doctor, one, rows, write


async def test_message_is_sent_by_another_chip_when_one_reached_its_daily_limit(
    office: Office, doctor: str, chip: str
) -> None:
    other = await add_chip(office.work.database, "julia-outro")
    await write(office.work.database, TRUSTED)
    await write(office.work.database, "UPDATE chips SET trust_score = 95, limite_dia = 1 WHERE id = :id", id=chip)
    await office.put(doctor)
    await office.works()
    await office.later(timedelta(hours=2))
    second = await add_doctor(office.work.database, "5511900000002", now=office.clock.now())
    await office.put(second, telefone_destino="5511900000002")
    await office.works()
    assert [each.instance for each in office.line.receipts] == ["julia-sim", "julia-outro"]
    assert (await one(office.work.database, "SELECT msgs_enviadas_hoje FROM chips WHERE id = :id", id=other)) == {
        "msgs_enviadas_hoje": 1
    }


async def test_same_answer_from_two_concurrent_senders_is_sent_once(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    await doctor_writes(office, doctor, "IN1")
    for _ in range(2):
        await office.put(doctor, tipo="resposta", metadata=AsJson({"inbound_message_id": "IN1"}))
    leases = (await office.store.settle_and_claim([], LeaseHolder(owner="two", lease=5 * MINUTE), 2)).leases
    read, both = office.registro.facts, asyncio.Barrier(2)

    async def reads_beside_the_other(reading: Any, *arguments: Any, **named: Any) -> Any:
        found = await read(reading, *arguments, **named)
        with suppress(TimeoutError, asyncio.BrokenBarrierError):
            await asyncio.wait_for(both.wait(), 0.5)
        return found

    monkeypatch.setattr(office.registro, "facts", reads_beside_the_other)
    await asyncio.gather(*map(office.remetente.handle, leases))
    assert len(office.line.receipts) == 1


@pytest.mark.parametrize(
    ("telefone", "texto"), [("", "Bom dia"), ("x", "Bom dia"), (PHONE, " \n"), (PHONE, "a" * 70_000)]
)
async def test_message_that_no_gateway_could_send_fails_without_resting_a_chip(
    office: Office, doctor: str, chip: str, telefone: str, texto: str
) -> None:
    id = await office.put(doctor, texto, telefone_destino=telefone)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"], office.line.receipts) == ("erro", "FAILED_VALIDATION", [])
    assert len(await rows(office.work.database, "SELECT id FROM fila_mensagens_dlq")) == 1
    assert await one(office.work.database, "SELECT cooldown_until FROM chips") == {"cooldown_until": None}


async def test_old_message_waits_while_the_gateway_cannot_tell_whether_it_was_sent(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.remembers = False
    id = await office.put(doctor)
    # the process started after the message was queued, and its database may be an old copy
    office.work.opened_at = office.clock.now() + MINUTE
    await office.later(2 * MINUTE)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["tentativas"], office.line.receipts) == ("pendente", 0, [])
    office.line.remembers = True
    await office.later(2 * MINUTE)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"


async def test_temporary_failure_costs_no_attempt_and_the_message_is_sent_later(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(RateLimited(timedelta(minutes=7)), False)]
    id = await office.put(doctor)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["tentativas"], row["outcome"]) == ("pendente", 0, None)
    await office.later(8 * MINUTE)
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"]) == ("enviada", "SENT")  # the message is not treated as a duplicate of itself


async def test_answer_is_sent_before_a_campaign_message_that_waited_longer(
    office: Office, doctor: str, chip: str
) -> None:
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    second = await add_doctor(office.work.database, "5511900000002", now=office.clock.now())
    await office.put(second, "campanha", telefone_destino="5511900000002", tipo="oferta", priority=3)
    await office.later(MINUTE)
    await office.put(doctor, "resposta", priority=5)
    (first,) = (await office.store.settle_and_claim([], LeaseHolder(owner="one", lease=MINUTE), 1)).leases
    assert first.row["conteudo"] == "resposta"


async def test_two_senders_at_once_never_send_the_same_message(office: Office, chip: str) -> None:
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    for n in range(12):
        phone = f"55119000001{n:02d}"
        await office.put(await add_doctor(office.work.database, phone, now=OPEN), telefone_destino=phone)
    lease_holder, handler = LeaseHolder(owner="other", lease=5 * MINUTE), office.remetente.handler()
    other = Worker(
        FILA_MENSAGENS.name,
        office.store,
        lambda _: handler,
        lease_holder,
        WorkerPolicy(limit=4),
        office.clock,
        EventRecorder(),
    )
    await asyncio.gather(office.worker.once(100), other.once(100))
    assert len(office.line.receipts) == len({each.telefone for each in office.line.receipts}) == 12


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ("UPDATE clientes SET opt_out = TRUE", "BLOCKED_OPTED_OUT"),
        ("UPDATE clientes SET opted_out = TRUE", "BLOCKED_OPTED_OUT"),
        ("UPDATE doctor_state SET permission_state = 'opted_out'", "BLOCKED_OPTED_OUT"),
        (
            "INSERT INTO external_contacts (telefone, permission_state, created_at, updated_at)"
            f" VALUES ('{PHONE}', 'opted_out', :now, :now)",
            "BLOCKED_OPTED_OUT",
        ),
        ("UPDATE doctor_state SET permission_state = 'cooling_off'", "BLOCKED_COOLING_OFF"),
        ("UPDATE doctor_state SET next_allowed_at = :later", "BLOCKED_NEXT_ALLOWED"),
        (
            "INSERT INTO fila_mensagens"
            " (id, cliente_id, telefone_destino, conteudo, tipo, status, agendar_para, enviada_em, created_at)"
            " SELECT other.id, state.cliente_id, 'x', 'x', 'followup', 'enviada', :now, :now, :now"
            " FROM doctor_state AS state, clientes AS other WHERE other.telefone LIKE '55119000001%'",
            "BLOCKED_CONTACT_CAP",
        ),
        (
            "INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at) SELECT cliente_id, 8, :now FROM doctor_state",
            "BLOCKED_CAMPAIGN_COOLDOWN",
        ),
    ],
)
async def test_change_since_enqueue_blocks_the_message_and_records_the_outcome(
    office: Office, doctor: str, chip: str, change: str, outcome: str
) -> None:
    now = office.clock.now()
    for n in range(5):
        await add_doctor(office.work.database, f"551190000010{n}", now=now)
    for id in (7, 8):
        await write(
            office.work.database,
            "INSERT INTO campanhas (id, nome_template, tipo_campanha, status, created_at, updated_at)"
            " VALUES (:id, 'teste', 'oferta', 'ativa', :now, :now)",
            id=id,
            now=now,
        )
    await write(
        office.work.database, "INSERT INTO doctor_state (cliente_id, updated_at) VALUES (:id, :now)", id=doctor, now=now
    )
    message = await office.put(doctor, campanha_id=7, tipo="campanha")
    known = {"now": now, "later": now + MINUTE}
    await write(office.work.database, change, **{name: at for name, at in known.items() if f":{name}" in change})
    await office.works()
    row = await office.message(message)
    assert (row["status"], row["outcome"], office.line.receipts) == ("bloqueada", outcome, [])
    event = await one(office.work.database, "SELECT event_type, event_props FROM business_events")
    assert (event["event_type"], event["event_props"]["desfecho"]) == ("envio_bloqueado", outcome)


async def test_message_in_progress_during_an_opt_out_ends_as_opted_out(office: Office, doctor: str, chip: str) -> None:
    message = await office.put(doctor)
    for change in ("clientes SET opted_out = TRUE", "fila_mensagens SET cancelamento_pedido = TRUE"):
        await write(office.work.database, f"UPDATE {change}")
    await office.works()
    row = await office.message(message)
    assert (row["status"], row["outcome"], office.line.receipts) == ("cancelada", "BLOCKED_OPTED_OUT", [])


@pytest.mark.parametrize(
    ("answer", "minutes"),
    [
        (Refused("HTTP 400: -", permanent=True), 15),
        (RateLimited(None), 5),
        (RateLimited(timedelta(minutes=7)), 7),
        (Disconnected(), 5),
        (Unknown("timeout"), None),
        (Refused("the gateway cannot be reached (refused)"), None),
        (NotOnWhatsApp(), None),
    ],
)
async def test_chip_rests_as_long_as_its_error_says(
    office: Office, doctor: str, chip: str, answer: SendResult, minutes: int | None
) -> None:
    office.line.answers = [(answer, False)]
    await office.put(doctor)
    await office.works()
    rests = None if minutes is None else office.clock.now() + minutes * MINUTE
    assert await one(office.work.database, "SELECT cooldown_until FROM chips") == {"cooldown_until": rests}
    errors = await rows(office.work.database, "SELECT motivo FROM chip_erros")
    assert len(errors) == (minutes is not None)


async def _others(office: Office, count: int, first: int = 0) -> list[str]:
    """Enqueue one message for each of ``count`` more doctors."""
    ids = []
    for n in range(first, first + count):
        phone = f"55119000002{n:02d}"
        doctor = await add_doctor(office.work.database, phone, now=office.clock.now())
        ids.append(await office.put(doctor, telefone_destino=phone))
    return ids


async def _used(office: Office) -> int:
    hora = limits(office.settings).hora
    return (await office.work.rates.count_used([hora]))[hora.name]


async def _circuit(office: Office, name: str) -> str:
    return next((each.state.value for each in await office.work.circuits.look() if each.name == name), "closed")


async def test_limit_of_one_doctor_holds_only_that_doctor(office: Office, doctor: str, chip: str) -> None:
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    both = [await office.put(doctor), await office.put(doctor, "Boa tarde")]
    await _others(office, 3)
    await office.works()
    errors = [(await office.message(id))["erro"] or "" for id in both]
    assert sum("telefone/intervalo" in each for each in errors) == 1
    assert len(office.line.receipts) == 4


async def test_global_limit_is_not_asked_for_each_message(
    office: Office, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    asked, reserve = 0, office.work.rates.reserve
    one_an_hour = [replace(limit, most=1) for limit in (limits(office.settings).hora,)]

    async def counted(wanted: Any, **named: Any) -> Any:
        nonlocal asked
        asked += 1
        return await reserve([*one_an_hour, *wanted[1:]], **named)

    monkeypatch.setattr(office.work.rates, "reserve", counted)
    await _others(office, 12)
    await office.works()
    assert len(office.line.receipts) == 1
    assert asked < 6


@pytest.mark.parametrize(
    ("answer", "gateway", "own"),
    [
        (Refused("the gateway cannot be reached (refused)"), "open", "closed"),
        (Unknown("timeout"), "closed", "closed"),
        (Disconnected(), "closed", "open"),
        (RateLimited(None), "closed", "open"),
        (Banned(403), "closed", "open"),
        (Refused("HTTP 401: -", needs_person=True), "closed", "closed"),
        (NotOnWhatsApp(), "closed", "closed"),
    ],
)
async def test_each_answer_counts_in_the_circuit_it_concerns(
    office: Office, chip: str, answer: SendResult, gateway: str, own: str
) -> None:
    office.line.answers = [(answer, False)] * 5
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    for id in await _others(office, 5):
        await write(office.work.database, "UPDATE fila_mensagens SET agendar_para = :at", at=OPEN + timedelta(days=9))
        await write(office.work.database, "UPDATE fila_mensagens SET agendar_para = :at WHERE id = :id", at=OPEN, id=id)
        await write(
            office.work.database,
            "UPDATE chips SET cooldown_until = NULL, status = 'active', evolution_connected = TRUE",
        )
        await office.works()
        await office.later(timedelta(seconds=2))
    assert (await _circuit(office, "evolution"), await _circuit(office, "chip:julia-sim")) == (gateway, own)


@pytest.mark.parametrize("answer", [Banned(403), Disconnected(), RateLimited(None)])
async def test_same_refusal_of_five_chips_does_not_open_the_gateways_circuit(
    office: Office, answer: SendResult
) -> None:
    chips = [await add_chip(office.work.database, f"julia-{n}", status="paused") for n in range(5)]
    await write(office.work.database, TRUSTED)
    office.line.answers = [(answer, False)] * 5
    for chip in chips:
        await write(office.work.database, "UPDATE fila_mensagens SET agendar_para = :at", at=OPEN + timedelta(days=9))
        await write(office.work.database, "UPDATE chips SET status = 'paused' WHERE status = 'active'")
        await write(office.work.database, "UPDATE chips SET status = 'active' WHERE id = :id", id=chip)
        await _others(office, 1, first=chips.index(chip))
        await office.works()
    assert office.line.answers == []
    assert await _circuit(office, "evolution") == "closed"


async def test_refusal_without_a_reason_opens_the_chips_own_circuit(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Refused("HTTP 400: -", permanent=True), False)]
    await office.put(doctor)
    await office.works()
    assert (await _circuit(office, "evolution"), await _circuit(office, "chip:julia-sim")) == ("closed", "open")


async def test_chip_excluded_by_the_campaign_is_not_used(office: Office, doctor: str, chip: str) -> None:
    other = await add_chip(office.work.database, "julia-outro")
    await write(office.work.database, TRUSTED)
    await write(office.work.database, "UPDATE chips SET trust_score = 80 WHERE id = :id", id=other)
    await office.put(doctor, metadata=AsJson({"chips_excluidos": [chip]}))
    await office.works()
    assert [each.instance for each in office.line.receipts] == ["julia-outro"]


async def test_chip_that_must_rest_since_its_choice_does_not_send_and_frees_its_slot(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = await office.put(doctor)
    breaker = office.work.circuits.breaker("evolution")
    admit = breaker.admit

    async def rests_meanwhile(now: datetime) -> Any:
        await write(office.work.database, "UPDATE chips SET cooldown_until = :at", at=now + 9 * MINUTE)
        return await admit(now)

    monkeypatch.setattr(breaker, "admit", rests_meanwhile)
    await office.worker.once(1)
    row = await office.message(id)
    assert (row["status"], row["tentativas"], office.line.receipts) == ("pendente", 0, [])
    assert await _used(office) == 0


async def test_written_reason_allows_a_message_to_a_doctor_who_opted_out(
    office: Office, doctor: str, chip: str
) -> None:
    await write(office.work.database, "UPDATE clientes SET opted_out = TRUE")
    blank = await office.put(doctor, "Olá", metadata=AsJson({"bypass_motivo": "  "}))
    meant = await office.put(doctor, metadata=AsJson({"bypass_motivo": "pediu por telefone, ana"}))
    await office.works()
    assert (await office.message(blank))["outcome"] == "BLOCKED_OPTED_OUT"
    row = await office.message(meant)
    assert (row["status"], row["outcome"]) == ("enviada", "BYPASS")
    assert row["outcome_reason_code"] == "pediu por telefone, ana"
    events = {each["event_type"] for each in await rows(office.work.database, "SELECT event_type FROM business_events")}
    assert events == {"envio_bloqueado", "envio_com_bypass"}


async def test_message_of_a_conversation_stays_in_it(office: Office, doctor: str, chip: str) -> None:
    await write(
        office.work.database,
        "INSERT INTO conversations (id, cliente_id, status, created_at, updated_at) VALUES (:id, :id, 'archived', :now, :now)",
        id=doctor,
        now=OPEN,
    )
    await office.put(doctor, conversa_id=doctor, tipo="manual")
    await office.works()
    said = await one(office.work.database, "SELECT conversation_id, autor_tipo FROM interacoes")
    assert said == {"conversation_id": doctor, "autor_tipo": "humano"}


async def test_limits_count_sent_messages_from_their_send_time_and_no_failures(
    office: Office, doctor: str, chip: str
) -> None:
    office.line.answers = [(NotOnWhatsApp(), False)]
    await office.put(doctor)
    await office.works()
    assert await _used(office) == 0
    await _others(office, 1)
    await office.works()
    assert await _used(office) == 1
    await office.later(timedelta(hours=1, seconds=1))
    assert await _used(office) == 0


async def test_message_proved_absent_or_never_arrived_frees_its_slot(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.line.answers = [(Unknown("timeout"), False)] * 2
    await write(office.work.database, "UPDATE chips SET delay_minimo_segundos = 0")
    again = await office.put(doctor)
    (last,) = await _others(office, 1)
    await write(office.work.database, "UPDATE fila_mensagens SET max_tentativas = 1 WHERE id = :id", id=last)
    for _ in range(2):
        await office.works()
        await office.later(timedelta(seconds=2))
    assert await _used(office) == 2
    await office.later(3 * MINUTE)
    rung: list[str] = []
    monkeypatch.setattr(office.reconciler, "_on_return", lambda: rung.append("again"))
    await office.reconciler.look()
    assert (await _used(office), bool(rung)) == (0, True)  # the sender is woken, because a message may be sent now
    assert (await office.message(again))["status"] == "pendente"
    row = await office.message(last)
    assert (row["status"], row["outcome"]) == ("erro", "FAILED_TIMEOUT")


async def test_message_cancelled_while_in_doubt_ends_once_proved_absent(office: Office, doctor: str, chip: str) -> None:
    office.line.answers = [(Unknown("timeout"), False)]
    id = await office.put(doctor)
    await office.works()
    await write(office.work.database, "UPDATE fila_mensagens SET cancelamento_pedido = TRUE")
    await office.later(3 * MINUTE)
    await office.reconciler.look()
    await office.works()
    row = await office.message(id)
    assert (row["status"], row["outcome"], office.line.receipts) == ("cancelada", "FAILED_EXPIRED", [])


async def test_doctor_removed_since_enqueue_gets_nothing(office: Office, doctor: str, chip: str) -> None:
    id = await office.put(doctor)
    await write(office.work.database, "UPDATE clientes SET deleted_at = :now", now=office.clock.now())
    await office.works()
    assert ((await office.message(id))["status"], office.line.receipts) == ("cancelada", [])


@pytest.mark.parametrize(("tipo", "ago"), [("followup", timedelta(days=7)), ("resposta", timedelta(days=1))])
async def test_answers_and_contacts_older_than_a_week_do_not_count(
    office: Office, doctor: str, chip: str, tipo: str, ago: timedelta
) -> None:
    for n in range(5):
        await write(
            office.work.database,
            "INSERT INTO fila_mensagens"
            " (id, cliente_id, telefone_destino, conteudo, tipo, status, agendar_para, enviada_em, created_at)"
            " VALUES (:id, :doctor, 'x', 'x', :tipo, 'enviada', :at, :at, :at)",
            id=f"00000000-0000-7000-9000-{n:012d}",
            doctor=doctor,
            tipo=tipo,
            at=OPEN - ago,
        )
    id = await office.put(doctor)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
