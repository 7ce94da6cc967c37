"""Connections of the accounts: floods, dead connections and slow accounts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from app.contexts.telegram.conexoes import Conexoes
from app.contexts.telegram.porta import FloodWait, Unavailable
from app.contexts.telegram.prazo import chamar
from batuta.errors import StoreError
from tests.julia.tables import write
from tests.julia.telegram.escritorio import PHONE, Escritorio, open_office

OTHER = "5511900000002"


@pytest.fixture
async def office(database_url: str) -> AsyncIterator[Escritorio]:
    async with open_office(database_url, telegram_timeout_send=3, telegram_timeout_entity=1) as office:
        yield office


async def test_timeout_of_a_call_is_logged_with_the_words_of_the_operators(
    office: Escritorio, caplog: pytest.LogCaptureFixture
) -> None:
    conta = await office.account()
    await office.connect()
    linha = office.telegram.conexoes.linha(conta)
    assert linha is not None
    office.mundo.change({"hang": True})
    with caplog.at_level(logging.WARNING, "julia.telegram"):
        await chamar(lambda limit: linha.probe(limit=limit), timedelta(seconds=1), office.work.clock, "probe")
    assert caplog.messages == ["[TIMEOUT] probe após 1s"]


async def test_new_process_respects_a_flood_of_connections(office: Escritorio) -> None:
    conta = await office.account()
    office.mundo.change({"flood_wait": 300})
    first, second = office.telegram.conexoes, _as_another_process(office)
    for conexoes in (first, second):
        await conexoes.tick()
        await _steps_end(conexoes)
    assert office.mundo.calls[(office.usuarios[conta], "connect")] == 1


async def test_flood_of_missed_updates_delays_the_next_connection(office: Escritorio) -> None:
    conta = await office.account()
    await write(office.database, "UPDATE telegram_contas SET marca = '0'")
    office.mundo.change({"flood_wait": 300, "flood_methods": ["difference"]})
    conexoes = office.telegram.conexoes
    for _ in range(3):
        await conexoes.tick()
        await _steps_end(conexoes)
    assert office.mundo.calls[(office.usuarios[conta], "connect")] == 1
    assert office.mundo.calls_during_flood == 0


async def test_flood_of_probes_keeps_the_connection_and_its_session(
    office: Escritorio, monkeypatch: pytest.MonkeyPatch
) -> None:
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    office.mundo.change({"flood_wait": 300, "flood_methods": ["probe"]})
    linha = conexoes.linha(conta)
    assert linha is not None
    flood = await linha.probe(limit=timedelta(seconds=5))
    assert isinstance(flood, FloodWait)
    await conexoes.failed(linha, flood)
    await _steps_end(conexoes)
    before = office.work.clock.now()
    await write(office.database, "UPDATE telegram_sessoes SET dono_ate = :at", at=before)
    monkeypatch.setattr("app.contexts.telegram.conexoes.PROBE_EVERY", timedelta(0))
    await office.sync("SELECT 1 FROM telegram_sessoes WHERE dono_ate > (SELECT max(conectada_em) FROM telegram_contas)")
    assert conexoes.linha(conta) is linha
    assert office.mundo.calls[(office.usuarios[conta], "probe")] == 1


async def test_failure_of_a_replaced_connection_keeps_the_new_one(office: Escritorio) -> None:
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    old = conexoes.linha(conta)
    assert old is not None
    await conexoes.failed(old, Unavailable("test"))
    assert conexoes.linha(conta) is None
    await office.connect()
    new = conexoes.linha(conta)
    await conexoes.failed(old, Unavailable("test"))
    assert conexoes.linha(conta) is new


async def test_dropped_connection_is_closed_even_if_the_store_fails(office: Escritorio) -> None:
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    linha = conexoes.linha(conta)
    assert linha is not None
    await write(office.database, "ALTER TABLE telegram_contas RENAME TO telegram_contas_away")
    with pytest.raises(StoreError):
        await conexoes.failed(linha, Unavailable("test"))
    await write(office.database, "ALTER TABLE telegram_contas_away RENAME TO telegram_contas")
    sent = await linha.receive(limit=timedelta(seconds=1))
    assert sent == Unavailable("closed")


async def test_hanging_account_does_not_delay_the_doubts_of_others(office: Escritorio) -> None:
    contas = [await office.account("conta-1"), await office.account("conta-2")]
    for telefone in (PHONE, OTHER):
        await office.doctor(telefone)
    await office.connect()
    pairs = (("conta-1", PHONE), ("conta-2", OTHER))
    for conta, telefone in pairs:
        await office.send(telefone, "Olá", conta=conta)
    await office.works()
    await office.rests()
    office.mundo.change({"lost_answers": 1.0, "lost_methods": ["send_text"]})
    first, second = [await office.send(telefone, "Bom dia", conta=conta) for conta, telefone in pairs]
    await office.works()
    before = office.work.clock.now() - timedelta(seconds=10)
    await write(
        office.database, "UPDATE fila_mensagens SET envio_desde = :at WHERE envio_estado IS NOT NULL", at=before
    )
    # The search for the first message hangs.
    office.mundo.change({"hang": True}, office.usuarios[contas[0]])
    looking = asyncio.create_task(office.telegram.reconciliador.look())
    async with asyncio.timeout(30):
        while (await office.message(second))["status"] != "enviada":
            assert not looking.done()
    assert (await office.message(first))["envio_estado"] == "unknown"
    assert not looking.done()
    await looking


def _as_another_process(office: Escritorio) -> Conexoes:
    own = office.telegram.conexoes
    parts = {name: getattr(own, name) for name in ("telegram", "contas", "sessoes", "recebedor", "prazos", "clock")}
    return Conexoes(**parts)


async def _steps_end(conexoes: Conexoes) -> None:
    async with asyncio.timeout(30):
        while conexoes.is_busy:
            await conexoes.wakeup.wait()
            conexoes.wakeup.clear()
