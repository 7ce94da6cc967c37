"""What the alert hub knows and has to send: ``health_causes``, ``alertas_enviados``, and the lease under which it decides."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from batuta.health.alerts import Alert, Kind, Told
from batuta.health.finding import Severity
from batuta.health.hub import Before, Decision, Pending, SaidAlone
from batuta.kernel.events import Events
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import AsJson, Database, Query, Reading, Row, Transaction
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.incidents import SqlIncidents, last_seen
from batuta.stores.sql.queries import load

_MICROSECOND = timedelta(microseconds=1)
LEASE_NAME = "alerts"


@dataclass(frozen=True, slots=True)
class AlertBook:
    lead: Query
    told: Query
    tell: Query
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
        self._book = load(AlertBook, BOOKS / "alerts.sql", database.dialect)

    async def lead(self, owner: str, lease: timedelta, *, now: datetime | None) -> bool:
        return await self._led(self._database, owner, lease, now) is not None

    async def decide(
        self,
        owner: str,
        lease: timedelta,
        sinks: Sequence[str],
        decide: Callable[[Before], Decision],
        *,
        now: datetime | None,
    ) -> Decision | None:
        async with self._database.transaction() as transaction:
            led = await self._led(transaction, owner, lease, now)
            if led is None:
                return None
            before = await self._before(transaction, led["now"])
            decision = decide(before)
            await self._write(transaction, decision, sinks, before)
            turned = await self._incidents.turned(decision.incident, transaction, before.now)
        for fact in turned:
            self._events.emit(fact)
        return decision

    async def remember(self, said: Sequence[SaidAlone]) -> None:
        async with self._database.transaction() as transaction:
            for each in said:
                await transaction.run(self._book.tell, **_told_values(each.told))
                for sink in each.sinks:
                    await self._put(transaction, each.alert, sink, each.told.at, is_sent=True)

    async def pending(self, *, limit: int, now: datetime | None) -> Sequence[Pending]:
        rows = await self._database.all(self._book.pending, limit=limit, now=now)
        return [_pending(row) for row in rows]

    async def sent(self, id: str, *, now: datetime | None) -> None:
        await self._database.run(self._book.sent, id=id, now=now)

    async def failed(self, id: str, again_in: timedelta | None, *, now: datetime | None) -> None:
        if again_in is None:
            await self._database.run(self._book.give_up, id=id)
        else:
            await self._database.run(self._book.postpone, id=id, again_in=again_in // _MICROSECOND, now=now)

    async def prune(self, *, before: datetime, limit: int) -> int:
        return await self._database.run(self._book.prune, before=before, limit=limit)

    async def _led(self, asked: Reading, owner: str, lease: timedelta, now: datetime | None) -> Row | None:
        return await asked.one(self._book.lead, name=LEASE_NAME, owner=owner, lease=lease // _MICROSECOND, now=now)

    async def _before(self, transaction: Transaction, now: datetime) -> Before:
        seen = await transaction.one(self._book.seen)
        return Before(
            now=now,
            told={row["cause"]: _told(row) for row in await transaction.all(self._book.told)},
            seen=None if seen is None else last_seen(seen["setting"]),
            incident=await self._incidents.open_one(within=transaction),
        )

    async def _write(self, transaction: Transaction, decision: Decision, sinks: Sequence[str], before: Before) -> None:
        book, said, now = self._book, decision.said, before.now
        await transaction.run_many(book.tell, [_told_values(told) for told in said.told])
        await transaction.run_many(book.forget, [{"cause": cause} for cause in said.forgotten])
        for alert in said.alerts:
            if alert.kind is Kind.RECOVERY:
                await transaction.run(book.resolve, cause=alert.cause, now=now)
            for sink in sinks:
                await self._put(transaction, alert, sink, now)
        if decision.seen != before.seen:
            await transaction.run(book.note_seen, setting=AsJson(asdict(decision.seen)), now=now)

    async def _put(
        self, transaction: Transaction, alert: Alert, sink: str, at: datetime, *, is_sent: bool = False
    ) -> None:
        await transaction.run(
            self._book.put,
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
            resolved_at=at if alert.kind is Kind.RECOVERY else None,
        )


def _told(row: Row) -> Told:
    return Told(
        cause=row["cause"],
        severity=Severity(row["told_severity"]),
        at=row["told_at"],
        since=row["since"],
        message=row["message"],
        gone_at=row["gone_at"],
    )


def _told_values(told: Told) -> dict[str, object]:
    return {
        "cause": told.cause,
        "severity": told.severity.value,
        "told_at": told.at,
        "since": told.since,
        "message": told.message,
        "gone_at": told.gone_at,
    }


def _pending(row: Row) -> Pending:
    alert = Alert(
        kind=Kind(row["kind"]),
        cause=row["tipo"],
        severity=Severity(row["severidade"]),
        message=row["mensagem"],
        next_step=row["next_step"],
    )
    return Pending(id=row["id"], sink=row["sink"], alert=alert, tries=row["tries"])
