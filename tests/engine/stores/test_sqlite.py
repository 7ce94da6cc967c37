"""Failures of SQLite that cannot occur with PostgreSQL."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta import Batuta
from batuta.health.aggregator import look, verdict
from batuta.kernel.clock import EPOCH, SystemClock
from batuta.kernel.errors import (
    InvalidSetting,
    StatementRefused,
    StoreConflict,
    StoreReadOnly,
    StoreReplaced,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
)
from batuta.kernel.waiting import cancel_and_wait
from batuta.stores import connect
from batuta.stores.sql.database import ConnectionLimits, Statements
from batuta.stores.sql.queries import query_of
from batuta.stores.sqlite.connection import open_connection
from batuta.stores.sqlite.driver import SqliteDatabase, statements

PUT = query_of("put", "INSERT INTO things (name) VALUES (:name)", writes=True)
COUNT = query_of("count", "SELECT count(*) AS n FROM things", writes=False)
ENDLESS = query_of(
    "endless",
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) AS n FROM n",
    writes=False,
)
LOCK = timedelta(seconds=1)


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    opened = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits(lock=LOCK))
    await opened.open()
    await opened.script("CREATE TABLE things (name TEXT);")
    yield opened
    await opened.close()


async def count(database: SqliteDatabase) -> int:
    row = await database.one(COUNT)
    assert row is not None
    return int(row["n"])


async def pragma(database: SqliteDatabase, name: str) -> object:
    row = await database.one(query_of(name, f"PRAGMA {name}", writes=True))
    assert row is not None
    return row[name]


async def test_committed_writes_are_synced_to_disk(sqlite: SqliteDatabase) -> None:
    assert await pragma(sqlite, "journal_mode") == "wal"
    assert await pragma(sqlite, "synchronous") == 2  # FULL
    assert await pragma(sqlite, "foreign_keys") == 1


async def test_waiting_writers_share_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = open_connection(*arguments, **options)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr("batuta.stores.sqlite.driver.open_connection", traced)
    database = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits())
    await database.open()
    await database.script("CREATE TABLE things (name TEXT);")
    said.clear()
    await asyncio.gather(*(database.run(PUT, name=f"n{n}") for n in range(500)))
    commits = said.count("COMMIT")
    assert await count(database) == 500
    assert 1 <= commits <= 50
    await database.close()


async def test_lone_statement_needs_no_other_statement_and_a_lone_transaction_no_savepoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = open_connection(*arguments, **options)
        connection.set_trace_callback(said.append)
        return connection

    monkeypatch.setattr("batuta.stores.sqlite.driver.open_connection", traced)
    database = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits())
    await database.open()
    await database.script("CREATE TABLE things (name TEXT);")
    said.clear()
    await database.run(PUT, name="alone")
    assert len(said) == 1
    async with database.transaction() as transaction:
        await transaction.run(PUT, name="in a transaction")
    assert [text.split()[0] for text in said[1:]] == ["BEGIN", "INSERT", "COMMIT"]
    await database.close()


async def test_failed_transaction_undoes_only_its_own_changes_first_in_its_group_or_later(
    sqlite: SqliteDatabase,
) -> None:
    async def fails(name: str) -> None:
        with pytest.raises(ZeroDivisionError):
            async with sqlite.transaction() as transaction:
                await transaction.run(PUT, name=name)
                raise ZeroDivisionError

    await asyncio.gather(fails("first"), sqlite.run(PUT, name="kept"), fails("later"), sqlite.run(PUT, name="kept too"))
    assert await count(sqlite) == 2
    await fails("alone")
    assert await count(sqlite) == 2


async def test_steps_in_the_writer_thread_are_committed_together_or_not_at_all(sqlite: SqliteDatabase) -> None:
    def put(*names: str) -> Callable[[Statements], int]:
        def steps(on: Statements) -> int:
            for name in names:
                on.run(PUT, name=name)
            if "refused" in names:
                raise StoreConflict(why="refused")
            row = on.one(COUNT)
            assert row is not None
            return int(row["n"])

        return steps

    assert await sqlite.perform(put("one", "two")) == 2
    kept = sqlite.run(PUT, name="kept")
    found = await asyncio.gather(sqlite.perform(put("three", "refused")), kept, return_exceptions=True)
    assert [type(each) for each in found] == [StoreConflict, int]
    assert await count(sqlite) == 3


async def test_steps_of_a_cancelled_caller_are_not_performed(sqlite: SqliteDatabase) -> None:
    def steps(on: Statements) -> int:
        return on.run(PUT, name="never")

    async with sqlite.transaction() as transaction:
        await transaction.run(PUT, name="first")
        waiting = asyncio.create_task(sqlite.perform(steps))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await sqlite.run(PUT, name="last")
    assert await count(sqlite) == 2


async def test_write_of_another_process_is_noticed(sqlite: SqliteDatabase, tmp_path: Path) -> None:
    before = await sqlite.data_version()
    assert await sqlite.data_version() == before
    file = str(tmp_path / "test.db")
    insert = f"import sqlite3; sqlite3.connect({file!r}, isolation_level=None).execute('INSERT INTO things VALUES (1)')"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", insert], check=True)
    assert await sqlite.data_version() != before


async def test_lock_of_another_process_is_waited_for_and_then_reported(sqlite: SqliteDatabase, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreTimeout, match="another process is writing"):
        await sqlite.run(PUT, name="a")
    assert await count(sqlite) == 0  # reads continue meanwhile
    other.execute("COMMIT")
    other.close()
    await sqlite.run(PUT, name="a")
    assert await count(sqlite) == 1


async def test_full_disk_fails_every_write_of_the_shared_commit_until_there_is_space(sqlite: SqliteDatabase) -> None:
    await sqlite.all(query_of("limit", "PRAGMA max_page_count = 40", writes=True))
    results = await asyncio.gather(*(sqlite.run(PUT, name="x" * 2000) for _ in range(200)), return_exceptions=True)
    refused = [result for result in results if isinstance(result, StoreUnavailable)]
    assert refused
    assert len(results) - len(refused) == await count(sqlite)  # exactly the acknowledged writes are stored
    await sqlite.all(query_of("limit", "PRAGMA max_page_count = 100000", writes=True))
    await sqlite.run(PUT, name="again")


async def test_malformed_value_reads_as_none(sqlite: SqliteDatabase) -> None:
    await sqlite.script(
        "CREATE TABLE odd (name TEXT, at TIMESTAMPTZ, day DATE, doc JSONB);"
        "INSERT INTO odd VALUES (CAST(x'61ff62' AS TEXT), 'no instant', 'no day', '{'), ('fine', 0, '2026-01-05', '{}');"
    )
    spoilt, fine = await sqlite.all(query_of("odd", "SELECT * FROM odd ORDER BY rowid", writes=False))
    assert dict(spoilt) == {"name": "a\N{REPLACEMENT CHARACTER}b", "at": None, "day": None, "doc": None}
    assert dict(fine) == {"name": "fine", "at": EPOCH, "day": date(2026, 1, 5), "doc": {}}


async def test_unreadable_row_does_not_stop_the_writer(sqlite: SqliteDatabase) -> None:
    def refuse(raw: bytes) -> object:
        raise LookupError

    sqlite3.register_converter("UNKNOWN", refuse)
    await sqlite.script("CREATE TABLE odd (doc UNKNOWN); INSERT INTO odd VALUES ('x');")
    with pytest.raises(StatementRefused):
        await sqlite.all(query_of("touch", "UPDATE odd SET doc = doc RETURNING doc", writes=True))
    await sqlite.run(PUT, name="a")
    assert await count(sqlite) == 1


async def test_close_writes_the_waiting_statements(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits())
    await database.open()
    await database.script("CREATE TABLE things (name TEXT);")
    writing = [asyncio.create_task(database.run(PUT, name=f"n{n}")) for n in range(50)]
    await asyncio.sleep(0)
    await database.close()
    await asyncio.gather(*writing)
    await database.open()
    assert await count(database) == 50
    await database.close()


def count_connections(database: SqliteDatabase) -> int:
    """Return how many connections of this process are open, counted by their write-ahead log files."""
    log = f"{database.file}-wal"
    with os.scandir("/proc/self/fd") as opened:
        return sum(str(Path(each.path).readlink()) == log for each in opened)


async def test_reads_that_are_soon_served_share_one_connection(sqlite: SqliteDatabase) -> None:
    before = count_connections(sqlite)
    await asyncio.gather(*(count(sqlite) for _ in range(20)))
    assert count_connections(sqlite) - before == 1


async def test_read_behind_a_slow_read_gets_its_own_connection(sqlite: SqliteDatabase) -> None:
    slow = asyncio.create_task(sqlite.all(ENDLESS))
    await asyncio.sleep(0)  # the slow read reaches the connection first
    assert await count(sqlite) == 0
    assert not slow.done()
    await cancel_and_wait(slow)


async def test_database_without_reading_connections_reads_on_the_writing_one(tmp_path: Path) -> None:
    aside = SqliteDatabase(tmp_path / "test.db", SystemClock(), ConnectionLimits(readers=0))
    await aside.open()
    await aside.script("CREATE TABLE things (name TEXT);")
    await aside.run(PUT, name="one")
    assert (await count(aside), count_connections(aside)) == (1, 1)
    await aside.close()


async def test_cancelled_read_leaves_its_connection_usable(sqlite: SqliteDatabase) -> None:
    for _ in range(6):  # more often than the number of reading connections
        reading = asyncio.create_task(sqlite.all(ENDLESS))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
    assert await count(sqlite) == 0
    async with asyncio.timeout(60):  # cancelled reads have stopped
        await sqlite.close()


async def test_unwritable_folder_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    database = connect(f"sqlite:///{tmp_path}/file/test.db", SystemClock())
    with pytest.raises(StoreReadOnly, match="cannot be written"):
        await database.open()


async def test_file_that_is_not_a_database_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "photo.db").write_bytes(b"GIF89a" * 1000)
    database = connect(f"sqlite:///{tmp_path}/photo.db", SystemClock())
    with pytest.raises(StoreUnavailable, match="not a database"):
        await database.open()


@pytest.mark.parametrize(
    "url", ["", "sqlite://", "sqlite:///", "sqlite:///:memory:", "mysql://x/y", "julia.db", "sqlite:x.db"]
)
def test_unknown_address_is_refused_with_the_known_forms(url: str) -> None:
    with pytest.raises(InvalidSetting, match="postgresql://user"):
        connect(url, SystemClock())


@pytest.mark.parametrize(
    "form",
    ["postgres//j:{}@h/j", "j:{}@h/j", "{}", "mysql://j:{}@h/j", "postgresql://j:{}@h:port/j", "postgresql://j:{}@h"],
)
def test_refused_address_does_not_show_its_password(form: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        connect(form.format("s3nha-secreta"), SystemClock())
    assert "s3nha-secreta" not in str(refused.value)


def test_script_is_split_where_sqlite_sees_the_end_of_a_statement() -> None:
    script = (
        "CREATE TABLE a (x TEXT DEFAULT ';');\n"
        "CREATE TRIGGER t AFTER INSERT ON a BEGIN\n  UPDATE a SET x = 1;\n  DELETE FROM a;\nEND;\n-- the end\n"
    )
    assert len([part for part in statements(script) if not part.lstrip().startswith("--")]) == 2


async def test_failed_statement_keeps_the_rest_of_its_transaction_from_being_written(
    sqlite: SqliteDatabase,
) -> None:
    await sqlite.all(query_of("limit", "PRAGMA max_page_count = 20", writes=True))
    with pytest.raises(TransactionMisuse):
        async with sqlite.transaction() as transaction:
            with pytest.raises(StoreUnavailable):
                await transaction.run(PUT, name="x" * 400_000)
            with pytest.raises(TransactionMisuse, match="failed before"):
                await transaction.run(PUT, name="small")
    assert await count(sqlite) == 0


async def test_transaction_of_a_closed_database_fails_at_once(sqlite: SqliteDatabase) -> None:
    with pytest.raises(StoreUnavailable, match="closed"):
        async with sqlite.transaction() as transaction:
            await asyncio.create_task(sqlite.close())
            await transaction.run(PUT, name="a")


async def test_script_that_ends_its_own_transaction_is_refused_and_the_writer_lives(
    sqlite: SqliteDatabase,
) -> None:
    with pytest.raises(StatementRefused, match="a script runs in one transaction"):
        await sqlite.script("CREATE TABLE a (x TEXT); COMMIT; BEGIN; CREATE TABLE b (x TEXT);")
    await sqlite.run(PUT, name="a")
    assert await count(sqlite) == 1


async def test_all_waiting_writes_time_out_together_when_the_writer_is_busy(
    sqlite: SqliteDatabase, tmp_path: Path
) -> None:
    other = sqlite3.connect(tmp_path / "test.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writing = [asyncio.create_task(sqlite.run(PUT, name=f"n{n}")) for n in range(10)]
    done, _ = await asyncio.wait(writing, timeout=8 * LOCK.total_seconds())
    assert len(done) == 10  # they end together, not one after the other with the whole limit each
    assert all(isinstance(task.exception(), StoreTimeout) for task in writing)
    other.execute("COMMIT")
    other.close()


async def test_snapshot_of_a_closed_database_fails(sqlite: SqliteDatabase) -> None:
    with pytest.raises(StoreUnavailable, match="closed"):
        async with sqlite.snapshot() as snapshot:
            await snapshot.one(COUNT)
            await asyncio.create_task(sqlite.close())
            await snapshot.one(COUNT)


def _delete(file: Path) -> None:
    file.unlink()


def _replace(file: Path) -> None:
    with sqlite3.connect(file.with_name("other.db")) as other:
        other.execute("CREATE TABLE things (name TEXT)")
    other.close()
    file.with_name("other.db").rename(file)


def _delete_log(file: Path) -> None:
    Path(f"{file}-wal").unlink()


def _delete_index(file: Path) -> None:
    Path(f"{file}-shm").unlink()


LOSSES = pytest.mark.parametrize("lose", [_delete, _replace, _delete_log, _delete_index])


@LOSSES
async def test_write_after_the_file_is_gone_is_never_acknowledged(
    sqlite: SqliteDatabase, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    await sqlite.run(PUT, name="before")
    lose(tmp_path / "test.db")
    with pytest.raises(StoreReplaced, match="restore"):
        await sqlite.run(PUT, name="after")
    with pytest.raises(StoreReplaced):
        await sqlite.run(PUT, name="again")


@LOSSES
async def test_loss_of_a_file_behind_a_symbolic_link_is_noticed(
    sqlite: SqliteDatabase, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "test.db")
    linked = SqliteDatabase(tmp_path / "link.db", SystemClock(), ConnectionLimits())
    await linked.open()
    await linked.run(PUT, name="before")
    lose(tmp_path / "test.db")
    with pytest.raises(StoreReplaced):
        await linked.run(PUT, name="after")
    await linked.close()


async def test_change_of_working_folder_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    database = SqliteDatabase(Path("data/work.db"), SystemClock(), ConnectionLimits())
    await database.open()
    try:
        monkeypatch.chdir(tmp_path / "elsewhere")
        await database.script("CREATE TABLE things (name TEXT)")
        await database.run(PUT, name="a")
        assert await count(database) == 1
    finally:
        await database.close()


@LOSSES
async def test_transaction_is_not_committed_when_the_file_disappears(
    sqlite: SqliteDatabase, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    with pytest.raises(StoreReplaced):
        async with sqlite.transaction() as transaction:
            await transaction.run(PUT, name="a")
            lose(tmp_path / "test.db")
    with pytest.raises(StoreReplaced):
        async with sqlite.transaction() as transaction:
            await transaction.run(PUT, name="b")


@LOSSES
async def test_process_that_only_listens_notices_that_the_file_is_gone(
    sqlite: SqliteDatabase, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    listener = await sqlite.listen(lambda name: None)
    await listener.probe()
    lose(tmp_path / "test.db")
    with pytest.raises(StoreReplaced):
        await listener.probe()
    assert listener.period <= timedelta(seconds=1)
    await listener.close()
    with pytest.raises(StoreReplaced):  # reads fail too, because the file at this path is another one now
        await count(sqlite)
    with pytest.raises(StoreReplaced):
        async with sqlite.snapshot():
            pass


async def test_reading_connection_never_opens_a_file_that_replaced_the_database(
    sqlite: SqliteDatabase, tmp_path: Path
) -> None:
    await sqlite.run(PUT, name="a")
    _replace(tmp_path / "test.db")  # no reading connection is open yet
    with pytest.raises(StoreReplaced):
        await count(sqlite)


async def test_database_with_a_replaced_file_opens_again_on_the_new_file(
    sqlite: SqliteDatabase, tmp_path: Path
) -> None:
    await sqlite.run(PUT, name="a")
    _replace(tmp_path / "test.db")
    with pytest.raises(StoreReplaced):
        await sqlite.run(PUT, name="b")
    await sqlite.close()
    await sqlite.open()  # the log of the old file is not applied to the new one
    assert await count(sqlite) == 0
    await sqlite.run(PUT, name="c")
    assert await count(sqlite) == 1


async def test_moved_file_contains_what_was_committed_before_the_move(sqlite: SqliteDatabase, tmp_path: Path) -> None:
    await sqlite.run(PUT, name="a")
    (tmp_path / "test.db").rename(tmp_path / "moved.db")
    _replace(tmp_path / "test.db")
    with pytest.raises(StoreReplaced):
        await sqlite.run(PUT, name="b")
    await sqlite.close()
    with sqlite3.connect(tmp_path / "moved.db") as moved:
        assert ("a",) in moved.execute("SELECT name FROM things").fetchall()
    moved.close()


DEFERRED = (
    "CREATE TABLE parents (id INTEGER PRIMARY KEY);"
    "CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED);"
)
ORPHAN = query_of("orphan", "INSERT INTO children (parent) VALUES (404)", writes=True)


async def _hold_writer(sqlite: SqliteDatabase, until: asyncio.Event) -> None:
    async with sqlite.transaction() as transaction:
        await transaction.run(PUT, name="first")
        await until.wait()


async def test_constraint_that_fails_at_commit_fails_only_its_own_write(sqlite: SqliteDatabase) -> None:
    await sqlite.script(DEFERRED)
    go = asyncio.Event()
    holding = asyncio.create_task(_hold_writer(sqlite, go))
    await asyncio.sleep(0)
    writing = [asyncio.create_task(sqlite.run(PUT, name=f"n{n}")) for n in range(3)]
    orphan = asyncio.create_task(sqlite.run(ORPHAN))
    writing += [asyncio.create_task(sqlite.run(PUT, name=f"m{n}")) for n in range(3)]
    await asyncio.sleep(0)
    go.set()
    assert await asyncio.gather(*writing) == [1] * 6
    with pytest.raises(StoreConflict):
        await orphan
    await holding
    assert await count(sqlite) == 7


async def test_transaction_that_breaks_a_deferred_constraint_fails_alone(sqlite: SqliteDatabase) -> None:
    await sqlite.script(DEFERRED)
    go = asyncio.Event()

    async def orphan() -> None:
        async with sqlite.transaction() as transaction:
            await transaction.run(ORPHAN)

    async def beside(name: str) -> None:
        async with sqlite.transaction() as transaction:
            await transaction.run(PUT, name=name)

    holding = asyncio.create_task(_hold_writer(sqlite, go))
    await asyncio.sleep(0)
    tasks = [asyncio.create_task(each) for each in (beside("a"), orphan(), beside("b"))]
    single = asyncio.create_task(sqlite.run(PUT, name="c"))
    await asyncio.sleep(0)
    go.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), StoreConflict, type(None)]
    assert await single == 1
    await holding
    assert await count(sqlite) == 4


async def test_writes_beside_a_transaction_with_deferred_constraints_may_be_retried(
    sqlite: SqliteDatabase,
) -> None:
    await sqlite.script(DEFERRED.replace(" DEFERRABLE INITIALLY DEFERRED", ""))
    go = asyncio.Event()

    async def orphan() -> None:
        async with sqlite.transaction() as transaction:
            await transaction.script("PRAGMA defer_foreign_keys = ON; INSERT INTO children (parent) VALUES (404);")

    holding = asyncio.create_task(_hold_writer(sqlite, go))
    await asyncio.sleep(0)
    broken, single = asyncio.create_task(orphan()), asyncio.create_task(sqlite.run(PUT, name="a"))
    await asyncio.sleep(0)
    go.set()
    results = await asyncio.gather(holding, broken, return_exceptions=True)
    assert all(isinstance(result, StoreUnavailable | StoreConflict) or result is None for result in results)
    # a caller in the same batch gets no conflict because of another caller's change
    assert not isinstance(results[0], StoreConflict)
    assert results[1] is not None
    assert await single == 1


async def test_readiness_fails_when_the_file_is_gone(tmp_path: Path) -> None:
    async with Batuta(f"sqlite:///{tmp_path}/test.db") as work:
        assert verdict(await look(work.probes, work.clock), work.probes) == "ready"
        (tmp_path / "test.db").unlink()
        assert verdict(await look(work.probes, work.clock), work.probes) == "not_ready"


async def test_deleted_data_disappears_from_the_file_and_the_log(sqlite: SqliteDatabase) -> None:
    secret = "a name that was deleted"
    await sqlite.run(PUT, name=secret)
    async with sqlite.snapshot() as reading:
        await reading.all(COUNT)
        await asyncio.create_task(sqlite.run(query_of("drop", "DELETE FROM things", writes=True)))
        assert not await sqlite.empty_log()
    assert await sqlite.empty_log()
    parts = [part.read_bytes() for part in sqlite.file.parent.glob("test.db*") if part.is_file()]
    assert [part for part in parts if secret.encode() in part] == []
