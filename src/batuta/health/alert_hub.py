"""The alert hub assesses health, decides about alerts while it holds a lease, and sends them.

Every role runs a hub, but only the holder of the lease assesses health and sends alerts. So two processes never send
the same alert. If the lease holder dies, another role gets the lease within half a minute and reports the death. The
hub assesses health every half minute while health is good, and at every tick otherwise. It stores a decision before it
sends the alert, so that a failed delivery is retried and another process can continue after a crash. While the database
is down, the last holder sends one alert about the database and stores it later.

The dead man's switch pings an outside service while the dispatcher works normally. If the pings stop, that service
raises an alarm.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from typing import Protocol

from batuta.health.aggregator import DATABASE_DOWN, HealthAggregator
from batuta.health.alerts import (
    Alert,
    AlertChanges,
    AlertedCause,
    AlertKind,
    AlertPolicy,
    AlertTexts,
    Incident,
    IncidentChange,
    LastSeen,
    change_incident,
    decide_alerts,
)
from batuta.health.finding import Assessment, assess
from batuta.health.workers import DISPATCHER
from batuta.kernel.calls.usercode import Returned, call_with_deadline, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreError
from batuta.kernel.events import AlertFailed, AlertRaised, AlertSent, Events, PingFailed
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import exponential
from batuta.supervise.loop import Idle, LoopPolicy, Pace, Wakeup
from batuta.supervise.running import LoopState

EVERY = timedelta(seconds=10)
HUB_LEASE = timedelta(seconds=30)
CALM = timedelta(seconds=30)
HUB_POLICY = LoopPolicy(
    every=EVERY, stuck_after=timedelta(minutes=2), max_failures=1_000, backoff_cap=EVERY, finishes_tick=True
)
# After a start no alerts are sent for this long, so that other processes can start and overdue jobs can run.
SETTLING = timedelta(seconds=45)
SENDING = timedelta(seconds=5)
SEND_BATCH = 20
FIRST_RETRY, LONGEST_RETRY = timedelta(seconds=30), timedelta(hours=1)
MOST_TRIES = 12


class Sink(Protocol):
    @property
    def name(self) -> str: ...
    async def send(self, alert: Alert) -> None:
        """Send the alert. Raises an error if the alert was not delivered."""
        ...


@dataclass(frozen=True, slots=True)
class LogSink:
    """Sink that writes alerts to the log. Every application has this sink."""

    events: Events
    name: str = "log"

    async def send(self, alert: Alert) -> None:
        self.events.emit(AlertRaised(alert.kind.value, alert.cause, alert.severity.value, alert.message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    id: str
    sink: str
    alert: Alert
    tries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    """The stored state on which the next alert decisions are based. ``now`` is the current time of the clock that the
    application uses: the database's clock or its own.
    """

    now: datetime
    alerted: Mapping[str, AlertedCause]
    seen: LastSeen | None
    incident: Incident | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstoredAlert:
    """An alert that was sent while the database was down. ``sinks`` lists the names of the sinks that accepted it."""

    alerted: AlertedCause
    alert: Alert
    sinks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    said: AlertChanges
    incident: IncidentChange
    seen: LastSeen

    def changes(self, before: Before) -> bool:
        """Return whether the decision must be stored."""
        return self.seen != before.seen or self.said != AlertChanges() or self.incident != IncidentChange()


class AlertStore(Protocol):
    async def lead(self, owner: str, lease: timedelta, *, now: datetime | None) -> bool:
        """Take or renew the hub's lease. Return False if another process holds it."""
        ...

    async def decide(
        self,
        owner: str,
        lease: timedelta,
        sinks: Sequence[str],
        decide: Callable[[Before], Decision],
        *,
        now: datetime | None,
    ) -> Decision | None:
        """Decide which alerts to send and store the decision, in one transaction and only while holding the lease.
        Return None if another process holds the lease.
        """
        ...

    async def remember(self, said: Sequence[UnstoredAlert]) -> None:
        """Store alerts that were sent while the database was down, so that the next decision includes them."""
        ...

    async def pending(self, *, limit: int, now: datetime | None) -> Sequence[Pending]: ...
    async def record_delivery(self, id: str, *, now: datetime | None) -> None: ...
    async def record_failure(self, id: str, again_in: timedelta | None, *, now: datetime | None) -> None:
        """Record a failed delivery. ``again_in`` is the wait before the retry; None means that the hub gives up."""
        ...


