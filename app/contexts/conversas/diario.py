"""The journal of opt-outs and removals, a file outside the database.

After a restore, ``batuta restore`` applies the journal entries that are newer than the backup.

Each line identifies a person by a digest of the phone number, keyed with the database's id. The number itself is not
written. The journal is append-only.
"""

import asyncio
import hashlib
import hmac
import json
import os
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from app.contexts.comum.telefone import chave
from batuta.kernel import Ids, dataclass
from batuta.sql import DatabaseId, Dialect, Reading, Transaction

Kind: TypeAlias = Literal["optout", "removal", "erasure"]


@dataclass(frozen=True, slots=True)
class JournalEntry:
    at: datetime
    kind: Kind
    digest: str


class Resumos:
    """Computes a keyed digest of a phone number. The key is the database's id, which is part of every backup."""

    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._id = DatabaseId(dialect, ids)
        self._key: str | None = None

    async def settle(self, transaction: Transaction, telefone: str, *, now: datetime) -> str:
        """Return the keyed digest of a phone number. If the database has no id yet, create one first."""
        return digest(await self._id.settle(transaction, now=now), telefone)

    async def read(self, reading: Reading, telefone: str) -> str:
        """Return the keyed digest of a phone number. Return an empty string if the database has no id, because then no
        digest was ever stored.
        """
        self._key = self._key or await self._id.read(reading)
        return "" if self._key is None else digest(self._key, telefone)


class Diario:
    def __init__(self, file: Path, resumos: Resumos) -> None:
        self.file = file
        self._resumos = resumos

    async def note(self, transaction: Transaction, kind: Kind, telefone: str, *, now: datetime) -> bool:
        """Append one line to the journal and sync the file before the transaction commits. Returns False if the file
        cannot be written.
        """
        who = await self._resumos.settle(transaction, telefone, now=now)
        try:
            await asyncio.to_thread(self._append, JournalEntry(now, kind, who))
        except OSError:
            return False
        return True

    @property
    def is_writable(self) -> bool:
        return os.access(self.file if self.file.exists() else self.file.parent, os.W_OK) and not self.file.is_dir()

    def entries(self) -> list[JournalEntry]:
        """Read the entries of the journal, oldest first. A line that was truncated by a crash is skipped."""
        try:
            lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [entry for line in lines if (entry := _entry(line)) is not None]

    def _append(self, entry: JournalEntry) -> None:
        line = json.dumps({"at": entry.at.isoformat(), "kind": entry.kind, "who": entry.digest})
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            # The leading line break ends a line that a crash truncated.
            os.write(descriptor, f"\n{line}\n".encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def digest(key: str, telefone: str) -> str:
    """Return the digest that identifies a phone number in the journal. A mobile number has the same digest with and
    without its ninth digit.
    """
    return hmac.new(key.encode(), chave(telefone).encode(), hashlib.sha256).hexdigest()


def _entry(line: str) -> JournalEntry | None:
    try:
        found = json.loads(line)
        if found["kind"] in get_args(Kind):
            return JournalEntry(datetime.fromisoformat(found["at"]), found["kind"], str(found["who"]))
    except (ValueError, KeyError, TypeError):
        return None
    return None
