"""The rules that decide which health findings become alerts, and at what time."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from batuta.health.alerts import (
    AlertChanges,
    AlertedCause,
    AlertKind,
    AlertPolicy,
    Incident,
    LastSeen,
    change_incident,
    decide_alerts,
    stats,
)
from batuta.health.finding import QUEUES, Assessment, Finding, Report, Severity, assess

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
POLICY = AlertPolicy(zone=SAO_PAULO)
MONDAY = datetime(2026, 1, 5, 12, tzinfo=SAO_PAULO)
NIGHT = datetime(2026, 1, 5, 3, tzinfo=SAO_PAULO)
SUNDAY = datetime(2026, 1, 4, 12, tzinfo=SAO_PAULO)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


class Plain:
    def message(self, finding: Finding) -> str:
        return finding.cause

    def next_step(self, finding: Finding) -> str:
        return "do"

    def describe_recovery(self, alerted: AlertedCause, now: datetime) -> str:
        return f"over: {alerted.cause}"


def finding(severity: Severity, cause: str = "a", *because: str) -> Finding:
    return Finding(severity=severity, source="test", cause=cause, says="x", because=because)


def seen(*findings: Finding) -> Assessment:
    return assess([(QUEUES, Report(findings=findings, lost=1))], MONDAY)


class AlertMemory:
    """Remembers between two calls which problems an alert has been sent for, as the database does."""

    def __init__(self) -> None:
        self.known: dict[str, AlertedCause] = {}

    def decide(self, now: datetime, *findings: Finding) -> list[tuple[AlertKind, str]]:
        said: AlertChanges = decide_alerts(seen(*findings), self.known, POLICY, Plain(), now)
        self.known |= {alerted.cause: alerted for alerted in said.alerted}
        for cause in said.forgotten:
            del self.known[cause]
        return [(alert.kind, alert.cause) for alert in said.alerts]


ALERT, RECOVERY = (AlertKind.ALERT, "a"), (AlertKind.RECOVERY, "a")


def test_cause_is_alerted_once_and_again_after_its_cool_down() -> None:
    for severity, cool_down in ((Severity.CRITICAL, 15), (Severity.ERROR, 60), (Severity.WARNING, 240)):
        memory, start = AlertMemory(), MONDAY - 3 * HOUR
        assert memory.decide(start, finding(severity)) == [ALERT]
        assert memory.decide(start + cool_down * MINUTE - SECOND, finding(severity)) == []
        assert memory.decide(start + cool_down * MINUTE, finding(severity)) == [ALERT]


def test_worse_severity_is_alerted_at_once() -> None:
    memory = AlertMemory()
    assert memory.decide(MONDAY, finding(Severity.WARNING)) == [ALERT]
    assert memory.decide(MONDAY + SECOND, finding(Severity.CRITICAL)) == [ALERT]
    assert memory.decide(MONDAY + 2 * SECOND, finding(Severity.WARNING)) == []


def test_recovery_is_sent_once() -> None:
    memory = AlertMemory()
    memory.decide(MONDAY, finding(Severity.CRITICAL))
    assert memory.decide(MONDAY + MINUTE) == [RECOVERY]
    assert memory.decide(MONDAY + 2 * MINUTE) == []


def test_flapping_cause_is_alerted_once_per_cool_down() -> None:
    memory = AlertMemory()
    heard = [
        each
        for minute in range(14)
        for each in memory.decide(MONDAY + minute * MINUTE, *([finding(Severity.CRITICAL)] if minute % 2 == 0 else []))
    ]
    assert heard == [ALERT, RECOVERY]
    assert memory.decide(MONDAY + 15 * MINUTE, finding(Severity.CRITICAL)) == [ALERT]
    assert memory.decide(MONDAY + 16 * MINUTE) == [RECOVERY]


def test_only_the_root_cause_alerts_and_explained_causes_send_no_recovery() -> None:
    memory = AlertMemory()
    stale = finding(Severity.CRITICAL, "a", "scheduler")
    assert memory.decide(MONDAY, stale) == [ALERT]
    assert memory.decide(MONDAY + MINUTE, stale, finding(Severity.CRITICAL, "scheduler")) == [
        (AlertKind.ALERT, "scheduler")
    ]
    assert memory.decide(MONDAY + HOUR, stale, finding(Severity.CRITICAL, "scheduler")) == [
        (AlertKind.ALERT, "scheduler")
    ]
    assert memory.decide(MONDAY + HOUR + MINUTE) == [(AlertKind.RECOVERY, "a"), (AlertKind.RECOVERY, "scheduler")]


def test_only_critical_findings_are_alerted_at_night_and_on_sunday() -> None:
    for moment in (NIGHT, SUNDAY):
        assert AlertMemory().decide(moment, finding(Severity.CRITICAL)) == [ALERT]
        assert AlertMemory().decide(moment, finding(Severity.ERROR)) == []
        assert AlertMemory().decide(moment, finding(Severity.WARNING)) == []


def test_finding_of_the_night_is_alerted_in_the_morning_if_it_persists() -> None:
    memory = AlertMemory()
    memory.decide(NIGHT, finding(Severity.ERROR))
    assert memory.decide(NIGHT.replace(hour=7, minute=59), finding(Severity.ERROR)) == []
    assert memory.decide(NIGHT.replace(hour=8), finding(Severity.ERROR)) == [ALERT]
    evening = NIGHT.replace(hour=20)  # the end of the alerting hours is exclusive
    assert memory.decide(evening) == []
    assert memory.decide(evening + 12 * HOUR) == [RECOVERY]


def test_info_finding_is_not_alerted() -> None:
    assert AlertMemory().decide(MONDAY, finding(Severity.INFO)) == []


def test_alerted_cause_is_forgotten_after_a_while() -> None:
    memory = AlertMemory()
    memory.decide(MONDAY, finding(Severity.CRITICAL))
    memory.decide(MONDAY + MINUTE)
    memory.decide(MONDAY + 25 * HOUR)
    assert memory.known == {}


def incident(start: timedelta, lasts: timedelta | None, status: str = "critical") -> Incident:
    at = MONDAY + start
    return Incident(
        id=str(start), from_status="healthy", to_status=status, from_score=100, to_score=39, trigger_source="automatic",
        details={"causes": ["a"]}, started_at=at, resolved_at=None if lasts is None else at + lasts,
        duration_seconds=None if lasts is None else int(lasts.total_seconds()),
    )  # fmt: skip


def test_incident_lasts_while_health_is_critical() -> None:
    bad, good = seen(finding(Severity.CRITICAL)), seen(finding(Severity.ERROR))
    opened = change_incident(bad, LastSeen(status="healthy", score=97), None).opens
    assert opened is not None
    assert (opened.from_status, opened.to_status, opened.from_score, opened.to_score) == ("healthy", "critical", 97, 39)
    assert opened.details == {"causes": ["a"], "messages": {"a": {"code": "finding.x.message", "facts": {}}}}
    open_one = incident(timedelta(0), None)
    assert change_incident(bad, None, open_one) == change_incident(good, None, None)  # the incident is open already
    assert change_incident(good, None, open_one).closes == open_one.id


def test_new_cause_is_added_to_the_open_incident() -> None:
    more = change_incident(
        seen(finding(Severity.CRITICAL), finding(Severity.ERROR, "b")), None, incident(timedelta(0), None)
    )
    assert more.grows is not None
    assert more.grows[1]["causes"] == ["a", "b"]
    assert list(more.grows[1]["messages"]) == ["b"]


def test_overlapping_incidents_count_once_and_an_open_one_counts_until_now() -> None:
    found = [
        incident(timedelta(0), 2 * HOUR),
        incident(HOUR, 2 * HOUR),
        incident(9 * HOUR, None),
        incident(5 * HOUR, timedelta(0), "degraded"),
    ]
    figures = stats(found, MONDAY, MONDAY + 10 * HOUR)
    assert (figures.total, figures.open, figures.by_severity) == (4, 1, {"critical": 3, "degraded": 1})
    assert figures.uptime_percent == 60.0
    assert figures.mttr_seconds == (7200 + 7200 + 0) // 3
    assert stats([], MONDAY, MONDAY + HOUR).uptime_percent == 100.0
