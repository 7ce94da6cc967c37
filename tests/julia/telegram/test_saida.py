"""Messages on Telegram use the same send protocol as all channels: they are sent once, in order, and only if the rules
allow it.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest

from app.contexts.telegram.canal import random_id_of
from app.contexts.telegram.contas import EstadoDaConta
from app.contexts.telegram.porta import Unavailable
from app.contexts.telegram.prazo import Prazos
from batuta.errors import StoreTimeout
from batuta.reasons import code_of, decode
from tests.julia.tables import one, rows, write
from tests.julia.telegram.escritorio import OPEN, PHONE, Escritorio, open_office


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Escritorio]:
    async with open_office(database_url) as office:
        yield office


async def test_message_reaches_the_person_once_and_joins_the_conversation(office: Escritorio) -> None:
    await office.account()
    doctor, _ = await office.doctor()
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    message = await office.message(id)
    assert (message["status"], message["outcome"]) == ("enviada", "SENT")
    assert message["provider_message_id"].startswith("tg:")
    assert [each.texto for each in office.receipts] == ["Bom dia"]
    talk = await one(office.database, "SELECT tipo, autor_tipo, cliente_id FROM interacoes")
    assert (talk["tipo"], talk["autor_tipo"], str(talk["cliente_id"])) == ("saida", "humano", doctor)


async def test_lost_answer_is_resolved_from_the_history_without_a_second_message(office: Escritorio) -> None:
    await _known_person(office)
    office.mundo.change({"lost_answers": 1.0})
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    assert (await office.message(id))["envio_estado"] == "unknown"
    office.mundo.restore()
    await office.settles_doubt(id)
    message = await office.message(id)
    assert (message["status"], message["envio_estado"]) == ("enviada", None)
    assert [each.texto for each in office.receipts] == ["Olá", "Bom dia"]


async def test_flood_is_stored_for_the_account_and_the_method_and_ends_without_a_call(office: Escritorio) -> None:
    conta = await office.account()
    await office.doctor()
    await office.connect()
    office.mundo.change({"flood_wait": 300, "flood_methods": ["send_text"]})
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    message = await office.message(id)
    assert (message["status"], message["tentativas"], message["envio_estado"]) == ("pendente", 0, None)
    (wait,) = await rows(office.database, "SELECT conta_id, metodo, ate FROM telegram_esperas")
    assert str(wait["conta_id"]) == conta
    await write(office.database, "UPDATE fila_mensagens SET agendar_para = :at", at=_past(office))
    await office.works()
    assert "no send_text from this account for 300s" in str(decode((await office.message(id))["erro"]))
    assert wait["ate"] > office.work.clock.now() + timedelta(seconds=290)


async def test_flood_of_the_search_holds_the_message_until_its_end(office: Escritorio) -> None:
    await _known_person(office)
    (conta,) = office.usuarios.values()
    office.mundo.change({"flood_wait": 300, "flood_methods": ["list_sent"]})
    id = await office.send(PHONE, "Bom dia")
    # The message is older than this process, so the history of the chat is searched first.
    old = office.work.clock.now() - timedelta(hours=1)
    await write(office.database, "UPDATE fila_mensagens SET created_at = :at WHERE id = :id", id=id, at=old)
    for _ in range(2):
        await office.is_due(id)
        await office.works()
        message = await office.message(id)
        assert (message["status"], message["tentativas"]) == ("pendente", 0)
        assert message["agendar_para"] > office.work.clock.now() + timedelta(seconds=250)
    assert office.mundo.calls[(conta, "list_sent")] == 1


async def test_person_who_opted_out_on_telegram_gets_no_message_on_either_channel(office: Escritorio) -> None:
    conta = await office.account()
    doctor, person = await office.doctor()
    await office.connect()
    await office.send(PHONE, "Bom dia")
    await office.works()
    office.mundo.says(person, office.usuarios[conta], "Por favor, não me mande mais mensagens")
    await office.sync("SELECT 1 FROM telegram_entrada WHERE NOT propria")
    await office.reads_inbox()
    state = await one(office.database, "SELECT opt_out, opted_out FROM clientes WHERE id = :id", id=doctor)
    assert state == {"opt_out": True, "opted_out": True}
    id = await office.send(PHONE, "Outra mensagem")
    await office.works()
    assert (await office.message(id))["outcome"] == "BLOCKED_OPTED_OUT"
    assert len(office.receipts) == 1


async def test_answer_leaves_on_the_channel_of_the_message_it_answers(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    await office.connect()
    await office.telegram.servico.vincular(PHONE, person)
    office.mundo.says(person, office.usuarios[conta], "Oi, qual o valor do plantão?")
    await office.sync("SELECT 1 FROM telegram_entrada")
    await office.reads_inbox()
    queued = await rows(office.database, "SELECT fila, conta_id, tipo FROM fila_mensagens")
    assert all(each["fila"] == "telegram_saida" and str(each["conta_id"]) == conta for each in queued)
    came = await one(office.database, "SELECT tipo, cliente_id FROM interacoes WHERE tipo = 'entrada'")
    assert came["cliente_id"] is not None


async def test_paused_account_holds_its_messages(office: Escritorio) -> None:
    await office.account()
    await office.doctor()
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    await office.telegram.servico.mudar("conta-1", EstadoDaConta.PAUSADA, by="teste")
    await office.works()
    assert (await office.message(id))["status"] == "pendente"
    assert office.receipts == []


async def test_pause_of_the_queue_holds_telegram_only(office: Escritorio) -> None:
    await office.account()
    await office.doctor()
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    await office.work.switches.set(
        "pause.queue.telegram_saida", True, by="teste", reason="teste", now=office.work.clock.now()
    )
    await office.works()
    assert (await office.message(id))["status"] == "pendente"
    assert office.receipts == []


@pytest.mark.parametrize(
    ("switch", "hour", "why"),
    [
        ("safe_mode", 11, "switch safe_mode is on"),
        ("pilot_mode", 11, "switch pilot_mode is holding back messages from this automatic trigger"),
        (None, 23, "outside the sending hours"),
    ],
)
async def test_rules_of_whatsapp_hold_a_message_on_telegram(
    database_url: str, switch: str | None, hour: int, why: str
) -> None:
    async with open_office(database_url, at=OPEN + timedelta(hours=hour - 11)) as office:
        switches, now = office.work.switches, office.work.clock.now()
        for key in ("pilot_mode", "discovery_automatico_enabled"):
            await switches.set(key, key != "pilot_mode", by="teste", reason="-", now=now)
        await office.account()
        await office.doctor()
        await office.connect()
        id = await office.send(PHONE, "Bom dia")
        await write(office.database, "UPDATE fila_mensagens SET tipo = 'discovery' WHERE id = :id", id=id)
        if switch is not None:
            await switches.set(switch, True, by="teste", reason="-", now=now)
        await office.works()
        row = await office.message(id)
        assert (office.receipts, row["status"], row["tentativas"]) == ([], "pendente", 0)
        assert why in str(decode(row["erro"]))


async def test_retry_has_the_same_random_id(office: Escritorio) -> None:
    await _known_person(office)
    office.mundo.change({"dropped": 1.0})
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    assert (await office.message(id))["envio_estado"] in ("unknown", None)
    office.mundo.restore()
    await office.settles_doubt(id)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert [each.random_id for each in office.receipts[1:]] == [random_id_of(id)]


async def test_second_message_to_a_chat_waits_for_the_first_in_doubt(office: Escritorio) -> None:
    await _known_person(office)
    office.mundo.change({"dropped": 1.0})
    first = await office.send(PHONE, "Primeira")
    await office.works()
    office.mundo.restore()
    second = await office.send(PHONE, "Segunda")
    await office.connect()
    await office.works()
    assert (await office.message(second))["status"] == "pendente"
    await office.settles_doubt(first)
    await office.works()
    await office.rests()
    await write(office.database, "UPDATE fila_mensagens SET agendar_para = :at", at=_past(office))
    await office.works()
    assert [each.texto for each in office.receipts] == ["Olá", "Primeira", "Segunda"]


async def test_second_message_to_a_chat_waits_for_the_first_that_was_put_back(office: Escritorio) -> None:
    await _known_person(office)
    first = await office.send(PHONE, "Primeira")
    later = office.work.clock.now() + timedelta(seconds=30)
    await write(office.database, "UPDATE fila_mensagens SET agendar_para = :at WHERE id = :id", id=first, at=later)
    second = await office.send(PHONE, "Segunda")
    await office.works()
    assert (await office.message(second))["status"] == "pendente"
    assert [each.texto for each in office.receipts] == ["Olá"]


async def test_peer_flood_opens_the_breaker_of_the_account_only(office: Escritorio) -> None:
    conta, other = await office.account(), await office.account("conta-2")
    await office.doctor()
    await office.connect()
    office.mundo.change({"peer_flood": True})
    id = await office.send(PHONE, "Bom dia", conta="conta-1")
    await office.works()
    message = await office.message(id)
    assert (message["status"], message["tentativas"]) == ("pendente", 0)
    assert message["agendar_para"] > office.work.clock.now() + timedelta(hours=5)
    circuits = await rows(
        office.database, "SELECT circuit_name AS name, state FROM circuits WHERE circuit_name LIKE 'telegram:%'"
    )
    assert circuits == [{"name": f"telegram:{conta}", "state": "open"}]
    assert other not in circuits[0]["name"]


async def test_revoked_session_stops_the_account_and_keeps_the_message(office: Escritorio) -> None:
    conta = await office.account()
    await office.doctor()
    await office.connect()
    # The message is queued first: the open connection may notice the end of its session before the message is sent.
    id = await office.send(PHONE, "Bom dia")
    office.mundo.revoke(office.usuarios[conta])
    await office.works()
    assert (await office.message(id))["status"] == "pendente"
    state = await one(office.database, "SELECT estado FROM telegram_contas WHERE id = :id", id=conta)
    assert state == {"estado": "revogada"}
    report = await office.telegram.health.ask()
    assert [each.says for each in report.findings] == ["telegram_revogada"]


async def test_closed_account_is_reported_as_closed_and_keeps_the_message(office: Escritorio) -> None:
    conta = await office.account()
    await office.doctor()
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    office.mundo.revoke(office.usuarios[conta], banned=True)
    await office.works()
    assert (await office.message(id))["status"] == "pendente"
    state = await one(office.database, "SELECT estado FROM telegram_contas WHERE id = :id", id=conta)
    assert state == {"estado": "banida"}
    assert [each.says for each in (await office.telegram.health.ask()).findings] == ["telegram_banida"]


async def test_slow_database_uses_up_no_attempt_of_a_message(
    office: Escritorio, monkeypatch: pytest.MonkeyPatch
) -> None:
    await office.account()
    await office.doctor()
    await office.connect()
    id, where = await office.send(PHONE, "Bom dia"), office.database.where

    async def slow(*_: object) -> EstadoDaConta:
        raise StoreTimeout(where=where, why="the statement took too long")

    with monkeypatch.context() as patched:
        patched.setattr(office.telegram.contas, "estado", slow)
        for _ in range(10):
            await office.works()
            message = await office.message(id)
            assert (message["status"], message["tentativas"]) == ("pendente", 0)
            assert code_of(decode(message["erro"])) == "store_away"
            await office.is_due(id)
    await office.works()
    assert (await office.message(id))["status"] == "enviada"
    assert len(office.receipts) == 1


async def test_lost_connection_that_cannot_be_recorded_uses_up_no_attempt(
    office: Escritorio, monkeypatch: pytest.MonkeyPatch
) -> None:
    conta = await office.account()
    await office.doctor()
    await office.connect()
    id, conexoes = await office.send(PHONE, "Bom dia"), office.telegram.conexoes
    linha = conexoes.linha(conta)
    assert linha is not None

    async def lost(*_: object, **__: object) -> Unavailable:
        return Unavailable("test")

    async def endless(*_: object) -> None:
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(linha, "resolve", lost)
        patched.setattr(office.telegram.contas, "caiu", endless)
        patched.setattr(conexoes, "prazos", Prazos(database=timedelta(milliseconds=100)))
        await office.works()
    message = await office.message(id)
    assert (message["status"], message["tentativas"]) == ("pendente", 0)
    assert code_of(decode(message["erro"])) == "store_away"


async def test_number_without_telegram_ends_as_an_error(office: Escritorio) -> None:
    await office.account()
    await office.doctor(on_telegram=False)
    await office.connect()
    id = await office.send(PHONE, "Bom dia")
    await office.works()
    message = await office.message(id)
    assert (message["status"], message["outcome"]) == ("erro", "FAILED_VALIDATION")


async def test_message_outside_the_allowlist_is_blocked_without_the_simulator(database_url: str) -> None:
    async with open_office(database_url, telegram_simulador_url=None) as office:
        await office.account()
        await office.doctor()
        id = await office.send(PHONE, "Bom dia")
        await office.works()
        assert (await office.message(id))["outcome"] == "BLOCKED_DEV_ALLOWLIST"


async def _known_person(office: Escritorio) -> None:
    """Connect an account that has already written to the doctor, so that it need not look the doctor up again."""
    await office.account()
    await office.doctor()
    await office.connect()
    await office.send(PHONE, "Olá")
    await office.works()
    await office.rests()


def _past(office: Escritorio) -> datetime:
    return office.work.clock.now() - timedelta(seconds=10)
