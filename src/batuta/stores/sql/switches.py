"""Switches in ``feature_flags``. A turn and its note in the audit log are one transaction."""

from dataclasses import dataclass
from datetime import datetime

from batuta.guard.switches import Switch
from batuta.kernel.events import Events, SwitchTurned
from batuta.kernel.ids import Ids
from batuta.stores.sql.audit import AuditLog
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row
from batuta.stores.sql.deciding_clock import DecidingClock
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class SwitchBook:
    switch: Query
    all: Query
    turn: Query


class SqlSwitches:
    def __init__(self, database: Database, ids: Ids, events: Events, *, own_time: bool = True) -> None:
        """``own_time``: False where PostgreSQL's clock decides when a switch was turned and until when it counts."""
        self._database = database
        self._clock = DecidingClock(database.dialect, own_time=own_time)
        self._events = events
        self._book = load(SwitchBook, BOOKS / "switches.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def read(self, key: str, within: Reading | None = None) -> Switch | None:
        """``within`` a claiming transaction, the answer holds until that transaction ends."""
        row = await (within or self._database).one(self._book.switch, key=key)
        return None if row is None else _switch(row)

    async def all(self, within: Reading | None = None) -> dict[str, Switch]:
        """Every switch that somebody ever turned."""
        rows = await (within or self._database).all(self._book.all)
        return {row["key"]: _switch(row) for row in rows}

    async def turn(
        self, key: str, on: bool, *, by: str, reason: str, now: datetime, until: datetime | None = None
    ) -> Switch:
        async with self._database.transaction() as transaction:
            ahead = await self._clock.ahead(transaction, now)
            now, until = now + ahead, None if until is None else until + ahead
            before = await self.read(key, within=transaction)
            await transaction.run(
                self._book.turn, key=key, value=AsJson(on), reason=reason, until=until, by=by, now=now
            )
            await self._audit.note(
                transaction,
                actor=by,
                action="switch.turn",
                subject=key,
                before=None if before is None else before.on,
                after=on,
                now=now,
            )
        self._events.emit(SwitchTurned(key, on, by, reason, until))
        return Switch(key=key, on=on, reason=reason, until=until, turned_by=by, turned_at=now)


def _switch(row: Row) -> Switch:
    return Switch(
        key=row["key"],
        on=row["value"] if isinstance(row["value"], bool) else None,
        reason=row["reason"],
        until=row["until"],
        turned_by=row["updated_by"],
        turned_at=row["updated_at"],
    )
