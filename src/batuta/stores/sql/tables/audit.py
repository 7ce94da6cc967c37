"""The audit log. An operator's action is recorded in the same transaction as the action itself; an access to personal
data is recorded in a separate transaction.
"""

from datetime import datetime

from batuta.kernel.clock import Clock
from batuta.kernel.ids import Ids
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Transaction, from_row
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class AuditQueries:
    note: Query
    prune_access: Query
    listed: Query


@dataclass(frozen=True, slots=True)
class Entry:
    """An audit-log entry."""

    id: str
    at: datetime
    actor: str
    action: str
    subject: str
    before: Json
    after: Json


class AuditLog:
    """Records who changed what, with the values before and after. Each entry is written in the same transaction as the
    operator's change.
    """

    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = load_queries(AuditQueries, STATEMENTS / "audit.sql", dialect)
        self._ids = ids

    async def note(
        self,
        within: Transaction,
        *,
        actor: str,
        action: str,
        subject: str,
        before: Json = None,
        after: Json = None,
        now: datetime,
    ) -> None:
        await within.run(
            self._queries.note,
            id=self._ids.new(),
            now=now,
            actor=actor,
            action=action,
            subject=subject,
            before=AsJson(before),
            after=AsJson(after),
        )


class AccessLog:
    """Records sign-ins, refused requests, and every read, export and import of personal data.

    The entry is committed before the data leaves the process, so every access is recorded.
    """

    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(AuditQueries, STATEMENTS / "audit.sql", database.dialect)

    async def note(self, *, actor: str, action: str, subject: str, **facts: Json) -> None:
        """Record an access. ``facts`` are counts and settings that describe the access, never personal data."""
        async with self._database.transaction() as transaction:
            await self._audit.note(
                transaction, actor=actor, action=action, subject=subject, after=facts, now=self._clock.now()
            )

    async def list_before(self, before: datetime, before_id: str, limit: int) -> list[Entry]:
        """Return the newest ``limit`` entries that precede the entry with the instant ``before`` and the id
        ``before_id``, newest first.
        """
        rows = await self._database.all(self._queries.listed, before=before, before_id=before_id, limit=limit)
        return [from_row(Entry, row, id=str(row["id"])) for row in rows]

    async def prune(self, *, before: datetime, limit: int) -> int:
        """Delete at most ``limit`` entries about data access that are older than ``before``, and return how many were
        deleted. Entries about operators' actions are kept.
        """
        return await self._database.run(self._queries.prune_access, before=before, limit=limit)
