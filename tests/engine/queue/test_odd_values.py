"""An item with an unusual instant, value or outcome does not affect the other items in the queue. An unusual shutdown
does not affect them either.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from batuta import Batuta
from batuta.kernel.errors import InvalidName, StatementRefused, StoreReadOnly
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.storage.storable import refuse_unstorable
from batuta.queue.handler import ItemHandler
from batuta.queue.item import ItemState, Lease, NewItem, QueueTable
from batuta.queue.outcome import Done, Failed, Settlement, Snooze, after_seconds
from batuta.queue.store import ClaimResult, Endings
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.engine.queue.queue_bench import LEASE, Bench, fine, for_ever
from tests.stored import readable

ANN = LeaseHolder(owner="ann", lease=LEASE)
BEHIND_UTC = timezone(timedelta(hours=-5))
PLAIN = QueueTable(name="fila_avulsa", priority="prioridade", key="chave", doubt="duvida", cancel_requested="parar")
PLAIN_SQL = """
CREATE TABLE fila_avulsa (
    id UUID PRIMARY KEY, texto TEXT, extra JSONB, status TEXT NOT NULL DEFAULT 'ready', attempts INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0, available_at TIMESTAMPTZ NOT NULL, lease_until TIMESTAMPTZ, fence BIGINT NOT NULL DEFAULT 0,
    owner TEXT, error TEXT, prioridade INTEGER DEFAULT 5, chave TEXT, duvida TEXT, parar BOOLEAN NOT NULL DEFAULT FALSE,
    estagio TEXT, lembrado_em TIMESTAMPTZ, dia DATE, created_at TIMESTAMPTZ NOT NULL, finished_at TIMESTAMPTZ
);
CREATE INDEX fila_avulsa_ready ON fila_avulsa (prioridade, available_at, id)
    WHERE status = 'ready' AND lease_until IS NULL AND duvida IS NULL;
