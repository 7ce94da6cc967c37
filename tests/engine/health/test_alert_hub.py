"""The alert hub on both databases: one process alerts at a time, and every decision is stored."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest

from batuta.engine.batuta import Batuta
from batuta.health.aggregator import DATABASE_DOWN
from batuta.health.alerts import Alert, AlertPolicy, Kind, NewIncident
from batuta.health.finding import QUEUES, Check, Finding, Report, Severity
from batuta.health.hub import CALM, EVERY, HUB_LEASE, MOST_TRIES, SETTLING, AlertHub
from batuta.kernel.errors import StoreError, StoreUnavailable
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.pruner import Pruner
from batuta.testing import FakeClock
from batuta.texts import Texts
from batuta.texts.findings import FindingWords

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


class Post:
    """Sink that records each alert, or fails on request."""

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
    def heard(self) -> list[tuple[Kind, str]]:
        return [(alert.kind, alert.cause) for alert in self.alerts]


class Ward:
    """Health check whose findings the test sets, and any number of hubs."""

    def __init__(self, work: Batuta, clock: FakeClock) -> None:
        self.work = work
        self.clock = clock
        self.findings: list[Finding] = []
        self.looks = 0
        self.post = Post()
        work.health.add(Check(name="patient", section=QUEUES, ask=self._ask))

    async def _ask(self) -> Report:
        self.looks += 1
        return Report(findings=tuple(self.findings))

    def hub(self, owner: str = "a", *more: Post) -> AlertHub:
        work = self.work
        made = AlertHub(
            owner, work.health, work.observability.alerts, lambda: [self.post, *more], AlertPolicy(zone=work.zone),
            FindingWords(Texts("en")), self.clock, work.events, work.now,
        )  # fmt: skip
        made._quiet_until = 0.0  # skip the silence after start-up
        return made

    async def rows(self, text: str = "SELECT * FROM alertas_enviados ORDER BY created_at, id") -> list[dict[str, Any]]:
        query = in_dialect(query_of("rows", text, writes=False), self.work.database.dialect)
        return [dict(row) for row in await self.work.database.all(query)]


def ill(cause: str = "a", severity: Severity = Severity.CRITICAL) -> Finding:
    return Finding(severity=severity, source="test", cause=cause, says="part_down", facts={"part": "gateway"})


@pytest.fixture
async def ward(database_url: str, clock: FakeClock) -> AsyncIterator[Ward]:
    work = Batuta(database_url, clock=clock)
    async with work:
        yield Ward(work, clock)


async def test_an_alert_is_sent_once_and_its_row_says_how_it_went(ward: Ward) -> None:
    ward.findings = [ill()]
    hub = ward.hub()
    for _ in range(3):
        await hub.tick()
    assert ward.post.heard == [(Kind.ALERT, "a")]
    (row,) = await ward.rows()
    assert (row["tipo"], row["severidade"], row["sink"], row["outcome"], row["kind"]) == (
        "a", "critical", "post", "sent", "alert",
    )  # fmt: skip
    assert row["mensagem"] == "gateway does not answer"
    assert row["sent_at"] == ward.clock.now()
    assert row["resolved_at"] is None


async def test_hub_sends_recovery_and_resolves_rows(ward: Ward) -> None:
    ward.findings = [ill()]
    hub = ward.hub()
    await hub.tick()
    ward.findings = []
    ward.clock.step(5 * MINUTE)
    await hub.tick()
    assert ward.post.heard == [(Kind.ALERT, "a"), (Kind.RECOVERY, "a")]
    assert ward.post.alerts[1].message == "resolved: gateway does not answer (lasted 5 min)"
    assert [row["resolved_at"] for row in await ward.rows()] == [ward.clock.now()] * 2


async def test_only_one_of_many_hubs_sends_alerts(ward: Ward) -> None:
    ward.findings = [ill()]
    hubs = [ward.hub(owner) for owner in "abcd"]
    for _ in range(3):
        for hub in hubs:
            await hub.tick()
        ward.clock.step(10 * SECOND)
    assert ward.post.heard == [(Kind.ALERT, "a")]


async def test_standby_hub_runs_no_checks(ward: Ward) -> None:
    speaks, silent = ward.hub("a"), ward.hub("b")
    await speaks.tick()
    for _ in range(3):
        await silent.tick()
    assert ward.looks == 1


async def test_hub_checks_every_half_minute_and_at_every_tick_during_an_alert(ward: Ward) -> None:
    hub = ward.hub()
    for _ in range(9):
        await hub.tick()
        await ward.clock.advance(EVERY)
    assert ward.looks == 3
    ward.findings = [ill()]
    for _ in range(3):
        await hub.tick()
        await ward.clock.advance(EVERY)
    assert ward.looks == 6


async def test_standby_hub_takes_over_when_the_lease_of_the_active_hub_expires(ward: Ward) -> None:
    first, second = ward.hub("a"), ward.hub("b")
    await first.tick()
    ward.findings = [ill()]
    ward.clock.step(HUB_LEASE - SECOND)
    await second.tick()
    assert ward.post.heard == []
    ward.clock.step(SECOND)
    await second.tick()
    assert ward.post.heard == [(Kind.ALERT, "a")]
    await first.tick()  # the first hub was only suspended
    assert ward.post.heard == [(Kind.ALERT, "a")]


async def test_hub_retries_an_unavailable_sink_and_still_sends_to_the_others(ward: Ward) -> None:
    other = Post("other")
    hub = ward.hub("a", other)
    ward.post.is_broken = True
    ward.findings = [ill()]
    await hub.tick()
    assert other.heard == [(Kind.ALERT, "a")]
    assert (await ward.rows("SELECT outcome, tries FROM alertas_enviados WHERE sink = 'post'")) == [
        {"outcome": "pending", "tries": 1}
    ]
    await hub.tick()
    assert ward.post.tries == 1  # before the retry is due
    ward.post.is_broken = False
    ward.clock.step(31 * SECOND)
    await hub.tick()
    assert ward.post.heard == [(Kind.ALERT, "a")]
    assert other.heard == [(Kind.ALERT, "a")]


async def test_hub_gives_up_an_alert_that_no_sink_accepts(ward: Ward) -> None:
    hub = ward.hub()
    ward.post.is_broken = True
    ward.findings = [ill()]
    await hub.tick()
    ward.findings = []
    for _ in range(MOST_TRIES + 2):
        ward.clock.step(2 * HOUR)
        await hub.tick()
    outcomes = {row["outcome"] for row in await ward.rows("SELECT outcome FROM alertas_enviados WHERE kind = 'alert'")}
    assert outcomes == {"failed"}


async def test_hub_sends_alerts_that_a_dead_hub_decided_but_did_not_send(ward: Ward) -> None:
    ward.findings = [ill()]
    ward.post.is_broken = True
    await ward.hub("a").tick()  # and the hub dies
    ward.post.is_broken = False
    ward.clock.step(HUB_LEASE + SECOND)
    await ward.hub("b").tick()
    assert ward.post.heard == [(Kind.ALERT, "a")]


async def test_hub_sends_nothing_just_after_start_up(ward: Ward) -> None:
    ward.findings = [ill()]
    hub = ward.hub()
    hub._quiet_until = ward.clock.monotonic() + SETTLING.total_seconds()
    await hub.tick()
    assert ward.post.heard == []
    await ward.clock.advance(SETTLING)
    await hub.tick()
    assert ward.post.heard == [(Kind.ALERT, "a")]


async def test_active_hub_alerts_once_about_a_lost_database_and_stores_it_later(
    ward: Ward, monkeypatch: pytest.MonkeyPatch
) -> None:
    speaks, silent = ward.hub("a"), ward.hub("b")
    await speaks.tick()
    await silent.tick()
    with monkeypatch.context() as patched:
        for way in ("one", "transaction"):
            patched.setattr(ward.work.database, way, _away())
        ward.findings = [ill(DATABASE_DOWN)]
        for hub in (speaks, silent, speaks):
            with pytest.raises(StoreError):
                await hub.tick()
    assert ward.post.heard == [(Kind.ALERT, DATABASE_DOWN)]
    ward.findings = []
    ward.clock.step(MINUTE)
    await speaks.tick()
    assert ward.post.heard == [(Kind.ALERT, DATABASE_DOWN), (Kind.RECOVERY, DATABASE_DOWN)]
    assert [(row["kind"], row["outcome"]) for row in await ward.rows()] == [("alert", "sent"), ("recovery", "sent")]


def _away() -> Callable[..., Any]:
    def refuse(*arguments: object, **values: object) -> Any:
        raise StoreUnavailable(where="there", why="away")

    return refuse


async def test_an_incident_opens_and_closes_by_itself_with_its_causes(ward: Ward) -> None:
    hub, incidents = ward.hub(), ward.work.observability.incidents
    await hub.tick()
    await ward.clock.advance(CALM)
    start = ward.clock.now()
    ward.findings = [ill("a"), ill("b", Severity.WARNING)]
    await hub.tick()
    ward.findings = [ill("a"), ill("c")]
    ward.clock.step(10 * MINUTE)
    await hub.tick()
    ward.findings = [ill("b", Severity.WARNING)]
    ward.clock.step(5 * MINUTE)
    await hub.tick()
    (incident,) = await incidents.list_between(start, ward.clock.now())
    assert (incident.from_status, incident.to_status, incident.from_score, incident.to_score) == (
        "healthy", "critical", 100, 39,
    )  # fmt: skip
    assert incident.details["causes"] == ["a", "b", "c"]
    assert (incident.started_at, incident.resolved_at) == (start, ward.clock.now())
    assert incident.duration_seconds == 900


async def test_two_hubs_open_one_incident(ward: Ward) -> None:
    ward.findings = [ill()]
    for owner in "ab":
        await ward.hub(owner).tick()
        ward.clock.step(HUB_LEASE + SECOND)
    assert len(await ward.work.observability.incidents.list_between(ward.clock.now() - HOUR, ward.clock.now())) == 1


async def test_hub_does_not_close_an_incident_opened_by_an_operator(ward: Ward) -> None:
    incidents, now = ward.work.observability.incidents, ward.clock.now()
    opened, is_new = await incidents.write(
        NewIncident(from_status="healthy", to_status="critical", details={"what": "mudança"}), now=now
    )
    again, is_second = await incidents.write(
        NewIncident(from_status="healthy", to_status="critical", details={}), now=now
    )
    assert (is_new, is_second, again.id) == (True, False, opened.id)
    await ward.hub().tick()
    ward.clock.step(HOUR)
    await ward.hub().tick()
    assert (await incidents.open_one("manual")) is not None
    closed, _ = await incidents.write(
        NewIncident(from_status="critical", to_status="healthy", details={}), now=ward.clock.now()
    )
    assert (closed.id, closed.duration_seconds) == (opened.id, 3600)


async def test_pruner_deletes_old_alert_rows(ward: Ward) -> None:
    ward.findings = [ill()]
    await ward.hub().tick()
    ward.findings = []
    ward.clock.step(timedelta(days=91))
    await ward.hub("b").tick()
    await Pruner(ward.work.retentions()).tick()
    assert [row["kind"] for row in await ward.rows()] == ["recovery"]
