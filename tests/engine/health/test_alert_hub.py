"""The alert hub, the loop that sends alerts, on both databases: one process alerts at a time, and every decision is
stored.
"""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.engine.batuta import Batuta
from batuta.health.aggregator import DATABASE_DOWN
from batuta.health.alert_hub import CALM, EVERY, HUB_LEASE, MOST_TRIES, SETTLING, AlertHub
from batuta.health.alerts import Alert, AlertKind, AlertPolicy, NewIncident
from batuta.health.finding import QUEUES, Check, Finding, Report, Severity
from batuta.kernel.errors import StoreError, StoreUnavailable
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.retention import Pruner
from batuta.testing import FakeClock
from batuta.texts import Texts
from batuta.texts.findings import FindingTexts

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


class RecordingSink:
    """An alert destination that records each alert, or fails if the test requests it."""

    def __init__(self, name: str = "post") -> None:
        self.name = name
        self.alerts: list[Alert] = []
        self.is_broken = False
        self.tries = 0

    async def send(self, alert: Alert) -> None:
        self.tries += 1
        if self.is_broken:
            raise ConnectionError("http://secret.example/5511900000001")
        self.alerts.append(alert)

    @property
    def sent(self) -> list[tuple[AlertKind, str]]:
        return [(alert.kind, alert.cause) for alert in self.alerts]


class HubSetup:
    """A health check whose findings the test sets, and any number of alert hubs."""

    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        self.findings: list[Finding] = []
        self.checks_run = 0
        self.sink = RecordingSink()
        work.health.add(Check(name="patient", section=QUEUES, ask=self._ask))

    async def _ask(self) -> Report:
        self.checks_run += 1
        return Report(findings=tuple(self.findings))

    def hub(self, owner: str = "a", *more: RecordingSink) -> AlertHub:
        work = self.work
        made = AlertHub(
            owner, work.health, work.observability.alerts, lambda: [self.sink, *more], AlertPolicy(zone=work.zone),
            FindingTexts(Texts("en")), self.clock, work.events, work.now,
        )  # fmt: skip
        made._quiet_until = 0.0  # skip the period after start-up without alerts
        return made

    async def rows(self, text: str = "SELECT * FROM alertas_enviados ORDER BY created_at, id") -> list[dict[str, Any]]:
        query = in_dialect(query_of("rows", text, writes=False), self.work.database.dialect)
        return [dict(row) for row in await self.work.database.all(query)]


def make_finding(cause: str = "a", severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding(severity=severity, source="test", cause=cause, says="part_down", facts={"part": "gateway"})


@pytest.fixture
async def setup(database_url: str, clock: FakeClock) -> AsyncIterator[HubSetup]:
    work = Batuta(database_url, clock=clock)
    async with work:
        yield HubSetup(work, clock)


async def test_alert_is_sent_once_and_its_row_has_the_outcome(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    hub = setup.hub()
    for _ in range(3):
        await hub.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]
    (row,) = await setup.rows()
    assert (row["tipo"], row["severidade"], row["sink"], row["outcome"], row["kind"]) == (
        "a", "critical", "post", "sent", "alert",
    )  # fmt: skip
    assert row["mensagem"] == "gateway does not answer"
    assert row["sent_at"] == setup.clock.now()
    assert row["resolved_at"] is None


async def test_hub_sends_recovery_and_resolves_rows(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    hub = setup.hub()
    await hub.tick()
    setup.findings = []
    setup.clock.step(5 * MINUTE)
    await hub.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a"), (AlertKind.RECOVERY, "a")]
    assert setup.sink.alerts[1].message == "resolved: gateway does not answer (lasted 5 min)"
    assert [row["resolved_at"] for row in await setup.rows()] == [setup.clock.now()] * 2


async def test_only_one_of_many_hubs_sends_alerts(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    hubs = [setup.hub(owner) for owner in "abcd"]
    for _ in range(3):
        for hub in hubs:
            await hub.tick()
        setup.clock.step(10 * SECOND)
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]


async def test_standby_hub_runs_no_checks(setup: HubSetup) -> None:
    speaks, silent = setup.hub("a"), setup.hub("b")
    await speaks.tick()
    for _ in range(3):
        await silent.tick()
    assert setup.checks_run == 1


async def test_hub_checks_every_half_minute_and_at_every_tick_during_an_alert(setup: HubSetup) -> None:
    hub = setup.hub()
    for _ in range(9):
        await hub.tick()
        await setup.clock.advance(EVERY)
    assert setup.checks_run == 3
    setup.findings = [make_finding()]
    for _ in range(3):
        await hub.tick()
        await setup.clock.advance(EVERY)
    assert setup.checks_run == 6


async def test_check_that_finds_nothing_opens_no_transaction(setup: HubSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, opened = setup.hub(), list[str]()
    await hub.tick()  # the first check stores the health
    plain = setup.work.database.inner.transaction

    def recorded() -> Any:
        opened.append("transaction")
        return plain()

    monkeypatch.setattr(setup.work.database.inner, "transaction", recorded)
    for _ in range(9):
        await setup.clock.advance(EVERY)
        await hub.tick()
    assert (opened, setup.checks_run) == ([], 4)
    setup.findings = [make_finding()]
    for _ in range(3):
        await setup.clock.advance(EVERY)
        await hub.tick()
    assert opened
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]


async def test_standby_hub_takes_over_when_the_lease_of_the_active_hub_expires(setup: HubSetup) -> None:
    first, second = setup.hub("a"), setup.hub("b")
    await first.tick()
    setup.findings = [make_finding()]
    setup.clock.step(HUB_LEASE - SECOND)
    await second.tick()
    assert setup.sink.sent == []
    setup.clock.step(SECOND)
    await second.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]
    await first.tick()  # the first hub was only suspended, not dead
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]


