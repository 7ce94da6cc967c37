"""What the execution log can tell, as values."""

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
    """Of the last 24 hours. ``by_status`` counts rows; durations are of the runs that really ran."""

    by_status: Mapping[str, int] = field(default_factory=dict)
    mean_ms: int | None = None
    p95_ms: int | None = None
    items: int = 0

    def total(self, *statuses: str) -> int:
        return sum(self.by_status.get(status, 0) for status in statuses)

    @property
    def rows(self) -> int:
        return sum(self.by_status.values())


# So many failed runs in a row make a job one that always fails; more are not counted.
ENOUGH_FAILURES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one job."""

    expected_since: datetime | None = None  # None: no scheduler has ever seen it
    last: LastRun | None = None
    last_error: str | None = None
    failures_in_a_row: int = 0  # since the last success; counted up to ENOUGH_FAILURES
    running: int = 0
    counts: Counts = field(default_factory=Counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Rows of one category that ended alike within one stretch of time."""

    category: str
    status: str
    place: int  # 0 begins at the instant that was asked for
    runs: int


# Below every id: with it, ``before`` is an instant and nothing else.
BEFORE_ANY = "00000000-0000-0000-0000-000000000000"


class Reports(Protocol):
    async def known_since(self) -> datetime | None:
        """Since when the jobs of this database are expected to run; None: nobody has ever served it."""
        ...

    async def facts(self, *, since: datetime, now: datetime) -> Mapping[str, Facts]:
        """Of every job that was ever scheduled; counts from ``since`` on."""
        ...

    async def find_answered(self, expected: Mapping[str, datetime], now: datetime) -> Collection[str]:
        """The jobs that did what was expected of them, each at or after its own instant."""
        ...

    async def activity(self, *, since: datetime, length: timedelta) -> Sequence[Slice]:
        """Every row from ``since`` on, counted in slices of ``length``. A missed fire counts where it was due."""
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
        """Newest first. Rows of one instant are many: to go on after a row, give its ``started_at`` and its id."""
        ...

    async def execution(self, id: str) -> Recorded | None: ...
