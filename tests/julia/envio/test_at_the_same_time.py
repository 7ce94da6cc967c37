"""Operators and doctors make changes while the outcome of a sent message is being recorded. Two such transactions can
wait for each other only on PostgreSQL, because SQLite has one writer.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.campanhas.model import TipoDeCampanha
from app.contexts.campanhas.service import NovaCampanha
from app.contexts.comum.telefone import Address
from app.contexts.mensagens.service import NaDevolucao
from app.contexts.webhooks.api import Recebida
from batuta.sql import Query
from tests.julia.envio.sending import PHONE, Office
from tests.julia.tables import one, write

WAITING = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
Change = Callable[[Office, str, int], Coroutine[Any, Any, None]]


class Pausing:
    """A transaction that pauses after one of its statements until the test releases it."""

    def __init__(self, after: str) -> None:
        self._after = after
        self.inner: Any = None
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def run(self, query: Query, **values: object) -> int:
        touched: int = await self.inner.run(query, **values)
        if query.name == self._after:
            self.reached.set()
            await self.released.wait()
        return touched


async def receive(office: Office, texto: str, pausing: Pausing | None = None) -> None:
    now = office.clock.now()
    fato = Recebida(
        message_id="in", instance="escuta", de=Address(f"{PHONE}@s.whatsapp.net", PHONE), nome=None, texto=texto,
        midia=None, em=now,
    )  # fmt: skip
    async with office.work.database.transaction() as transaction:
        if pausing is not None:
            pausing.inner = transaction
        await office.conversas.recebida(pausing or transaction, fato, now=now)


async def opt_out_by_message(office: Office, talk: str, campaign: int) -> None:
    await receive(office, "PARAR")


async def answer(office: Office, talk: str, campaign: int) -> None:
    await receive(office, "não posso")


async def opt_out_by_command(office: Office, talk: str, campaign: int) -> None:
    now = office.clock.now()
    async with office.work.database.transaction() as transaction:
        await office.conversas.parar_numero(transaction, PHONE, origem="ana", now=now)


async def end_conversation(office: Office, talk: str, campaign: int) -> None:
    await julia_of(office.work).messages.atendimento.encerrar(talk, por="ana", motivo="-")


async def take_over_and_return(office: Office, talk: str, campaign: int) -> None:
    care = julia_of(office.work).messages.atendimento
    await care.assumir(talk, por="ana", motivo="-")
    await care.devolver(talk, NaDevolucao.CANCELAR, por="ana", motivo="-")


async def cancel_campaign(office: Office, talk: str, campaign: int) -> None:
    await julia_of(office.work).campaigns.campanhas.cancelar(campaign, by="ana")


async def erase(office: Office, talk: str, campaign: int) -> None:
    await julia_of(office.work).personal_data.lgpd.apagar(PHONE, por="ana", motivo="-")


async def waits_or_is_over(office: Office, task: "asyncio.Task[Any]") -> None:
    async with asyncio.timeout(60):
        while not task.done() and (await one(office.work.database, WAITING))["n"] == 0:
            await asyncio.sleep(0)


CHANGES = (
    opt_out_by_message,
    answer,
    opt_out_by_command,
    end_conversation,
    take_over_and_return,
    cancel_campaign,
    erase,
)


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
async def test_record_of_a_sent_message_and_a_change_never_deadlock(
    office: Office, doctor: str, chip: str, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    talk, campaign = await prepare(office, doctor, chip)
    id = await office.put(doctor, tipo="campanha", campanha_id=campaign)
    reached, released, record = asyncio.Event(), asyncio.Event(), office.conversas.saiu

    async def record_and_pause(*values: Any) -> bool:
        done = await record(*values)
        reached.set()
        await released.wait()
        return done

    monkeypatch.setattr(office.conversas, "saiu", record_and_pause)
    sending = asyncio.create_task(office.works())
    await asyncio.wait_for(reached.wait(), 60)
    changing = asyncio.create_task(change(office, talk, campaign))
    await waits_or_is_over(office, changing)
    released.set()
    await sending
    await changing
    assert (await office.message(id))["provider_message_id"] == office.line.receipts[0].id


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@pytest.mark.parametrize("after", ["count_on_doctor", "doctor_spoke", "count_on_conversation"])
async def test_inbound_message_and_the_record_of_a_sent_message_never_deadlock(
    office: Office, doctor: str, chip: str, after: str
) -> None:
    _, campaign = await prepare(office, doctor, chip)
    id = await office.put(doctor, tipo="campanha", campanha_id=campaign)
    office.line.before_sending = sent = Once()
    sending = asyncio.create_task(office.works())
    await asyncio.wait_for(sent.reached.wait(), 60)  # the intent is stored
    pausing = Pausing(after)
    receiving = asyncio.create_task(receive(office, "não posso", pausing))
    try:
        await asyncio.wait_for(pausing.reached.wait(), 60)
    finally:
        sent.released.set()
    await waits_or_is_over(office, sending)
    pausing.released.set()
    await receiving
    await sending
    assert (await office.message(id))["provider_message_id"] == office.line.receipts[0].id


class Once:
    """A replacement for a function that the sender calls. Each call waits until the test sets ``released``."""

    def __init__(self) -> None:
        self.reached, self.released = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> None:
        self.reached.set()
        await self.released.wait()


async def prepare(office: Office, doctor: str, chip: str) -> tuple[str, int]:
    """Open a conversation with the doctor, and store the doctor's state and a campaign in progress. Return the ids of
    the conversation and the campaign.
    """
    campaign, now = await running_campaign(office), office.clock.now()
    async with office.work.database.transaction() as transaction:
        talk = await office.conversas.conversa(transaction, doctor, chip, now=now)
    await write(
        office.work.database,
        "INSERT INTO doctor_state (cliente_id, updated_at) VALUES (:doctor, :now)",
        doctor=doctor,
        now=now,
    )
    return talk, campaign


async def running_campaign(office: Office) -> int:
    nova = NovaCampanha(nome="teste", tipo=TipoDeCampanha.DISCOVERY, corpo="Bom dia")
    id = await julia_of(office.work).campaigns.campanhas.criar(nova, by="ana")
    await write(office.work.database, "UPDATE campanhas SET status = 'ativa' WHERE id = :id", id=id)
    return id
