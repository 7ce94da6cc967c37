"""A pipeline on both databases: how it handles retries, fan-outs, cancellations, crashes and effects."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.engine.batuta import Batuta
from batuta.kernel.errors import InvalidName
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState, Lease, NewItem, QueueTable
from batuta.queue.outcome import Done, Failed, FanOut, Jump, Next, Settlement, Skipped, Snooze, StageOutcome, Writes
from batuta.queue.pipeline import Pipeline, Stage
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.supervise.loop import Again
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.stored import readable

STAGES = ("pendente", "classificacao", "extracao")
FILA = QueueTable(
    name="fila_grupos", state="estagio", queue="estagio", ready=STAGES, running=None, done="finalizado", dead="erro",
    cancelled="cancelado", attempts="tentativas", crashes="quedas", available_at="proximo_retry", error="ultimo_erro",
    key="chave", last_stage="ultimo_estagio", updated_at="updated_at",
)  # fmt: skip
SQL = """
CREATE TABLE fila_grupos (
    id UUID PRIMARY KEY, mensagem TEXT NOT NULL, vaga INTEGER, estagio TEXT NOT NULL, tentativas INTEGER NOT NULL DEFAULT 0,
    quedas INTEGER NOT NULL DEFAULT 0, proximo_retry TIMESTAMPTZ NOT NULL, lease_until TIMESTAMPTZ, fence BIGINT NOT NULL DEFAULT 0,
    owner TEXT, ultimo_erro TEXT, ultimo_estagio TEXT, chave TEXT, created_at TIMESTAMPTZ NOT NULL, updated_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ
);
CREATE INDEX fila_grupos_ready ON fila_grupos (estagio, proximo_retry, id)
    WHERE estagio IN ('pendente', 'classificacao', 'extracao') AND lease_until IS NULL;
