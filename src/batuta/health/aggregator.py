"""Runs all checks concurrently, each within its own time limit, and caches the assessment.

An assessment is valid for the time CACHED_FOR. During this time, all callers get this assessment and the instant at
which it was computed, so that the checks run only once. A caller may also request a fresh assessment. Probes test the
components that a process needs, each within a time limit. The worst probe result is the state of the process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Generic, TypeAlias, TypeVar

from batuta.health.finding import (
    CHECK_TIMEOUT,
    SECTIONS,
    WHOLE,
    Assessment,
    Check,
    Finding,
    Report,
    Section,
    Severity,
    assess,
)
from batuta.kernel.calls.usercode import Late, Question, Raised, Returned, call_with_deadline, name_of
from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError, InvalidName, InvalidSections, StoreUnavailable
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass

CACHED_FOR = timedelta(seconds=15)
DATABASE_DOWN = "connectivity.database"

T = TypeVar("T")
Document: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthPage:
    """A page at ``/health/<name>`` that shows a document with its own ``status``. ``aliases`` are other names for the
    page.
    """

    name: str
    ask: Callable[[], Awaitable[Document]]
    aliases: tuple[str, ...] = ()
    timeout: timedelta = CHECK_TIMEOUT
    kept: timedelta = CACHED_FOR
    about: str = ""


@dataclass(slots=True)
class Cached(Generic[T]):
    """Caches the latest result of a query. Concurrent callers wait for the same query."""

    ask: Callable[[], Awaitable[T]]
    clock: Clock
    kept: timedelta
    _asking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _answer: T | None = None
    _until: float = 0.0

    async def get(self, *, fresh: bool = False) -> T:
        async with self._asking:
            if fresh or self._answer is None or self.clock.monotonic() >= self._until:
                self._answer = await self.ask()
                self._until = self.clock.monotonic() + self.kept.total_seconds()
            return self._answer


class HealthAggregator:
    def __init__(self, clock: Clock, sections: Sequence[Section] = SECTIONS) -> None:
        if (total := sum(section.weight for section in sections)) != WHOLE:
            raise InvalidSections(total=total, whole=WHOLE)
        self._clock = clock
        self._sections = {section.name: section for section in sections}
        self._checks: dict[str, tuple[Check, Question]] = {}
        self._pages: dict[str, Cached[Document]] = {}
        self._assessment = Cached(self._assess, clock, CACHED_FOR)

    def add(self, check: Check) -> None:
        if check.name in self._checks:
            raise InvalidName(name=check.name, kind="check", why="another check has this name")
        if check.section not in self._sections:
            raise unknown("section", check.section, self._sections)
        question = Question(check.ask, check.timeout, self._clock, f"the check of {check.name}")
        self._checks[check.name] = check, question

    def add_page(self, page: HealthPage) -> None:
        question = Question(page.ask, page.timeout, self._clock, f"/health/{page.name}")
        kept = Cached(lambda: self._document(question), self._clock, page.kept)
        for name in (page.name, *page.aliases):
            if name in self._pages:
                raise InvalidName(name=name, kind="health page", why="another page has this name")
            self._pages[name] = kept

    async def look(self, *, fresh: bool = False) -> Assessment:
        return await self._assessment.get(fresh=fresh)

    @property
    def page_names(self) -> frozenset[str]:
        return frozenset(self._pages)

    async def page(self, name: str) -> Document | None:
        """Return the document of a health page, or None if no page has this name."""
        kept = self._pages.get(name)
        return None if kept is None else await kept.get()

    async def _assess(self) -> Assessment:
        checks = list(self._checks.values())
        reports = await asyncio.gather(*(self._ask(check, question) for check, question in checks))
        sections = (check.section for check, _ in checks)
        return assess(zip(sections, reports, strict=True), self._clock.now(), list(self._sections.values()))

    async def _ask(self, check: Check, question: Question) -> Report:
        match await question.ask():
            case Returned(value=Report() as report):
                return report
            case Raised(error=error):
                return _broken_report(check, name_of(error), is_database=isinstance(error, StoreUnavailable))
            case Late():
                return _broken_report(check, check.timeout, is_late=True)
            case Returned(value=other):
                return _broken_report(check, type(other).__name__)

    async def _document(self, question: Question) -> Document:
        now = self._clock.now()
        match await question.ask():
            case Returned(value=dict() as document):
                return document
            case Raised(error=error):
                return {"status": "error", "error": name_of(error), "timestamp": now.isoformat()}
            case _:
                return {"status": "error", "error": "it did not answer in time", "timestamp": now.isoformat()}


def _broken_report(check: Check, why: str | timedelta, *, is_late: bool = False, is_database: bool = False) -> Report:
    """Return the report for a check that failed or took too long. The check's section of the health score loses all its
    points.
    """
    finding = Finding(
        severity=Severity.ERROR,
        source=check.section,
        cause=f"check.{check.name}",
        says="check_late" if is_late else "check_failed",
        facts={"check": check.name, "why": why},
        because=(DATABASE_DOWN,) if is_database or is_late else (),
    )
    return Report(findings=(finding,), lost=WHOLE)


PROBE_TIMEOUT = timedelta(seconds=2)


class State(StrEnum):
    """The possible states of one component of a process, such as its database."""

    OK = "ok"
    UNKNOWN = "unknown"  # the component is not configured, which is not a problem
    DEGRADED = "degraded"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Part:
    """The state of one component that a process needs, such as the database. ``why`` may contain server addresses, so
    show it to operators only.
    """

    state: State
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """A test for one component of a process. ``needed`` is true if the process cannot work without the component."""

    ask: Callable[[], Awaitable[Part]]
    needed: bool


Probes: TypeAlias = Mapping[str, Probe]


async def look(probes: Probes, clock: Clock) -> dict[str, Part]:
    """Call all probes concurrently, each within PROBE_TIMEOUT, and return the state of each component by name."""
    parts = await asyncio.gather(*(_ask(name, probe, clock) for name, probe in probes.items()))
    return dict(zip(probes, parts, strict=True))


def verdict(parts: Mapping[str, Part], probes: Probes) -> str:
    if any(parts[name].state is State.ERROR for name, probe in probes.items() if probe.needed):
        return "not_ready"
    if any(part.state in (State.ERROR, State.DEGRADED) for part in parts.values()):
        return "degraded"
    return "ready"


async def _ask(name: str, probe: Probe, clock: Clock) -> Part:
    match await call_with_deadline(probe.ask, clock.now() + PROBE_TIMEOUT, clock, f"the probe of {name}"):
        case Returned(value=Part() as part):
            return part
        case Raised(error=BatutaError() as error):
            return Part(State.ERROR, str(error))
        case Raised(error=error):
            return Part(State.ERROR, name_of(error))
        case Late(error=why):
            return Part(State.ERROR, why)
        case Returned(value=other):
            return Part(State.ERROR, type(other).__name__)
