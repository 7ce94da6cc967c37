"""Incidents in ``health_incidents``."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from batuta.health.incidents import AUTOMATIC, Incident, LastSeen, NewIncident, Turn
from batuta.health.score import Grade
from batuta.kernel.events import Events, IncidentTurned
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row, Transaction
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import load


@dataclass(frozen=True, slots=True)
class IncidentBook:
    open: Query
    begin: Query
    grow: Query
    close: Query
    within: Query
    one: Query


class SqlIncidents:
    def __init__(self, database: Database, ids: Ids, events: Events) -> None:
        self._database = database
        self._ids = ids
        self._events = events
        self._book = load(IncidentBook, BOOKS / "incidents.sql", database.dialect)

    async def open_one(self, source: str = AUTOMATIC, within: Reading | None = None) -> Incident | None:
        row = await (within or self._database).one(self._book.open, source=source)
        return None if row is None else _incident(row)

    async def turned(self, turn: Turn, transaction: Transaction, now: datetime) -> list[IncidentTurned]:
        """Written within somebody's decision; announced by him when it is committed."""
        told = []
        if turn.opens is not None:
            id = await self._begin(turn.opens, transaction, now)
            told.append(IncidentTurned(id, is_open=True, causes=tuple(turn.opens.details["causes"])))
        if turn.grows is not None:
            id, details = turn.grows
            await transaction.run(self._book.grow, id=id, details=AsJson(details))
        if turn.closes is not None:
            await transaction.run(self._book.close, id=turn.closes, now=now)
            told.append(IncidentTurned(turn.closes, is_open=False, causes=()))
        return told

    async def write(self, new: NewIncident, *, now: datetime) -> tuple[Incident, bool]:
        """By hand: becoming critical opens one, leaving it closes the one of the same source. True: there is a new row.

        What neither opens nor closes is kept as a note, over at once.
        """
        is_critical = new.to_status == Grade.CRITICAL
        async with self._database.transaction() as transaction:
            opened = await self.open_one(new.trigger_source, transaction)
            if opened is not None:
                if not is_critical:
                    await transaction.run(self._book.close, id=opened.id, now=now)
                id, is_new = opened.id, False
            else:
                id, is_new = await self._begin(new, transaction, now, is_over=not is_critical), True
            row = await transaction.one(self._book.one, id=id)
        assert row is not None
        if is_new == is_critical:
            self._events.emit(IncidentTurned(id, is_open=is_critical, causes=()))
        return _incident(row), is_new

    async def within(self, since: datetime, until: datetime, limit: int = 1_000) -> Sequence[Incident]:
        rows = await self._database.all(self._book.within, since=since, until=until, limit=limit)
        return [_incident(row) for row in rows]

    async def _begin(self, new: NewIncident, transaction: Transaction, now: datetime, *, is_over: bool = False) -> str:
        id = self._ids.new()
        await transaction.run(
            self._book.begin,
            id=id,
            from_status=new.from_status,
            to_status=new.to_status,
            from_score=new.from_score,
            to_score=new.to_score,
            source=new.trigger_source,
            details=AsJson(dict(new.details)),
            started_at=now,
            resolved_at=now if is_over else None,
            duration_seconds=0 if is_over else None,
        )
        return id


def last_seen(told: object) -> LastSeen | None:
    match told:
        case {"status": str(status), "score": int(score)}:
            return LastSeen(status=status, score=score)
        case _:
            return None


def _incident(row: Row) -> Incident:
    return Incident(**{name: row[name] for name in Incident.__dataclass_fields__})