async def test_hub_retries_an_unavailable_sink_and_still_sends_to_the_others(setup: HubSetup) -> None:
    other = RecordingSink("other")
    hub = setup.hub("a", other)
    setup.sink.is_broken = True
    setup.findings = [make_finding()]
    await hub.tick()
    assert other.sent == [(AlertKind.ALERT, "a")]
    assert (await setup.rows("SELECT outcome, tries FROM alertas_enviados WHERE sink = 'post'")) == [
        {"outcome": "pending", "tries": 1}
    ]
    await hub.tick()
    assert setup.sink.tries == 1  # before the retry is due
    setup.sink.is_broken = False
    setup.clock.step(31 * SECOND)
    await hub.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]
    assert other.sent == [(AlertKind.ALERT, "a")]


async def test_hub_gives_up_an_alert_that_no_sink_accepts(setup: HubSetup) -> None:
    hub = setup.hub()
    setup.sink.is_broken = True
    setup.findings = [make_finding()]
    await hub.tick()
    setup.findings = []
    for _ in range(MOST_TRIES + 2):
        setup.clock.step(2 * HOUR)
        await hub.tick()
    outcomes = {row["outcome"] for row in await setup.rows("SELECT outcome FROM alertas_enviados WHERE kind = 'alert'")}
    assert outcomes == {"failed"}


async def test_hub_sends_alerts_that_a_dead_hub_decided_but_did_not_send(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    setup.sink.is_broken = True
    await setup.hub("a").tick()  # then the hub dies
    setup.sink.is_broken = False
    setup.clock.step(HUB_LEASE + SECOND)
    await setup.hub("b").tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]


async def test_hub_sends_nothing_just_after_start_up(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    hub = setup.hub()
    hub._quiet_until = setup.clock.monotonic() + SETTLING.total_seconds()
    await hub.tick()
    assert setup.sink.sent == []
    await setup.clock.advance(SETTLING)
    await hub.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, "a")]


async def test_active_hub_alerts_once_about_a_lost_database_and_stores_it_later(
    setup: HubSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaks, silent = setup.hub("a"), setup.hub("b")
    await speaks.tick()
    await silent.tick()
    with monkeypatch.context() as patched:
        for way in ("one", "transaction"):
            patched.setattr(setup.work.database, way, _unavailable())
        setup.findings = [make_finding(DATABASE_DOWN)]
        for hub in (speaks, silent, speaks):
            with pytest.raises(StoreError):
                await hub.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, DATABASE_DOWN)]
    setup.findings = []
    setup.clock.step(MINUTE)
    await speaks.tick()
    assert setup.sink.sent == [(AlertKind.ALERT, DATABASE_DOWN), (AlertKind.RECOVERY, DATABASE_DOWN)]
    assert [(row["kind"], row["outcome"]) for row in await setup.rows()] == [("alert", "sent"), ("recovery", "sent")]


def _unavailable() -> Callable[..., Any]:
    def refuse(*arguments: object, **values: object) -> Any:
        raise StoreUnavailable(where="there", why="away")

    return refuse


async def test_hub_opens_and_closes_an_incident_with_its_causes(setup: HubSetup) -> None:
    hub, incidents = setup.hub(), setup.work.observability.incidents
    await hub.tick()
    await setup.clock.advance(CALM)
    start = setup.clock.now()
    setup.findings = [make_finding("a"), make_finding("b", Severity.WARNING)]
    await hub.tick()
    setup.findings = [make_finding("a"), make_finding("c")]
    setup.clock.step(10 * MINUTE)
    await hub.tick()
    setup.findings = [make_finding("b", Severity.WARNING)]
    setup.clock.step(5 * MINUTE)
    await hub.tick()
    (incident,) = await incidents.list_between(start, setup.clock.now())
    assert (incident.from_status, incident.to_status, incident.from_score, incident.to_score) == (
        "healthy", "critical", 100, 39,
    )  # fmt: skip
    assert incident.details["causes"] == ["a", "b", "c"]
    assert (incident.started_at, incident.resolved_at) == (start, setup.clock.now())
    assert incident.duration_seconds == 900


async def test_two_hubs_open_one_incident(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    for owner in "ab":
        await setup.hub(owner).tick()
        setup.clock.step(HUB_LEASE + SECOND)
    assert len(await setup.work.observability.incidents.list_between(setup.clock.now() - HOUR, setup.clock.now())) == 1


async def test_hub_does_not_close_an_incident_opened_by_an_operator(setup: HubSetup) -> None:
    incidents, now = setup.work.observability.incidents, setup.clock.now()
    opened, is_new = await incidents.write(
        NewIncident(from_status="healthy", to_status="critical", details={"what": "mudança"}), now=now
    )
    again, is_second = await incidents.write(
        NewIncident(from_status="healthy", to_status="critical", details={}), now=now
    )
    assert (is_new, is_second, again.id) == (True, False, opened.id)
    await setup.hub().tick()
    setup.clock.step(HOUR)
    await setup.hub().tick()
    assert (await incidents.open_one("manual")) is not None
    closed, _ = await incidents.write(
        NewIncident(from_status="critical", to_status="healthy", details={}), now=setup.clock.now()
    )
    assert (closed.id, closed.duration_seconds) == (opened.id, 3600)


async def test_pruner_deletes_old_alert_rows(setup: HubSetup) -> None:
    setup.findings = [make_finding()]
    await setup.hub().tick()
    setup.findings = []
    setup.clock.step(timedelta(days=91))
    await setup.hub("b").tick()
    await Pruner(setup.work.retentions()).tick()
    assert [row["kind"] for row in await setup.rows()] == ["recovery"]
