"""The queue's contract on both databases: the engine's own table, and one an application could have."""

from dataclasses import dataclass
from typing import Any

import pytest

from batuta.kernel.ids import Ids
from batuta.queue.item import NewItem
from batuta.queue.table import QueueTable
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queues import SqlQueue
from batuta.stores.sql.switches import SqlSwitches
from batuta.tasks.table import TASKS
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.contracts.queue import ANN, QueueContract, Shelf

FILA = QueueTable(
    name="fila_teste",
    ready=("pendente",),
    running="processando",
    done="enviada",
    dead="erro",
    cancelled="cancelada",
    attempts="tentativas",
    crashes="quedas",
    available_at="agendar_para",
    error="erro_texto",
    priority="prioridade",
    urgent_is_high=True,
    key="chave",
    cancel_requested="parar",
)
FILA_SQL = """
CREATE TABLE fila_teste (
    id UUID PRIMARY KEY, telefone TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'pendente', tentativas INTEGER NOT NULL DEFAULT 0,
    quedas INTEGER NOT NULL DEFAULT 0, agendar_para TIMESTAMPTZ NOT NULL, lease_until TIMESTAMPTZ, fence BIGINT NOT NULL DEFAULT 0,
    owner TEXT, erro_texto TEXT, prioridade INTEGER NOT NULL DEFAULT 5, chave TEXT, chip TEXT, parar BOOLEAN NOT NULL DEFAULT FALSE,
    created_at TIMESTAMPTZ NOT NULL, finished_at TIMESTAMPTZ
);
CREATE INDEX fila_teste_ready ON fila_teste (prioridade, agendar_para, id) WHERE status = 'pendente' AND lease_until IS NULL;
CREATE INDEX fila_teste_leased ON fila_teste (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX fila_teste_alive ON fila_teste (chave) WHERE status IN ('pendente', 'processando');
"""


@dataclass
class SqlShelf(Shelf):
    table: QueueTable
    switches: SqlSwitches
    values: dict[str, Any]

    def item(self, urgency: int = 0, **options: Any) -> NewItem:
        wanted = {0: 5, 1: 9} if self.table.urgent_is_high else {0: 5, 1: 1}
        return NewItem(values=self.values, priority=wanted[urgency], **options)

    async def state(self, id: str) -> str | None:
        row = await self.store.item(id)  # type: ignore[attr-defined]
        if row is None:
            return None
        words = {self.table.running: "running", self.table.done: "done", self.table.dead: "dead"}
        words |= {self.table.cancelled: "cancelled", **dict.fromkeys(self.table.ready, "ready")}
        return words[row[self.table.state]]

    async def pause(self, on: bool) -> None:
        key = f"pause.queue.{self.store.name}"  # type: ignore[attr-defined]
        await self.switches.turn(key, on, by="test", reason="-", now=self.clock.now())


class TestTheEnginesOwnTable(QueueContract):
    @pytest.fixture
    def queue(self, migrated: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Shelf:
        store = SqlQueue(migrated, TASKS, ids, clock, queue="default", own_time=True)
        switches = SqlSwitches(migrated, ids, events)
        return SqlShelf(store, clock, TASKS, switches, {"name": "f", "args": AsJson([[], {}])})

    async def test_queues_in_one_table_do_not_meet(self, queue: Shelf, migrated: Database, ids: Ids) -> None:
        other = SqlQueue(migrated, TASKS, ids, queue.clock, queue="other", own_time=True)
        await queue.put()
        assert not (await other.turn([], ANN, 10)).leases
        assert len(await queue.claim()) == 1


class TestAnApplicationsTable(QueueContract):
    @pytest.fixture
    async def queue(self, migrated: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Shelf:
        await migrated.script(FILA_SQL)
        store = SqlQueue(migrated, FILA, ids, clock, own_time=True)
        return SqlShelf(store, clock, FILA, SqlSwitches(migrated, ids, events), {"telefone": "+55 11 00000-0000"})

    async def test_an_item_is_put_with_the_business_change_it_belongs_to_or_not_at_all(
        self, queue: Shelf, migrated: Database
    ) -> None:
        store = queue.store
        assert isinstance(store, SqlQueue)
        with pytest.raises(RuntimeError):
            async with migrated.transaction() as transaction:
                await store.put([queue.item()], within=transaction)
                raise RuntimeError("the business change failed")
        assert await queue.claim() == []
        async with migrated.transaction() as transaction:
            await store.put([queue.item()], within=transaction)
        (lease,) = await queue.claim()
        assert lease.row["telefone"] == "+55 11 00000-0000"
