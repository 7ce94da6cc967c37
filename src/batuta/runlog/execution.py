"""One fire of a job, from its opening to its end.

                ┌─▶ success | error | timeout | skipped      by whoever runs it, fenced by the attempt
running ────────┤
 (lease)        └─▶ running, attempt + 1                     its process died: another takes it over
                 ─▶ abandoned                                … or nobody may, or nobody can any more

skipped | missed                                             opened and closed at once: the row is the explanation
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from batuta.kernel.json import Json

# The beginnings of reasons that others tell apart by: health, the pages and the operators' queries.
HELD = "held: "
OVERLAP = "overlap: "
PARTIAL = "partial: "
UNFINISHED = "not implemented yet"
LONGEST_ERROR = 500


class Status(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    ABANDONED = "abandoned"
    MISSED = "missed"


class Trigger(StrEnum):
    SCHEDULE = "schedule"
    MANUAL = "manual"
    CATCH_UP = "catch_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A run that is ours: ``attempt`` is the fence of everything we write about it."""

    id: str
    job: str
    categoria: str
    scheduled_for: datetime | None  # None: a person asked for it
    trigger: Trigger
    attempt: int
    started_at: datetime
    params: Mapping[str, str] = field(default_factory=dict)  # what a person added


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    status: Status
    response_code: int | None = None
    error: str | None = None
    reason: str | None = None
    items: int | None = None
    result: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A row to be written: a run that starts, or a fire that does not, with the reason why."""

    job: str
    categoria: str
    scheduled_for: datetime | None
    trigger: Trigger
    status: Status
    reason: str | None = None
    params: Mapping[str, str] | None = None
    covers: Mapping[str, Json] | None = None  # of a missed row that stands for many: from, to and count


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """How a job is scheduled by this code, compared with what is written down."""

    job: str
    categoria: str
    schedule: str
    zone: str
