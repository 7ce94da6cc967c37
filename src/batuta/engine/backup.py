"""Writes a backup while the database is in use, and restores a backup: ``batuta backup``, ``batuta restore``.

    restore:  check the file ─▶ lock out every process ─▶ collect newer facts from the old database ─▶ load the backup
              ─▶ newer migrations ─▶ apply the facts ─▶ commit (PostgreSQL) or rename the file (SQLite)

Until the last step the old database is unchanged; after the last step the new database is complete.
"""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from batuta import __version__
from batuta.engine.batuta import Batuta
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import BackupForeign, RestoreRefused, SchemaOutOfDate, StatementRefused, StoreError
from batuta.kernel.reasons import Reason, reason_of_os_error
from batuta.kernel.values import dataclass
from batuta.stores.backup import archive
from batuta.stores.backup.archive import Applied, ArchiveReader, Manifest, Table
from batuta.stores.backup.restoring import (
    DatabaseId,
    EngineRestoreQueries,
    EngineRestoring,
    Restored,
    Restoring,
    engine_restore_queries,
)
from batuta.stores.sql.database import ConnectionLimits, Database, Reading, Transaction
from batuta.stores.sql.migrations import LEDGER, Migration, Migrator, read_applied_migrations
from batuta.stores.sql.tables.audit import AccessLog
from batuta.tasks.registry import TASKS

if TYPE_CHECKING:
    from batuta.stores.postgres.driver import PostgresDatabase
    from batuta.stores.sqlite.driver import SqliteDatabase

# A process is considered alive if its last heartbeat is more recent than this: three heartbeat intervals.
ALIVE = timedelta(seconds=45)
# Maximum difference between the clocks of the machines that write to the database. A fact from this time span may be
# carried over although the backup already contains it, which is harmless.
CLOCKS = timedelta(minutes=5)
STOP_OR_FORCE = Reason(
    "restore_wait",
    "stop every process, wait 45 s and repeat; if they are dead already (a lost machine), repeat with --force",
)
FREE_SPACE = Reason("restore_disk", "free disk space for the database, check its folder's permissions, then repeat")
# Arguments of a progress callback: a table and its rows, or PAGES and a percentage.
PAGES = "pages"
Progress: TypeAlias = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    manifest: Manifest
    restored: Restored
    counts: Mapping[str, int]  # number of rows of each kind that were carried over, released or held back
    kept: Path | None


async def take(work: Batuta, file: Path, progress: Progress, *, by: str) -> Manifest:
    """Write a consistent backup to ``file`` while other processes use the database. The audit entry about the backup is
    stored before the file is written.
    """
    database = work.connections.aside()
    if not await database.exists():  # check first, because opening a missing database would create it
        raise SchemaOutOfDate(missing=_migrations(work)[0].title)
    await database.open()
    try:
        database_id = await _identify(database, work)
        log = AccessLog(database, work.ids, work.clock)
        await log.note(actor=by, action="access.export", subject="batuta backup")
        if database.dialect == "sqlite":
            source = cast("SqliteDatabase", database)
            return await asyncio.to_thread(_take_sqlite, work, source, file, database_id, progress)
        return await _take_postgres(work, cast("PostgresDatabase", database), file, database_id, progress)
    finally:
        await database.close()


async def restore(work: Batuta, file: Path, *, by: str, force: bool, progress: Progress) -> RestoreReport:
    """Replace the database with a backup. Raises an error if the file is damaged, if the backup was taken from the
    other kind of database (SQLite or PostgreSQL), or if the database is in use.
    """
    database = work.connections.aside()
    with archive.read(file) as opened:
        missing = _missing(opened, _migrations(work), database)
        if database.dialect == "sqlite":
            return await _restore_sqlite(work, cast("SqliteDatabase", database), opened, by=by, force=force)
        server = cast("PostgresDatabase", database)
        return await _restore_postgres(work, server, opened, missing, by=by, force=force, progress=progress)


async def _identify(database: Database, work: Batuta) -> str:
    try:
        return await DatabaseId(database.dialect, work.ids).settle(database, now=work.clock.now())
    except StatementRefused:
        raise SchemaOutOfDate(missing=_migrations(work)[0].title) from None