CREATE INDEX fila_avulsa_leased ON fila_avulsa (lease_until) WHERE lease_until IS NOT NULL;
CREATE UNIQUE INDEX fila_avulsa_alive ON fila_avulsa (chave) WHERE status IN ('ready', 'running');
"""
pytestmark = pytest.mark.tables(PLAIN_SQL)


@pytest.fixture
async def bench(database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Bench:
    return Bench(database, clock, ids, events)


@pytest.fixture
def plain(database: Database, clock: FakeClock, ids: Ids) -> SqlQueue:
    return SqlQueue(database, PLAIN, ids, clock, own_time=True)


async def write(database: Database, sql: str) -> None:
    await database.run(in_dialect(query_of("test", sql, writes=True), database.dialect))


async def claim(store: SqlQueue, limit: int = 10) -> list[Lease]:
    return list((await store.settle_and_claim([], ANN, limit)).leases)


async def row(store: SqlQueue, id: str | None) -> dict[str, Any]:
    assert id is not None
    found = await store.item(id)
    assert found is not None
    return readable(found)


async def work_through(store: SqlQueue, clock: FakeClock, events: EventRecorder) -> None:
    handler = ItemHandler(handle=fine)
    worker = Worker(store.name, store, lambda _: handler, ANN, WorkerPolicy(), clock, events)
    for _ in range(3):
        await worker.tick()
        await settle()
    await worker.drain(LEASE)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("at", [datetime.max.replace(tzinfo=UTC), datetime.max.replace(tzinfo=BEHIND_UTC)])
async def test_item_snoozed_for_ever_delays_no_other(bench: Bench, at: datetime) -> None:
    async def never(lease: Lease) -> object:
        return Snooze(at, "never")

    bench.handles("never", never)
    bench.handles("fine", fine)
    worker = bench.worker()
    due: tuple[dict[str, Any], ...] = ({}, {"available_at": at})
    for options in due:
        (id,) = await bench.put("never", **options)
        await bench.works(worker)
        assert (await bench.row(id))["status"] == "queued"
        assert (await bench.row(id))["available_at"].year > 9000
    (other,) = await bench.put("fine")
    await bench.works(worker)
    assert (await bench.row(other))["status"] == "complete"


async def test_retry_wait_beyond_the_calendar_is_accepted(bench: Bench) -> None:
    async def fails(lease: Lease) -> object:
        return Failed("not yet")

    bench.handles("fails", fails, retry=after_seconds([1e12]))
    (id,) = await bench.put("fails")
    await bench.works(bench.worker())
    row = await bench.row(id)
    assert (row["status"], row["error"], row["lease_until"]) == ("queued", "not yet", None)


async def test_retention_beyond_the_calendar_is_accepted(bench: Bench) -> None:
    bench.handles("fine", fine, keep=timedelta.max)
    (id,) = await bench.put("fine")
    await bench.works(bench.worker())
    assert (await bench.row(id))["status"] == "complete"


async def test_instant_written_by_hand_stops_no_other_item(bench: Bench, database: Database) -> None:
    bench.handles("fine", fine)
    await bench.put("fine", priority=-1)
    written = "infinity" if database.dialect == "postgres" else "2026-01-05 12:00"
    await write(database, f"UPDATE tasks SET available_at = '{written}'")
    worker = bench.worker()
    await bench.works(worker)
    (other,) = await bench.put("fine")
    await bench.works(worker)
    assert (await bench.row(other))["status"] == "complete"


NO_INSTANTS = {
    "postgres": ["-infinity", "infinity", "20000-01-01", "4000-01-01 BC"],
    "sqlite": [str(-(2**62)), str(2**62), "2026-01-05 12:00"],
}


@pytest.mark.parametrize("column", ["available_at", "created_at", "finished_at", "lembrado_em"])
async def test_instant_beyond_the_calendar_stops_no_other_item(
    plain: SqlQueue, database: Database, clock: FakeClock, events: EventRecorder, column: str
) -> None:
    odd = [id for id in await plain.put([NewItem(values={"texto": "odd"})] * len(NO_INSTANTS[database.dialect])) if id]
    for id, instant in zip(odd, NO_INSTANTS[database.dialect], strict=True):
        await write(database, f"UPDATE fila_avulsa SET {column} = '{instant}' WHERE id = '{id}'")
    others = await plain.put([NewItem(values={"texto": "fine"}), NewItem(values={"texto": "fine"}, priority=9)])
    await work_through(plain, clock, events)
    assert [(await row(plain, id))["status"] for id in others] == ["done", "done"]
    assert {(await row(plain, id))["status"] for id in odd} <= {"ready", "done", "dead"}
    assert (await plain.pulse()).due == (await plain.depth()).due == 0
    for state in ("ready", "done", "dead"):
        await plain.list_items(state, 10)
    await plain.next_at()


async def test_lease_with_an_infinite_instant_stops_no_other_item(
    plain: SqlQueue, database: Database, clock: FakeClock, events: EventRecorder
) -> None:
    await plain.put([NewItem()] * len(NO_INSTANTS[database.dialect]))
    for lease, instant in zip(await claim(plain), NO_INSTANTS[database.dialect], strict=True):
        await write(database, f"UPDATE fila_avulsa SET lease_until = '{instant}' WHERE id = '{lease.id}'")
    (other,) = await plain.put([NewItem(priority=9)])
    assert len(await plain.rescue(10)) == (2 if database.dialect == "postgres" else 1)
    await work_through(plain, clock, events)
    assert (await row(plain, other))["status"] == "done"


NO_TEXT = "CAST(x'22FF22' AS TEXT)"


@pytest.mark.parametrize("column", ["texto", "extra", "chave", "owner", "error"])
async def test_invalid_text_fails_only_its_own_item(
    plain: SqlQueue, database: Database, clock: FakeClock, events: EventRecorder, column: str
) -> None:
    """SQLite can store text that is not valid Unicode, so the engine must handle it. PostgreSQL refuses to store such
    text.
    """
    if database.dialect == "postgres":
        with pytest.raises(StatementRefused):
            await write(database, "INSERT INTO fila_avulsa (texto) SELECT convert_from('\\xff', 'UTF8')")
        return
    first, second, third = await plain.put([NewItem(), NewItem(), NewItem()])
    await write(database, f"UPDATE fila_avulsa SET {column} = {NO_TEXT} WHERE id = '{second}'")
    await work_through(plain, clock, events)
    assert [(await row(plain, id))["status"] for id in (first, third)] == ["done", "done"]
    spoilt = await row(plain, second)
    if column == "owner":  # the claim overwrote this column
        assert spoilt["status"] == "done"
    else:
        assert (spoilt["status"], spoilt["lease_until"]) == ("dead", None)
        assert spoilt["error"].startswith(f"its row cannot be read ({column})")
        assert [each["id"] for each in await plain.list_items("dead", 10)] == [second]


@pytest.mark.parametrize(("column", "value"), [("crashes", "'many'"), ("lembrado_em", "x'00'"), ("dia", "'soon'")])
async def test_value_of_another_type_fails_only_its_own_item(
    plain: SqlQueue, database: Database, clock: FakeClock, events: EventRecorder, column: str, value: str
) -> None:
    first, second = await plain.put([NewItem(), NewItem()])
    update = f"UPDATE fila_avulsa SET {column} = {value} WHERE id = '{first}'"
    if database.dialect == "postgres":
        with pytest.raises(StatementRefused):
            await write(database, update)
        return
    await write(database, update)
    await work_through(plain, clock, events)
    assert (await row(plain, second))["status"] == "done"
    spoilt = await row(plain, first)
    assert (spoilt["status"], spoilt["error"].partition(":")[0]) == ("dead", f"its row cannot be read ({column})")


async def test_unknown_column_is_refused(plain: SqlQueue) -> None:
    for unsafe in ("texto) SELECT 1 --", "Texto", "", "texto\n"):
        with pytest.raises(InvalidName, match="cannot be the name of a column of fila_avulsa"):
            await plain.put([NewItem(values={unsafe: "x"})])
    with pytest.raises(StatementRefused, match="nao_ha"):
        await plain.put([NewItem(values={"nao_ha": "x"})])
    assert await plain.counts() == {}
    await plain.put([NewItem(values={"texto": "x"})])


class LibraryError(BaseException):
    """A library's exception that derives directly from BaseException."""


