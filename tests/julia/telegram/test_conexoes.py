"""The accounts' connections: flood limits, dead connections and slow accounts."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta

import pytest

from app.composition.telegram.port import LateRing
from app.contexts.telegram.conexoes import Conexoes, Recebedor
from app.contexts.telegram.contas import EstadoDaConta
from app.contexts.telegram.porta import DISCONNECTED, FloodWait, Linha, Novidades, Refused, Unavailable
from app.contexts.telegram.prazo import Prazos, chamar
from app.contexts.telegram.sessoes import Sessoes
from app.integrations.telegram.simulado import TelegramSimulado
from batuta.errors import CancelIgnored, StoreError
from batuta.reasons import code_of
from tests.julia.tables import one, rows, write
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
    await conexoes.handle_failure(linha, flood)
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
    await conexoes.handle_failure(old, Unavailable("test"))
    assert conexoes.linha(conta) is None
    await office.connect()
    new = conexoes.linha(conta)
    await conexoes.handle_failure(old, Unavailable("test"))
    assert conexoes.linha(conta) is new


async def test_dropped_connection_is_closed_even_if_the_store_fails(office: Escritorio) -> None:
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    linha = conexoes.linha(conta)
    assert linha is not None
    await write(office.database, "ALTER TABLE telegram_contas RENAME TO telegram_contas_away")
    with pytest.raises(StoreError):
        await conexoes.handle_failure(linha, Unavailable("test"))
    await write(office.database, "ALTER TABLE telegram_contas_away RENAME TO telegram_contas")
    await office.connect()
    sent = await linha.receive(limit=timedelta(seconds=1))
    assert sent == Unavailable(DISCONNECTED())


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


async def test_update_survives_a_step_that_ends_while_it_is_stored(office: Escritorio) -> None:
    conta = await office.account()
    _, person = await office.doctor()
    await office.connect()
    conexoes = office.telegram.conexoes
    await _steps_end(conexoes)
    conexoes.recebedor = _HangsOnce(conexoes, conexoes.recebedor, conexoes.prazos)
    conexoes.prazos = Prazos(cycle=timedelta(milliseconds=500))
    office.mundo.says(person, office.usuarios[conta], "Tem plantão amanhã?")
    await office.sync("SELECT 1 FROM telegram_entrada")
    assert len(await rows(office.database, "SELECT id FROM telegram_entrada")) == 1


@pytest.mark.parametrize("is_paused", [False, True], ids=["failed", "paused and resumed"])
async def test_slow_close_of_an_old_connection_keeps_the_session_of_the_new_one(
    office: Escritorio, monkeypatch: pytest.MonkeyPatch, is_paused: bool
) -> None:
    monkeypatch.setattr("app.contexts.telegram.conexoes.FIRST_PAUSE", timedelta(0))
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    await _steps_end(conexoes)
    conexoes.prazos = Prazos(entity=timedelta(seconds=60))
    old = conexoes.linha(conta)
    assert old is not None
    may_close, closed = _close_slowly(old)
    failing = None if is_paused else asyncio.create_task(conexoes.handle_failure(old, Unavailable("test")))
    if is_paused:
        await office.telegram.servico.mudar("conta-1", EstadoDaConta.PAUSADA, by="teste")
        await conexoes.tick()
        await office.telegram.servico.mudar("conta-1", EstadoDaConta.ATIVA, by="teste")
    for _ in range(3):
        await conexoes.tick()
        await _steps_end(conexoes)
    may_close.set()
    await closed.wait()
    if failing is not None:
        await failing
    await office.connect()
    assert (await one(office.database, "SELECT dono FROM telegram_sessoes"))["dono"] is not None


async def test_process_with_another_key_leaves_the_account_to_the_others(office: Escritorio) -> None:
    conta = await office.account()
    own = office.telegram.conexoes
    sessoes = Sessoes(office.database, LateRing(("another key",)), office.work.clock, "another process")
    other = _as_another_process(office)
    other.sessoes, other.telegram = (
        sessoes,
        TelegramSimulado(f"{office.url}/telegram", sessoes, office.telegram.entidades, other.clock),
    )
    await other.tick()
    await _steps_end(other)
    read = "SELECT estado, conectada, erro FROM telegram_contas WHERE id = :id"
    before = await one(office.database, read, id=conta)
    assert before["estado"] == "ativa"
    assert "TELEGRAM_SESSION_KEYS" in before["erro"]
    await office.connect()
    assert own.linha(conta) is not None
    again = _as_another_process(office)
    again.sessoes, again.telegram = other.sessoes, other.telegram
    await again.tick()
    await _steps_end(again)
    assert await one(office.database, read, id=conta) == {"estado": "ativa", "conectada": True, "erro": None}


async def test_refused_connection_is_not_repeated_at_once(office: Escritorio) -> None:
    conta = await office.account()
    refusing = _Refusing()
    conexoes = _as_another_process(office)
    assert code_of(conexoes.why(conta)) == "telegram_fora_do_processo"
    conexoes.telegram = refusing
    for _ in range(3):
        await conexoes.tick()
        await _steps_end(conexoes)
    assert refusing.calls == 1
    assert conexoes.why(conta) == "not configured"


async def test_close_that_ignores_its_cancellation_restarts_the_process(
    office: Escritorio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the closing of a connection ignores its cancellation, the process restarts. Otherwise the account would stay
    offline, because it reconnects only after its old connection has been closed.
    """
    monkeypatch.setattr("app.contexts.telegram.conexoes.CANCEL_GRACE", timedelta(milliseconds=100))
    monkeypatch.setattr("app.contexts.telegram.conexoes.MARGIN", timedelta(0))
    conta = await office.account()
    await office.connect()
    conexoes = office.telegram.conexoes
    await _steps_end(conexoes)
    linha = conexoes.linha(conta)
    assert linha is not None
    may_end = _close_deafly(linha)
    conexoes.prazos = Prazos(entity=timedelta(milliseconds=100))
    await conexoes.handle_failure(linha, Unavailable("test"))
    await conexoes.tick()
    await office.work.clock.sleep(0.3)
    try:
        with pytest.raises(CancelIgnored, match="the close of a connection"):
            await conexoes.tick()
    finally:
        may_end.set()


