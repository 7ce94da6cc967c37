"""One fire of a job, from its opening to its end.

                ┌─▶ success | error | timeout | skipped      by whoever runs it, fenced by the attempt
running ────────┤
 (lease)        └─▶ running, attempt + 1                     its process died: another takes it over
                 ─▶ abandoned                                … or nobody may, or nobody can any more

skipped | missed                                             opened and closed at once: the row is the explanation
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from batuta.kernel.json import Json
from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason
from batuta.kernel.writable import count, json_object, make_writable, mask_text
from batuta.runlog.reasons import DETAILS_REFUSED

LONGEST_ERROR = 500  # and reason
LARGEST_RESULT = 20_000


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
    category: str
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
    retry_at: datetime | None = None  # the other side said when to come back; nobody keeps it


def storable(ending: Ending) -> Ending:
    """The ending as both databases can hold it, and as anybody may read it. Whatever a job says goes through here."""
    return replace(
        ending,
        response_code=count(ending.response_code),
        error=None if ending.error is None else mask_text(ending.error, LONGEST_ERROR),
        reason=None if ending.reason is None else mask_text(ending.reason, LONGEST_ERROR),
        items=count(ending.items),
        result=None if ending.result is None else json_object(ending.result, LARGEST_RESULT, _mask),
    )


def without_details(ending: Ending) -> Ending:
    """The same end for a database that refuses even that: plain signs, a note, and nothing else."""
    is_quiet = ending.error is None and ending.reason is None
    return Ending(
        status=ending.status,
        response_code=ending.response_code,
        error=_note(ending.error),
        reason=DETAILS_REFUSED() if is_quiet else _note(ending.reason),
    )


def _mask(text: str) -> str:
    return mask(make_writable(text))


def _note(text: str | None) -> str | None:
    """The text without its facts, one of which the database may have refused. Its code stays."""
    if text is None:
        return None
    note = f"; {DETAILS_REFUSED()}"
    noted = text[: LONGEST_ERROR - len(note)].encode("ascii", "replace").decode() + note
    return Reason.restore(text.code, noted, {}) if isinstance(text, Reason) else noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A row to be written: a run that starts, or a fire that does not, with the reason why."""

    job: str
    category: str
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
    category: str
    schedule: str
    zone: str