@pytest.mark.parametrize("raised", [LibraryError(), GeneratorExit(), BaseExceptionGroup("several", [LibraryError()])])
async def test_base_exception_is_a_failure_and_not_a_crash(bench: Bench, raised: BaseException) -> None:
    async def raises(lease: Lease) -> object:
        raise raised

    bench.handles("raises", raises)
    (id,) = await bench.put("raises")
    await bench.works(bench.worker())
    row = await bench.row(id)
    assert (row["status"], row["lease_until"], row["crashes"]) == ("queued", None, 0)
    assert row["error"].startswith(type(raised).__name__)


async def test_value_nested_too_deeply_to_be_read_is_refused(bench: Bench) -> None:
    refused = next(depth for depth in range(300, 2_000) if not _is_accepted(nested(depth)))
    with pytest.raises(ValueError, match="nested too deeply"):
        refuse_unstorable(nested(refused + 50), "it")
    deepest = nested(refused - 20)  # the handler's result is checked a few frames deeper in the stack

    async def answers(lease: Lease) -> object:
        return Done(lease.row["args"])

    bench.handles("answers", answers)
    (id,) = await bench.store.put([NewItem(values={"name": "answers", "args": AsJson(deepest)})])
    await _run_below_frames(150, lambda: bench.works(bench.worker()))
    assert id is not None
    assert (await bench.row(id))["result"] == deepest
    # Many brackets side by side are not deeply nested.
    refuse_unstorable([[]] * 5_000, "a wide value")


