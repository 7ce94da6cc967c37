"""No task is lost if its function moves to another queue or if its pipeline stage is removed."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import pytest

from batuta.engine.batuta import Batuta
from batuta.health.finding import Finding, Severity
from batuta.health.queues import REPORTED_AFTER
from batuta.kernel.errors import InvalidName
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import decode
from batuta.queue.item import NewItem
from batuta.queue.pipeline import Pipeline, Stage
from batuta.queue.store import Unserved
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import DISCARDED, SqlQueue
from batuta.supervise.loop import Again, Idle
from batuta.tasks.service import REHOMED_AT_ONCE, TaskRehomer
from batuta.tasks.task import TaskFunction
from batuta.testing import FakeClock
from batuta.texts import Texts
from batuta.texts.findings import message_of, next_step_of
from tests.engine.queue.test_pipeline import FILA, SQL, STAGES, onward

AUDIT = query_of("audit", "SELECT actor, action, subject FROM audit_log ORDER BY id", writes=False)


@pytest.fixture
async def old(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with _version(database_url, clock, send="x", keep="z") as work:
        yield work


@pytest.fixture
async def new(database_url: str, clock: FakeClock) -> AsyncIterator[Batuta]:
    async with _version(database_url, clock, send="y", keep="z") as work:
        yield work


def _version(url: str, clock: FakeClock, **queues: str) -> Batuta:
    work = Batuta(url, clock=clock)
    for name, queue in queues.items():
        work.task(name=name, queue=queue)(_nothing())
    return work


def _nothing() -> TaskFunction:
    async def nothing() -> None: ...

    return nothing


def rehomer(work: Batuta) -> TaskRehomer:
    return TaskRehomer(work._task_store, work.task_registry)


async def test_tasks_of_an_unserved_queue_are_counted_by_name(old: Batuta, new: Batuta, clock: FakeClock) -> None:
    since = clock.now()
    await old.enqueue_many("send", [()] * 5)
    await old.enqueue("keep")
    assert await old._task_store.find_unserved(old.task_registry.queues) == []
    stranded = [Unserved(queue="x", name="send", count=5, oldest=since)]
    assert await new._task_store.find_unserved(new.task_registry.queues) == stranded


async def test_worker_that_knows_a_task_moves_it_to_its_queue(old: Batuta, new: Batuta) -> None:
    ids = await old.enqueue_many("send", [()] * (REHOMED_AT_ONCE + 1))
    assert await rehomer(new).tick() == Again()
    assert await rehomer(new).tick() == Idle()
    assert await new._task_store.find_unserved(new.task_registry.queues) == []
    assert (await new.queues["y"].depth()).due == len(ids)


async def test_task_with_an_unknown_name_stays_in_its_queue_and_is_reported(old: Batuta, new: Batuta) -> None:
    old.task(name="gone", queue="w")(_nothing())
    await old.enqueue("gone")
    await rehomer(new).tick()
    assert [(each.queue, each.name) for each in await new._task_store.find_unserved(new.task_registry.queues)] == [
        ("w", "gone")
    ]


async def test_worker_registers_the_loop_that_moves_tasks(new: Batuta) -> None:
    assert "task-rehomer" in {loop.name for loop, _ in new._loops_of("worker")}


async def orphaned(work: Batuta) -> dict[str, Finding]:
    return {finding.cause: finding for finding in (await work.health._checks["unserved"][0].ask()).findings}


async def test_health_reports_tasks_in_a_queue_without_a_worker(old: Batuta, new: Batuta, clock: FakeClock) -> None:
    await old.enqueue_many("send", [()] * 5)
    assert await orphaned(new) == {}  # a worker that knows the task moves them within a minute
    clock.step(REPORTED_AFTER + timedelta(seconds=1))
    assert await orphaned(old) == {}
    found = (await orphaned(new))["queue.orphaned.x"]
    assert (found.severity, found.facts["count"]) == (Severity.ERROR, 5)
    for language, words in (("en", "no worker serves"), ("pt-BR", "nenhum worker atende")):
        texts = Texts(language)  # type: ignore[arg-type]
        assert words in message_of(found, texts)
        assert "batuta queue rehome x --to" in next_step_of(found, texts)
    # During a deploy a worker of the older version serves it.
    await old.beats.beat("w", "worker", {"worker:x": {"alive": True}}, now=clock.now())
    assert await orphaned(new) == {}


@pytest.mark.tables(SQL)
async def test_health_reports_items_of_a_removed_stage_until_they_are_moved(
    database_url: str, clock: FakeClock
) -> None:
    work = Batuta(database_url, clock=clock)
    stages = tuple(Stage(name=name, handle=onward) for name in STAGES)
    work.add_pipeline(Pipeline(table=FILA, stages=stages, dropped="descartado"))
    async with work:
        first = work.queues["pendente"]
        await first.put([NewItem(values={"mensagem": f"m{n}"}, key=f"m{n}") for n in range(3)])
        await work.database.script("UPDATE fila_grupos SET estagio = 'removed' WHERE chave <> 'm0'")
        clock.step(REPORTED_AFTER + timedelta(seconds=1))
        assert (await orphaned(work))["queue.orphaned.removed"].facts["count"] == 2
        await first.rehome("removed", "extracao", 10, by="ana")
        assert await orphaned(work) == {}


@pytest.mark.tables(SQL)
class TestARemovedStage:
    @pytest.fixture
    async def line(self, database: Database, clock: FakeClock, ids: Ids) -> SqlQueue:
        """Three items in a stage that the pipeline no longer has, and one item in a stage that still exists."""
        first = SqlQueue(database, FILA, ids, clock, queue="pendente", own_time=True)
        await first.put([NewItem(values={"mensagem": f"m{n}"}, key=f"m{n}") for n in range(4)])
        await database.script("UPDATE fila_grupos SET estagio = 'removed' WHERE chave <> 'm0'")
        return first

    async def test_items_of_a_removed_stage_are_counted(self, line: SqlQueue, clock: FakeClock) -> None:
        assert await line.find_unserved() == [Unserved(queue="removed", name=None, count=3, oldest=clock.now())]

    async def test_operator_moves_items_to_another_stage(self, line: SqlQueue, database: Database) -> None:
        assert [await line.rehome("removed", "pendente", 2, by="ana") for _ in range(3)] == [2, 1, 0]
        assert await line.find_unserved() == []
        assert (await line.depth()).due == 4
        rows = await database.all(in_dialect(AUDIT, database.dialect))
        assert [(row["actor"], row["action"], row["subject"]) for row in rows] == [
            ("ana", "queue.rehome", "fila_grupos:removed")
        ] * 2

    async def test_items_are_not_moved_to_an_unknown_stage(self, line: SqlQueue) -> None:
        with pytest.raises(InvalidName, match="the stages are"):
            await line.rehome("removed", "typo", 2, by="ana")

    async def test_operator_discards_items_with_a_reason(self, line: SqlQueue, database: Database) -> None:
        assert await line.discard_waiting("removed", 10, by="ana") == 3
        assert await line.find_unserved() == []
        query = query_of("rows", "SELECT estagio, ultimo_erro FROM fila_grupos ORDER BY chave", writes=False)
        rows = [
            (row["estagio"], decode(row["ultimo_erro"]))
            for row in await database.all(in_dialect(query, database.dialect))
        ]
        assert rows == [("pendente", None), *[(FILA.cancelled, DISCARDED(queue="removed"))] * 3]

    async def test_table_without_stages_has_no_removed_stage(
        self, database: Database, clock: FakeClock, ids: Ids
    ) -> None:
        table = replace(FILA, queue=None, running="rodando")
        assert await SqlQueue(database, table, ids, clock, own_time=True).find_unserved() == []
