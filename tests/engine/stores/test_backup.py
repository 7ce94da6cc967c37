"""Backups on both databases: they are consistent under load, damaged ones are rejected, and a restored system does not
repeat work done since the backup.
"""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
import zipfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from batuta import Batuta
from batuta.engine import backup
from batuta.engine.extension import Extension
from batuta.kernel.errors import BackupDamaged, BackupForeign, BackupUnwritable, RestoreRefused
from batuta.stores.backup import archive
from batuta.stores.sql.migrations import Migration
from batuta.testing import FakeClock
from tests.julia.tables import rows, write

HOUR = timedelta(hours=1)


def _ignore(what: str, count: int) -> None: ...


class Site:
    """A test setup for backups: one database, and the operator commands that run on it."""

    def __init__(self, url: str, clock: FakeClock, file: Path) -> None:
        self.url = url
        self.clock = clock
        self.file = file
        self.migrations: list[Migration] = []

    def work(self) -> Batuta:
        made = Batuta(self.url, clock=self.clock, extension=Extension(migrations=self.migrations))
        made.task(name="count")(_count)
        made.job("*/5 * * * *", category="report", name="resumo")(_job)
        return made

    async def back_up(self) -> archive.Manifest:
        return await backup.take(self.work(), self.file, _ignore, by="ana")

    async def restore(self, *, force: bool = False) -> backup.RestoreReport:
        return await backup.restore(self.work(), self.file, by="test", force=force, progress=_ignore)

    async def lose(self) -> None:
        if self.url.startswith("sqlite"):
            Path(self.url.removeprefix("sqlite:///")).unlink()
            return
        work = self.work()
        await work.database.open()
        await work.database.script("DROP SCHEMA public CASCADE; CREATE SCHEMA public;")
        await work.database.close()


async def _count() -> None: ...


async def _job() -> None: ...


@pytest.fixture
def site(database_url: str, clock: FakeClock, tmp_path: Path) -> Site:
    return Site(database_url, clock, tmp_path / "backup.batuta")


@pytest.fixture
async def work(site: Site) -> AsyncIterator[Batuta]:
    made = site.work()
    async with made:
        yield made


async def ids_of(work: Batuta) -> set[str]:
    return {row["id"] for row in await rows(work.database, "SELECT id FROM tasks")}


async def test_backup_under_load_holds_one_state(site: Site, work: Batuta) -> None:
    pairs = "CREATE TABLE one (n INTEGER PRIMARY KEY); CREATE TABLE two (n INTEGER PRIMARY KEY);"
    site.migrations = [Migration("app", 1, "pairs", pairs)]
    async with site.work() as writing:
        stop = asyncio.Event()

        async def load() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                async with writing.database.transaction() as transaction:
                    await transaction.script(f"INSERT INTO one VALUES ({n}); INSERT INTO two VALUES ({n});")

        loading = asyncio.create_task(load())
        await writing.enqueue("count")
        manifest = await site.back_up()
        stop.set()
        await loading
    assert manifest.tables["one"].rows == manifest.tables["two"].rows
    assert manifest.tables["tasks"].rows == 1


async def test_restore_returns_the_rows_that_were_backed_up(site: Site, work: Batuta) -> None:
    before = [await work.enqueue("count") for _ in range(5)]
    await site.back_up()
    await work.enqueue("count")
    await work.close()
    await site.restore()
    await work.open()
    assert await ids_of(work) == set(before)
    await work.enqueue("count")  # the restored database accepts work


async def test_backup_is_readable_by_its_owner_only_and_never_replaces_a_file(site: Site, work: Batuta) -> None:
    await site.back_up()
    assert stat.S_IMODE(site.file.stat().st_mode) == 0o600
    with pytest.raises(BackupUnwritable, match="exists already"):
        await site.back_up()
    assert [file.name for file in site.file.parent.iterdir() if "partial" in file.name] == []


