"""The contract that every database adapter must fulfil, run on SQLite and on PostgreSQL."""

import asyncio
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import (
    ConcurrentStatements,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
)
from batuta.stores import connect
from batuta.stores.sql.database import AsJson, ConnectionLimits, Database, Query
from batuta.stores.sql.queries import in_dialect, query_of

INSTANT = datetime(2026, 2, 28, 23, 59, 59, 999999, tzinfo=UTC)
THINGS = """
CREATE TABLE things (
    id     UUID PRIMARY KEY,
    name   TEXT UNIQUE,
    at     TIMESTAMPTZ,
    doc    JSONB,
    is_on  BOOLEAN,
    day    DATE,
    amount INTEGER
);
"""
pytestmark = pytest.mark.tables(THINGS)


def query(database: Database, text: str) -> Query:
    writes = not text.startswith("SELECT")
    return in_dialect(query_of("test", text, writes=writes), database.dialect)


@pytest.fixture
def things(database: Database) -> Database:
    return database


async def put(where: object, database: Database, name: str) -> None:
    insert = query(database, "INSERT INTO things (id, name) VALUES (:id, :name)")
    await where.run(insert, id=an_id(name), name=name)  # type: ignore[attr-defined]


async def names(database: Database) -> list[str]:
    rows = await database.all(query(database, "SELECT name FROM things ORDER BY name"))
    return [row["name"] for row in rows]


def an_id(name: str) -> str:
    return f"00000000-0000-7000-8000-{abs(hash(name)) % 10**12:012d}"


async def test_every_type_reads_back_as_it_was_written(things: Database) -> None:
    insert = query(
        things,
        "INSERT INTO things (id, name, at, doc, is_on, day, amount) VALUES (:id, :name, :at, :doc, :is_on, :day, :amount)"
        " RETURNING id, name, at, doc, is_on, day, amount",
    )
    values = {
        "id": an_id("a"),
        "name": "plantão noturno 🩺",
        "at": INSTANT,
        "doc": AsJson({"n": 1, "texto": "ção", "lista": [1, 2.5, None, True]}),
        "is_on": False,
        "day": date(2026, 2, 28),
        "amount": 2**31 - 1,
    }
    returned = await things.one(insert, **values)
    read = await things.one(query(things, "SELECT id, name, at, doc, is_on, day, amount FROM things"))
    for row in (returned, read):
        assert row is not None
        assert dict(zip(row.keys(), [row[key] for key in row.keys()], strict=True)) == {  # noqa: SIM118
            **values,
            "doc": {"n": 1, "texto": "ção", "lista": [1, 2.5, None, True]},
        }
        assert type(row["id"]) is str
        assert row["is_on"] is False


@pytest.mark.parametrize("value", [True, False, "x", 12, 1.5, [], {}, {"a": None}])
async def test_any_json_value_reads_back(things: Database, value: object) -> None:
    await things.run(query(things, "INSERT INTO things (id, doc) VALUES (:id, :doc)"), id=an_id("j"), doc=AsJson(value))
    row = await things.one(query(things, "SELECT doc FROM things"))
    assert row is not None
    assert row["doc"] == value
    assert type(row["doc"]) is type(value)


async def test_none_is_stored_as_null_in_a_json_column(things: Database) -> None:
    await things.run(query(things, "INSERT INTO things (id, doc) VALUES (:id, :doc)"), id=an_id("j"), doc=AsJson(None))
    row = await things.one(query(things, "SELECT count(*) AS n FROM things WHERE doc IS NULL"))
    assert row is not None
    assert row["n"] == 1


async def test_instant_of_another_zone_reads_back_as_the_same_instant(things: Database) -> None:
    sao_paulo = timezone(timedelta(hours=-3))
    insert = query(things, "INSERT INTO things (id, at) VALUES (:id, :at)")
    await things.run(insert, id=an_id("z"), at=INSTANT.astimezone(sao_paulo))
    row = await things.one(query(things, 'SELECT max(at) AS "last [TIMESTAMPTZ]" FROM things'))
    assert row is not None
    assert row["last"] == INSTANT
    assert row["last"].utcoffset() == timedelta(0)


async def test_instant_without_a_zone_is_refused(things: Database) -> None:
    insert = query(things, "INSERT INTO things (id, at) VALUES (:id, :at)")
    with pytest.raises(StatementRefused, match="without a zone"):
        await things.run(insert, id=an_id("n"), at=datetime(2026, 1, 1))


