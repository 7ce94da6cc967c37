"""What a run of a scheduler is judged by: what should have fired, what the endpoint saw, and what the log says.

Each comes from another source, so that one bug cannot hide in all three. Every instant is in UTC: two instants of a zone
whose clocks go back do not even compare rightly.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

Status: TypeAlias = Literal["running", "success", "error", "timeout", "skipped", "abandoned", "missed"]
Trigger: TypeAlias = Literal["schedule", "manual", "catch_up"]


@dataclass(frozen=True, slots=True)
class Target:
    """A fire an oracle expects. ``until`` is the last instant to start it, where catching up allows more than epsilon."""

    job: str
    at: datetime
    until: datetime | None = None
    must_run: bool = True  # False: a row that says why it did not run will do; silence will not

    def __post_init__(self) -> None:
        _in_utc(self.at, self.until)

    def latest(self, epsilon: timedelta) -> datetime:
        return self.until or self.at + epsilon


@dataclass(frozen=True, slots=True)
class Receipt:
    """One delivery that really executed, written by the endpoint with its own clock."""

    job: str
    key: str  # the execution id, as the Idempotency-Key brought it
    scheduled_for: datetime | None  # None: the endpoint was not told, and the row of the key says it
    attempt: int
    start: datetime
    end: datetime | None  # None: it never ended, and serves nothing
    answered: Status = "success"  # what the endpoint says it answered

    def __post_init__(self) -> None:
        _in_utc(self.scheduled_for, self.start, self.end)


@dataclass(frozen=True, slots=True)
class Logged:
    """A row of job_executions. ``covers`` is the first and the last fire of a row that stands for many missed ones."""

    id: str
    job: str
    scheduled_for: datetime | None
    trigger: Trigger
    status: Status
    reason: str | None
    started_at: datetime
    finished_at: datetime | None
    covers: tuple[datetime, datetime] | None = None

    def __post_init__(self) -> None:
        _in_utc(self.scheduled_for, self.started_at, self.finished_at, *(self.covers or ()))


@dataclass(frozen=True, slots=True)
class Span:
    """From ``start`` until just before ``end``, for one job or, with None, for all."""

    start: datetime
    end: datetime
    job: str | None = None

    def __post_init__(self) -> None:
        _in_utc(self.start, self.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the run was asked to keep. A target counts once its window and the longest run have passed before ``read_at``."""

    read_at: datetime  # when the log was read
    epsilon: timedelta = timedelta(seconds=10)
    longest_run: timedelta = timedelta(0)
    closed: tuple[Span, ...] = ()
    paused: tuple[Span, ...] = ()  # from the pause's acknowledgement to the moment the resume was sent
    pause_grace: timedelta = timedelta(seconds=1)
    no_overlap: frozenset[str] = frozenset()
    lease: timedelta = timedelta(seconds=30)
    grace: timedelta = timedelta(seconds=10)
    # Statuses that claim nothing about the endpoint's end: whoever wrote them could not know it.
    unknown: frozenset[Status] = frozenset({"running", "timeout", "abandoned"})
    healed_at: datetime | None = None  # when the last fault ended; None: no recovery to judge
    rto: timedelta = timedelta(seconds=10)

    def __post_init__(self) -> None:
        _in_utc(self.read_at, self.healed_at)


def _in_utc(*instants: datetime | None) -> None:
    for each in instants:
        if each is not None and each.tzinfo is not UTC:
            raise ValueError(f"{each.isoformat()} is not in UTC: convert it with astimezone(UTC)")