async def test_restored_file_keeps_the_permissions_of_the_old_one(site: Site, work: Batuta) -> None:
    if work.database.dialect == "postgres":
        pytest.skip("a server has no file permissions")
    file = Path(site.url.removeprefix("sqlite:///"))
    await site.back_up()
    await work.close()
    file.chmod(0o640)
    await site.restore()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    await work.open()


async def test_backup_into_a_missing_folder_is_refused(site: Site, work: Batuta) -> None:
    site.file = site.file.parent / "nowhere" / "backup"
    with pytest.raises(BackupUnwritable, match="No such file"):
        await site.back_up()


async def test_damaged_backup_is_refused_whichever_byte_is_wrong(site: Site, work: Batuta) -> None:
    await work.enqueue("count")
    await site.back_up()
    await work.close()
    whole = site.file.read_bytes()
    spoilt = [whole[:cut] for cut in (0, 10, 100, len(whole) // 2, len(whole) - 1)]
    places = range(0, len(whole), max(1, len(whole) // 40))
    spoilt += [whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :] for place in places]
    for content in spoilt:
        site.file.write_bytes(content)
        with pytest.raises(BackupDamaged):
            await site.restore()
    site.file.write_bytes(whole)
    await site.restore()
    await work.open()


async def test_backup_of_newer_code_is_refused_with_the_version_it_needs(site: Site, work: Batuta) -> None:
    await work.close()
    newer = Migration("app", 1, "newer", "CREATE TABLE newer (n INTEGER);")
    site.migrations = [newer]
    async with site.work():
        await site.back_up()
    site.migrations = []
    with pytest.raises(BackupForeign, match=r"app/0001_newer.*install version"):
        await site.restore()


async def test_backup_of_older_code_is_restored_and_migrated(site: Site, work: Batuta) -> None:
    task = await work.enqueue("count")
    await site.back_up()
    await work.close()
    site.migrations = [Migration("app", 1, "newer", "CREATE TABLE newer (n INTEGER); INSERT INTO newer VALUES (7);")]
    async with site.work():
        pass
    await site.restore()
    newer = site.work()
    async with newer:
        assert await ids_of(newer) == {task}
        assert await rows(newer.database, "SELECT n FROM newer") == [{"n": 7}]
    await work.open()


async def test_backup_of_the_other_database_kind_is_refused(site: Site, work: Batuta, tmp_path: Path) -> None:
    other = "postgres" if work.database.dialect == "sqlite" else "sqlite"
    manifest = replace(await site.back_up(), dialect=other)  # type: ignore[arg-type]
    site.file.unlink()
    with archive.create(site.file) as writer:
        writer.close(manifest)
    await work.close()
    with pytest.raises(BackupForeign, match=f"it is a backup of a {other} database"):
        await site.restore()
    await work.open()


async def test_restore_is_refused_while_a_process_runs(site: Site, work: Batuta) -> None:
    await site.back_up()
    # Behind a pooler the connections of the process are not visible, but its heartbeat is.
    await work.beats.beat("here:1", "worker", {"loop": {"alive": True}}, now=site.clock.now())
    with pytest.raises(RestoreRefused, match="stop every process"):
        await site.restore()
    assert await ids_of(work) == set()  # after the refused restore, the process still works


async def test_process_with_a_recent_heartbeat_counts_as_running_on_postgres(site: Site, work: Batuta) -> None:
    await site.back_up()
    await work.beats.beat("here:1", "worker", {"loop": {"alive": True}}, now=site.clock.now())
    await work.close()
    if work.database.dialect == "postgres":
        with pytest.raises(RestoreRefused, match="processes with a heartbeat"):
            await site.restore()
        await site.restore(force=True)
    else:
        await site.restore()  # SQLite itself shows that no process has the file open
    await work.open()
    assert await rows(work.database, "SELECT * FROM worker_heartbeats") == []


async def test_failed_restore_leaves_the_database_unchanged(
    site: Site, work: Batuta, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.back_up()
    task = await work.enqueue("count")
    await work.close()

    async def fail(*arguments: object) -> Any:
        raise RuntimeError

    monkeypatch.setattr("batuta.engine.backup._apply", fail)
    with pytest.raises(RuntimeError):
        await site.restore()
    await work.open()
    assert await ids_of(work) == {task}
    assert [file.name for file in site.file.parent.iterdir() if "restoring" in file.name] == []


async def test_next_backup_or_restore_deletes_the_files_of_a_killed_one(site: Site, work: Batuta) -> None:
    if work.database.dialect == "postgres":
        pytest.skip("PostgreSQL leaves no files on this machine")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    database = Path(site.url.removeprefix("sqlite:///"))
    left = [
        site.file.with_name(f".{site.file.name}.{gone.pid}.partial"),
        site.file.with_name(f".{site.file.name}.{gone.pid}.sqlite3"),
        database.with_name(f".{database.name}.{gone.pid}.restoring-wal"),
        # In a container each run may have the same pid.
        site.file.with_name(f".{site.file.name}.{os.getpid()}.partial"),
        database.with_name(f".{database.name}.{os.getpid()}.restoring"),
    ]
    living = site.file.with_name(f".{site.file.name}.{os.getppid()}.partial")
    for each in (*left, living):
        each.touch()
    await site.back_up()
    await work.close()
    await site.restore()
    assert [each for each in left if each.exists()] == []
    assert living.exists()  # a file of a process that still runs
    await work.open()


async def test_database_behind_a_symbolic_link_is_restored_at_its_target(
    site: Site, work: Batuta, tmp_path: Path
) -> None:
    if work.database.dialect == "postgres":
        pytest.skip("PostgreSQL has no symbolic link")
    await work.close()
    link = Path(site.url.removeprefix("sqlite:///"))
    lies_at = tmp_path / "disk" / "work.db"
    lies_at.parent.mkdir()
    link.rename(lies_at)
    link.symlink_to(lies_at)
    await work.open()
    id = await work.enqueue("count")
    await site.back_up()
    await work.close()
    report = await site.restore()
    assert (link.is_symlink(), link.resolve()) == (True, lies_at)
    assert report.kept is not None
    assert (report.kept.parent, report.kept.is_symlink()) == (lies_at.parent, False)
    await work.open()
    assert await ids_of(work) == {id}


async def test_full_disk_is_one_error_and_changes_nothing(
    site: Site, work: Batuta, monkeypatch: pytest.MonkeyPatch
) -> None:
    if work.database.dialect == "postgres":
        pytest.skip("the test cannot fill the server's disk")
    task = await work.enqueue("count")
    await site.back_up()
    await work.close()

    def fill(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(RestoreRefused, match=r"No space left.*free disk space"):
        patched.setattr("os.fsync", fill)
        await site.restore()
    await work.open()
    assert await ids_of(work) == {task}


async def test_items_that_ended_after_the_backup_do_not_run_again(site: Site, work: Batuta) -> None:
    done, waiting = await work.enqueue("count"), await work.enqueue("count")
    await site.back_up()
    site.clock.step(HOUR)
    await write(
        work.database,
        "UPDATE tasks SET status = 'complete', finished_at = :now WHERE id = :id",
        now=site.clock.now(),
        id=done,
    )
    await work.close()
    report = await site.restore()
    await work.open()
    assert report.restored.has_old
    assert report.counts["tasks"] == 1
    states = {row["id"]: row["status"] for row in await rows(work.database, "SELECT id, status FROM tasks")}
    assert states == {done: "complete", waiting: "queued"}


async def test_restore_reads_the_old_database_in_a_new_process_too(site: Site, work: Batuta) -> None:
    await site.back_up()
    await work.close()
    sqlite3.converters.clear()  # as in a process that has just started
    assert (await site.restore()).restored.has_old
    await work.open()


async def test_restore_keeps_the_latest_switches_tokens_and_rate_limits(site: Site, work: Batuta) -> None:
    token = (
        "INSERT INTO api_tokens (id, name, secret_hash, scopes, created_by, created_at)"
        " VALUES ('t', 'bot', 'x', '[]', 'ana', :now)"
    )
    used = (
        "INSERT INTO rate_tokens (reservation, rate_key, counts_at, confirmed, kept_until)"
        " VALUES (:id, 'envios', :now, TRUE, :until)"
    )
    await write(work.database, token, now=site.clock.now())
    await site.back_up()
    site.clock.step(HOUR)
    now = site.clock.now()
    await work.switches.set("campanhas", True, by="ana", reason="incident", now=now)
    await write(work.database, "UPDATE api_tokens SET revoked_at = :now", now=now)
    await write(work.database, used, id=work.ids.new(), now=now, until=now + HOUR)
    await work.close()
    await site.restore()
    await work.open()
    assert (await work.switches.all())["campanhas"].on is True
    assert await rows(work.database, "SELECT revoked_at FROM api_tokens") == [{"revoked_at": now}]
    assert len(await rows(work.database, "SELECT * FROM rate_tokens")) == 1


async def test_item_held_at_backup_is_released_and_its_old_holder_cannot_settle_it(site: Site, work: Batuta) -> None:
    task = await work.enqueue("count")
    held = "UPDATE tasks SET status = 'in_progress', owner = 'a', fence = 7, lease_until = :until WHERE id = :id"
    await write(work.database, held, until=site.clock.now() + HOUR, id=task)
    await site.back_up()
    await work.close()
    await site.restore()
    await work.open()
    (row,) = await rows(work.database, "SELECT status, owner, lease_until, fence, crashes FROM tasks")
    assert (row["status"], row["owner"], row["lease_until"], row["crashes"]) == ("queued", None, None, 0)
    assert row["fence"] > 1000


async def _register(work: Batuta, clock: FakeClock) -> None:
    await write(
        work.database,
        "INSERT INTO job_schedules (job_name, categoria, schedule, timezone, active, expected_since, accounted_until)"
        " VALUES ('resumo', 'report', '*/5 * * * *', 'UTC', TRUE, :now, :now)",
        now=clock.now(),
    )


async def test_fires_that_ran_after_the_backup_keep_their_rows_and_do_not_repeat(site: Site, work: Batuta) -> None:
    await _register(work, site.clock)
    await site.back_up()
    site.clock.step(HOUR)
    ran_at = site.clock.now()
    await write(
        work.database,
        "INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status)"
        " VALUES (:id, 'resumo', 'report', :at, 'schedule', :at, :at, 'success')",
        id=work.ids.new(),
        at=ran_at,
    )
    await write(work.database, "UPDATE job_schedules SET accounted_until = :at", at=ran_at)
    await work.close()
    await site.restore()
    await work.open()
    (run,) = await rows(work.database, "SELECT scheduled_for, status FROM job_executions")
    assert (run["scheduled_for"], run["status"]) == (ran_at, "success")
    (schedule,) = await rows(work.database, "SELECT accounted_until FROM job_schedules")
    assert schedule["accounted_until"] == ran_at


async def test_restore_without_the_old_database_skips_fires_and_records_it(site: Site, work: Batuta) -> None:
    await _register(work, site.clock)
    await site.back_up()
    await work.close()
    await site.lose()
    site.clock.step(HOUR)
    report = await site.restore()
    assert not report.restored.has_old
    await work.open()
    (run,) = await rows(work.database, "SELECT status, reason, scheduled_for FROM job_executions")
    assert (run["status"], run["scheduled_for"]) == ("missed", site.clock.now())
    assert "may have run, and are not repeated" in run["reason"]
    (schedule,) = await rows(work.database, "SELECT accounted_until FROM job_schedules")
    assert schedule["accounted_until"] == site.clock.now()


async def test_empty_replacement_database_is_not_read_as_the_old_one(site: Site, work: Batuta) -> None:
    await site.back_up()
    await work.close()
    await site.lose()
    async with site.work() as other:  # a process started and created an empty database
        await other.enqueue("count")
    report = await site.restore()
    assert not report.restored.has_old
    await work.open()


async def test_restored_sequences_continue_after_the_last_number(site: Site, work: Batuta) -> None:
    if work.database.dialect == "sqlite":
        pytest.skip("SQLite has no sequences")
    await work.close()
    numbered = "CREATE TABLE numbered (id BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, word TEXT);"
    site.migrations = [Migration("app", 1, "numbered", numbered)]
    async with site.work() as first:
        await write(first.database, "INSERT INTO numbered (word) VALUES ('a'), ('b')")
        await site.back_up()
    await site.restore()
    async with site.work() as again:
        await write(again.database, "INSERT INTO numbered (word) VALUES ('c')")
        assert [row["id"] for row in await rows(again.database, "SELECT id FROM numbered ORDER BY id")] == [1, 2, 3]


async def test_backup_reads_no_table_of_another_schema(site: Site, work: Batuta) -> None:
    """A backup ignores the tables of other schemas. PostgreSQL may evaluate the conditions of a query in any order, so
    a condition that reads a table may run before the one that excludes other schemas.
    """
    if work.database.dialect == "sqlite":
        pytest.skip("SQLite has no schemas")
    plan = "EXECUTE format('ALTER DATABASE %I SET enable_nestloop = off', current_database());"
    await work.database.script(f"CREATE SCHEMA another CREATE TABLE theirs (n BIGSERIAL); DO $$ BEGIN {plan} END $$;")
    manifest = await site.back_up()
    assert "theirs" not in manifest.tables
    assert manifest.sequences == {}


async def test_restore_keeps_tables_of_another_program_in_the_same_schema(site: Site, work: Batuta) -> None:
    if work.database.dialect == "sqlite":
        pytest.skip("a SQLite file belongs to one program")
    await work.database.script("CREATE TABLE theirs (n INTEGER); INSERT INTO theirs VALUES (1);")
    manifest = await site.back_up()
    assert "theirs" not in manifest.tables
    await work.close()
    await site.restore()
    await work.open()
    assert await rows(work.database, "SELECT n FROM theirs") == [{"n": 1}]


def test_archive_is_a_zip_that_other_tools_can_open(tmp_path: Path) -> None:
    file = tmp_path / "a"
    with archive.create(file) as writer:
        with writer.member("hello") as member:
            member.write(b"x" * 100_000)
        writer.close(
            archive.Manifest(
                dialect="sqlite",
                version="1",
                taken_at=FakeClock().now(),
                database_id="d",
                migrations=(),
                tables={},
                sequences={},
            )
        )
    assert zipfile.ZipFile(file).testzip() is None
    assert file.stat().st_size < 10_000


async def test_damaged_file_is_kept_and_replaced_only_with_force(site: Site, work: Batuta) -> None:
    if work.database.dialect == "postgres":
        pytest.skip("PostgreSQL has no file to damage")
    task = await work.enqueue("count")
    await site.back_up()
    await work.close()
    file = Path(site.url.removeprefix("sqlite:///"))
    file.write_bytes(b"no database any more" * 1000)
    with pytest.raises(RestoreRefused, match=r"cannot be read.*--force"):
        await site.restore()
    report = await site.restore(force=True)
    assert not report.restored.has_old
    assert report.kept is not None
    assert report.kept.read_bytes().startswith(b"no database any more")
    await work.open()
    assert await ids_of(work) == {task}


async def test_forced_restore_revokes_the_leases_of_a_running_process(site: Site, work: Batuta) -> None:
    if work.database.dialect == "sqlite":
        pytest.skip("SQLite itself keeps a file in use from being replaced")
    task = await work.enqueue("count")
    await site.back_up()
    held = (
        "UPDATE tasks SET status = 'in_progress', owner = 'a', fence = fence + 1, lease_until = :until WHERE id = :id"
    )
    await write(work.database, held, until=site.clock.now() + HOUR, id=task)
    (before,) = await rows(work.database, "SELECT fence FROM tasks")
    await site.restore(force=True)
    (after,) = await rows(work.database, "SELECT status, fence, lease_until FROM tasks")
    assert (after["status"], after["lease_until"]) == ("queued", None)
    assert after["fence"] > before["fence"]
    assert await work.enqueue("count")  # the process still works