async def test_database_clock_and_an_interval_add_up(things: Database) -> None:
    later = query(
        things, 'SELECT now() + CAST(:wait AS INTERVAL) AS "later [TIMESTAMPTZ]", now() AS "at [TIMESTAMPTZ]"'
    )
    row = await things.one(later, wait=timedelta(minutes=5))
    assert row is not None
    assert timedelta(minutes=4, seconds=59) < row["later"] - row["at"] <= timedelta(minutes=5, seconds=1)


async def test_missing_or_extra_value_is_refused_by_name(things: Database) -> None:
    with pytest.raises(StatementRefused, match="takes id, name and was given name"):
        await things.run(query(things, "INSERT INTO things (id, name) VALUES (:id, :name)"), name="x")


async def test_run_returns_the_number_of_changed_rows(things: Database) -> None:
    for name in "abc":
        await put(things, things, name)
    assert await things.run(query(things, "UPDATE things SET amount = 1 WHERE name <> :name"), name="c") == 2
    assert await things.run(query(things, "DELETE FROM things WHERE name = :name"), name="nobody") == 0


async def test_run_many_changes_all_rows_or_none(things: Database) -> None:
    insert = query(things, "INSERT INTO things (id, name) VALUES (:id, :name)")
    await things.run_many(insert, [{"id": an_id(n), "name": n} for n in "abc"])
    with pytest.raises(StoreConflict):
        await things.run_many(insert, [{"id": an_id(n), "name": n} for n in "dec"])
    assert await names(things) == ["a", "b", "c"]


async def test_transaction_is_invisible_until_it_commits(things: Database) -> None:
    async with things.transaction() as transaction:
        await put(transaction, things, "a")
        assert await asyncio.create_task(names(things)) == []
    assert await names(things) == ["a"]