@pytest.mark.parametrize("value", [nested(800), {"a": nested(800)}])
async def test_deeply_nested_column_value_is_refused(plain: SqlQueue, value: Any) -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        await plain.put([NewItem(), NewItem(values={"extra": AsJson(value)})])
    assert await plain.counts() == {}
    await plain.put([NewItem(values={"extra": AsJson(nested(600))})])
    await _run_below_frames(150, lambda: claim(plain))
    assert await plain.counts() == {"running": 1}


def _is_accepted(value: object) -> bool:
    try:
        refuse_unstorable(value, "it")
    except ValueError:
        return False
    return True


async def _run_below_frames(frames: int, work: Any) -> None:
    """Run ``work`` with ``frames`` additional frames on the stack, because a program may run a worker at any stack
    depth.
    """
    await (_run_below_frames(frames - 1, work) if frames else work())


async def test_every_eighth_claim_of_one_run_begins_with_the_lowest_priority(bench: Bench) -> None:
    bench.handles("fine", fine)
    (patient,) = await bench.put("fine", priority=9)
    await bench.put(*["fine"] * 40, priority=0)
    assert await bench.worker(limit=1).once(8) == 8
    assert (await bench.row(patient))["status"] == "complete"


async def test_every_eighth_claim_begins_with_the_lowest_priority_across_short_runs(
    database_url: str, clock: FakeClock
) -> None:
    async with Batuta(database_url, clock=clock) as work:

        @work.task()
        async def nothing() -> None:
            return None

        patient = await work.enqueue(nothing, priority=9)
        await work.enqueue_many(nothing, [()] * 20, priority=0)
        for _ in range(8):
            assert await work.work_once("default", 1) == 1
        status = await work.status(patient)
    assert status is not None
    assert status.status == "complete"


async def test_cancelled_run_releases_its_items(bench: Bench) -> None:
    bench.handles("for_ever", for_ever)
    (id,) = await bench.put("for_ever")
    run = asyncio.create_task(bench.worker().once(10))
    await wait_for_sleepers(bench.clock, 1)  # the worker has written its first heartbeat and waits for its handler
    run.cancel()
    await wait_for_sleepers(bench.clock, 3)  # three waits: the handler, the rest of the grace period, and the release
    await bench.clock.advance(0.9)
    await asyncio.wait([run])
    assert run.cancelled()
    row = await bench.row(id)
    assert (row["status"], row["attempts"], row["lease_until"]) == ("queued", 0, None)


async def wait_for_sleepers(clock: FakeClock, how_many: int) -> None:
    """Wait until this many tasks are sleeping on the fake clock, so that no database call is in progress."""
    async with asyncio.timeout(60):
        while sum(bool(due._waiters) for _, _, due in clock._sleepers) != how_many:
            await asyncio.sleep(0)


@pytest.mark.parametrize("limit", [timedelta(0), timedelta(days=-1)])
async def test_item_overdue_before_its_start_is_failed_and_released(bench: Bench, limit: timedelta) -> None:
    bench.handles("long", for_ever)
    bench.handles("late", for_ever, timeout=limit, retry_timeout=False)
    worker = bench.worker(limit=4)
    await bench.put("long")
    await worker.tick()
    # This tick only writes a heartbeat. The next heartbeat is far away, so the following ticks only check and run the
    # new item.
    await worker.tick()
    late = await bench.put("late", "late")
    for _ in range(3):
        await worker.tick()
        await settle()
    rows = [await bench.row(id) for id in late]
    assert [(row["status"], row["error"], row["lease_until"]) for row in rows] == [
        ("failed", "Job timeout exceeded", None)
    ] * 2
    assert not worker._running.keys() & set(late)
    for each in worker._running.values():
        each.task.cancel()


