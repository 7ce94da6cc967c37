"""Definition of a scheduled job: its target, schedule and rules."""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal, Protocol, TypedDict, TypeVar, Unpack
from zoneinfo import ZoneInfo

from batuta.guard.switches import SwitchRule
from batuta.kernel.errors import InvalidCron, InvalidJob
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.runlog.execution import Ending, Execution
from batuta.schedule.cron import parse
from batuta.schedule.due import NO_TIME, CatchUp, default_sla, period
from batuta.schedule.kinds import Schedule, every_text, parse_schedule
from batuta.schedule.window import Window

LONGEST_CATCH_UP = timedelta(hours=24)
LONGEST_GRACE = timedelta(minutes=10)
# Upper bounds of durations, so that computing instants cannot overflow.
LONGEST_BY_OPTION = {
    "timeout": timedelta(hours=24),
    "sla": timedelta(days=3653),
    "max_age": timedelta(days=366),
    "jitter": timedelta(hours=24),
}
Choice = TypeVar("Choice", bound=StrEnum)
_NAME = re.compile(r"^[a-z][a-z0-9_]*$")


class Overlap(StrEnum):
    """The rule for a fire that becomes due while the job's previous run is still in progress."""

    SKIP = "skip"  # record the fire as skipped
    ALLOW = "allow"  # start the fire next to the run in progress
    QUEUE_ONE = "queue_one"  # start the latest fire when the run has ended; record the earlier fires as skipped
    REPLACE = "replace"  # cancel the run in progress and start the fire


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One execution of a job, as passed to the job's target. ``execution.id`` is the idempotency key."""

    execution: Execution
    deadline: datetime  # deadline for a function that runs in this process
    timeout: timedelta  # time limit of the work after delivery
    grace: timedelta  # how long the target retries while the connection is refused
    # returns the reason that holds the job now, or None; called before a retry
    why_not: Callable[[], Awaitable[str | None]]

    @property
    def params(self) -> Mapping[str, str]:
        """The parameters that an operator passed to the run."""
        return self.execution.params


