"""``fila_mensagens`` fulfils the contract of every queue. A claim skips messages that may or may not have been sent."""

import pytest

from app.contexts.comum.telefone import chave
from app.contexts.mensagens.fila import FILA_MENSAGENS, EnvioEstado
from batuta.kernel.errors import StoreConflict
from batuta.kernel.ids import Ids
from batuta.queue.item import ItemState
from batuta.queue.outcome import Settlement
from batuta.stores.sql.database import Database
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.testing import EventRecorder, FakeClock
from tests.engine.queue.contract import BEN, ITEM_LEASE, SECOND, QueueContract, QueueFixture
from tests.engine.queue.test_queue import SqlQueueFixture
from tests.julia.tables import PHONE, add_chip, add_doctor, one, rows, write

DOUBT = "UPDATE fila_mensagens SET envio_estado = :state, envio_desde = :now WHERE id = :id"


class TestFilaMensagens(QueueContract):
    @pytest.fixture
    async def queue(self, julia: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> SqlQueueFixture:
        store = SqlQueue(julia, FILA_MENSAGENS, ids, clock, own_time=True)
        values = {"cliente_id": await add_doctor(julia), "telefone_destino": PHONE, "conteudo": "mensagem de teste"}
        return SqlQueueFixture(store, clock, FILA_MENSAGENS, SqlSwitches(julia, ids, events), values)

    @pytest.mark.parametrize("state", list(EnvioEstado))
    async def test_row_in_doubt_is_not_claimed_in_any_status(
        self, queue: QueueFixture, julia: Database, state: EnvioEstado
    ) -> None:
        (id,) = await queue.put()
        await queue.claim()
        await write(julia, DOUBT, state=state.value, now=queue.clock.now(), id=id)
        # The statement that the manual gives operators for stuck messages.
        await write(
            julia, "UPDATE fila_mensagens SET status = 'pendente', tentativas = tentativas + 1 WHERE id = :id", id=id
        )
        await write(julia, "UPDATE fila_mensagens SET lease_until = NULL WHERE id = :id", id=id)
        assert await queue.claim(BEN) == []
        assert await queue.store.next_at() is None
        await write(julia, "UPDATE fila_mensagens SET envio_estado = NULL, envio_desde = NULL WHERE id = :id", id=id)
        assert [lease.id for lease in await queue.claim(BEN)] == [id]

    async def test_worker_that_dies_with_an_intent_leaves_a_doubt_and_no_second_message(
        self, queue: QueueFixture, julia: Database
    ) -> None:
        (id,) = await queue.put()
        await queue.claim()
        await write(julia, DOUBT, state="intent", now=queue.clock.now(), id=id)
        queue.clock.step(ITEM_LEASE + SECOND)
        (rescued,) = await queue.store.rescue(10)
        assert rescued.state is ItemState.READY
        assert await queue.claim(BEN) == []
        row = await one(julia, "SELECT status, envio_estado FROM fila_mensagens")
        assert row == {"status": "pendente", "envio_estado": "intent"}

    async def test_revived_dead_message_in_doubt_is_not_sent(self, queue: QueueFixture, julia: Database) -> None:
        (id,) = await queue.put()
        leases = await queue.claim()
        await write(julia, DOUBT, state="unknown", now=queue.clock.now(), id=id)
        await queue.settle(leases, Settlement(state=ItemState.DEAD, error="no"))
        assert await queue.store.revive(id)
        assert await queue.claim() == []

    async def test_doubt_needs_its_start_time(self, queue: QueueFixture, julia: Database) -> None:
        (id,) = await queue.put()
        with pytest.raises(StoreConflict):
            await write(julia, "UPDATE fila_mensagens SET envio_estado = 'intent' WHERE id = :id", id=id)

    async def test_claim_records_its_start_for_operators(self, queue: QueueFixture, julia: Database) -> None:
        await queue.put()
        await queue.claim()
        row = await one(julia, "SELECT status, processando_desde, updated_at FROM fila_mensagens")
        now = queue.clock.now()
        assert row == {"status": "processando", "processando_desde": now, "updated_at": now}


async def test_listener_cannot_be_allowed_to_send(julia: Database) -> None:
    chip = await add_chip(julia, "escuta", tipo="listener")
    for permission in ("pode_prospectar", "pode_followup", "pode_responder"):
        with pytest.raises(StoreConflict):
            await write(julia, f"UPDATE chips SET {permission} = TRUE WHERE id = :id", id=chip)


async def test_number_with_or_without_the_ninth_digit_is_one_doctor(julia: Database) -> None:
    await add_doctor(julia, "5531988880001")
    with pytest.raises(StoreConflict):
        await add_doctor(julia, "553188880001")
    await add_doctor(julia, "553132220001")


async def test_exclusion_from_a_campaign_needs_a_reason(julia: Database, clock: FakeClock) -> None:
    doctor = await add_doctor(julia)
    await write(
        julia,
        "INSERT INTO campanhas (nome_template, tipo_campanha, created_at, updated_at) VALUES ('t', 'discovery', :now, :now)",
        now=clock.now(),
    )
    campaign = (await one(julia, "SELECT id FROM campanhas"))["id"]
    insert = (
        "INSERT INTO campanha_destinatarios (campanha_id, cliente_id, situacao, motivo, created_at, updated_at)"
        " VALUES (:campaign, :doctor, 'excluido', :why, :now, :now)"
    )
    with pytest.raises(StoreConflict):
        await write(julia, insert, campaign=campaign, doctor=doctor, why=None, now=clock.now())
    await write(julia, insert, campaign=campaign, doctor=doctor, why="optout", now=clock.now())


async def test_column_and_code_compute_the_same_key_of_a_number(julia: Database) -> None:
    numbers = [
        "5531988880001",
        "553166660001",
        "553132220001",
        "5511900000001",
        "5511955550001",
        "351912345678",
        "12025550100",
    ]
    for number in numbers:
        await add_doctor(julia, number)
    found = await rows(julia, "SELECT telefone, telefone_chave FROM clientes")
    assert {row["telefone"]: row["telefone_chave"] for row in found} == {number: chave(number) for number in numbers}
