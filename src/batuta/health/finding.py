"""A finding: a problem with its severity, cause and start. A check returns findings and the points that they cost its section.

A finding names its sentence (``says``) and the facts in it; the texts are in the tables of each language:
``finding.<says>.message`` and, for the next step, ``finding.<says>.next``.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

CHECK_TIMEOUT = timedelta(seconds=2)


class Severity(StrEnum):
    """Severities, worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the score. ``shown``: its name in documents and texts, if different."""

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
    cause: str  # the same while the problem lasts; one alert per cause
    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    value: float | None = None
    threshold: float | None = None
    since: datetime | None = None
    because: tuple[str, ...] = ()  # causes that explain this one; while one of them exists, only that one alerts


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Findings of a check. ``lost``: points of the section, before its floor."""

    findings: tuple[Finding, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A question about one section. If ``ask`` fails or is late, the section has no points and a finding says so."""

    name: str
    section: str
    ask: Callable[[], Awaitable[Report]]
    timeout: timedelta = CHECK_TIMEOUT


def merge_reports(reports: Iterable[Report]) -> Report:
    """One report with the findings and lost points of several."""
    each = list(reports)
    return Report(
        findings=tuple(finding for report in each for finding in report.findings),
        lost=sum(report.lost for report in each),
    )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The worst finding of each cause, worst first; a finding that explains another one stands before it."""
    by_cause: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda each: each.severity.rank):
        by_cause.setdefault(finding.cause, finding)
    explained = find_silenced(by_cause.values())
    return tuple(sorted(by_cause.values(), key=lambda each: (each.severity.rank, each.cause in explained)))


def find_silenced(findings: Iterable[Finding]) -> dict[str, str]:
    """Map each cause that another one explains to its root. A finding never silences a more severe one."""
    found = {finding.cause: finding for finding in findings}
    roots = {cause: _root(found, cause, ()) for cause in found}
    return {cause: root for cause, root in roots.items() if root != cause}


def _root(found: Mapping[str, Finding], cause: str, passed: tuple[str, ...]) -> str:
    """The last cause of the chain of explanations. In a cycle, the first by name is the root, so one of them still alerts."""
    for other in found[cause].because:
        if other in passed:
            return cause if cause == min(*passed, cause) else other
        if other in found and other != cause and found[other].severity.rank <= found[cause].severity.rank:
            return _root(found, other, (*passed, cause))
    return cause


# The highest score while a critical finding exists.
CEILING_WHEN_CRITICAL: Final = 39


class Grade(StrEnum):
    """Grades of the score, best first."""

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


# The fewest lost points that make the grade worse than healthy.
BELOW_HEALTHY: Final = WHOLE - THRESHOLDS[Grade.HEALTHY] + 1


@dataclass(frozen=True, slots=True)
class SectionScore:
    points: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    at: datetime
    findings: tuple[Finding, ...]  # worst first, one for each cause
    sections: Mapping[str, SectionScore]  # by label, in the order of the application
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
        """Causes that another one explains, each with that one."""
        return find_silenced(self.findings)


def grade(score: int) -> Grade:
    return next(each for each, floor in THRESHOLDS.items() if score >= floor)


def assess(reports: Iterable[tuple[str, Report]], at: datetime, sections: Sequence[Section] = SECTIONS) -> Assessment:
    """Subtract the lost points of each section. A section without a report keeps all its points."""
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


# The grade agrees with the findings: with an error it is not healthy, with a critical finding it is critical.
CEILINGS: Final[Mapping[Severity, int]] = {
    Severity.CRITICAL: CEILING_WHEN_CRITICAL,
    Severity.ERROR: WHOLE - BELOW_HEALTHY,
    Severity.WARNING: WHOLE,
    Severity.INFO: WHOLE,
}


def _points(section: Section, reports: Iterable[tuple[str, Report]]) -> int:
    lost = sum(report.lost for name, report in reports if name == section.name)
    return max(0, section.weight - lost)
