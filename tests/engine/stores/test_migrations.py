"""Each migration is applied once. A changed, faulty or concurrent migration does not damage the schema. The tests run
on both databases.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import MigrationChanged, QueryFileError, SchemaOutOfDate, StatementRefused, StoreConflict
from batuta.kernel.events import MigrationApplied
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.migrations import Migration, Migrator, engine_migrations, read_migrations
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import EventRecorder, FakeClock

MakeMigrator: TypeAlias = Callable[..., Migrator]
FIRST = Migration("app", 1, "things", "CREATE TABLE things (id INTEGER PRIMARY KEY);")
SECOND = Migration(
    "app",
    2,
    "names",
    "ALTER TABLE things ADD COLUMN name TEXT;\n-- on sqlite\nINSERT INTO things VALUES (1, 'sqlite');\n"
    "-- on postgres\nINSERT INTO things VALUES (1, 'postgres');\n-- on both\nINSERT INTO things VALUES (2, 'both');\n",
)


@pytest.fixture
def database_url(empty_url: str) -> str:
    return empty_url


@pytest.fixture
async def migrated(migrator_of: MakeMigrator, database: Database) -> Database:
    await migrator_of(*engine_migrations()).migrate()
    return database


@pytest.fixture
def migrator_of(database: Database, clock: FakeClock, events: EventRecorder) -> MakeMigrator:
    return lambda *migrations: Migrator(database, migrations, clock, events)


async def test_each_migration_is_applied_once_and_emits_an_event(
    migrator_of: MakeMigrator, events: EventRecorder
) -> None:
    assert await migrator_of(FIRST, SECOND).migrate() == [FIRST, SECOND]
    assert await migrator_of(FIRST, SECOND).migrate() == []
    assert [event.migration for event in events.of(MigrationApplied)] == ["app/0001_things", "app/0002_names"]


async def test_each_database_gets_its_own_and_the_shared_statements(
    migrator_of: MakeMigrator, database: Database
) -> None:
    await migrator_of(FIRST, SECOND).migrate()
    names = in_dialect(query_of("names", "SELECT name FROM things ORDER BY id", writes=False), database.dialect)
    assert [row["name"] for row in await database.all(names)] == [database.dialect, "both"]


async def test_older_schema_is_refused_with_the_command_to_run(migrator_of: MakeMigrator) -> None:
    with pytest.raises(SchemaOutOfDate, match="run `batuta migrate`"):
        await migrator_of(FIRST).require_current()
    await migrator_of(FIRST).migrate()
    await migrator_of(FIRST).require_current()
    with pytest.raises(SchemaOutOfDate, match="needs migration app/0002_names"):
        await migrator_of(FIRST, SECOND).require_current()


async def test_newer_schema_is_accepted_during_a_rolling_deploy(migrator_of: MakeMigrator) -> None:
    await migrator_of(FIRST, SECOND).migrate()
    await migrator_of(FIRST).require_current()
    assert await migrator_of(FIRST).migrate() == []


async def test_applied_migration_whose_text_changed_is_refused(migrator_of: MakeMigrator) -> None:
    await migrator_of(FIRST).migrate()
    changed = replace(FIRST, text=FIRST.text + " ")
    with pytest.raises(MigrationChanged, match="app/0001_things"):
        await migrator_of(changed).migrate()
    with pytest.raises(MigrationChanged):
        await migrator_of(changed).require_current()


async def test_migration_that_fails_half_way_leaves_nothing_behind(
    migrator_of: MakeMigrator, database: Database
) -> None:
    broken = Migration("app", 1, "broken", "CREATE TABLE half (id INTEGER);\nINSERT INTO nowhere VALUES (1);")
    with pytest.raises(StatementRefused):
        await migrator_of(broken).migrate()
    with pytest.raises(StatementRefused):
        await database.all(in_dialect(query_of("half", "SELECT id FROM half", writes=False), database.dialect))
    assert await migrator_of(FIRST).migrate() == [FIRST]


async def test_migrate_skips_the_lock_when_the_schema_is_current(migrator_of: MakeMigrator, database_url: str) -> None:
    await migrator_of(FIRST, SECOND).migrate()
    busy = connect(database_url, SystemClock())
    await busy.open()
    async with busy.transaction() as transaction:
        await busy.lock_migrations(transaction)
        await transaction.script("CREATE TABLE other (id INTEGER)")
        async with asyncio.timeout(120):  # the lock is held until the block ends
            assert await asyncio.create_task(migrator_of(FIRST, SECOND).migrate()) == []
    await busy.close()


async def test_concurrent_migrations_apply_each_migration_once(
    database_url: str, clock: FakeClock, events: EventRecorder
) -> None:
    databases = [connect(database_url, SystemClock()) for _ in range(4)]
    for each in databases:
        await each.open()
    try:
        applied = await asyncio.gather(
            *(Migrator(each, [FIRST, SECOND], clock, events).migrate() for each in databases)
        )
    finally:
        for each in databases:
            await each.close()
    assert sorted(migration.number for batch in applied for migration in batch) == [1, 2]


async def test_engine_schema_is_the_same_on_both_databases(migrated: Database) -> None:
    insert = (
        "INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, status)"
        " VALUES ('00000000-0000-7000-8000-00000000000{n}', 'heartbeat', 'critico', now(), '{trigger}', now(), 'running')"
    )
    fixed = insert.replace("now(), '{trigger}'", ":at, '{trigger}'")
    at = SystemClock().now()

    async def fire(n: int, trigger: str) -> None:
        text = fixed.format(n=n, trigger=trigger)
        await migrated.run(in_dialect(query_of("fire", text, writes=True), migrated.dialect), at=at)

    await fire(1, "schedule")
    with pytest.raises(StoreConflict):
        await fire(2, "schedule")  # each scheduled fire has one row
    with pytest.raises(StoreConflict):
        await fire(3, "catch_up")
    await fire(4, "manual")  # an operator may start the job any number of times
    with pytest.raises(StoreConflict):
        await fire(5, "magic")
    seen = in_dialect(
        query_of("seen", "SELECT executed_at, started_at FROM job_executions", writes=False), migrated.dialect
    )
    assert all(row["executed_at"] == row["started_at"] for row in await migrated.all(seen))


@pytest.mark.parametrize(
    "names", [["0001_a.sql", "0003_c.sql"], ["0002_b.sql"], ["0001_a.sql", "0001_b.sql"], ["first.sql"]]
)
def test_gaps_duplicates_and_unknown_names_are_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("SELECT 1;")
    with pytest.raises(QueryFileError):
        read_migrations("app", tmp_path)


def test_engine_migrations_are_in_order() -> None:
    assert [migration.number for migration in engine_migrations()] == list(range(1, len(engine_migrations()) + 1))


async def test_audit_log_names_a_changed_switch_by_its_present_name(
    migrator_of: MakeMigrator, database: Database, clock: FakeClock
) -> None:
    *before, last = [each for each in engine_migrations() if each.number <= 11]
    await migrator_of(*before).migrate()
    insert = (
        "INSERT INTO audit_log (id, at, actor, action, subject)"
        " VALUES ('00000000-0000-7000-8000-00000000000{n}', :at, 'op', '{action}', 'pausa')"
    )
    for n, action in enumerate(("switch.turn", "window.set")):
        text = insert.format(n=n, action=action)
        await database.run(in_dialect(query_of("note", text, writes=True), database.dialect), at=clock.now())
    assert await migrator_of(*before, last).migrate() == [last]
    actions = in_dialect(
        query_of("actions", "SELECT action FROM audit_log ORDER BY id", writes=False), database.dialect
    )
    assert [row["action"] for row in await database.all(actions)] == ["switch.set", "window.set"]