CREATE INDEX fila_grupos_leased ON fila_grupos (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX fila_grupos_chave ON fila_grupos (chave);
CREATE TABLE vagas_teste (mensagem TEXT NOT NULL, nome TEXT NOT NULL);
"""
pytestmark = pytest.mark.tables(SQL)
LEASE = timedelta(seconds=30)
Handler = Callable[[Lease], Awaitable[StageOutcome]]


async def onward(lease: Lease) -> StageOutcome:
    return Next()


class Line:
    """The pipeline under test. ``run`` lets every stage work until no item is due."""

    def __init__(self, database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> None:
        self.database, self.clock, self.ids, self.events = database, clock, ids, events
        self.handlers: dict[str, Handler] = dict.fromkeys(STAGES, onward)

    def queue(self, stage: str) -> SqlQueue:
        return SqlQueue(self.database, FILA, self.ids, self.clock, queue=stage, own_time=True)

    def workers(self, **options: Any) -> list[Worker]:
        stages = tuple(Stage(name=name, handle=self.handlers[name], **options) for name in STAGES)
        pipeline = Pipeline(table=FILA, stages=stages, dropped="descartado")
        lease_holder = LeaseHolder(owner=self.ids.new(), lease=LEASE)
        return [
            Worker(
                stage.name, self.queue(stage.name), lambda lease, stage=stage: pipeline.handler(stage), lease_holder,  # type: ignore[misc]
                WorkerPolicy(limit=stage.budget), self.clock, self.events,
            )
            for stage in stages
        ]  # fmt: skip

    async def put(self, *messages: str) -> list[str | None]:
        return await self.queue("pendente").put([NewItem(values={"mensagem": each}, key=each) for each in messages])

    async def run(self, workers: list[Worker] | None = None, **options: Any) -> None:
        working = workers or self.workers(**options)
        for _ in range(12):
            for worker in working:
                while isinstance(await worker.tick(), Again):
                    pass
                await settle()
                await asyncio.gather(*worker.tasks, return_exceptions=True)
        for worker in working:
            await worker.tick()

    async def rows(self) -> list[dict[str, Any]]:
        query = query_of("rows", "SELECT * FROM fila_grupos ORDER BY created_at, chave", writes=False)
        return [readable(row) for row in await self.database.all(in_dialect(query, self.database.dialect))]

    async def where(self) -> dict[str, str]:
        return {row["chave"]: row["estagio"] for row in await self.rows()}


@pytest.fixture
def line(database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Line:
    return Line(database, clock, ids, events)


async def test_item_passes_every_stage_and_is_finished(line: Line) -> None:
    await line.put("m1", "m2")
    await line.run()
    assert await line.where() == {"m1": "finalizado", "m2": "finalizado"}


async def test_repeated_message_is_processed_once(line: Line) -> None:
    await line.put("m1")
    await line.run()
    assert await line.put("m1") == [None]
    assert await line.where() == {"m1": "finalizado"}


async def test_repeated_fan_out_creates_one_row_per_item_with_its_values(line: Line) -> None:
    async def extract(lease: Lease) -> StageOutcome:
        if lease.row["vaga"] is not None:
            return Next()
        items = tuple(
            NewItem(values={"mensagem": lease.row["mensagem"], "vaga": n}, key=f"{lease.row['mensagem']}:{n}")
            for n in range(5)
        )
        return FanOut(items)

    line.handlers["classificacao"] = extract
    await line.put("m1")
    await line.run()
    await line.queue("pendente").put(
        [NewItem(values={"mensagem": "m1", "estagio": "classificacao"}, key="m1 by another way")]
    )
    await line.run()
    rows = await line.rows()
    assert sorted(row["vaga"] for row in rows if row["vaga"] is not None) == [0, 1, 2, 3, 4]
    assert {row["estagio"] for row in rows} == {"finalizado"}


async def test_two_workers_never_hold_the_same_item(line: Line) -> None:
    seen: list[str] = []

    async def note(lease: Lease) -> StageOutcome:
        seen.append(lease.row["chave"])
        return Skipped("enough")

    line.handlers["pendente"] = note
    await line.put(*(f"m{n}" for n in range(40)))
    await asyncio.gather(line.run(), line.run())
    assert sorted(seen) == sorted(f"m{n}" for n in range(40))


async def test_retries_wait_one_five_and_fifteen_minutes_then_the_stage_is_an_error(line: Line) -> None:
    tried: list[timedelta] = []
    start = line.clock.now()

    async def fail(lease: Lease) -> StageOutcome:
        tried.append(line.clock.now() - start)
        return Failed("the model does not answer")

    line.handlers["classificacao"] = fail
    await line.put("m1")
    workers = line.workers()
    for _ in range(25):
        await line.run(workers)
        line.clock.step(timedelta(minutes=1))
    assert tried == [timedelta(minutes=n) for n in (0, 1, 6, 21)]
    (row,) = await line.rows()
    assert (row["estagio"], row["ultimo_estagio"], row["ultimo_erro"]) == (
        "erro",
        "classificacao",
        "the model does not answer",
    )


async def test_revived_item_continues_at_its_failed_stage(line: Line) -> None:
    calls: list[str] = []

    async def first(lease: Lease) -> StageOutcome:
        calls.append("pendente")
        return Next()

    async def fail_once(lease: Lease) -> StageOutcome:
        calls.append("classificacao")
        return Failed("wrong", permanent=True) if calls.count("classificacao") == 1 else Next()

    line.handlers |= {"pendente": first, "classificacao": fail_once}
    (id,) = await line.put("m1")
    assert id is not None
    await line.run()
    assert await line.where() == {"m1": "erro"}
    assert await line.queue("pendente").revive(id)
    await line.run()
    assert await line.where() == {"m1": "finalizado"}
    assert calls == ["pendente", "classificacao", "classificacao"]


async def test_attempts_restart_at_every_stage(line: Line) -> None:
    attempts: list[tuple[str, int]] = []

    def flaky(name: str) -> Handler:
        async def handle(lease: Lease) -> StageOutcome:
            attempts.append((name, lease.attempt))
            return Failed("again") if lease.attempt < 3 else Next()

        return handle

    line.handlers |= {name: flaky(name) for name in STAGES}
    await line.put("m1")
    workers = line.workers()
    for _ in range(30):
        await line.run(workers)
        line.clock.step(timedelta(minutes=1))
    assert await line.where() == {"m1": "finalizado"}
    assert attempts == [(name, n) for name in STAGES for n in (1, 2, 3)]


async def test_stage_reports_its_time_limit(line: Line) -> None:
    async def hang(lease: Lease) -> StageOutcome:
        await asyncio.Event().wait()
        return Next()

    line.handlers["pendente"] = hang
    await line.put("m1")
    (worker, *_) = line.workers(timeout=timedelta(seconds=5))
    await worker.tick()
    await line.clock.advance(timedelta(seconds=5))
    await worker.tick()
    await settle()
    await worker.tick()
    (row,) = await line.rows()
    assert (row["estagio"], row["ultimo_erro"]) == ("pendente", "Job timeout exceeded")


async def test_unknown_outcome_is_a_failure_that_names_it(line: Line) -> None:
    async def nonsense(lease: Lease) -> StageOutcome:
        return Jump("importacao")

    line.handlers["pendente"] = nonsense
    await line.put("m1")
    await line.run()
    (row,) = await line.rows()
    assert row["estagio"] == "pendente"
    assert "InvalidName" in row["ultimo_erro"]


async def test_jump_skips_stages_and_drop_keeps_its_reason(line: Line) -> None:
    async def sort(lease: Lease) -> StageOutcome:
        return Jump("extracao") if lease.row["mensagem"] == "m1" else Skipped("not an offer")

    async def never(lease: Lease) -> StageOutcome:
        raise AssertionError("skipped")

    line.handlers |= {"pendente": sort, "classificacao": never}
    await line.put("m1", "m2")
    await line.run()
    assert await line.where() == {"m1": "finalizado", "m2": "descartado"}
    assert {row["chave"]: row["ultimo_erro"] for row in await line.rows()}["m2"] == "not an offer"


async def test_stop_lets_items_finish_or_releases_them(line: Line) -> None:
    async def hang(lease: Lease) -> StageOutcome:
        await asyncio.Event().wait()
        return Next()

    line.handlers["pendente"] = hang
    await line.put("m1")
    (worker, *_) = line.workers()
    await worker.tick()
    await settle()
    draining = asyncio.create_task(worker.drain(timedelta(seconds=10)))
    await line.clock.advance(timedelta(seconds=10))
    await draining
    (row,) = await line.rows()
    assert (row["lease_until"], row["tentativas"]) == (None, 0)
    line.handlers["pendente"] = onward
    await line.run()
    assert await line.where() == {"m1": "finalizado"}


async def test_item_that_waits_for_its_retry_is_not_due(line: Line) -> None:
    async def later(lease: Lease) -> StageOutcome:
        return Snooze(line.clock.now() + timedelta(hours=1), "rate limit")

    line.handlers["pendente"] = later
    await line.put("m1")
    await line.run()
    assert await line.queue("pendente").next_at() == line.clock.now() + timedelta(hours=1)
    (row,) = await line.rows()
    assert (row["tentativas"], row["ultimo_erro"]) == (0, "rate limit")


async def test_effect_and_hand_over_commit_together(line: Line) -> None:
    insert = query_of("insert", "INSERT INTO vagas_teste (mensagem, nome) VALUES (:mensagem, :nome)", writes=True)

    def importing(nome: str | None) -> Handler:
        async def handle(lease: Lease) -> StageOutcome:
            async def effect(transaction: Any) -> None:
                query = in_dialect(insert, line.database.dialect)
                await transaction.run(query, mensagem=lease.row["mensagem"], nome=nome)

            return Next(effect)

        return handle

    async def vagas() -> list[str]:
        query = query_of("vagas", "SELECT nome FROM vagas_teste", writes=False)
        return [row["nome"] for row in await line.database.all(in_dialect(query, line.database.dialect))]

    line.handlers["pendente"] = importing(None)  # the table refuses a missing name
    await line.put("m1", "m2")
    await line.run()
    assert await vagas() == []
    assert set((await line.where()).values()) == {"pendente"}
    line.handlers["pendente"] = importing("UTI")
    line.clock.step(timedelta(minutes=2))
    await line.run()
    assert await vagas() == ["UTI", "UTI"]
    assert set((await line.where()).values()) == {"finalizado"}


async def test_item_that_kills_its_workers_is_an_error_at_its_stage(line: Line) -> None:
    await line.put("m1")
    queue = line.queue("pendente")
    for _ in range(3):
        assert len((await queue.settle_and_claim([], LeaseHolder(owner="w", lease=LEASE), 10)).leases) == 1
        line.clock.step(LEASE + timedelta(seconds=1))
        await queue.rescue(10)
    (row,) = await line.rows()
    assert (row["estagio"], row["ultimo_estagio"]) == ("erro", "pendente")
    assert row["ultimo_erro"] == "its worker died 3 times while running it"


# Statements of many items in one transaction


def inserting(line: Line, names: dict[str, str | None]) -> Handler:
    """Return a handler whose effect takes the name from a message and inserts it into a table. The table rejects a
    missing name.
    """
    query = query_of("insert", "INSERT INTO vagas_teste (mensagem, nome) VALUES (:mensagem, :nome)", writes=True)
    ready = in_dialect(query, line.database.dialect)

    async def handle(lease: Lease) -> StageOutcome:
        message = lease.row["mensagem"]
        return Done(effect=Writes(((ready, {"mensagem": message, "nome": names[message]}),)))

    return handle


async def written(line: Line) -> list[str]:
    query = query_of("vagas", "SELECT mensagem FROM vagas_teste ORDER BY mensagem", writes=False)
    return [row["mensagem"] for row in await line.database.all(in_dialect(query, line.database.dialect))]


async def test_item_finished_early_skips_the_remaining_stages(line: Line) -> None:
    async def enough(lease: Lease) -> StageOutcome:
        return Done()

    async def never(lease: Lease) -> StageOutcome:
        raise AssertionError("it was finished")

    line.handlers |= {"pendente": enough, "classificacao": never}
    await line.put("m1")
    await line.run()
    assert await line.where() == {"m1": "finalizado"}


async def test_statements_of_many_items_commit_with_their_settlements(line: Line) -> None:
    messages = [f"m{n}" for n in range(10)]
    line.handlers["pendente"] = inserting(line, dict.fromkeys(messages, "UTI"))
    await line.put(*messages)
    await line.run()
    assert await written(line) == messages
    assert set((await line.where()).values()) == {"finalizado"}


async def test_statements_of_an_item_keep_their_order_in_a_shared_batch(line: Line) -> None:
    made, named = (
        in_dialect(query_of(name, text, writes=True), line.database.dialect)
        for name, text in {
            "made": "INSERT INTO vagas_teste (mensagem, nome) VALUES (:mensagem, '')",
            "called": "UPDATE vagas_teste SET nome = 'UTI' WHERE mensagem = :mensagem",
        }.items()
    )

    async def handle(lease: Lease) -> StageOutcome:
        about = {"mensagem": lease.row["mensagem"]}
        return Done(effect=Writes(((named, about),) if about["mensagem"] == "m0" else ((made, about), (named, about))))

    line.handlers["pendente"] = handle
    await line.put("m0", "m1", "m2")
    await line.run()
    query = in_dialect(query_of("vagas", "SELECT nome FROM vagas_teste", writes=False), line.database.dialect)
    assert [row["nome"] for row in await line.database.all(query)] == ["UTI", "UTI"]


async def test_refused_statement_fails_only_its_own_item(line: Line) -> None:
    names = {f"m{n}": None if n == 3 else "UTI" for n in range(6)}
    line.handlers["pendente"] = inserting(line, names)
    await line.put(*names)
    await line.run()
    assert await written(line) == ["m0", "m1", "m2", "m4", "m5"]
    (waiting,) = [row for row in await line.rows() if row["estagio"] == "pendente"]
    assert (waiting["chave"], waiting["tentativas"]) == ("m3", 1)
    assert "while the outcome was written" in waiting["ultimo_erro"]
    line.handlers["pendente"] = inserting(line, {"m3": "UTI"})
    line.clock.step(timedelta(minutes=2))
    await line.run()
    assert "m3" in await written(line)


async def test_worker_that_lost_its_item_writes_none_of_its_statements(line: Line) -> None:
    await line.put("m1")
    queue, lease_holder = line.queue("pendente"), LeaseHolder(owner="w", lease=LEASE)
    (late,) = (await queue.settle_and_claim([], lease_holder, 1)).leases
    line.clock.step(LEASE + timedelta(seconds=1))
    await queue.rescue(10)
    outcome = await inserting(line, {"m1": "UTI"})(late)
    assert isinstance(outcome, Done)
    ended = Settlement(state=ItemState.DONE, effect=outcome.effect)
    assert [lease.id for lease in (await queue.settle_and_claim([(late, ended)], lease_holder, 0)).lost] == [late.id]
    assert await written(line) == []


async def test_follow_up_item_may_refer_to_rows_written_with_it(line: Line) -> None:
    await line.database.script(
        "CREATE TABLE pais (id INTEGER PRIMARY KEY); ALTER TABLE fila_grupos ADD COLUMN pai INTEGER REFERENCES pais (id);"
    )
    query = in_dialect(query_of("pai", "INSERT INTO pais (id) VALUES (:id)", writes=True), line.database.dialect)

    async def extract(lease: Lease) -> StageOutcome:
        if lease.row["vaga"] is not None:
            return Next()
        items = tuple(NewItem(values={"mensagem": "m1", "vaga": n, "pai": n}, key=f"v{n}") for n in range(2))
        return FanOut(items, Writes(tuple((query, {"id": n}) for n in range(2))))

    line.handlers["pendente"] = extract
    await line.put("m1")
    await line.run()
    assert await line.where() == {"m1": "finalizado", "v0": "finalizado", "v1": "finalizado"}


async def test_program_adds_a_pipeline_and_the_worker_serves_its_stages(
    database_url: str, clock: FakeClock, line: Line
) -> None:
    work = Batuta(database_url, clock=clock, migrate=False)
    stages = tuple(Stage(name=name, handle=onward) for name in STAGES)
    work.add_pipeline(Pipeline(table=FILA, stages=stages, dropped="descartado"))
    with pytest.raises(InvalidName, match="another queue"):
        work.add_pipeline(Pipeline(table=FILA, stages=stages, dropped="descartado"))
    async with work:
        await work.queues["pendente"].put([NewItem(values={"mensagem": "m1"}, key="m1")])
        assert [await work.work_once(stage, 10) for stage in STAGES] == [1, 1, 1]
        loops = [loop.name for loop, _ in work._loops_of("worker")]
    assert await line.where() == {"m1": "finalizado"}
    assert [name for name in loops if name.startswith("rescuer:")] == ["rescuer:pendente"]
    assert [name for name in loops if name.startswith("worker:")] == [f"worker:{stage}" for stage in STAGES]


async def test_dead_items_of_a_stage_are_listed_counted_and_revived_there(line: Line) -> None:
    async def breaks(lease: Lease) -> StageOutcome:
        return Failed("never", permanent=True)

    line.handlers["extracao"] = breaks
    ids = await line.put("m1", "m2")
    await line.run()
    stage, other = line.queue("extracao"), line.queue("classificacao")
    assert (await stage.counts(), await other.counts()) == ({"erro": 2}, {})
    assert ((await stage.depth()).dead, (await stage.pulse()).dead, (await other.depth()).dead) == (2, 2, 0)
    assert {row["id"] for row in await stage.list_items(ItemState.DEAD, 10)} == set(ids)
    assert await other.list_items(ItemState.DEAD, 10) == []
    assert await stage.revive(str(ids[0]), by="ana")
    assert await stage.counts() == {"extracao": 1, "erro": 1}
    assert [row["id"] for row in await stage.list_items(ItemState.READY, 10)] == [ids[0]]
    (lease,) = (await stage.settle_and_claim([], LeaseHolder(owner="w", lease=LEASE), 1)).leases
    assert await stage.counts() == {"running": 1, "erro": 1}
    assert [row["id"] for row in await stage.list_items(ItemState.RUNNING, 10)] == [lease.id]
    assert await stage.list_items(ItemState.READY, 10) == []


async def test_dead_items_of_a_removed_stage_belong_to_the_first_stage(line: Line) -> None:
    (id,) = await line.put("m1")
    await line.database.script(
        "UPDATE fila_grupos SET estagio = 'erro', ultimo_estagio = 'removed', finished_at = created_at"
    )
    first = line.queue("pendente")
    assert await first.counts() == {"erro": 1}
    assert [row["id"] for row in await first.list_items(ItemState.DEAD, 10)] == [id]
    assert await first.revive(str(id))
    assert await line.where() == {"m1": "pendente"}
