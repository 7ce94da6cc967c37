"""The states of a job's fire in the execution log.

                ┌─▶ success | error | timeout | skipped      the process that runs it records how it ended
running ────────┤
 (lease)        ├─▶ running, attempt + 1                     its process died: another scheduler takes it over
                └─▶ abandoned                                its process died, and a repeat is not allowed or possible
skipped | missed                                             it never ran; the row records the reason
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import count, json_object, make_writable, mask_text
from batuta.kernel.values import dataclass
from batuta.runlog.reasons import DETAILS_REFUSED

LONGEST_ERROR = 500  # maximum characters of an error or a reason
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
    """A run that this process owns. Every write to the run's row requires that ``attempt`` is still current, so a write
    has no effect after another process has taken over the run.
    """

    id: str
    job: str
    category: str
    scheduled_for: datetime | None  # None if an operator requested the run
    trigger: Trigger
    attempt: int
    started_at: datetime
    params: Mapping[str, str] = field(default_factory=dict)  # parameters that an operator added


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    status: Status
    response_code: int | None = None
    error: str | None = None
    reason: str | None = None
    items: int | None = None
    result: Mapping[str, Json] | None = None
    retry_at: datetime | None = None  # instant from the called service's Retry-After; not stored


def storable(ending: Ending) -> Ending:
    """Return a copy of ``ending`` that SQLite and PostgreSQL can store, with personal data masked. Every text that a
    job returns passes through this function.
    """
    return replace(
        ending,
        response_code=count(ending.response_code),
        error=None if ending.error is None else mask_text(ending.error, LONGEST_ERROR),
        reason=None if ending.reason is None else mask_text(ending.reason, LONGEST_ERROR),
        items=count(ending.items),
        result=None if ending.result is None else json_object(ending.result, LARGEST_RESULT, _mask),
    )


def without_details(ending: Ending) -> Ending:
    """Return a reduced copy of ``ending`` with only the status, the response code and the texts in ASCII. The copy is
    stored when the database has refused the original.
    """
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
    """Return a run's error text in ASCII, followed by a note which says that the database refused the details. A
    ``Reason`` keeps its code but loses its facts (the values in its sentence), because the database may have refused
    one of them.
    """
    if text is None:
        return None
    note = f"; {DETAILS_REFUSED()}"
    noted = text[: LONGEST_ERROR - len(note)].encode("ascii", "replace").decode() + note
    return Reason.restore(text.code, noted, {}) if isinstance(text, Reason) else noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A row to insert into the execution log: either a run that starts, or a fire that does not run, with the
    reason.
    """

    job: str
    category: str
    scheduled_for: datetime | None
    trigger: Trigger
    status: Status
    reason: str | None = None
    params: Mapping[str, str] | None = None
    covers: Mapping[str, Json] | None = None  # set if one missed row covers many fires: from, to and count


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A job's schedule as this release declares it, to be compared with the stored schedule."""

    job: str
    category: str
    schedule: str
    zone: str
