"""A job: its target, schedule and rules."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, TypedDict, TypeVar
from zoneinfo import ZoneInfo

from batuta.guard.switches import SwitchRule
from batuta.kernel.errors import InvalidCron, InvalidJob
from batuta.kernel.reasons import Reason
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.runlog.execution import Ending, Execution
from batuta.schedule.cron import Cron, parse
from batuta.schedule.due import CatchUp, default_sla, period
from batuta.schedule.window import Window

LONGEST_CATCH_UP = timedelta(hours=24)
LONGEST_GRACE = timedelta(minutes=10)
# Beyond any sensible value; instants overflow above it.
LONGEST_BY_OPTION = {
    "timeout": timedelta(hours=24),
    "sla": timedelta(days=3653),
    "max_age": timedelta(days=366),
}
Choice = TypeVar("Choice", bound=StrEnum)
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


class Overlap(StrEnum):
    """Rule for a fire that comes while the previous run is going."""

    SKIP = "skip"  # the fire is a skipped row
    ALLOW = "allow"


async def _nothing_holds() -> None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution, as its target sees it. ``execution.id`` is the idempotency key."""

    execution: Execution
    deadline: datetime  # deadline of a function in this process
    timeout: timedelta  # time limit of the work after delivery
    grace: timedelta  # how long to retry a refused connection
    params: Mapping[str, str] = field(default_factory=dict)  # parameters that an operator added
    why_not: Callable[[], Awaitable[str | None]] = (
        _nothing_holds  # called before a retry: returns the reason that holds the job by now
    )


class Target(Protocol):
    """Delivery of a fire. ``repeatable``: the same key delivered twice has one effect, so another scheduler may take
    over.
    """

    @property
    def repeatable(self) -> bool: ...
    @property
    def address(self) -> str:
        """Destination, for display."""
        ...

    async def deliver(self, run: Run) -> Ending:
        """Deliver and return by the deadline. Never raise for errors of the other side."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A registered job: its target, schedule and rules."""

    name: str
    target: Target
    cron: Cron
    zone: ZoneInfo
    category: str = "default"
    sla: timedelta  # a successful run must start within this time after an expected fire
    max_age: timedelta  # an older fire is not caught up
    timeout: timedelta = DEFAULT_TIMEOUT
    critical: bool = False
    autonomous: bool = False  # acts on its own initiative; shown to operators
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.SKIP
    holds: tuple[SwitchRule, ...] = ()
    window: str | None = None  # fires when it opens, and not outside it
    replaces: str | None = None  # the job of another profile whose work this one does
    finished: bool = True  # False: its handler answers that it is not implemented

    @property
    def every(self) -> timedelta:
        return period(self.cron, self.zone)

    @property
    def grace(self) -> timedelta:
        """How long to retry a refused connection: a daily job must not lose its day to a restart of the API."""
        return min(self.every * 4 // 5, LONGEST_GRACE)

    def at(self, window: Window) -> "Job":
        """The same job, fired when ``window`` opens."""
        return replace(self, cron=parse(window.cron))


class JobRules(TypedDict, total=False):
    """Options of a job that do not follow from others. Numbers are seconds."""

    sla: (
        timedelta | float | None
    )  # a successful run starts within it after each expected fire; None: derived from the schedule
    max_age: timedelta | float | None  # an older fire is not caught up; None: the time between two fires
    critical: bool
    autonomous: bool  # acts on its own initiative; shown to operators
    catch_up: CatchUp | Literal["skip", "latest", "all"]  # which missed fires run after an outage of all schedulers
    overlap: Overlap | Literal["skip", "allow"]  # for a fire that comes during the previous run
    holds: tuple[SwitchRule, ...]  # switches that hold it
    window: str | None  # fires when this window opens, and not outside it
    replaces: str | None  # the job of another profile whose work this one does
    finished: bool  # False: its handler answers that it is not implemented


class JobOptions(JobRules, total=False):
    """The options of ``Batuta.job`` and ``Batuta.http_job``."""

    circuit: str | None  # the circuit breaker of its target: while it is open, fires are skipped with that reason
    profiles: Sequence[str] | None  # the timetables that have the job; None: all of them


def make_job(
    name: str,
    schedule: str,
    target: Target,
    *,
    zone: ZoneInfo,
    category: str = "default",
    sla: timedelta | float | None = None,
    max_age: timedelta | float | None = None,
    timeout: timedelta | float = DEFAULT_TIMEOUT,
    critical: bool = False,
    autonomous: bool = False,
    catch_up: CatchUp | str = CatchUp.LATEST,
    overlap: Overlap | str = Overlap.SKIP,
    holds: tuple[SwitchRule, ...] = (),
    window: str | None = None,
    replaces: str | None = None,
    finished: bool = True,
) -> Job:
    """Build a job and derive the missing options from its schedule; numbers are seconds. Every error names the job."""
    if not _NAME.match(name):
        raise InvalidJob(job=name, why=Reason("job_name", "a name is written in small letters, digits and underscores"))
    cron = _parse(name, schedule)
    every = period(cron, zone)
    job = Job(
        name=name,
        target=target,
        cron=cron,
        zone=zone,
        category=category,
        sla=default_sla(every) if sla is None else _span(name, "sla", sla),
        max_age=min(every, LONGEST_CATCH_UP) if max_age is None else _span(name, "max_age", max_age),
        timeout=_span(name, "timeout", timeout),
        critical=critical,
        autonomous=autonomous,
        catch_up=_one_of(CatchUp, catch_up, name, "catch_up"),
        overlap=_one_of(Overlap, overlap, name, "overlap"),
        holds=holds,
        window=window,
        replaces=replaces,
        finished=finished,
    )
    if not _NAME.match(category):
        raise InvalidJob(
            job=name,
            why=Reason(
                "job_category",
                "'{category}' is not a category: small letters, digits and underscores",
                category=category,
            ),
        )
    return job


def _parse(name: str, schedule: str) -> Cron:
    try:
        return parse(schedule)
    except InvalidCron as error:
        raise InvalidJob(job=name, why=str(error)) from None


def _span(job: str, what: str, given: timedelta | float) -> timedelta:
    longest = LONGEST_BY_OPTION[what]
    try:
        span = given if isinstance(given, timedelta) else timedelta(seconds=given)
    except (TypeError, ValueError, OverflowError):  # not a number, NaN and infinity
        span = timedelta(0)
    if not timedelta(0) < span <= longest:
        raise InvalidJob(
            job=job,
            why=Reason(
                "job_span", "its {what} must be longer than nothing and at most {longest}", what=what, longest=longest
            ),
        )
    return span


def _one_of(kind: type[Choice], word: str, job: str, what: str) -> Choice:
    try:
        return kind(word)
    except ValueError:
        known = " | ".join(kind)
        raise InvalidJob(
            job=job,
            why=Reason("job_word", "its {what} is '{word}' and can be {known}", what=what, word=word, known=known),
        ) from None
