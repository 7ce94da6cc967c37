"""The queue's contract on both databases, for the engine's own table and for an application's table."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any

import pytest

from batuta.kernel.errors import InvalidName
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem, QueueTable
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder, FakeClock
from tests.engine.queue.contract import ANN, BEN, ITEM_LEASE, SECOND, QueueContract, QueueFixture
from tests.plans.test_hot_statements import FILL, WORDS

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
class SqlQueueFixture(QueueFixture):
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
        await self.switches.set(key, on, by="test", reason="-", now=self.clock.now())


class TestTheEnginesOwnTable(QueueContract):
    @pytest.fixture
    def queue(self, database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> QueueFixture:
        store = SqlQueue(database, TASKS, ids, clock, queue="default", own_time=True)
        switches = SqlSwitches(database, ids, events)
        return SqlQueueFixture(store, clock, TASKS, switches, {"name": "f", "args": AsJson([[], {}])})

    async def test_queues_in_one_table_are_separate(self, queue: QueueFixture, database: Database, ids: Ids) -> None:
        other = SqlQueue(database, TASKS, ids, queue.clock, queue="other", own_time=True)
        await queue.put()
        assert not (await other.settle_and_claim([], ANN, 10)).leases
        assert len(await queue.claim()) == 1

    async def test_items_with_different_columns_are_put_in_one_batch(self, queue: QueueFixture) -> None:
        values = {"name": "f", "args": AsJson([])}
        ids = await queue.put(
            NewItem(values=values), NewItem(values=values, priority=-3), NewItem(values=values, key="k")
        )
        assert len(ids) == 3
        assert [lease.id for lease in await queue.claim(limit=1)] == [ids[1]]

    async def test_next_item_is_found_among_many_priorities(self, queue: QueueFixture) -> None:
        values, now = {"name": "f", "args": AsJson([])}, queue.clock.now()
        later = [now + SECOND * n for n in range(1, 301)]
        ids = await queue.put(*(NewItem(values=values, priority=n, available_at=at) for n, at in enumerate(later)))
        assert await queue.store.next_at() == later[0]
        assert await queue.claim() == []
        queue.clock.step(300 * SECOND)
        assert [lease.id for lease in await queue.claim(limit=3)] == ids[:3]

    async def test_most_urgent_due_items_of_hundreds_of_priorities_come_first(self, queue: QueueFixture) -> None:
        """A claim takes the most urgent items that are due. Here it cannot check all priorities one by one, because
        there are too many, and half of the items are not due yet.
        """
        values, later = {"name": "f", "args": AsJson([])}, queue.clock.now() + 60 * SECOND
        items = [
            NewItem(values=values, priority=n, available_at=later + n * SECOND if n % 2 else None) for n in range(400)
        ]
        ids = await queue.put(*items[::-1])
        ids.reverse()
        assert isinstance(queue.store, SqlQueue)
        assert (await queue.store.pulse()).due == 200
        most_urgent = await queue.claim(limit=100)
        assert sorted(lease.id for lease in most_urgent) == sorted(ids[:200:2])
        assert [lease.id for lease in await queue.claim(limit=1, reversed=True)] == [ids[398]]
        least_urgent = await queue.claim(limit=50, reversed=True)
        assert sorted(lease.id for lease in least_urgent) == sorted(ids[298:398:2])
        assert len(await queue.claim(limit=100)) == 49
        assert await queue.claim() == []
        assert await queue.claim(reversed=True) == []
        assert await queue.store.next_at() == later + SECOND
        queue.clock.step(60 * SECOND + 399 * SECOND)
        (last,) = await queue.claim(limit=1, reversed=True)
        assert last.id == ids[399]

    @pytest.mark.parametrize("ends", ["cancelled", "crashed"])
    async def test_item_that_ended_without_a_worker_expires_after_its_retention(
        self, queue: QueueFixture, ends: str
    ) -> None:
        (id,) = await queue.put()
        for _ in range(3 if ends == "crashed" else 0):
            await queue.claim()
            queue.clock.step(ITEM_LEASE + SECOND)
            await queue.store.rescue(10)
        if ends == "cancelled":
            await queue.store.cancel(id, "x" * 2_000)
        assert isinstance(queue.store, SqlQueue)
        row = await queue.store.item(id)
        assert row is not None
        assert row["expires_at"] == row["finished_at"] + TASKS.keep
        if ends == "crashed":
            assert await queue.store.revive(id)
            row = await queue.store.item(id)
            assert row is not None
            assert row["expires_at"] is None  # the pruner would delete a live item


@pytest.mark.tables(FILA_SQL)
class TestAnApplicationsTable(QueueContract):
    @pytest.fixture
    def queue(self, database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> QueueFixture:
        store = SqlQueue(database, FILA, ids, clock, own_time=True)
        return SqlQueueFixture(
            store, clock, FILA, SqlSwitches(database, ids, events), {"telefone": "+55 11 00000-0000"}
        )

    async def test_item_and_business_change_commit_together(self, queue: QueueFixture, database: Database) -> None:
        store = queue.store
        assert isinstance(store, SqlQueue)
        with pytest.raises(RuntimeError):
            async with database.transaction() as transaction:
                await store.put([queue.item()], within=transaction)
                raise RuntimeError("the business change failed")
        assert await queue.claim() == []
        async with database.transaction() as transaction:
            await store.put([queue.item()], within=transaction)
        (lease,) = await queue.claim()
        assert lease.row["telefone"] == "+55 11 00000-0000"

    async def test_handler_receives_the_whole_row_with_the_types_of_its_columns(self, queue: QueueFixture) -> None:
        (id,) = await queue.put()
        (lease,) = await queue.claim()
        row = await queue.store.item(id)  # type: ignore[attr-defined]
        assert dict(lease.row) == dict(row)

    async def test_table_may_limit_the_columns_that_a_handler_receives(
        self, queue: QueueFixture, database: Database, ids: Ids
    ) -> None:
        part = SqlQueue(database, replace(FILA, given=("telefone",)), ids, queue.clock, own_time=True)
        await queue.put()
        (lease,) = (await part.settle_and_claim([], ANN, 1)).leases
        assert set(lease.row) == {"telefone"}
        assert lease.due_at == lease.created_at == queue.clock.now()

    def test_given_names_must_be_columns(self) -> None:
        with pytest.raises(InvalidName, match="a name in given is not an SQL identifier"):
            replace(FILA, given=("telefone; DROP TABLE fila_teste",))


@pytest.mark.tables(FILA_SQL)
async def test_bytes_in_a_text_column_block_no_other_claim(database: Database, clock: FakeClock, ids: Ids) -> None:
    if database.dialect != "sqlite":
        pytest.skip("PostgreSQL refuses bytes in a text column")
    store = SqlQueue(database, FILA, ids, clock, own_time=True)
    await store.put([NewItem(values={"telefone": "-"}), NewItem(values={"telefone": "-"})])
    await database.script("UPDATE fila_teste SET telefone = x'ff00' WHERE id = (SELECT min(id) FROM fila_teste);")
    assert sorted(lease.row["telefone"] for lease in (await store.settle_and_claim([], ANN, 10)).leases) == [
        "-",
        "FF00",
    ]


PER_CHIP = replace(FILA, group="chip")
PER_CHIP_SQL = (
    FILA_SQL.replace("(prioridade, agendar_para, id)", "(chip, prioridade, agendar_para, id)")
    + "CREATE UNIQUE INDEX fila_teste_one ON fila_teste (chip) WHERE lease_until IS NOT NULL;"
)


@pytest.mark.tables(PER_CHIP_SQL)
class TestATableWhoseGroupsTakeTurns:
    """A table whose items belong to groups, here chips (sending numbers). At most one item per chip is running at a
    time, across all processes. A chip with many items does not delay the other chips.
    """

    @pytest.fixture
    def queue(self, database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> SqlQueueFixture:
        store = SqlQueue(database, PER_CHIP, ids, clock, own_time=True)
        return SqlQueueFixture(store, clock, PER_CHIP, SqlSwitches(database, ids, events), {"telefone": "-"})

    def item(self, chip: str) -> NewItem:
        return NewItem(values={"telefone": "-", "chip": chip})

    async def test_group_has_one_running_item(self, queue: SqlQueueFixture) -> None:
        await queue.put(*(self.item(chip) for chip in ("a", "a", "a", "b", "b")))
        first = await queue.claim()
        assert sorted(lease.row["chip"] for lease in first) == ["a", "b"]
        assert await queue.claim(BEN) == []
        await queue.settle([lease for lease in first if lease.row["chip"] == "a"])
        assert [lease.row["chip"] for lease in await queue.claim(BEN)] == ["a"]

    async def test_group_with_many_items_does_not_delay_the_others(self, queue: SqlQueueFixture) -> None:
        await queue.put(*(self.item("busy") for _ in range(200)), self.item("quiet"))
        assert {lease.row["chip"] for lease in await queue.claim(limit=2)} == {"busy", "quiet"}

    async def test_concurrent_claims_never_share_a_group(self, queue: SqlQueueFixture) -> None:
        await queue.put(*(self.item(f"chip{n % 5}") for n in range(50)))
        lease_holders = [LeaseHolder(owner=f"w{n}", lease=ITEM_LEASE) for n in range(10)]
        claims = await asyncio.gather(*(queue.claim(lease_holder, limit=5) for lease_holder in lease_holders))
        taken = [lease.row["chip"] for claim in claims for lease in claim]
        assert len(taken) == len(set(taken))

    async def test_groups_take_turns_when_claims_are_small(self, queue: SqlQueueFixture) -> None:
        chips = [f"chip{n}" for n in range(6)]
        await queue.put(*(self.item(chip) for chip in chips * 3))
        for _ in range(3):
            served = []
            for _ in chips:
                leases = await queue.claim(limit=1)
                await queue.settle(leases)
                served += [lease.row["chip"] for lease in leases]
            assert sorted(served) == chips

    async def test_claim_locks_only_as_many_groups_as_it_needs(
        self, queue: SqlQueueFixture, database: Database
    ) -> None:
        """A claim locks each group that it checks. Until the claim ends, other workers cannot claim from these groups,
        and the locks take up space in the server's limited lock table.
        """
        if database.dialect != "postgres":
            pytest.skip("SQLite has one writer, and no locks to count")
        await queue.put(*(self.item(f"chip{n:04}") for n in range(500)))
        assert isinstance(queue.store, SqlQueue)
        asked = {"owner": "ann", "holds": AsJson([]), "now": queue.clock.now(), "lease": 1_000_000}
        locks = query_of(
            "locks",
            "SELECT count(*) AS held FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
            writes=False,
        )
        async with database.transaction() as transaction:
            assert len(await queue.store._claims.claim_round_robin(transaction, asked, 5)) == 5
            held = await transaction.one(in_dialect(locks, "postgres"))
        assert held is not None
        assert held["held"] <= 10

    async def test_claim_finds_the_few_due_groups_among_tens_of_thousands(
        self, queue: SqlQueueFixture, database: Database
    ) -> None:
        """A PostgreSQL server has space for about ten thousand locks in total, so a claim must lock only the groups
        from which it takes items.
        """
        text = FILL[database.dialect].format(rows=40_000)
        later = "9e15" if database.dialect == "sqlite" else "now() + INTERVAL '100 years'"
        ago = "0" if database.dialect == "sqlite" else "TIMESTAMPTZ 'epoch'"
        fill = (
            f"INSERT INTO fila_teste (id, telefone, chip, agendar_para, created_at) {text}"
            f"SELECT {WORDS[database.dialect]['id']}, '-', 'chip' || i,"
            f" CASE WHEN i % 10000 = 7 THEN {ago} ELSE {later} END, {ago} FROM n"
        )
        await database.run(in_dialect(query_of("fill", fill, writes=True), database.dialect))
        await database.script("ANALYZE")
        assert sorted(lease.row["chip"] for lease in await queue.claim()) == [
            "chip10007",
            "chip20007",
            "chip30007",
            "chip7",
        ]
        assert await queue.claim() == []

    async def test_concurrent_claims_never_share_a_group_without_a_unique_index(
        self, queue: SqlQueueFixture, database: Database
    ) -> None:
        await database.script("DROP INDEX fila_teste_one")
        await queue.put(*(self.item(f"chip{n % 4}") for n in range(60)))
        leased = query_of(
            "leased",
            "SELECT count(*) AS rows, count(DISTINCT chip) AS chips FROM fila_teste WHERE lease_until IS NOT NULL",
            writes=False,
        )
        done: set[str] = set()

        async def work(lease_holder: LeaseHolder) -> None:
            while len(done) < 60:
                leases = await queue.claim(lease_holder, limit=2)
                row = await database.one(in_dialect(leased, database.dialect))
                assert row is not None
                assert row["rows"] == row["chips"]
                done.update(lease.id for lease in leases)
                await queue.settle(leases)

        await asyncio.gather(*(work(LeaseHolder(owner=f"w{n}", lease=ITEM_LEASE)) for n in range(4)))
        assert len(done) == 60

    async def test_row_without_a_group_waits_for_no_other(self, queue: SqlQueueFixture) -> None:
        ungrouped = [NewItem(values={"telefone": "-"}) for _ in range(3)]
        await queue.put(*ungrouped, self.item("a"), self.item("a"))
        assert sorted(str(lease.row["chip"]) for lease in await queue.claim()) == ["None", "None", "None", "a"]
        assert await queue.claim() == []

    async def test_rows_with_and_without_a_group_take_turns(self, queue: SqlQueueFixture) -> None:
        ungrouped = [NewItem(values={"telefone": "-"}) for _ in range(3)]
        await queue.put(*ungrouped, *(self.item(f"chip{n}") for n in range(3)))
        taken = [lease.row["chip"] is None for _ in range(6) for lease in await queue.claim(limit=1)]
        assert sorted(taken) == [False] * 3 + [True] * 3
        assert taken[:2] in ([True, False], [False, True])

    async def test_every_item_of_every_group_is_processed(self, queue: SqlQueueFixture) -> None:
        await queue.put(*(self.item(f"chip{n % 3}") for n in range(30)))
        done = 0
        while leases := await queue.claim():
            done += len(leases)
            await queue.settle(leases)
        assert done == 30
