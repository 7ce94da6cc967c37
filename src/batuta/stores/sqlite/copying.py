"""Copies a SQLite database into a backup while the database is in use, and replaces a database with a backup."""

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from batuta.kernel.clock import Clock
from batuta.kernel.errors import BackupDamaged, RestoreRefused
from batuta.kernel.reasons import Reason
from batuta.stores.backup.archive import Applied, open_private, sync
from batuta.stores.sql.database import ConnectionLimits, Query, Reading, Row
from batuta.stores.sqlite.connection import ActFactory, open_connection, register_types, translate_errors

PAGES = 2_000  # number of pages per progress report
# Seconds to wait for a lock. A process keeps the file open while it runs, so a longer wait would not help.
BUSY_TIMEOUT = 2.0
IN_USE = Reason("restore_in_use", "a process has the database open")
STOP = Reason("restore_stop", "stop every process, then repeat")
MIGRATIONS = "SELECT namespace, number, name, checksum FROM schema_migrations ORDER BY namespace, number"
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


def copy(file: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Copy the database as of one commit, without blocking writers. ``progress`` receives the number of pages copied
    and the total number of pages.
    """
    with translate_errors(str(file)), closing(sqlite3.connect(file, isolation_level=None)) as source:
        # The open transaction keeps the state of one commit readable. Without it, the copy would restart after each
        # commit of another process.
        source.execute("BEGIN")
        source.execute("SELECT count(*) FROM sqlite_master").fetchone()
        open_private(target).close()
        with closing(sqlite3.connect(target, isolation_level=None)) as copied:
            source.backup(copied, pages=PAGES, progress=lambda _, left, all: progress(all - left, all))
            seal(copied, str(target))


def seal(connection: sqlite3.Connection, name: str) -> None:
    """Convert the database to a single file without a log, and check every page. Raise BackupDamaged if the check
    fails.
    """
    connection.execute("PRAGMA journal_mode = DELETE")
    (verdict,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if verdict != "ok":
        raise BackupDamaged(file=name, why=f"SQLite's integrity check reports: {verdict}")


def count_rows(file: Path) -> dict[str, int]:
    with translate_errors(str(file)), closing(sqlite3.connect(file)) as connection:
        names = [name for (name,) in connection.execute(TABLES)]
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}


def migrations_in(file: Path) -> tuple[Applied, ...]:
    with translate_errors(str(file)), closing(sqlite3.connect(file)) as connection:
        return tuple(
            Applied(namespace=namespace, number=number, name=name, checksum=checksum)
            for namespace, number, name, checksum in connection.execute(MIGRATIONS)
        )


class OldDatabase(Reading):
    """Reads the database that a restore replaces. The database is locked against other processes. After the restore,
    its file is kept under a different name.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Clock) -> None:
        self._connection = connection
        self._acts = ActFactory(clock, ConnectionLimits())

    async def all(self, query: Query, **values: object) -> list[Row]:
        with translate_errors("the replaced database"):
            rows: list[Row] = self._acts.all(query, values)(self._connection)
            return rows


@contextmanager
def hold(file: Path, clock: Clock, *, force: bool) -> Iterator[OldDatabase | None]:
    """Lock the database at ``file`` against all other processes while the block runs, and yield the database for
    reading.

    Yields None if there is no database or, with ``force``, if the database is too damaged to be read. The lock cannot
    be acquired while another process has the database open, even with ``force``.
    """
    if not file.exists() or file.stat().st_size == 0:
        yield None
        return
    register_types()
    connection: sqlite3.Connection | None = None
    try:
        connection = open_connection(file, clock, ConnectionLimits(), writes=True)
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}")
        # Leaving WAL mode needs exclusive access, which any other open connection prevents.
        (mode,) = connection.execute("PRAGMA journal_mode = DELETE").fetchone()
        if mode != "delete":
            raise RestoreRefused(why=IN_USE, next_step=STOP)
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        _close(connection)
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise RestoreRefused(why=IN_USE, next_step=STOP) from None
        _refuse_damaged(error, force=force)
        connection = None
    except sqlite3.DatabaseError as error:
        _close(connection)
        _refuse_damaged(error, force=force)
        connection = None
    try:
        yield None if connection is None else OldDatabase(connection, clock)
    finally:
        _close(connection)


def _refuse_damaged(error: sqlite3.Error, *, force: bool) -> None:
    if not force:
        raise RestoreRefused(
            why=Reason(
                "restore_damaged", "the current database cannot be read ({error}): nothing is carried over", error=error
            ),
            next_step=Reason("restore_stop_force", "stop every process, then repeat with --force"),
        ) from None


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        with suppress(sqlite3.Error):
            connection.close()


def unpack(chunks: Iterator[bytes], target: Path) -> None:
    """Write a backup's database to ``target``, a temporary file in the folder of the database that it will replace."""
    with open_private(target) as handle:
        for chunk in chunks:
            handle.write(chunk)
        handle.flush()
        os.fsync(handle.fileno())
    with closing(sqlite3.connect(target, isolation_level=None)) as connection:
        try:
            seal(connection, str(target))
        except sqlite3.DatabaseError as error:
            raise BackupDamaged(file=str(target), why=str(error)) from None


def replace(restored: Path, file: Path, kept: Path) -> Path | None:
    """Atomically rename the restored database to ``file``. Keep the old file under the name ``kept``, and return
    ``kept``; return None if there was no old file.
    """
    with translate_errors(str(restored)), closing(sqlite3.connect(restored, isolation_level=None)) as connection:
        seal(connection, str(restored))
    sync(restored)
    was_there = file.exists()
    if was_there:
        _copy_ownership(file, restored)
        os.link(file, kept)
    for beside in ("-wal", "-shm", "-journal"):  # move these files away too, because they belong to the old database
        if Path(f"{file}{beside}").exists():
            shutil.move(f"{file}{beside}", f"{kept}{beside}")
    restored.replace(file)
    sync(file.parent)
    return kept if was_there else None


def _copy_ownership(file: Path, restored: Path) -> None:
    """Copy the owner and the mode of the old file, because the user who runs the restore may differ from the user of
    the application's processes.
    """
    owner = file.stat()
    with suppress(PermissionError):
        os.chown(restored, owner.st_uid, owner.st_gid)
        restored.chmod(stat.S_IMODE(owner.st_mode))


def leftovers(target: Path) -> Sequence[Path]:
    return [Path(f"{target}{ending}") for ending in ("", "-wal", "-shm", "-journal")]
