"""A finding: what is wrong, how bad, since when. A check gives findings and says how many points of its part they cost.

A finding names its sentence (``says``) and the facts in it; the words are in the table of texts, so that an operator reads them in
his own language: ``finding.<says>.message`` and, for what to do about it, ``finding.<says>.next``.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

PATIENCE = timedelta(seconds=2)


class Severity(StrEnum):
    """Worst first."""

    CRITICAL = "critical"
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        return list(Severity).index(self)


class Section(StrEnum):
    """The parts of the score."""

    CONNECTIVITY = "connectivity"
    FILA = "fila"
    CHIPS = "chips"
    CIRCUITS = "circuits"
    JOBS_AND_WORKERS = "jobs_and_workers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    severity: Severity
    source: str
    cause: str  # stays the same while the same thing is wrong: there is one alert for each
    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
    value: float | None = None
    threshold: float | None = None
    since: datetime | None = None
    because: tuple[str, ...] = ()  # causes that would explain it: while one of them is found, it alone speaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``lost``: points of the part, before its floor."""

    findings: tuple[Finding, ...] = ()
    lost: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """``ask`` may be wrong, slow or broken: the part is then worth nothing, and a finding says so."""

    name: str
    section: Section
    ask: Callable[[], Awaitable[Report]]
    patience: timedelta = PATIENCE


def merged(reports: Iterable[Report]) -> Report:
    each = list(reports)
    return Report(
        findings=tuple(finding for report in each for finding in report.findings),
        lost=sum(report.lost for report in each),
    )


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One for each cause: the worst, whoever found it. What explains stands before what it explains."""
    by_cause: dict[str, Finding] = {}
    for finding in sorted(findings, key=lambda each: each.severity.rank):
        by_cause.setdefault(finding.cause, finding)
    explained = silenced(by_cause.values())
    return tuple(sorted(by_cause.values(), key=lambda each: (each.severity.rank, each.cause in explained)))


def silenced(findings: Iterable[Finding]) -> dict[str, str]:
    """For each cause that another one explains, the root of it. What is less grave does not silence what is graver."""
    found = {finding.cause: finding for finding in findings}
    roots = {cause: _root(found, cause, ()) for cause in found}
    return {cause: root for cause, root in roots.items() if root != cause}


def _root(found: Mapping[str, Finding], cause: str, passed: tuple[str, ...]) -> str:
    """Two that explain each other would both be silent: the way ends where it began, and the first of them speaks."""
    for other in found[cause].because:
        if other in passed:
            return cause if cause == min(*passed, cause) else other
        if other in found and other != cause and found[other].severity.rank <= found[cause].severity.rank:
            return _root(found, other, (*passed, cause))
    return cause
