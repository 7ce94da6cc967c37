"""What is said about findings, and when: each cause once, again after its cool-down, at once if it gets worse, and when it is over.

Only what explains the rest speaks. What is not critical keeps to people's hours; it is not lost, it waits. A cause that comes and
goes within its cool-down is told once, and its end is told once.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import Protocol
from zoneinfo import ZoneInfo

from batuta.health.finding import Assessment, Finding, Severity
from batuta.schedule.window import Window

COOL_DOWN: Mapping[Severity, timedelta] = {
    Severity.CRITICAL: timedelta(minutes=15),
    Severity.ERROR: timedelta(hours=1),
    Severity.WARNING: timedelta(hours=4),
}
WORKING_HOURS = Window(opens=time(8), lasts=timedelta(hours=12))
# What was said about a cause that is gone is forgotten after this.
FORGOTTEN = timedelta(days=1)


class Kind(StrEnum):
    ALERT = "alert"
    RECOVERY = "recovery"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    kind: Kind
    cause: str
    severity: Severity
    message: str
    next_step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertedCause:
    """What was last said about a cause. ``gone_at``: its end was told too."""

    cause: str
    severity: Severity
    at: datetime
    since: datetime
    message: str
    gone_at: datetime | None = None


class Wording(Protocol):
    """Findings in the operators' language."""

    def message(self, finding: Finding) -> str: ...
    def next_step(self, finding: Finding) -> str: ...
    def recovered(self, alerted: AlertedCause, now: datetime) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertPolicy:
    zone: ZoneInfo
    cool_down: Mapping[Severity, timedelta] = field(default_factory=lambda: COOL_DOWN)
    hours: Window = WORKING_HOURS  # of what is not critical

    def may_speak(self, severity: Severity, now: datetime) -> bool:
        return severity is Severity.CRITICAL or self.hours.is_open(now, self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``alerted`` are the causes whose record changes; ``forgotten`` those whose record goes."""

    alerts: tuple[Alert, ...] = ()
    alerted: tuple[AlertedCause, ...] = ()
    forgotten: tuple[str, ...] = ()


def speak(
    assessment: Assessment, known: Mapping[str, AlertedCause], policy: AlertPolicy, wording: Wording, now: datetime
) -> Said:
    present = {finding.cause: finding for finding in assessment.findings if finding.severity is not Severity.INFO}
    silenced = assessment.silenced
    new = [
        (
            alerted,
            Alert(
                kind=Kind.ALERT, cause=alerted.cause, severity=alerted.severity, message=alerted.message, next_step=step
            ),
        )
        for alerted, step in _new(present, silenced, known, policy, wording, now)
    ]
    gone = [
        (replace(alerted, gone_at=now), _recovery(alerted, wording, now))
        for cause, alerted in known.items()
        if cause not in present and alerted.gone_at is None and policy.may_speak(alerted.severity, now)
    ]
    return Said(
        alerts=tuple(alert for _, alert in (*new, *gone)),
        alerted=tuple(alerted for alerted, _ in (*new, *gone)),
        forgotten=tuple(
            cause
            for cause, alerted in known.items()
            if cause not in present and alerted.gone_at is not None and now - alerted.gone_at > FORGOTTEN
        ),
    )


def _new(
    present: Mapping[str, Finding],
    silenced: Mapping[str, str],
    known: Mapping[str, AlertedCause],
    policy: AlertPolicy,
    wording: Wording,
    now: datetime,
) -> Iterator[tuple[AlertedCause, str]]:
    for cause, finding in present.items():
        before = known.get(cause)
        if cause in silenced or not _is_due(finding, before, policy, now):
            continue
        if policy.may_speak(finding.severity, now):
            since = finding.since or (before.since if before is not None and before.gone_at is None else now)
            message = wording.message(finding)
            alerted = AlertedCause(cause=cause, severity=finding.severity, at=now, since=since, message=message)
            yield alerted, wording.next_step(finding)


def _is_due(finding: Finding, before: AlertedCause | None, policy: AlertPolicy, now: datetime) -> bool:
    if before is None:
        return True
    is_worse = finding.severity.rank < before.severity.rank
    return is_worse or now - before.at >= policy.cool_down[finding.severity]


def _recovery(alerted: AlertedCause, wording: Wording, now: datetime) -> Alert:
    return Alert(
        kind=Kind.RECOVERY, cause=alerted.cause, severity=alerted.severity, message=wording.recovered(alerted, now)
    )
