"""Stores alerts in ``health_causes`` and ``alertas_enviados``, incidents in ``health_incidents``, and the lease that
lets only one process at a time decide which alerts to send.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta

from batuta.health.alert_hub import Before, Decision, Pending, UnstoredAlert
from batuta.health.alerts import (
    AUTOMATIC,
    Alert,
    AlertedCause,
    AlertKind,
    Incident,
    IncidentChange,
    LastSeen,
    NewIncident,
)
from batuta.health.finding import Grade, Severity
from batuta.kernel.clock import in_microseconds
from batuta.kernel.events import Events, IncidentChanged
from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row, Transaction, from_row, to_values
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries


@dataclass(frozen=True, slots=True)
class IncidentQueries:
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
        self._queries = load_queries(IncidentQueries, STATEMENTS / "incidents.sql", database.dialect)

    async def open_one(self, source: str = AUTOMATIC, within: Reading | None = None) -> Incident | None:
        row = await (within or self._database).one(self._queries.open, source=source)
        return None if row is None else from_row(Incident, row)

    async def apply(self, change: IncidentChange, transaction: Transaction, now: datetime) -> list[IncidentChanged]:
        """Store a change to an incident in the caller's transaction. Return the events that the caller must emit after
        the commit.
        """
        events = []
        if change.opens is not None:
            id = await self._begin(change.opens, transaction, now)
            events.append(IncidentChanged(id, is_open=True, causes=tuple(change.opens.details["causes"])))
        if change.grows is not None:
            id, details = change.grows
            await transaction.run(self._queries.grow, id=id, details=AsJson(details))
        if change.closes is not None:
            await transaction.run(self._queries.close, id=change.closes, now=now)
            events.append(IncidentChanged(change.closes, is_open=False, causes=()))
        return events

    async def write(self, new: NewIncident, *, now: datetime) -> tuple[Incident, bool]:
        """Record a change in health that an operator or another system reports. A change to critical opens an incident.
        A change from critical to another grade closes the open incident from the same source.

        Return the incident and a flag that is true if a new row was inserted. A change that neither opens nor closes an
        incident is stored as an incident that is already resolved.
        """
        is_critical = new.to_status == Grade.CRITICAL
        async with self._database.transaction() as transaction:
            opened = await self.open_one(new.trigger_source, transaction)
            if opened is not None:
                if not is_critical:
                    await transaction.run(self._queries.close, id=opened.id, now=now)
                id, is_new = opened.id, False
            else:
                id, is_new = await self._begin(new, transaction, now, is_over=not is_critical), True
            row = await transaction.one(self._queries.one, id=id)
        assert row is not None
        if is_new == is_critical:
            self._events.emit(IncidentChanged(id, is_open=is_critical, causes=()))
        return from_row(Incident, row), is_new

    async def list_between(self, since: datetime, until: datetime, limit: int = 1_000) -> Sequence[Incident]:
        rows = await self._database.all(self._queries.within, since=since, until=until, limit=limit)
        return [from_row(Incident, row) for row in rows]

    async def _begin(self, new: NewIncident, transaction: Transaction, now: datetime, *, is_over: bool = False) -> str:
        id = self._ids.new()
        await transaction.run(
            self._queries.begin,
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


def read_last_seen(alerted: object) -> LastSeen | None:
    match alerted:
        case {"status": str(status), "score": int(score)}:
            return LastSeen(status=status, score=score)
        case _:
            return None


LEASE_NAME = "alerts"


@dataclass(frozen=True, slots=True)
class AlertQueries:
    lead: Query
    alerted: Query
    save_cause: Query
    forget: Query
    seen: Query
    note_seen: Query
    put: Query
    resolve: Query
    pending: Query
    sent: Query
    postpone: Query
    give_up: Query
    prune: Query


class SqlAlerts:
    def __init__(self, database: Database, incidents: SqlIncidents, ids: Ids, events: Events) -> None:
        self._database = database
        self._incidents = incidents
        self._ids = ids
        self._events = events
        self._queries = load_queries(AlertQueries, STATEMENTS / "alerts.sql", database.dialect)

    async def lead(self, owner: str, lease: timedelta, *, now: datetime | None) -> bool:
        return await self._lead(self._database, owner, lease, now) is not None

    async def decide(
        self,
        owner: str,
        lease: timedelta,
        sinks: Sequence[str],
        decide: Callable[[Before], Decision],
        *,
        now: datetime | None,
    ) -> Decision | None:
        led = await self._lead(self._database, owner, lease, now)
        if led is None:
            return None
        if led["is_quiet"]:
            before = Before(now=led["now"], alerted={}, seen=read_last_seen(led["seen"]), incident=None)
            if not (decision := decide(before)).changes(before):
                return decision
        async with self._database.transaction() as transaction:
            led = await self._lead(transaction, owner, lease, now)
            if led is None:
                return None
            before = await self._read_before(transaction, led["now"])
            decision = decide(before)
            await self._write(transaction, decision, sinks, before)
            events = await self._incidents.apply(decision.incident, transaction, before.now)
        for event in events:
            self._events.emit(event)
        return decision

    async def remember(self, said: Sequence[UnstoredAlert]) -> None:
        async with self._database.transaction() as transaction:
            for each in said:
                cause = to_values(each.alerted, severity=each.alerted.severity.value)
                await transaction.run(self._queries.save_cause, **cause)
                for sink in each.sinks:
                    await self._put(transaction, each.alert, sink, each.alerted.at, is_sent=True)

    async def pending(self, *, limit: int, now: datetime | None) -> Sequence[Pending]:
        rows = await self._database.all(self._queries.pending, limit=limit, now=now)
        return [_pending(row) for row in rows]

    async def record_delivery(self, id: str, *, now: datetime | None) -> None:
        await self._database.run(self._queries.sent, id=id, now=now)

    async def record_failure(self, id: str, again_in: timedelta | None, *, now: datetime | None) -> None:
        if again_in is None:
            await self._database.run(self._queries.give_up, id=id)
        else:
            await self._database.run(self._queries.postpone, id=id, again_in=in_microseconds(again_in), now=now)

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._queries.prune, before=before, limit=limit)

    async def _lead(self, asked: Reading, owner: str, lease: timedelta, now: datetime | None) -> Row | None:
        return await asked.one(self._queries.lead, name=LEASE_NAME, owner=owner, lease=in_microseconds(lease), now=now)

    async def _read_before(self, transaction: Transaction, now: datetime) -> Before:
        seen = await transaction.one(self._queries.seen)
        return Before(
            now=now,
            alerted={row["cause"]: _read_alerted_cause(row) for row in await transaction.all(self._queries.alerted)},
            seen=None if seen is None else read_last_seen(seen["setting"]),
            incident=await self._incidents.open_one(within=transaction),
        )

    async def _write(self, transaction: Transaction, decision: Decision, sinks: Sequence[str], before: Before) -> None:
        queries, said, now = self._queries, decision.said, before.now
        await transaction.run_many(
            queries.save_cause, [to_values(each, severity=each.severity.value) for each in said.alerted]
        )
        await transaction.run_many(queries.forget, [{"cause": cause} for cause in said.forgotten])
        for alert in said.alerts:
            if alert.kind is AlertKind.RECOVERY:
                await transaction.run(queries.resolve, cause=alert.cause, now=now)
            for sink in sinks:
                await self._put(transaction, alert, sink, now)
        if decision.seen != before.seen:
            await transaction.run(queries.note_seen, setting=AsJson(asdict(decision.seen)), now=now)

    async def _put(
        self, transaction: Transaction, alert: Alert, sink: str, at: datetime, *, is_sent: bool = False
    ) -> None:
        await transaction.run(
            self._queries.put,
            id=self._ids.new(),
            cause=alert.cause,
            severity=alert.severity.value,
            message=alert.message,
            next_step=alert.next_step,
            now=at,
            sink=sink,
            kind=alert.kind.value,
            outcome="sent" if is_sent else "pending",
            try_at=at,
            sent_at=at if is_sent else None,
            resolved_at=at if alert.kind is AlertKind.RECOVERY else None,
        )


def _read_alerted_cause(row: Row) -> AlertedCause:
    return from_row(AlertedCause, row, severity=Severity(row["told_severity"]), at=row["told_at"])


def _pending(row: Row) -> Pending:
    alert = Alert(
        kind=AlertKind(row["kind"]),
        cause=row["tipo"],
        severity=Severity(row["severidade"]),
        message=row["mensagem"],
        next_step=row["next_step"],
    )
    return Pending(id=row["id"], sink=row["sink"], alert=alert, tries=row["tries"])
