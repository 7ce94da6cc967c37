"""The audit log of operators' actions. Each entry is written in the transaction of the action."""

from dataclasses import dataclass
from datetime import datetime

from batuta.kernel.ids import Ids
from batuta.kernel.json import Json
from batuta.stores.sql.database import AsJson, Dialect, Query, Transaction
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class AuditQueries:
    note: Query


class AuditLog:
    """Records which operator changed what, in the transaction of the change."""

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