async def test_transaction_that_raises_changes_nothing(things: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with things.transaction() as transaction:
            await put(transaction, things, "a")
            raise ZeroDivisionError
    assert await names(things) == []


async def test_cancelled_transaction_changes_nothing_and_releases_the_writer(things: Database) -> None:
    inside = asyncio.Event()

    async def waits_for_ever() -> None:
        async with things.transaction() as transaction:
            await put(transaction, things, "a")
            inside.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(waits_for_ever())
    await inside.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await put(things, things, "b")
    assert await names(things) == ["b"]


async def test_transaction_with_a_failed_statement_cannot_be_committed(things: Database) -> None:
    await put(things, things, "a")
    with pytest.raises(TransactionMisuse, match="cannot be committed"):
        async with things.transaction() as transaction:
            await put(transaction, things, "b")
            with pytest.raises(StoreConflict):
                await put(transaction, things, "a")
            with pytest.raises(TransactionMisuse, match="failed before"):
                await put(transaction, things, "c")
    assert await names(things) == ["a"]


async def test_second_transaction_in_the_same_task_is_refused(things: Database) -> None:
    async with things.transaction() as transaction:
        await put(transaction, things, "a")
        with pytest.raises(TransactionMisuse, match="has one open"):
            async with things.transaction():
                pass
        with pytest.raises(TransactionMisuse, match="has one open"):
            await put(things, things, "b")
        with pytest.raises(TransactionMisuse, match="has one open"):
            await names(things)
    assert await names(things) == ["a"]


async def test_another_task_may_write_during_a_transaction(things: Database) -> None:
    async with things.transaction() as transaction:
        other = asyncio.create_task(put(things, things, "b"))
        await put(transaction, things, "a")
    await other
    assert await names(things) == ["a", "b"]


async def test_transaction_cannot_be_used_after_its_end(things: Database) -> None:
    async with things.transaction() as transaction:
        await put(transaction, things, "a")
    with pytest.raises(TransactionMisuse, match="has ended"):
        await put(transaction, things, "b")
    assert await names(things) == ["a"]


async def test_concurrent_statements_on_one_transaction_are_refused(
    things: Database,
) -> None:
    with pytest.raises(ConcurrentStatements, match="await each one before the next"):
        async with things.transaction() as transaction:
            await asyncio.gather(put(transaction, things, "a"), put(transaction, things, "b"))
    await put(things, things, "c")
    assert await names(things) == ["c"]


async def test_transaction_with_concurrent_statements_cannot_be_committed(things: Database) -> None:
    with pytest.raises(TransactionMisuse, match="cannot be committed"):
        async with things.transaction() as transaction:
            both = asyncio.gather(put(transaction, things, "a"), put(transaction, things, "b"), return_exceptions=True)
            assert [type(each) for each in await both] == [type(None), ConcurrentStatements]
    assert await names(things) == []


async def test_transaction_does_not_end_while_its_statement_runs(things: Database) -> None:
    running = None
    with pytest.raises(ConcurrentStatements):
        async with things.transaction() as transaction:
            await put(transaction, things, "a")
            running = asyncio.create_task(put(transaction, things, "b"))
            await asyncio.sleep(0)
    assert running is not None
    await asyncio.gather(running, return_exceptions=True)
    assert await names(things) == []


async def test_concurrent_reads_of_one_snapshot_are_refused(things: Database) -> None:
    count = query(things, "SELECT count(*) AS n FROM things")
    async with things.snapshot() as snapshot:
        with pytest.raises(ConcurrentStatements):
            await asyncio.gather(snapshot.one(count), snapshot.one(count))
    assert await names(things) == []


async def test_snapshot_reads_one_state_and_refuses_to_write(things: Database) -> None:
    count = query(things, "SELECT count(*) AS n FROM things")
    async with things.snapshot() as snapshot:
        before = await snapshot.one(count)
        await asyncio.create_task(put(things, things, "a"))
        after = await snapshot.one(count)
        with pytest.raises(StatementRefused, match="only reads"):
            await snapshot.all(query(things, "DELETE FROM things RETURNING id"))
    assert before is not None
    assert after is not None
    assert (before["n"], after["n"]) == (0, 0)
    assert await names(things) == ["a"]


async def test_hundred_concurrent_writers_all_commit(things: Database) -> None:
    await asyncio.gather(*(put(things, things, f"n{number:03d}") for number in range(100)))
    assert len(await names(things)) == 100


async def test_only_the_failing_writer_of_a_shared_commit_gets_the_error(things: Database) -> None:
    await put(things, things, "n7")
    results = await asyncio.gather(*(put(things, things, f"n{n}") for n in range(20)), return_exceptions=True)
    assert [n for n, result in enumerate(results) if isinstance(result, StoreConflict)] == [7]
    assert len(await names(things)) == 20


async def test_conflict_names_the_constraint_and_never_the_value(things: Database) -> None:
    await put(things, things, "11 98765-4321")
    with pytest.raises(StoreConflict) as refused:
        await put(things, things, "11 98765-4321")
    assert "things" in str(refused.value)
    assert "98765" not in str(refused.value)


async def test_invalid_sql_is_a_programming_error_not_an_outage(things: Database) -> None:
    with pytest.raises(StatementRefused):
        await things.all(query(things, "SELECT nonsense FROM nowhere"))
    with pytest.raises(StatementRefused):
        await things.run(query(things, "UPDATE things SET amount = :amount"), amount=Decimal)


async def test_statement_that_takes_too_long_is_ended(database_url: str) -> None:
    impatient = connect(database_url, SystemClock(), ConnectionLimits(statement=timedelta(milliseconds=200)))
    await impatient.open()
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n"
    try:
        with pytest.raises(StoreTimeout):
            await impatient.all(in_dialect(query_of("endless", endless, writes=False), impatient.dialect))
    finally:
        await impatient.close()


async def until_idle_transaction_ended(database: Database, waits_for_it: "asyncio.Task[None]") -> None:
    """Wait until the idle transaction has ended. On SQLite, a write that is waiting for the only writer shows this. On
    PostgreSQL, the list of sessions shows it.
    """
    async with asyncio.timeout(60):
        if database.dialect == "sqlite":
            await asyncio.wait([waits_for_it])
            return
        idle = "SELECT count(*) AS n FROM pg_stat_activity WHERE state LIKE 'idle in%' AND datname = current_database()"
        while True:
            row = await asyncio.create_task(database.one(query(database, idle)))
            if row is not None and row["n"] == 0:
                return


async def test_transaction_left_open_is_ended_and_other_writers_continue(database_url: str) -> None:
    impatient = connect(database_url, SystemClock(), ConnectionLimits(idle_in_transaction=timedelta(milliseconds=400)))
    await impatient.open()
    forgotten = asyncio.Event()
    try:
        with pytest.raises((StoreUnavailable, TransactionMisuse)):
            async with impatient.transaction() as transaction:
                await put(transaction, impatient, "a")
                neighbour = asyncio.create_task(put(impatient, impatient, "b"))
                neighbour.add_done_callback(lambda _: forgotten.set())
                await until_idle_transaction_ended(impatient, neighbour)
                await put(transaction, impatient, "c")
        await neighbour
        assert await names(impatient) == ["b"]
    finally:
        await impatient.close()


async def test_closed_database_raises_an_error_that_names_it(database_url: str) -> None:
    closed = connect(database_url, SystemClock())
    with pytest.raises(StoreUnavailable, match="not open"):
        await closed.all(in_dialect(query_of("one", "SELECT 1 AS n", writes=False), closed.dialect))