def _close_deafly(linha: Linha) -> asyncio.Event:
    """Make the connection's close ignore its cancellation until the returned event is set."""
    may_end, really_close = asyncio.Event(), linha.close

    async def close(*, limit: timedelta) -> None:
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()
        await really_close(limit=limit)

    linha.close = close  # type: ignore[method-assign]
    return may_end


class _HangsOnce:
    """Receiver that hangs once, when the first updates arrive. The step in which it hangs has the test's short time
    limits, and all later steps have the limits in ``prazos``.
    """

    def __init__(self, conexoes: Conexoes, recebedor: Recebedor, prazos: Prazos) -> None:
        self._conexoes, self._recebedor, self._prazos = conexoes, recebedor, prazos
        self._has_hung = False

    async def guardar(self, conta: str, recebidas: Novidades) -> None:
        if not self._has_hung and recebidas.atualizacoes:
            self._has_hung, self._conexoes.prazos = True, self._prazos
            await asyncio.Event().wait()
        await self._recebedor.guardar(conta, recebidas)


class _Refusing:
    calls = 0

    async def connect(self, conta: str, *, marca: str | None, limit: timedelta) -> Refused:
        self.calls += 1
        return Refused("not configured", permanent=True)


def _close_slowly(linha: Linha) -> tuple[asyncio.Event, asyncio.Event]:
    """Make the connection's close wait for the first of the returned events. The second event is set when the
    connection is closed.
    """
    may_close, closed, close = asyncio.Event(), asyncio.Event(), linha.close

    async def slowly(*, limit: timedelta) -> None:
        try:
            await may_close.wait()
            await close(limit=limit)
        finally:
            closed.set()

    linha.close = slowly  # type: ignore[method-assign]
    return may_close, closed


def _as_another_process(office: Escritorio) -> Conexoes:
    own = office.telegram.conexoes
    parts = {name: getattr(own, name) for name in ("telegram", "contas", "sessoes", "recebedor", "prazos", "clock")}
    return Conexoes(**parts)


async def _steps_end(conexoes: Conexoes) -> None:
    async with asyncio.timeout(30):
        while conexoes.is_busy:
            await conexoes.wakeup.wait()
            conexoes.wakeup.clear()
