"""Copies the application's tables from one PostgreSQL snapshot into a backup, and restores them in one transaction,
without pg_dump.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import asyncpg

from batuta.kernel.errors import BackupDamaged, RestoreRefused
from batuta.kernel.reasons import Reason
from batuta.stores.backup.archive import ArchiveReader, ArchiveWriter, Table
from batuta.stores.postgres.driver import MIGRATION_LOCK, PostgresDatabase, PostgresTransaction, translate_errors

if TYPE_CHECKING:
    Connection: TypeAlias = asyncpg.Connection[asyncpg.Record]

# Maximum wait for locks that other transactions hold.
LOCK_WAIT = timedelta(seconds=30)
_COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER' ORDER BY ordinal_position
"""
_REFERENCES = """
SELECT DISTINCT child.relname AS child, parent.relname AS parent
FROM pg_constraint AS c JOIN pg_class AS child ON child.oid = c.conrelid JOIN pg_class AS parent ON parent.oid = c.confrelid
JOIN pg_namespace AS n ON n.oid = child.relnamespace
WHERE c.contype = 'f' AND n.nspname = current_schema() AND child.oid <> parent.oid
"""
_SEQUENCES = """
SELECT owner.relname AS table_name, quote_ident(sequence.relname) AS name, sequence.oid::regclass::text AS sequence
FROM pg_depend AS d JOIN pg_class AS owner ON owner.oid = d.refobjid JOIN pg_class AS sequence ON sequence.oid = d.objid
JOIN pg_namespace AS n ON n.oid = owner.relnamespace
WHERE d.classid = 'pg_class'::regclass AND d.refclassid = 'pg_class'::regclass AND d.deptype IN ('a', 'i')
AND sequence.relkind = 'S' AND n.nspname = current_schema()
"""
_PRESENT = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'"
_OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name LIKE 'batuta%'
"""


@asynccontextmanager
async def snapshot(database: PostgresDatabase) -> "AsyncIterator[Connection]":
    """Yield a connection that sees one consistent state of the whole database. Writers are not blocked."""
    async with database.dedicated_connection() as connection:
        with translate_errors(database.where):
            await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield connection


async def copy_out(
    connection: "Connection", archive: ArchiveWriter, ours: Sequence[str], progress: Callable[[str, int], None]
) -> tuple[dict[str, Table], dict[str, int]]:
    """Write each table as a member of the archive. Return the tables with their row counts, and the current values of
    the tables' sequences.
    """
    tables = {}
    for name in await in_order(connection, ours):
        columns = [row["column_name"] for row in await connection.fetch(_COLUMNS, name)]
        with archive.member(_member(name)) as member:
            tag = await connection.copy_from_table(name, columns=columns, output=_writer_of(member))
        tables[name] = Table(rows=int(tag.rpartition(" ")[2]), columns=tuple(columns))
        progress(name, tables[name].rows)
    return tables, await _sequences(connection, ours)


async def copy_in(connection: "Connection", archive: ArchiveReader, progress: Callable[[str, int], None]) -> None:
    """Fill the empty tables from the archive, in the caller's transaction. Raise BackupDamaged if a table's row count
    differs from the manifest.
    """
    manifest = archive.manifest
    for name in await in_order(connection, list(manifest.tables)):
        table = manifest.tables[name]
        source = _chunks(archive.chunks(_member(name)))
        tag = await connection.copy_to_table(name, columns=list(table.columns), source=source)
        if int(tag.rpartition(" ")[2]) != table.rows:
            raise BackupDamaged(
                file=archive.name, why=f"table {name} does not have the {table.rows} rows of the manifest"
            )
        progress(name, table.rows)
    for sequence, value in manifest.sequences.items():
        await connection.execute("SELECT setval($1::regclass, $2, true)", sequence, value)


@asynccontextmanager
async def replacement(
    database: PostgresDatabase, ours: Sequence[str], *, force: bool
) -> "AsyncIterator[tuple[Connection, PostgresTransaction]]":
    """Yield a connection whose transaction holds exclusive locks on the application's tables. The transaction commits
    if the block succeeds.
    """
    async with database.dedicated_connection() as connection:
        with translate_errors(database.where):
            await connection.execute("BEGIN")
            limits = f"SET LOCAL lock_timeout = {int(LOCK_WAIT.total_seconds() * 1000)};"
            await connection.execute(f"{limits} SELECT pg_advisory_xact_lock({MIGRATION_LOCK});")
            others = await connection.fetchval(_OTHERS)
            if others and not force:
                raise RestoreRefused(
                    why=Reason("restore_connected", "open connections of this program: {count}", count=others),
                    next_step=Reason(
                        "restore_connected_step",
                        "stop every process, then repeat; with --force, processes that are still running lose their leases",
                    ),
                )
            if there := await present(connection, ours):
                await connection.execute(f"LOCK TABLE {_join_names(there)} IN ACCESS EXCLUSIVE MODE")
            yield connection, PostgresTransaction(connection, database.where)
            await connection.execute("COMMIT")
            await connection.execute(f"ANALYZE {_join_names(await present(connection, ours))}")


async def present(connection: "Connection", ours: Sequence[str]) -> list[str]:
    found = {row["table_name"] for row in await connection.fetch(_PRESENT)}
    return [name for name in ours if name in found]


async def empty(connection: "Connection", ours: Sequence[str]) -> None:
    await connection.execute(f"TRUNCATE {_join_names(await present(connection, ours))}")


async def drop(connection: "Connection", ours: Sequence[str]) -> None:
    if there := await present(connection, ours):
        await connection.execute(f"DROP TABLE {_join_names(there)}")


async def in_order(connection: "Connection", ours: Sequence[str]) -> list[str]:
    """Return the existing tables, ordered so that each table comes after the tables that it references."""
    wanted = await present(connection, ours)
    parents: dict[str, set[str]] = {name: set() for name in wanted}
    for row in await connection.fetch(_REFERENCES):
        if row["child"] in parents and row["parent"] in parents:
            parents[row["child"]].add(row["parent"])
    ordered: list[str] = []
    while parents:
        ready = sorted(name for name, needed in parents.items() if needed <= set(ordered))
        # Tables with circular references come last; their constraints must be deferrable.
        ordered += ready or sorted(parents)
        parents = {name: needed for name, needed in parents.items() if name not in ordered}
    return ordered


async def _sequences(connection: "Connection", ours: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in await connection.fetch(_SEQUENCES):
        if row["table_name"] in ours:
            value = await connection.fetchval(f"SELECT last_value FROM {row['sequence']} WHERE is_called")
            if value is not None:
                found[row["name"]] = value
    return found


def _writer_of(member: IO[bytes]) -> Callable[[bytes], Any]:
    async def write(chunk: bytes) -> None:
        member.write(chunk)

    return write


async def _chunks(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def _member(table: str) -> str:
    return f"tables/{table}.copy"


def _join_names(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


_CREATE = re.compile(r"(?:^|;)[ \t]*+CREATE TABLE (?:IF NOT EXISTS )?\"?(\w+)", re.IGNORECASE | re.MULTILINE)
_DROP = re.compile(r"(?:^|;)[ \t]*+DROP TABLE (?:IF EXISTS )?\"?(\w+)", re.IGNORECASE | re.MULTILINE)
_RENAME = re.compile(r"(?:^|;)[ \t]*+ALTER TABLE \"?(\w+)\"? RENAME TO \"?(\w+)", re.IGNORECASE | re.MULTILINE)


def tables_of(scripts: Sequence[str]) -> list[str]:
    """Return the tables that the given migration scripts create and do not drop. The result therefore excludes other
    programs' tables in the same schema.
    """
    found: dict[str, None] = {}
    for script in scripts:
        found |= dict.fromkeys(_CREATE.findall(script))
        for name in _DROP.findall(script):
            found.pop(name, None)
        renamed: Mapping[str, str] = dict(_RENAME.findall(script))
        found = {renamed.get(name, name): None for name in found}
    return list(found)
