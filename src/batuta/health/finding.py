"""A finding is a problem with its severity, cause and start. Each check belongs to one section of the health score. It
returns findings, and the number of points that the section loses because of them.

A finding has a text key (``says``) and the facts for its text. Each language has two texts per key:
``finding.<says>.message`` is the message and ``finding.<says>.next`` is the next step. If ``next`` names commands,
``finding.<says>.panel`` may give the next step for a reader of the dashboard.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from batuta.kernel.values import dataclass

CHECK_TIMEOUT = timedelta(seconds=2)
MESSAGES: Final = "finding."  # prefix of the text keys of findings


class Severity(StrEnum):
    """Severities of a finding, worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the health score. ``shown`` is the name that readers see, if that differs from ``name``."""

    name: str
    weight: int
    shown: str | None = None

    @property
    def label(self) -> str:
        return self.shown or self.name


CONNECTIVITY: Final = "connectivity"
QUEUES: Final = "queues"
CIRCUITS: Final = "circuits"
JOBS_AND_WORKERS: Final = "jobs_and_workers"
WHOLE: Final = 100
SECTIONS: Final = (
    Section(CONNECTIVITY, 20),
    Section(QUEUES, 30),
    Section(CIRCUITS, 15),
    Section(JOBS_AND_WORKERS, 35),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem with its severity, cause, facts and next step."""

    severity: Severity
    source: str
    cause: str  # stays the same while the problem lasts; each cause has one alert
    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    value: float | None = None
    threshold: float | None = None
    since: datetime | None = None
    # causes that explain this finding; while one of them exists, this finding causes no alert
    because: tuple[str, ...] = ()

    @property
    def message_key(self) -> str:
        """The key of the text that describes the problem."""
        return f"{MESSAGES}{self.says}.message"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The findings of a check. ``lost`` is the number of points that the check's section loses because of them."""

    findings: tuple[Finding, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A health check of one section. If calling ``ask`` fails or takes too long, the section gets no points, and a
    finding reports the failure.
    """

    name: str
    section: str
    ask: Callable[[], Awaitable[Report]]
    timeout: timedelta = CHECK_TIMEOUT


def merge_reports(reports: Iterable[Report]) -> Report:
    """Return one report with the findings and lost points of all reports."""
    each = list(reports)
    return Report(
        findings=tuple(finding for report in each for finding in report.findings),
        lost=sum(report.lost for report in each),
    )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the worst finding for each cause, worst first. A finding comes before the findings that it explains."""
    by_cause: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda each: each.severity.rank):
        by_cause.setdefault(finding.cause, finding)
    explained = find_silenced(by_cause.values())
    return tuple(sorted(by_cause.values(), key=lambda each: (each.severity.rank, each.cause in explained)))


def find_silenced(findings: Iterable[Finding]) -> dict[str, str]:
    """Map each cause that another finding explains to its root cause. Alerts are sent only for the root cause. A
    finding never explains a more severe finding.
    """
    found = {finding.cause: finding for finding in findings}
    roots = {cause: _root(found, cause, ()) for cause in found}
    return {cause: root for cause, root in roots.items() if root != cause}


def _root(found: Mapping[str, Finding], cause: str, passed: tuple[str, ...]) -> str:
    """Return the last cause in the chain of explanations. If the explanations form a cycle, the alphabetically first
    cause is the root, so that one alert is still sent.
    """
    for other in found[cause].because:
        if other in passed:
            return cause if cause == min(*passed, cause) else other
        if other in found and other != cause and found[other].severity.rank <= found[cause].severity.rank:
            return _root(found, other, (*passed, cause))
    return cause


# The highest possible score while a critical finding exists.
CEILING_WHEN_CRITICAL: Final = 39


class Grade(StrEnum):
    """Grades of the health score, best first."""

    HEALTHY = "healthy"
    ATTENTION = "attention"
    DEGRADED = "degraded"
    CRITICAL = "critical"

    @property
    def colour(self) -> str:
        return _COLOURS[self]


_COLOURS = {
    Grade.HEALTHY: "green",
    Grade.ATTENTION: "yellow",
    Grade.DEGRADED: "orange",
    Grade.CRITICAL: "red",
}
THRESHOLDS: Final[Mapping[Grade, int]] = {
    Grade.HEALTHY: 80,
    Grade.ATTENTION: 60,
    Grade.DEGRADED: 40,
    Grade.CRITICAL: 0,
}


# The smallest loss of points after which the grade is worse than healthy.
BELOW_HEALTHY: Final = WHOLE - THRESHOLDS[Grade.HEALTHY] + 1


@dataclass(frozen=True, slots=True)
class SectionScore:
    points: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    at: datetime
    findings: tuple[Finding, ...]  # worst finding first, one finding per cause
    sections: Mapping[str, SectionScore]  # scores by the section's label, in the application's order
    score: int

    @property
    def grade(self) -> Grade:
        return grade(self.score)

    @property
    def is_critical(self) -> bool:
        return self.grade is Grade.CRITICAL

    @property
    def worst(self) -> Severity | None:
        return self.findings[0].severity if self.findings else None

    @property
    def silenced(self) -> Mapping[str, str]:
        """The causes that another cause explains, each mapped to its root cause."""
        return find_silenced(self.findings)


def grade(score: int) -> Grade:
    return next(each for each, floor in THRESHOLDS.items() if score >= floor)


def assess(reports: Iterable[tuple[str, Report]], at: datetime, sections: Sequence[Section] = SECTIONS) -> Assessment:
    """Compute the health score: the sum of what each section has left (its weight minus its lost points), limited by
    the severity of the findings. A section without a report keeps all its points.
    """
    each = list(reports)
    labels = {section.name: section.label for section in sections}
    findings = worst_first(
        replace(finding, source=labels.get(finding.source, finding.source))
        for _, report in each
        for finding in report.findings
    )
    scores = {section.label: SectionScore(_points(section, each), section.weight) for section in sections}
    total = sum(score.points for score in scores.values())
    return Assessment(
        at=at,
        findings=findings,
        sections=scores,
        score=min([total, *(CEILINGS[finding.severity] for finding in findings)]),
    )


# Highest possible score by severity: an error rules out the grade healthy, and a critical finding makes the grade
# critical.
CEILINGS: Final[Mapping[Severity, int]] = {
    Severity.CRITICAL: CEILING_WHEN_CRITICAL,
    Severity.ERROR: WHOLE - BELOW_HEALTHY,
    Severity.WARNING: WHOLE,
    Severity.INFO: WHOLE,
}


def _points(section: Section, reports: Iterable[tuple[str, Report]]) -> int:
    lost = sum(report.lost for name, report in reports if name == section.name)
    return max(0, section.weight - lost)
