"""Incidents: health became critical, and when it was so no more. They open and close by themselves; people may write their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from batuta.health.finding import Assessment, Grade

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
    """What becomes of the incident that is open by itself, or of none."""

    opens: NewIncident | None = None
    grows: tuple[str, Mapping[str, Any]] | None = None  # its id, and its details from now on
    closes: str | None = None


def change_incident(assessment: Assessment, before: LastSeen | None, is_open: Incident | None) -> IncidentChange:
    causes = [finding.cause for finding in assessment.findings if finding.cause not in assessment.silenced]
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
                details={"causes": causes},
            )
        )
    known = list(is_open.details.get("causes", []))
    if new := [cause for cause in causes if cause not in known]:
        return IncidentChange(grows=(is_open.id, {**is_open.details, "causes": [*known, *new]}))
    return IncidentChange()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentStats:
    since: datetime
    until: datetime
    total: int
    open: int
    by_severity: Mapping[str, int]
    mttr_seconds: int | None  # None: none was resolved
    uptime_percent: float


def stats(incidents: Sequence[Incident], since: datetime, until: datetime) -> IncidentStats:
    """``incidents``: all that touch the span. Down is the time in which at least one critical one was open."""
    resolved = [each.duration_seconds for each in incidents if each.duration_seconds is not None and each.resolved_at]
    severities = sorted({each.to_status for each in incidents})
    down = _covered([each for each in incidents if each.to_status == Grade.CRITICAL], since, until)
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


def _covered(incidents: Sequence[Incident], since: datetime, until: datetime) -> timedelta:
    """Time that overlaps is counted once."""
    total, reached = timedelta(0), since
    for each in sorted(incidents, key=lambda incident: incident.started_at):
        begins, ends = max(each.started_at, reached), min(each.resolved_at or until, until)
        if ends > begins:
            total += ends - begins
            reached = ends
    return total
