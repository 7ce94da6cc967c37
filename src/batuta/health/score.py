"""One score of a hundred, on one scale, from everything the checks found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from batuta.health.finding import Finding, Report, Section, Severity, silenced, worst_first

WEIGHTS: Final[Mapping[Section, int]] = {
    Section.CONNECTIVITY: 20,
    Section.FILA: 20,
    Section.CHIPS: 20,
    Section.CIRCUITS: 15,
    Section.JOBS_AND_WORKERS: 25,
}
WHOLE: Final = sum(WEIGHTS.values())
# Something critical was found: whatever else goes well, this is not a good day.
CEILING_WHEN_CRITICAL: Final = 39


class Grade(StrEnum):
    """The scale, best first."""

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


# The fewest points that make the whole worse than healthy.
BELOW_HEALTHY: Final = WHOLE - THRESHOLDS[Grade.HEALTHY] + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    at: datetime
    findings: tuple[Finding, ...]  # worst first, one for each cause
    points: Mapping[Section, int]
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
        """Causes that another one explains, with that one."""
        return silenced(self.findings)


def grade(score: int) -> Grade:
    return next(each for each, floor in THRESHOLDS.items() if score >= floor)


def assess(reports: Iterable[tuple[Section, Report]], at: datetime) -> Assessment:
    """A part nobody looks at is worth all its points: what is not there cannot be ill."""
    each = list(reports)
    findings = worst_first(finding for _, report in each for finding in report.findings)
    points = {
        section: max(0, weight - sum(report.lost for of, report in each if of is section))
        for section, weight in WEIGHTS.items()
    }
    is_critical = any(finding.severity is Severity.CRITICAL for finding in findings)
    total = sum(points.values())
    return Assessment(
        at=at, findings=findings, points=points, score=min(total, CEILING_WHEN_CRITICAL) if is_critical else total
    )
