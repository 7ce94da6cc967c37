"""Decides which alerts to send. A cause gets one alert when it begins and one when it ends. While the cause lasts, the
first alert is repeated after a cool-down, or immediately if the cause becomes worse.

A finding that another finding explains causes no alert. Alerts below critical wait for working hours. A cause that ends
and returns within its cool-down is announced only once. Incidents record periods of critical health. A change in health
opens or closes an incident, and operators may add incidents.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Any, Protocol
from zoneinfo import ZoneInfo

from batuta.health.finding import Assessment, Finding, Grade, Severity
from batuta.kernel.reasons import encode_facts
from batuta.kernel.values import dataclass
from batuta.schedule.window import Window

COOL_DOWN: Mapping[Severity, timedelta] = {
    Severity.CRITICAL: timedelta(minutes=15),
    Severity.ERROR: timedelta(hours=1),
    Severity.WARNING: timedelta(hours=4),
}
WORKING_HOURS = Window(opens=time(8), lasts=timedelta(hours=12))
# The record of an ended cause is deleted after this time.
FORGOTTEN = timedelta(days=1)


class AlertKind(StrEnum):
    ALERT = "alert"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    kind: AlertKind
    cause: str
    severity: Severity
    message: str
    next_step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertedCause:
    """The last alert about a cause. ``gone_at`` is when the end of the cause was announced."""

    cause: str
    severity: Severity
    at: datetime
    since: datetime
    message: str
    gone_at: datetime | None = None


class AlertTexts(Protocol):
    """Renders findings in the operators' language."""

    def message(self, finding: Finding) -> str: ...
    def next_step(self, finding: Finding) -> str: ...
    def describe_recovery(self, alerted: AlertedCause, now: datetime) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    zone: ZoneInfo
    cool_down: Mapping[Severity, timedelta] = field(default_factory=lambda: COOL_DOWN)
    hours: Window = WORKING_HOURS  # hours in which alerts below critical are sent

    def may_alert(self, severity: Severity, now: datetime) -> bool:
        return severity is Severity.CRITICAL or self.hours.is_open(now, self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertChanges:
    """The result of a decision: alerts to send, and stored causes to change. ``alerted`` lists causes to insert or
    update; ``forgotten`` lists causes to delete.
    """

    alerts: tuple[Alert, ...] = ()
    alerted: tuple[AlertedCause, ...] = ()
    forgotten: tuple[str, ...] = ()


def decide_alerts(
    assessment: Assessment, known: Mapping[str, AlertedCause], policy: AlertPolicy, texts: AlertTexts, now: datetime
) -> AlertChanges:
    present = {finding.cause: finding for finding in assessment.findings if finding.severity is not Severity.INFO}
    silenced = assessment.silenced
    new = [
        (
            alerted,
            Alert(
                kind=AlertKind.ALERT,
                cause=alerted.cause,
                severity=alerted.severity,
                message=alerted.message,
                next_step=step,
            ),
        )
        for alerted, step in _new_alerts(present, silenced, known, policy, texts, now)
    ]
    gone = [
        (replace(alerted, gone_at=now), _recovery(alerted, texts, now))
        for cause, alerted in known.items()
        if cause not in present and alerted.gone_at is None and policy.may_alert(alerted.severity, now)
    ]
    return AlertChanges(
        alerts=tuple(alert for _, alert in (*new, *gone)),
        alerted=tuple(alerted for alerted, _ in (*new, *gone)),
        forgotten=tuple(
            cause
            for cause, alerted in known.items()
            if cause not in present and alerted.gone_at is not None and now - alerted.gone_at > FORGOTTEN
        ),
    )


def _new_alerts(
    present: Mapping[str, Finding],
    silenced: Mapping[str, str],
    known: Mapping[str, AlertedCause],
    policy: AlertPolicy,
    texts: AlertTexts,
    now: datetime,
) -> Iterator[tuple[AlertedCause, str]]:
    for cause, finding in present.items():
        before = known.get(cause)
        if cause in silenced or not _is_due(finding, before, policy, now):
            continue
        if policy.may_alert(finding.severity, now):
            since = finding.since or (before.since if before is not None and before.gone_at is None else now)
            message = texts.message(finding)
            alerted = AlertedCause(cause=cause, severity=finding.severity, at=now, since=since, message=message)
            yield alerted, texts.next_step(finding)


def _is_due(finding: Finding, before: AlertedCause | None, policy: AlertPolicy, now: datetime) -> bool:
    if before is None:
        return True
    is_worse = finding.severity.rank < before.severity.rank
    return is_worse or now - before.at >= policy.cool_down[finding.severity]


def _recovery(alerted: AlertedCause, texts: AlertTexts, now: datetime) -> Alert:
    return Alert(
        kind=AlertKind.RECOVERY,
        cause=alerted.cause,
        severity=alerted.severity,
        message=texts.describe_recovery(alerted, now),
    )


AUTOMATIC = "automatic"
BY_HAND = "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    id: str
    from_status: str
    to_status: str
    from_score: int | None
    to_score: int | None
    trigger_source: str
    details: Mapping[str, Any]
    started_at: datetime
    resolved_at: datetime | None = None
    duration_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIncident:
    from_status: str
    to_status: str
    from_score: int | None = None
    to_score: int | None = None
    trigger_source: str = BY_HAND
    details: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LastSeen:
    status: str
    score: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentChange:
    opens: NewIncident | None = None
    grows: tuple[str, Mapping[str, Any]] | None = None  # id and new details of an incident that is still open
    closes: str | None = None


def change_incident(assessment: Assessment, before: LastSeen | None, is_open: Incident | None) -> IncidentChange:
    found = [finding for finding in assessment.findings if finding.cause not in assessment.silenced]
    if not assessment.is_critical:
        return IncidentChange(closes=is_open.id if is_open else None)
    if is_open is None:
        return IncidentChange(
            opens=NewIncident(
                from_status=before.status if before else Grade.HEALTHY.value,
                to_status=assessment.grade.value,
                from_score=before.score if before else None,
                to_score=assessment.score,
                trigger_source=AUTOMATIC,
                details=_add_causes({}, found),
            )
        )
    known = list(is_open.details.get("causes", []))
    if new := [finding for finding in found if finding.cause not in known]:
        return IncidentChange(grows=(is_open.id, _add_causes(is_open.details, new)))
    return IncidentChange()


def _add_causes(details: Mapping[str, Any], found: Sequence[Finding]) -> dict[str, Any]:
    """Return an incident's details with the causes in ``found`` added. Each cause has the text key and the facts of its
    message, so that readers of every language get a sentence.
    """
    messages = {finding.cause: {"code": finding.message_key, "facts": encode_facts(finding.facts)} for finding in found}
    causes = [*details.get("causes", []), *messages]
    return {**details, "causes": causes, "messages": {**details.get("messages", {}), **messages}}


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStats:
    since: datetime
    until: datetime
    total: int
    open: int
    by_severity: Mapping[str, int]
    mttr_seconds: int | None  # mean time to resolve; None if no incident was resolved
    uptime_percent: float

    def describe(self) -> dict[str, object]:
        return {
            "total": self.total,
            "open": self.open,
            "by_severity": dict(self.by_severity),
            "mttr_seconds": self.mttr_seconds,
            "uptime_percent": self.uptime_percent,
        }


def stats(incidents: Sequence[Incident], since: datetime, until: datetime) -> IncidentStats:
    """Compute statistics of the incidents that overlap the time from ``since`` to ``until``. Downtime is the time
    during which at least one critical incident was open.
    """
    resolved = [each.duration_seconds for each in incidents if each.duration_seconds is not None and each.resolved_at]
    severities = sorted({each.to_status for each in incidents})
    down = _total_time([each for each in incidents if each.to_status == Grade.CRITICAL], since, until)
    whole = max(until - since, timedelta(microseconds=1))
    return IncidentStats(
        since=since,
        until=until,
        total=len(incidents),
        open=sum(each.resolved_at is None for each in incidents),
        by_severity={severity: sum(each.to_status == severity for each in incidents) for severity in severities},
        mttr_seconds=round(sum(resolved) / len(resolved)) if resolved else None,
        uptime_percent=round(100 * (1 - down / whole), 3),
    )


def _total_time(incidents: Sequence[Incident], since: datetime, until: datetime) -> timedelta:
    """Return how much of the time from ``since`` to ``until`` the incidents cover. Time that overlapping incidents
    share is counted once.
    """
    total, reached = timedelta(0), since
    for each in sorted(incidents, key=lambda incident: incident.started_at):
        begins, ends = max(each.started_at, reached), min(each.resolved_at or until, until)
        if ends > begins:
            total += ends - begins
            reached = ends
    return total
