"""Values read from the execution log."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from batuta.kernel.json import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A row of the log."""

    id: str
    job: str
    category: str
    scheduled_for: datetime | None
    trigger: str
    attempt: int
    owner: str | None
    started_at: datetime
    finished_at: datetime | None
    status: str
    duration_ms: int | None
    response_code: int | None
    error: str | None
    items: int | None
    reason: str | None
    result: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    id: str
    started_at: datetime
    status: str
    duration_ms: int | None
    error: str | None
    reason: str | None
    items: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of the last 24 hours. ``by_status`` counts rows; durations cover runs that really ran."""

    by_status: Mapping[str, int] = field(default_factory=dict)
    mean_ms: int | None = None
    p95_ms: int | None = None
    items: int = 0

    def total(self, *statuses: str) -> int:
        return sum(self.by_status.get(status, 0) for status in statuses)

    @property
    def rows(self) -> int:
        return sum(self.by_status.values())


# This many failed runs in a row mark a job as always failing; more are not counted.
ENOUGH_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Facts about one job."""

    expected_since: datetime | None = None  # None: no scheduler has seen it
    last: LastRun | None = None
    last_error: str | None = None
    failures_in_a_row: int = 0  # since the last success; counted up to ENOUGH_FAILURES
    running: int = 0
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Rows of one category with the same ending within one time slice."""

    category: str
    status: str
    place: int  # 0 starts at the requested instant
    runs: int


# Below every id: with it, ``before`` is only an instant.
BEFORE_ANY = "00000000-0000-0000-0000-000000000000"


class Reports(Protocol):
    async def known_since(self) -> datetime | None:
        """Start of the first scheduler on this database; None: no scheduler has ever run."""
        ...

    async def facts(self, *, since: datetime, now: datetime) -> Mapping[str, Facts]:
        """Facts about every job that was ever scheduled; counts start at ``since``."""
        ...

    async def find_answered(self, expected: Mapping[str, datetime], now: datetime) -> Collection[str]:
        """Jobs that ran as expected, each at or after its own instant."""
        ...

    async def activity(self, *, since: datetime, length: timedelta) -> Sequence[Slice]:
        """Count every row from ``since`` on in slices of ``length``. A missed fire counts where it was due."""
        ...

    async def recent(
        self,
        *,
        job: str | None = None,
        status: str | None = None,
        before: datetime,
        before_id: str = BEFORE_ANY,
        limit: int,
    ) -> Sequence[Recorded]:
        """Rows, newest first. Many rows share an instant: to continue after a row, pass its ``started_at`` and its id."""
        ...

    async def execution(self, id: str) -> Recorded | None: ...