class Target(Protocol):
    """Interface of a job's target: the function or HTTP endpoint that runs when the job fires. ``repeatable`` means
    that two deliveries of a run with the same idempotency key have the effect of one delivery, so that another
    scheduler may repeat the delivery.
    """

    @property
    def repeatable(self) -> bool: ...
    @property
    def address(self) -> str:
        """The path or function that the target calls, as text for operators."""

    async def deliver(self, run: Run) -> Ending:
        """Call the function or endpoint for a run, and return the outcome before the run's deadline. If the called code
        raises an error, return the error as an outcome.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A registered job with its target, schedule and rules."""

    name: str
    target: Target
    cron: Schedule
    zone: ZoneInfo
    category: str = "default"
    sla: timedelta  # a successful run must start within this time after an expected fire
    max_age: timedelta  # missed fires older than this are not caught up
    timeout: timedelta = DEFAULT_TIMEOUT
    critical: bool = False
    autonomous: bool = False  # whether the job acts without a request by a person; shown to operators
    catch_up: CatchUp = CatchUp.LATEST
    overlap: Overlap = Overlap.SKIP
    # each start is delayed by a random part of this time; the delay does not change the fire's instant in the unique
    # key
    jitter: timedelta = NO_TIME
    holds: tuple[SwitchRule, ...] = ()
    window: str | None = None  # the job fires when this window opens, and never outside the window
    replaces: str | None = None  # the job in another profile that does the same work
    finished: bool = True  # False if the handler only reports that it is not implemented

    @property
    def every(self) -> timedelta:
        return period(self.cron, self.zone)

    @property
    def grace(self) -> timedelta:
        """How long the target keeps retrying while the connection is refused, so that an API restart does not make a
        daily job fail.
        """
        return min(self.every * 4 // 5, LONGEST_GRACE)

    def delay_of(self, fire: datetime) -> timedelta:
        """Return the jitter delay of a fire: how long after the fire's due instant its run starts. Every scheduler
        computes the same delay for the same fire.
        """
        if not self.jitter:
            return NO_TIME
        digest = hashlib.sha256(f"{self.name} {fire.timestamp():.6f}".encode()).digest()
        return self.jitter * (int.from_bytes(digest[:4], "big") / 2**32)

    def at(self, window: Window) -> "Job":
        """Return a copy of the job that fires when ``window`` opens."""
        return replace(self, cron=parse(window.cron))


class JobRules(TypedDict, total=False):
    """Optional rules for a job, independent of its target and schedule. Numbers are in seconds."""

    # Longest time from an expected fire to a successful run; None derives it from the schedule.
    sla: timedelta | float | None
    # missed fires older than this are not caught up; None means the time between two fires
    max_age: timedelta | float | None
    critical: bool  # whether the health becomes critical if the job misses its SLA or keeps failing
    autonomous: bool  # whether the job acts without a request by a person; shown to operators
    catch_up: CatchUp | Literal["skip", "latest", "all"]  # which missed fires run after an outage of all schedulers
    overlap: (
        Overlap | Literal["skip", "allow", "queue_one", "replace"]
    )  # rule for a fire that becomes due during the previous run
    holds: tuple[SwitchRule, ...]  # switches that hold the job
    jitter: timedelta | float  # longest random delay of a start, shorter than the time between two fires
    window: str | None  # the job fires when this window opens, and never outside the window
    replaces: str | None  # the job in another profile that does the same work
    finished: bool  # False if the handler only reports that it is not implemented


class JobOptions(JobRules, total=False):
    """The options that ``Batuta.job`` and ``Batuta.http_job`` accept."""

    circuit: str | None  # circuit breaker of the target: while it is open, fires are skipped
    profiles: Sequence[str] | None  # the profiles that contain the job; None means all


def make_job(
    name: str,
    schedule: str,
    target: Target,
    *,
    zone: ZoneInfo,
    category: str = "default",
    timeout: timedelta | float = DEFAULT_TIMEOUT,
    **options: Unpack[JobRules],
) -> Job:
    """Build a job and derive missing options from its schedule. Numbers are in seconds. Invalid options raise
    InvalidJob.
    """
    if not _NAME.match(name):
        raise _invalid(name, "job_name", "a name consists of lower-case letters, digits and underscores")
    cron = _parse(name, schedule)
    every = period(cron, zone)
    rules: dict[str, Any] = dict(options)
    for option, derived in (("sla", default_sla(every)), ("max_age", min(every, LONGEST_CATCH_UP))):
        rules[option] = derived if rules.get(option) is None else _span(name, option, rules[option])
    if "catch_up" in rules:
        rules["catch_up"] = _one_of(CatchUp, rules["catch_up"], name, "catch_up")
    if "overlap" in rules:
        rules["overlap"] = _one_of(Overlap, rules["overlap"], name, "overlap")
    rules["jitter"] = _jitter(name, rules.get("jitter", NO_TIME), every)
    _check_overlap(name, rules.get("overlap", Overlap.SKIP), rules.get("catch_up", CatchUp.LATEST))
    limit = _span(name, "timeout", timeout)
    if not _NAME.match(category):
        why = "'{category}' is not a category: use lower-case letters, digits and underscores"
        raise _invalid(name, "job_category", why, category=category)
    return Job(name=name, target=target, cron=cron, zone=zone, category=category, timeout=limit, **rules)


def schedule_text(name: str, schedule: str | None, every: timedelta | float | None) -> str:
    """Return a job's schedule as text: the cron expression, or an interval such as ``@every 30s``."""
    if schedule is not None and every is None:
        return schedule
    if schedule is not None or every is None:
        raise _invalid(name, "job_schedule", 'give either a schedule, such as "*/5 * * * *", or every=, in seconds')
    try:
        return every_text(every)
    except InvalidCron as error:
        raise InvalidJob(job=name, why=str(error)) from None


def _jitter(name: str, given: timedelta | float, every: timedelta) -> timedelta:
    span = NO_TIME if not given else _span(name, "jitter", given)
    if span >= every:
        raise _invalid(
            name, "job_jitter", "its jitter must be shorter than the time between two fires ({every})", every=every
        )
    return span


def _check_overlap(name: str, overlap: Overlap, catch_up: CatchUp) -> None:
    needed = {Overlap.QUEUE_ONE: (CatchUp.LATEST,), Overlap.REPLACE: (CatchUp.LATEST, CatchUp.SKIP)}
    if overlap in needed and catch_up not in needed[overlap]:
        why = "its overlap is {overlap}, so its catch_up must be {known}"
        raise _invalid(name, "job_overlap", why, overlap=overlap.value, known=" | ".join(needed[overlap]))


def _parse(name: str, schedule: str) -> Schedule:
    try:
        return parse_schedule(schedule)
    except InvalidCron as error:
        raise InvalidJob(job=name, why=str(error)) from None


def _span(job: str, what: str, given: timedelta | float) -> timedelta:
    longest = LONGEST_BY_OPTION[what]
    try:
        span = given if isinstance(given, timedelta) else timedelta(seconds=given)
    except (TypeError, ValueError, OverflowError):  # the value is not a number, or is infinite or NaN
        span = timedelta(0)
    if not timedelta(0) < span <= longest:
        why = "its {what} must be positive and at most {longest}"
        raise _invalid(job, "job_span", why, what=what, longest=longest)
    return span


def _one_of(kind: type[Choice], word: str, job: str, what: str) -> Choice:
    try:
        return kind(word)
    except ValueError:
        why = "its {what} is '{word}', but must be {known}"
        raise _invalid(job, "job_word", why, what=what, word=word, known=" | ".join(kind)) from None


def _invalid(job: str, code: str, english: str, **facts: object) -> InvalidJob:
    return InvalidJob(job=job, why=Reason(code, english, **facts))
