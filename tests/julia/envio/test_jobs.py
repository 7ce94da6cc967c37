"""The scheduled job of the message queue handles stuck, old and dead messages without an operator."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.composition.julia import julia_of
from app.contexts.envio.jobs import Contagem, MessageJobs
from app.contexts.mensagens.api import Tipo
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.main import build
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from batuta.stores.sql.database import Database
from batuta.testing import FakeClock
from tests.julia.envio.sending import TRUSTED
from tests.julia.envio.sending import Office as Sender
from tests.julia.line import ScriptedLine
from tests.julia.tables import PHONE, add_chip, add_doctor, one, rows, sending_through, write

# A Wednesday, eleven o'clock in São Paulo.
OPEN = datetime(2026, 3, 11, 14, 0, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
# The time between the two reads of a lease, for the default lease of thirty seconds.
CONFIRMED = timedelta(seconds=12)
CALL = JobCall(key="test", params={}, started_at=OPEN, deadline=OPEN + 5 * MINUTE)


class Office:
    def __init__(self, work: Batuta, clock: FakeClock, settings: Settings) -> None:
        self.work, self.clock, self.settings = work, clock, settings
        self.database: Database = work.database
        self.store = work.queues[FILA_MENSAGENS.name]
        self.jobs: MessageJobs = sending_through(work, settings, ScriptedLine(clock)).jobs

    async def put(self, **values: Any) -> str:
        doctor = (await rows(self.database, "SELECT id FROM clientes"))[0]["id"]
        known = {"cliente_id": doctor, "telefone_destino": PHONE, "conteudo": "Bom dia", "tipo": "followup"}
        (id,) = await self.store.put([NewItem(values={**known, "devida_em": self.clock.now(), **values})])
        assert id is not None
        return id

    async def runs(self) -> dict[str, Any]:
        answer = await self.jobs.processar_mensagens_agendadas(CALL)
        assert isinstance(answer, Done)
        assert isinstance(answer.result, dict)
        return dict(answer.result)

    async def begin(self) -> "asyncio.Task[dict[str, Any]]":
        """Start the job that processes the message queue, and return when it is waiting for its second read of the
        leases.
        """
        running = asyncio.create_task(self.runs())
        while not (self.clock._sleepers or running.done()):
            await asyncio.sleep(0)
        return running

    async def message(self, id: str) -> dict[str, Any]:
        return await one(self.database, "SELECT * FROM fila_mensagens WHERE id = :id", id=id)


@pytest.fixture
async def office(database_url: str, clock: FakeClock) -> AsyncIterator[Office]:
    clock.step(OPEN - clock.now())
    settings = Settings(database_url=database_url, evolution_api_url="http://127.0.0.1:1")
    async with build(settings, clock=clock).work as work:
        await add_doctor(work.database, now=OPEN)
        yield Office(work, clock, settings)


async def test_job_cancels_messages_that_waited_two_working_days(office: Office) -> None:
    old = await office.put()
    await office.clock.advance(2 * DAY + MINUTE)
    young = await office.put(conteudo="outra")
    assert (await office.runs())["expiradas"] == 1
    row = await office.message(old)
    assert (row["status"], row["outcome"]) == ("cancelada", "FAILED_EXPIRED")
    assert (await office.message(young))["status"] == "pendente"


async def test_pause_of_a_campaign_does_not_age_its_messages(office: Office) -> None:
    await write(
        office.database,
        "INSERT INTO campanhas (id, nome_template, tipo_campanha, status, created_at, updated_at)"
        " VALUES (7, 'teste', 'oferta', 'pausada', :now, :now)",
        now=OPEN,
    )
    id = await office.put(campanha_id=7, tipo="campanha")
    await office.clock.advance(5 * DAY)
    assert (await office.runs())["expiradas"] == 0
    assert (await office.message(id))["status"] == "pendente"


async def test_job_rescues_messages_of_a_dead_worker_as_the_only_consumer(office: Office) -> None:
    id = await office.put()
    await office.store.settle_and_claim([], LeaseHolder(owner="ghost", lease=MINUTE), 1)
    await office.clock.advance(2 * MINUTE)
    running = await office.begin()
    await office.clock.advance(CONFIRMED)
    assert (await running)["resgatadas"] == 1
    row = await office.message(id)
    assert (row["status"], row["owner"], row["lease_until"]) == ("pendente", None, None)


async def test_job_takes_no_message_from_a_living_worker_after_a_clock_step(office: Office) -> None:
    id, living = await office.put(), LeaseHolder(owner="living", lease=MINUTE)
    held = (await office.store.settle_and_claim([], living, 1)).leases
    office.clock.step(60 * MINUTE)
    running = await office.begin()
    assert not running.done()
    assert not (await office.store.renew(held, living)).lost
    await office.clock.advance(CONFIRMED)
    assert (await running)["resgatadas"] == 0
    assert (await office.message(id))["owner"] == "living"


async def test_message_dead_after_worker_crashes_enters_the_dlq_once(office: Office) -> None:
    id = await office.put()
    for _ in range(3):
        await office.store.settle_and_claim([], LeaseHolder(owner="ghost", lease=MINUTE), 1)
        await office.clock.advance(2 * MINUTE)
        await office.store.rescue(10)
        await office.clock.advance(20 * MINUTE)
    assert (await office.message(id))["status"] == "erro"
    assert ((await office.runs())["para_a_dlq"], (await office.runs())["para_a_dlq"]) == (1, 0)
    dead_letter = await one(office.database, "SELECT mensagem_original_id, reprocessado FROM fila_mensagens_dlq")
    assert dead_letter == {"mensagem_original_id": id, "reprocessado": False}
    assert (await office.message(id))["outcome"] == "FAILED_TIMEOUT"


async def test_revived_dead_letter_is_marked_as_reprocessed(office: Office) -> None:
    id = await office.put()
    await write(office.database, "UPDATE fila_mensagens SET status = 'erro', finalizada_em = :now", now=OPEN)
    await office.runs()
    assert await office.store.revive(id, by="operadora")
    await office.runs()
    dead_letter = await one(
        office.database, "SELECT reprocessado, reprocessado_em, reprocessado_por FROM fila_mensagens_dlq"
    )
    assert dead_letter == {
        "reprocessado": True, "reprocessado_em": office.clock.now(), "reprocessado_por": "operadora",
    }  # fmt: skip
    # If the message dies again, it enters the DLQ again.
    await write(office.database, "UPDATE fila_mensagens SET status = 'erro', finalizada_em = :now", now=OPEN)
    assert (await office.runs())["para_a_dlq"] == 1
    waiting = await rows(office.database, "SELECT id FROM fila_mensagens_dlq WHERE NOT reprocessado")
    assert len(waiting) == 1


async def test_run_takes_at_most_twenty_messages_and_the_next_continues(office: Office) -> None:
    for n in range(25):
        await office.put(conteudo=f"mensagem {n}")
    assert [(await office.runs())["vistas"], (await office.runs())["vistas"]] == [20, 5]


async def test_heartbeat_does_not_end_a_pause(office: Office) -> None:
    await office.work.switches.set("pause.all", True, by="ana", reason="-", now=office.clock.now())
    heartbeat = office.work.endpoints.find("heartbeat")
    assert heartbeat is not None
    assert isinstance(await heartbeat.handler(CALL), Done)
    await office.put()
    assert (await office.runs())["vistas"] == 0
    await office.work.switches.set("pause.all", False, by="ana", reason="-", now=office.clock.now())
    assert (await office.runs())["vistas"] == 1


async def test_message_that_is_seen_and_not_sent_is_not_counted_as_sent(office: Office) -> None:
    """Without a gateway a message keeps waiting, and a blocked message ends unsent. The job's result counts neither as
    sent.
    """
    await office.put()
    await office.put(conteudo="   ")
    answer = await office.jobs.processar_mensagens_agendadas(CALL)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    figures = {name: answer.result[name] for name in ("vistas", "enviadas", "encerradas", "adiadas")}
    assert (answer.items, figures) == (0, {"vistas": 2, "enviadas": 0, "encerradas": 1, "adiadas": 1})


async def test_sent_messages_are_the_items_of_the_run(office: Office) -> None:
    await add_chip(office.database)
    await write(office.database, TRUSTED)
    await office.put()
    sender = Sender(office.work, office.clock, ScriptedLine(office.clock), office.settings)
    jobs = MessageJobs(
        office.database, sender.registro, sender.reconciler, sender.worker.once, no_rescue, count_in(office.work),
        office.work.zone, office.clock,
    )  # fmt: skip
    answer = await jobs.processar_mensagens_agendadas(CALL)
    assert isinstance(answer, Done)
    assert isinstance(answer.result, dict)
    assert (answer.items, answer.result["enviadas"], answer.result["vistas"]) == (1, 1, 1)


async def no_rescue() -> tuple[()]:
    return ()


def count_in(work: Batuta) -> Contagem:
    made = Contagem()
    julia_of(work).messages.ouvintes.registrar(list(Tipo), made)
    return made