def _take_sqlite(work: Batuta, source: "SqliteDatabase", file: Path, database_id: str, progress: Progress) -> Manifest:
    from batuta.stores.sqlite import copying

    copied = archive.scratch(file, "sqlite3")
    taken_at = work.clock.now()
    try:
        with archive.create(file) as writer:
            copying.copy(source.file, copied, lambda done, all: progress(PAGES, done * 100 // max(all, 1)))
            manifest = Manifest(
                dialect="sqlite",
                version=__version__,
                taken_at=taken_at,
                database_id=database_id,
                migrations=copying.migrations_in(copied),
                tables={name: Table(rows=rows) for name, rows in copying.count_rows(copied).items()},
                sequences={},
            )
            with writer.member(archive.SQLITE_MEMBER) as member, copied.open("rb") as bytes:
                while chunk := bytes.read(archive.CHUNK):
                    member.write(chunk)
            writer.close(manifest)
    finally:
        for each in copying.leftovers(copied):
            each.unlink(missing_ok=True)
    return manifest


async def _take_postgres(
    work: Batuta, source: "PostgresDatabase", file: Path, database_id: str, progress: Progress
) -> Manifest:
    from batuta.stores.postgres import copying
    from batuta.stores.postgres.driver import PostgresTransaction

    taken_at = work.clock.now()
    with archive.create(file) as writer:
        async with copying.snapshot(source) as connection:
            ours = _tables(work)
            tables, sequences = await copying.copy_out(connection, writer, ours, progress)
            applied = await read_applied_migrations(PostgresTransaction(connection, source.where))
        manifest = Manifest(
            dialect="postgres",
            version=__version__,
            taken_at=taken_at,
            database_id=database_id,
            migrations=tuple(applied),
            tables=tables,
            sequences=sequences,
        )
        writer.close(manifest)
    return manifest


async def _restore_sqlite(
    work: Batuta, database: "SqliteDatabase", opened: ArchiveReader, *, by: str, force: bool
) -> RestoreReport:
    from batuta.stores.sqlite import copying
    from batuta.stores.sqlite.driver import SqliteDatabase

    file = database.file.resolve()  # resolves a symbolic link, so that the link remains and points to the restored file
    unpacked = archive.scratch(file, "restoring")
    kept = file.with_name(f"{file.name}.before-restore-{work.clock.now():%Y%m%dT%H%M%S}-{os.getpid()}")
    parts = _parts(work, database)
    try:
        await asyncio.to_thread(copying.unpack, opened.chunks(archive.SQLITE_MEMBER), unpacked)
        with copying.hold(file, work.clock, force=force) as old:
            collected = await _collect(old, parts, opened.manifest, work, force=force)
            new = SqliteDatabase(unpacked, SystemClock(), ConnectionLimits())
            await new.open()
            try:
                await Migrator(new, _migrations(work), work.clock, work.events).migrate()
                async with new.transaction() as transaction:
                    restored = _make_restored(work, opened.manifest, collected, by)
                    counts = await _apply(work, transaction, parts, collected, restored)
            finally:
                await new.close()
            was = await asyncio.to_thread(copying.replace, unpacked, file, kept)
    except OSError as error:
        raise RestoreRefused(why=reason_of_os_error(error), next_step=FREE_SPACE) from None
    finally:
        for each in copying.leftovers(unpacked):
            each.unlink(missing_ok=True)
    return RestoreReport(manifest=opened.manifest, restored=restored, counts=counts, kept=was)


async def _restore_postgres(
    work: Batuta,
    source: "PostgresDatabase",
    opened: ArchiveReader,
    missing: Sequence[Migration],
    *,
    by: str,
    force: bool,
    progress: Progress,
) -> RestoreReport:
    from batuta.stores.postgres import copying

    ours, parts, queries = _tables(work), _parts(work, source), engine_restore_queries("postgres")
    async with copying.replacement(source, ours, force=force) as (connection, transaction):
        is_there = bool(await copying.present(connection, ["schema_migrations"]))
        if is_there and not force:
            await _refuse_alive(transaction, work, queries)
        collected = await _collect(transaction if is_there else None, parts, opened.manifest, work, force=force)
        if is_there and not missing and _is_current(await read_applied_migrations(transaction), _migrations(work)):
            await copying.empty(connection, ours)
        else:
            await copying.drop(connection, ours)
            await _build(transaction, _migrations_in(opened, _migrations(work)))
            await copying.empty(connection, ours)
        await copying.copy_in(connection, opened, progress)
        await _migrate(transaction, missing, work)
        restored = _make_restored(work, opened.manifest, collected, by)
        counts = await _apply(work, transaction, parts, collected, restored)
    return RestoreReport(manifest=opened.manifest, restored=restored, counts=counts, kept=None)


async def _refuse_alive(reading: Reading, work: Batuta, queries: EngineRestoreQueries) -> None:
    row = await reading.one(queries.alive, since=work.clock.now() - ALIVE)
    if row is not None and row["processes"]:
        why = Reason("restore_alive", "processes with a heartbeat in the last 45 s: {count}", count=row["processes"])
        raise RestoreRefused(why=why, next_step=STOP_OR_FORCE)


async def _build(transaction: Transaction, migrations: Sequence[Migration]) -> None:
    await transaction.script(LEDGER)
    for migration in migrations:
        await transaction.script(migration.in_dialect("postgres"))


async def _migrate(transaction: Transaction, missing: Sequence[Migration], work: Batuta) -> None:
    migrator = work.migrator()
    for migration in missing:
        await transaction.script(migration.in_dialect("postgres"))
        await migrator.record(transaction, migration, work.clock.now())


async def _collect(
    old: Reading | None, parts: Sequence[Restoring], manifest: Manifest, work: Batuta, *, force: bool
) -> Sequence[object] | None:
    """Return the facts that the old database recorded after the backup and that must survive the restore. Return None
    if there is no old database, or if the backup was taken from another database.
    """
    if old is None:
        return None
    try:
        if await DatabaseId(manifest.dialect).read(old) != manifest.database_id:
            return None
        if _is_current(await read_applied_migrations(old), _migrations(work)):
            return [await part.collect(old, manifest.taken_at - CLOCKS) for part in parts]
        why = Reason("restore_schema", "the current database's schema does not match this code")
    except StoreError as error:
        why = Reason(
            "restore_unreadable",
            "the events after the backup cannot be read from the current database: {why}",
            why=error,
        )
    if force:
        return None
    step = Reason(
        "restore_schema_step",
        "run `batuta migrate` and repeat; with --force nothing is carried over from the current database",
    )
    raise RestoreRefused(why=why, next_step=step)


def _make_restored(work: Batuta, manifest: Manifest, collected: object | None, by: str) -> Restored:
    return Restored(taken_at=manifest.taken_at, restored_at=work.clock.now(), has_old=collected is not None, by=by)


async def _apply(
    work: Batuta,
    transaction: Transaction,
    parts: Sequence[Restoring],
    collected: Sequence[object] | None,
    restored: Restored,
) -> dict[str, int]:
    if (mark := work.extension.mark) is not None:
        row = await transaction.one(engine_restore_queries(work.database.dialect).fact, name=mark.key)
        mark.require(None if row is None else row["setting"])
    counts: dict[str, int] = {}
    for place, part in enumerate(parts):
        counts |= await part.apply(transaction, None if collected is None else collected[place], restored)
    return counts


def _parts(work: Batuta, database: Database) -> list[Restoring]:
    queues = {queue.table.name: queue.table for queue in work.queues.values()} | {TASKS.name: TASKS}
    return [EngineRestoring(database.dialect, list(queues.values()), work.ids), *work.extension.restoring()]


def _migrations(work: Batuta) -> Sequence[Migration]:
    return work.migrator().migrations


def _tables(work: Batuta) -> list[str]:
    from batuta.stores.postgres.copying import tables_of

    return tables_of([LEDGER, *(migration.in_dialect("postgres") for migration in _migrations(work))])


def _missing(opened: ArchiveReader, known: Sequence[Migration], database: Database) -> list[Migration]:
    """Return the migrations that this code has and the backup lacks. Raises BackupForeign if the backup has a migration
    that this code lacks.
    """
    manifest = opened.manifest
    if manifest.dialect != database.dialect:
        why = Reason("backup_dialect", "it is a backup of a {dialect} database", dialect=manifest.dialect)
        raise BackupForeign(
            file=opened.name,
            why=why,
            next_step=Reason("backup_dialect_step", "set DATABASE_URL to a database of that kind"),
        )
    ours = {(migration.namespace, migration.number): migration.checksum for migration in known}
    for applied in manifest.migrations:
        if ours.get((applied.namespace, applied.number)) != applied.checksum:
            raise BackupForeign(
                file=opened.name,
                why=Reason("backup_newer", "this code does not know its migration {title}", title=applied.title),
                next_step=Reason(
                    "backup_newer_step",
                    "install version {version}, which created the backup, or a newer version",
                    version=manifest.version,
                ),
            )
    there = {(applied.namespace, applied.number) for applied in manifest.migrations}
    return [migration for migration in known if (migration.namespace, migration.number) not in there]


def _migrations_in(opened: ArchiveReader, known: Sequence[Migration]) -> list[Migration]:
    there = {(applied.namespace, applied.number) for applied in opened.manifest.migrations}
    return [migration for migration in known if (migration.namespace, migration.number) in there]


def _is_current(applied: Sequence[Applied], known: Sequence[Migration]) -> bool:
    return {(each.namespace, each.number, each.checksum) for each in applied} == {
        (each.namespace, each.number, each.checksum) for each in known
    }
