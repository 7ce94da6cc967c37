"""Result types for queries on the execution log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Protocol

from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The columns of an execution-log row that show how a run ended."""

    id: str
    scheduled_for: datetime | None
    started_at: datetime  # for a fire that did not run: when this was recorded
    status: str
    duration_ms: int | None
    error: str | None
    reason: str | None
    items: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(LastRun):
    """A row of the execution log."""

    job: str
    category: str
    trigger: str
    attempt: int
    owner: str | None
    finished_at: datetime | None
    response_code: int | None
    result: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of a job's execution-log rows from the last 24 hours. The mean and the 95th percentile of the duration
    cover the runs that ended with success, error or timeout.
    """

    by_status: Mapping[str, int] = field(default_factory=dict)
    mean_ms: int | None = None
    p95_ms: int | None = None
    items: int = 0

    def total(self, *statuses: str) -> int:
        return sum(self.by_status.get(status, 0) for status in statuses)

    @property
    def rows(self) -> int:
        return sum(self.by_status.values())


# Consecutive failed runs are counted up to this number, which is enough to report that a job always fails.
ENOUGH_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about one job, computed from the execution log."""

    expected_since: datetime | None = None  # None if no scheduler has registered the job
    last: LastRun | None = None
    last_error: str | None = None
    failures_in_a_row: int = 0  # consecutive failed runs since the last success, counted up to ENOUGH_FAILURES
    running: int = 0
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The number of execution-log rows with one category and one status within one time slice."""

    category: str
    status: str
    place: int  # index of the time slice; slice 0 starts at the requested instant
    runs: int


# Smaller than every id. If it is passed as ``before_id``, every row whose instant equals ``before`` is excluded.
BEFORE_ANY = "00000000-0000-0000-0000-000000000000"


class Reports(Protocol):
    async def find_first_use(self) -> datetime | None:
        """Return the instant at which a process first used this database, or None if no process ever did."""

    async def facts(self, *, since: datetime, now: datetime) -> Mapping[str, Facts]:
        """Return facts about every job that has ever been scheduled. The counts cover only rows from ``since``
        onwards.
        """

    async def find_answered(self, expected: Mapping[str, datetime], now: datetime) -> Collection[str]:
        """Return the jobs that have succeeded since a given instant. ``expected`` maps each job to its instant. A
        skipped fire counts as a success, unless it was skipped because of an overlap or a missing implementation.
        """

    async def activity(self, *, since: datetime, length: timedelta, now: datetime) -> Sequence[Slice]:
        """Count the execution-log rows from ``since`` onwards, in time slices with the given ``length``. A missed fire
        belongs to the slice in which it was due.
        """

    async def recent(
        self,
        *,
        job: str | None = None,
        status: str | None = None,
        before: datetime,
        before_id: str = BEFORE_ANY,
        limit: int,
    ) -> Sequence[Recorded]:
        """Return rows of the execution log, newest first. To get the next page, pass the last row's ``started_at`` and
        ``id`` as ``before`` and ``before_id``; the id is needed because several runs may start at the same instant.
        """

    async def execution(self, id: str) -> Recorded | None: ...
