r"""The format of a backup file.

    BATUTA BACKUP 1\n
    <SHA-256 of everything below, in hexadecimal>\n
    a ZIP archive: manifest.json, and either database.sqlite3 or one tables/NAME.copy per PostgreSQL table

A truncated file or a flipped bit changes the digest, so a damaged backup is refused before anything is replaced.
The file contains personal data, so only its owner may read it. It gets its final name only when it is complete.
"""

import errno
import glob
import hashlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO

from batuta.kernel.errors import BackupDamaged, BackupUnwritable
from batuta.kernel.identity import has_process
from batuta.kernel.reasons import reason_of_os_error
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import Dialect

MAGIC = b"BATUTA BACKUP 1\n"
DIGEST = 64
HEADER = len(MAGIC) + DIGEST + 1
CHUNK = 1024 * 1024
MANIFEST = "manifest.json"
SQLITE_MEMBER = "database.sqlite3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    namespace: str
    number: int
    name: str
    checksum: str

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.number:04d}_{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    rows: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    dialect: Dialect
    version: str  # release of the program that wrote the backup
    taken_at: datetime  # when the backup began; the state in the backup is from this instant or later
    database_id: str  # the same in every backup of one database
    migrations: tuple[Applied, ...]
    tables: Mapping[str, Table]
    sequences: Mapping[str, int]

    @property
    def rows(self) -> int:
        return sum(table.rows for table in self.tables.values())

    def document(self) -> dict[str, Any]:
        return {
            "dialect": self.dialect,
            "version": self.version,
            "taken_at": self.taken_at.isoformat(),
            "database_id": self.database_id,
            "migrations": [[each.namespace, each.number, each.name, each.checksum] for each in self.migrations],
            "tables": {
                name: {"rows": table.rows, "columns": list(table.columns)} for name, table in self.tables.items()
            },
            "sequences": dict(self.sequences),
        }


class ArchiveWriter:
    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=3)

    @contextmanager
    def member(self, name: str) -> Iterator[IO[bytes]]:
        with self._zip.open(name, "w", force_zip64=True) as member:
            yield member

    def close(self, manifest: Manifest) -> None:
        with self.member(MANIFEST) as member:
            member.write(json.dumps(manifest.document(), ensure_ascii=False, indent=1).encode())
        self._zip.close()


@contextmanager
def create(file: Path) -> Iterator[ArchiveWriter]:
    """Yield a writer for a new backup. ``file`` is created and synced to disk only if the block succeeds. An existing
    file is never replaced.
    """
    partial = scratch(file, "partial")
    try:
        if file.exists():
            raise BackupUnwritable(file=str(file), why="it exists already")
        with open_private(partial) as handle:
            handle.write(MAGIC + b"0" * DIGEST + b"\n")
            yield ArchiveWriter(handle)
            handle.flush()
            digest = _digest(handle)
            handle.seek(len(MAGIC))
            handle.write(digest.encode())
            handle.flush()
            os.fsync(handle.fileno())
        _publish(partial, file)
        sync(file.parent)
    except OSError as error:
        raise BackupUnwritable(file=str(file), why=reason_of_os_error(error)) from None
    finally:
        partial.unlink(missing_ok=True)


def _publish(partial: Path, file: Path) -> None:
    """Give the complete file its final name with a hard link, which never replaces an existing file. On a file system
    without hard links, rename the file.
    """
    try:
        os.link(partial, file)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS):
            raise
        partial.rename(file)


class ArchiveReader:
    """Reads the members of an archive. The digest of the archive has already been verified."""

    def __init__(self, handle: BinaryIO, name: str) -> None:
        self.name = name
        try:
            self._zip = zipfile.ZipFile(handle)
            self.manifest = _manifest(json.loads(self._zip.read(MANIFEST)))
        except (zipfile.BadZipFile, ValueError, KeyError, TypeError, IndexError) as error:
            raise BackupDamaged(file=name, why=f"its contents cannot be read ({type(error).__name__})") from None

    def chunks(self, member: str) -> Iterator[bytes]:
        with self._zip.open(member) as source:
            while chunk := source.read(CHUNK):
                yield chunk


@contextmanager
def read(file: Path) -> Iterator[ArchiveReader]:
    """Verify the digest of the whole file and yield a reader. Raise BackupDamaged if the digest differs."""
    try:
        handle = file.open("rb")
    except OSError as error:
        raise BackupDamaged(file=str(file), why=reason_of_os_error(error)) from None
    with handle:
        header = handle.read(HEADER)
        if not header.startswith(MAGIC) or len(header) != HEADER or header[-1:] != b"\n":
            raise BackupDamaged(file=str(file), why="it is not a backup of this program, or its beginning is damaged")
        if _digest(handle).encode() != header[len(MAGIC) : -1]:
            raise BackupDamaged(file=str(file), why="its checksum is wrong")
        handle.seek(0)
        yield ArchiveReader(handle, str(file))


def _digest(handle: BinaryIO) -> str:
    handle.seek(HEADER)
    digest = hashlib.sha256()
    while chunk := handle.read(CHUNK):
        digest.update(chunk)
    return digest.hexdigest()


def scratch(file: Path, kind: str) -> Path:
    """Return a new name for a temporary file next to ``file``. Delete the temporary files of dead processes, because
    they contain personal data.

    Files named with this process's own pid are also deleted: in a container every process may get the same pid, so
    these files come from an earlier run.
    """
    for left in file.parent.glob(f".{glob.escape(file.name)}.*.{kind}*"):
        pid = left.name.removeprefix(f".{file.name}.").partition(".")[0]
        if pid.isdecimal() and (int(pid) == os.getpid() or not has_process(int(pid))):
            left.unlink(missing_ok=True)
    return file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}.{kind}")


def open_private(file: Path) -> BinaryIO:
    return os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b")


def sync(path: Path) -> None:
    """Sync a file or a folder to disk, so that it survives a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _manifest(document: Any) -> Manifest:
    return Manifest(
        dialect=document["dialect"],
        version=document["version"],
        taken_at=datetime.fromisoformat(document["taken_at"]),
        database_id=document["database_id"],
        migrations=tuple(
            Applied(namespace=namespace, number=number, name=name, checksum=checksum)
            for namespace, number, name, checksum in document["migrations"]
        ),
        tables={
            name: Table(rows=table["rows"], columns=tuple(table["columns"]))
            for name, table in document["tables"].items()
        },
        sequences=document["sequences"],
    )