async def test_database_that_turns_read_only_leaves_no_item_claimed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database becomes read-only just when the worker is releasing suspects, which are items that one more crash
    would make dead.
    """
    bench.handles("fine", fine)
    suspects = await bench.put("fine", "fine")
    await bench.crash(suspects[0], 2)
    (other,) = await bench.put("fine")
    settle_and_claim = bench.store.settle_and_claim

    async def only_claims(endings: Endings, lease_holder: LeaseHolder, limit: int, **options: Any) -> ClaimResult:
        if limit:
            return await settle_and_claim(endings, lease_holder, limit, **options)
        raise StoreReadOnly(where="here", why="another is chosen")

    worker = bench.worker()
    monkeypatch.setattr(bench.store, "settle_and_claim", only_claims)
    await worker.tick()
    with pytest.raises(StoreReadOnly):
        await worker.tick()
    monkeypatch.undo()
    await bench.works(worker)
    await bench.clock.advance(2)
    await bench.works(worker)
    await bench.clock.advance(2)
    await bench.works(worker)
    states = [(await bench.row(id))["status"] for id in (*suspects, other)]
    assert states == ["complete"] * 3


async def test_cancel_reaches_an_item_that_is_released_at_the_same_time(
    bench: Bench, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    (id,) = await bench.put("fine")
    (lease,) = await claim(bench.store)
    run, back = database.run, Settlement(state=ItemState.READY, available_at=bench.clock.now())

    async def run_and_release(query: Any, **values: object) -> int:
        touched = await run(query, **values)
        await bench.store.settle_and_claim([(lease, back)], ANN, 0)
        return touched

    monkeypatch.setattr(database, "run", run_and_release)
    assert await bench.store.cancel(id, "no longer wanted")
    assert (await bench.row(id))["status"] == "cancelled"


async def test_item_in_doubt_can_be_cancelled(plain: SqlQueue, database: Database) -> None:
    (id,) = await plain.put([NewItem(values={"duvida": "maybe"})])
    assert id is not None
    assert await plain.cancel(id, "no longer wanted")
    row = await plain.item(id)
    assert row is not None
    # the request to stop is stored for the worker that resolves the doubt
    assert (row["status"], row["parar"]) == ("ready", True)


async def test_cancel_returns_false_when_the_table_has_no_cancellation_column(
    plain: SqlQueue, database: Database, ids: Ids
) -> None:
    deaf = SqlQueue(database, replace(PLAIN, cancel_requested=None), ids, FakeClock(), own_time=True)
    (id,) = await deaf.put([NewItem()])
    assert id is not None
    await claim(deaf)
    assert not await deaf.cancel(id, "no longer wanted")


async def test_none_is_null_in_a_json_column(plain: SqlQueue, database: Database) -> None:
    await plain.put([NewItem(values={"extra": AsJson(None)})])
    query = in_dialect(
        query_of("nothing", "SELECT id FROM fila_avulsa WHERE extra IS NULL", writes=False), database.dialect
    )
    assert len(await database.all(query)) == 1


@pytest.mark.parametrize("item", [NewItem(values={"texto": "a\x00b"}), NewItem(key="a\x00b")])
async def test_text_that_one_database_cannot_store_is_refused_by_both(plain: SqlQueue, item: NewItem) -> None:
    with pytest.raises(StatementRefused):
        await plain.put([item])
    assert await plain.counts() == {}


@pytest.mark.parametrize("urgent_is_high", [True, False])
async def test_item_without_a_priority_stops_no_other(
    plain: SqlQueue, database: Database, ids: Ids, urgent_is_high: bool
) -> None:
    store = SqlQueue(database, replace(PLAIN, urgent_is_high=urgent_is_high), ids, FakeClock(), own_time=True)
    await store.put([NewItem(values={"prioridade": None})])
    (id,) = await store.put([NewItem(priority=3)])
    assert [lease.id for lease in await claim(store)] == [id]


async def test_table_with_few_given_columns_still_records_the_stage_of_death(
    plain: SqlQueue, database: Database, ids: Ids
) -> None:
    table = replace(PLAIN, last_stage="estagio", given=("texto",))
    store = SqlQueue(database, table, ids, FakeClock(), own_time=True)
    (id,) = await store.put([NewItem()])
    dead = Settlement(state=ItemState.DEAD, error="-")
    assert not (await store.settle_and_claim([(lease, dead) for lease in await claim(store)], ANN, 0)).lost
    assert id is not None
    row = await store.item(id)
    assert row is not None
    assert row["estagio"] == "running"
