"""Numbered migrations. Under a lock, each migration is applied once, in numerical order, and recorded with its
checksum.

A folder contains ``0001_name.sql``, ``0002_…``. One script serves both databases where possible. A section for one
database begins with ``-- on sqlite`` or ``-- on postgres`` and ends with ``-- on both``. Each set of migrations has a
namespace (batuta, app), so that the numbers of the engine and of an application are independent.
"""

import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from batuta.kernel.clock import Clock
from batuta.kernel.errors import MarkerMismatch, MigrationChanged, QueryFileError, SchemaOutOfDate, StatementRefused
from batuta.kernel.events import Events, MigrationApplied
from batuta.kernel.values import dataclass
from batuta.stores.backup.archive import Applied
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Reading, Transaction
from batuta.stores.sql.queries import in_dialect, load_queries, query_of

_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
_PART = re.compile(r"^-- on (sqlite|postgres|both)\s*$", re.MULTILINE)
LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    namespace  TEXT NOT NULL,
    number     INTEGER NOT NULL,
    name       TEXT NOT NULL,
    checksum   TEXT NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (namespace, number)
);
"""
_APPLIED = query_of("applied", "SELECT namespace, number, checksum FROM schema_migrations", writes=False)
_ALL_APPLIED = query_of(
    "all_applied",
    "SELECT namespace, number, name, checksum FROM schema_migrations ORDER BY namespace, number",
    writes=False,
)
_RECORD = query_of(
    "record",
    "INSERT INTO schema_migrations (namespace, number, name, checksum, applied_at)"
    " VALUES (:namespace, :number, :name, :checksum, :applied_at)",
    writes=True,
)


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered SQL script, applied once per database."""

    namespace: str
    number: int
    name: str
    text: str

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.number:04d}_{self.name}"

    @property
    def checksum(self) -> str:
        return _checksum(self.text)

    def in_dialect(self, dialect: Dialect) -> str:
        opening, *parts = _PART.split(self.text)
        chosen = [text for on, text in zip(parts[::2], parts[1::2], strict=True) if on in ("both", dialect)]
        return "".join([opening, *chosen])


@cache
def _checksum(text: str) -> str:
    """Return a script's checksum. The result is cached, because every readiness check compares the checksums of all
    scripts.
    """
    return hashlib.sha256(text.encode()).hexdigest()


def read_migrations(namespace: str, folder: Path) -> list[Migration]:
    """Return the folder's migrations in numerical order. Raises QueryFileError for a gap in the numbers, a duplicate
    number or an invalid file name.
    """
    found = []
    for file in sorted(folder.glob("*.sql")):
        named = _FILE.match(file.name)
        if named is None:
            raise QueryFileError(file=str(file), why="a migration is called 0001_what_it_does.sql")
        found.append(Migration(namespace, int(named[1]), named[2], file.read_text(encoding="utf-8")))
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise QueryFileError(file=str(folder), why="migrations are numbered 0001, 0002, … without gaps or duplicates")
    return found


class Migrator:
    def __init__(self, database: Database, migrations: Sequence[Migration], clock: Clock, events: Events) -> None:
        self._database = database
        self.migrations = migrations
        self._clock = clock
        self._events = events

    async def migrate(self) -> list[Migration]:
        """Apply the missing migrations, each in its own transaction. Several processes may call this method at the same
        time.

        If the schema is current, the method takes no lock, so that a process that starts does not disturb processes
        that are already working.
        """
        if not missing_of(self.migrations, await self._ledger()):
            return []
        return [migration for migration in self.migrations if await self._apply(migration)]

    async def require_current(self) -> None:
        """Raise SchemaOutOfDate unless every migration that this release contains is applied. A newer schema is
        allowed.

        Raises StoreReplaced if the open database file was deleted or replaced.
        """
        self._database.check_file()
        if missing := missing_of(self.migrations, await self._ledger()):
            raise SchemaOutOfDate(missing=missing[0].title)

    async def _apply(self, migration: Migration) -> bool:
        started = self._clock.monotonic()
        async with self._database.transaction() as transaction:
            await self._database.lock_migrations(transaction)
            await transaction.script(LEDGER)
            if not missing_of([migration], await checksums(transaction)):
                return False
            await transaction.script(migration.in_dialect(self._database.dialect))
            await self.record(transaction, migration, self._clock.now())
        self._events.emit(MigrationApplied(migration.title, timedelta(seconds=self._clock.monotonic() - started)))
        return True

    async def record(self, transaction: Transaction, migration: Migration, now: datetime) -> None:
        await transaction.run(
            in_dialect(_RECORD, self._database.dialect),
            namespace=migration.namespace,
            number=migration.number,
            name=migration.name,
            checksum=migration.checksum,
            applied_at=now,
        )

    async def _ledger(self) -> dict[tuple[str, int], str]:
        try:
            return await checksums(self._database)
        except StatementRefused:
            return {}  # the table of applied migrations does not exist, so none was applied


async def read_applied_migrations(reading: Reading) -> list[Applied]:
    return [Applied(**dict(row)) for row in await reading.all(_ALL_APPLIED)]


async def checksums(reading: Reading) -> dict[tuple[str, int], str]:
    rows = await reading.all(_APPLIED)
    return {(row["namespace"], row["number"]): row["checksum"] for row in rows}


def missing_of(migrations: Sequence[Migration], applied: dict[tuple[str, int], str]) -> list[Migration]:
    for migration in migrations:
        recorded = applied.get((migration.namespace, migration.number), migration.checksum)
        if recorded != migration.checksum:
            raise MigrationChanged(migration=migration.title)
    return [migration for migration in migrations if (migration.namespace, migration.number) not in applied]


HERE = Path(__file__).parent
STATEMENTS = HERE / "statements"


@cache
def engine_migrations() -> tuple[Migration, ...]:
    """Return the engine's migrations. Their files are read once per process."""
    return tuple(read_migrations("batuta", HERE / "schema"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The project to which a database must belong. ``setting`` is the name of the setting that defines the project, for
    use in messages.
    """

    key: str = "project"
    setting: str = "project"
    project: str | None = None  # None means that the database must not be marked

    def require(self, found: str | None) -> None:
        if found != self.project:
            raise MarkerMismatch(found=found or "-", wanted=self.project or "-", setting=self.setting)


@dataclass(frozen=True, slots=True)
class MarkerQueries:
    setting: Query
    settle: Query


class Marker:
    """Marks a database with the name of its project. If a project is set, `batuta migrate` writes the mark. After that,
    processes of any other project refuse to start.
    """

    def __init__(self, database: Database, mark: Mark) -> None:
        self._database = database
        self._mark = mark
        self._queries = load_queries(MarkerQueries, STATEMENTS / "marker.sql", database.dialect)

    async def set_once(self, *, now: datetime) -> None:
        """Mark the database with the project if it is unmarked. If no project is set, do nothing."""
        project = self._mark.project
        if project is not None:
            await self._database.run(self._queries.settle, name=self._mark.key, setting=AsJson(project), now=now)

    async def require(self) -> None:
        """Raise MarkerMismatch if the database is not marked with this project or, if no project is set, if the
        database has a mark.
        """
        row = await self._database.one(self._queries.setting, name=self._mark.key)
        self._mark.require(None if row is None else row["setting"])