@dataclass(eq=False)
class AlertHub:
    name = "alerts"

    owner: str
    aggregator: HealthAggregator
    store: AlertStore
    make_sinks: Callable[[], Sequence[Sink]]
    policy: AlertPolicy
    texts: AlertTexts
    clock: Clock
    events: Events
    now: Callable[[], datetime | None]
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    def __post_init__(self) -> None:
        self._sinks: dict[str, Sink] | None = None
        self._quiet_until = self.clock.monotonic() + SETTLING.total_seconds()
        self._look_at = 0.0
        self._decided_last = False
        self._unstored: list[UnstoredAlert] = []

    async def tick(self) -> Pace:
        if (left := self._quiet_until - self.clock.monotonic()) > 0:
            return Idle(self.clock.now() + timedelta(seconds=left))
        try:
            await self._remember()
            is_due = self.clock.monotonic() >= self._look_at
            # A decision renews the lease too, so the last holder needs no separate statement for it.
            if not (self._decided_last and is_due):
                self._decided_last = await self.store.lead(self.owner, HUB_LEASE, now=self.now())
            if self._decided_last and is_due:
                await self._look()
        except StoreError:
            self._look_at = 0.0
            if self._decided_last:
                await self._alert_without_store(await self.aggregator.look(fresh=True))
            raise
        return Idle()

    async def _look(self) -> None:
        assessment = await self.aggregator.look(fresh=True)
        decision = await self.store.decide(
            self.owner,
            HUB_LEASE,
            list(self._all_sinks()),
            lambda before: self._decide(assessment, before),
            now=self.now(),
        )
        self._decided_last = decision is not None
        if decision is not None:
            sent = await self._deliver()
            is_calm = not (assessment.findings or decision.said.alerted or sent)
            self._look_at = self.clock.monotonic() + (CALM.total_seconds() if is_calm else 0)

    def _decide(self, assessment: Assessment, before: Before) -> Decision:
        return Decision(
            said=decide_alerts(assessment, before.alerted, self.policy, self.texts, before.now),
            incident=change_incident(assessment, before.seen, before.incident),
            seen=LastSeen(status=assessment.grade.value, score=assessment.score),
        )

    async def _remember(self) -> None:
        if self._unstored:
            await self.store.remember(self._unstored)
            self._unstored = []

    async def _deliver(self) -> int:
        pending = await self.store.pending(limit=SEND_BATCH, now=self.now())
        await asyncio.gather(*(self._deliver_one(each) for each in pending))
        return len(pending)

    async def _deliver_one(self, pending: Pending) -> None:
        sink = self._all_sinks().get(pending.sink)
        if sink is not None and await self._send(sink, pending.alert, pending.tries + 1):
            await self.store.record_delivery(pending.id, now=self.now())
            return
        is_over = sink is None or pending.tries + 1 >= MOST_TRIES
        again = None if is_over else exponential(pending.tries + 1, FIRST_RETRY, LONGEST_RETRY)
        await self.store.record_failure(pending.id, again, now=self.now())

    async def _send(self, sink: Sink, alert: Alert, tries: int) -> bool:
        deadline = self.clock.now() + SENDING
        outcome = await call_with_deadline(lambda: sink.send(alert), deadline, self.clock, f"the sink {sink.name}")
        if isinstance(outcome, Returned):
            self.events.emit(AlertSent(alert.kind.value, alert.cause, alert.severity.value, sink.name))
            return True
        error = outcome.error if isinstance(outcome.error, str) else name_of(outcome.error)
        self.events.emit(AlertFailed(alert.cause, sink.name, tries, error))
        return False

    async def _alert_without_store(self, assessment: Assessment) -> None:
        """Send one alert about the unavailable database. The outage explains all other findings, so they cause no
        alerts.
        """
        now = self.clock.now()
        root = tuple(finding for finding in assessment.findings if finding.cause == DATABASE_DOWN)
        known = {said.alerted.cause: said.alerted for said in self._unstored}
        said = decide_alerts(replace(assess([], now), findings=root), known, self.policy, self.texts, now)
        for alerted, alert in zip(said.alerted, said.alerts, strict=True):
            if alert.kind is AlertKind.ALERT:
                sinks = list(self._all_sinks().values())
                took = await asyncio.gather(*(self._send(sink, alert, 1) for sink in sinks))
                names = tuple(sink.name for sink, is_there in zip(sinks, took, strict=True) if is_there)
                self._unstored.append(UnstoredAlert(alerted=alerted, alert=alert, sinks=names))

    def _all_sinks(self) -> dict[str, Sink]:
        if self._sinks is None:
            self._sinks = {sink.name: sink for sink in self.make_sinks()}
        return self._sinks


PING_EVERY = timedelta(minutes=1)
PINGING = LoopPolicy(every=PING_EVERY, stuck_after=timedelta(minutes=2), max_failures=1_000)
FRESH = timedelta(seconds=30)  # maximum time since the dispatcher's last tick
PING_TIMEOUT = timedelta(seconds=10)


@dataclass(eq=False)
class DeadMansSwitch:
    name = "deadman"

    ping: Callable[[], Awaitable[None]]
    running: Callable[[], Collection[LoopState]]
    clock: Clock
    events: Events
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    async def tick(self) -> Pace:
        if not self._dispatcher_works():
            return Idle(self.clock.now() + timedelta(seconds=1))  # the dispatcher makes no progress, so send no ping
        outcome = await call_with_deadline(
            self.ping, self.clock.now() + PING_TIMEOUT, self.clock, "the dead man's switch"
        )
        if not isinstance(outcome, Returned):
            self.events.emit(PingFailed(outcome.error if isinstance(outcome.error, str) else name_of(outcome.error)))
        return Idle()

    def _dispatcher_works(self) -> bool:
        worked = [each.worked_at for each in self.running() if each.loop.name == DISPATCHER]
        return any(at is not None and self.clock.monotonic() - at <= FRESH.total_seconds() for at in worked)
