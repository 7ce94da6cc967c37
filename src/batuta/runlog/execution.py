"""One fire of a job, from its opening to its end.

                ┌─▶ success | error | timeout | skipped      its runner closes it, fenced by the attempt
running ────────┤
 (lease)        ├─▶ running, attempt + 1                     its process died: another scheduler takes it over
                └─▶ abandoned                                its process died, and a repeat is not allowed or not possible
skipped | missed                                             opened and closed in one write: the row holds the reason
"""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from batuta.kernel.json import Json
from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason
from batuta.kernel.storable import count, json_object, make_writable, mask_text
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
    """A run that this process owns. Every write about the run contains ``attempt`` as its fence."""

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
    """Return a copy that both databases can store, with personal data masked. Every text that a job returns passes
    through this function.
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
    """Return a copy of ``ending`` with only the status, the code and ASCII texts, because the database refused the full
    ending.
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
    """Return the error text of a run in ASCII, followed by a note that the database refused the details. If the text is
    a reason, its code is kept and its facts are dropped, because a fact may be the value that the database refused.
    """
    if text is None:
        return None
    note = f"; {DETAILS_REFUSED()}"
    noted = text[: LONGEST_ERROR - len(note)].encode("ascii", "replace").decode() + note
    return Reason.restore(text.code, noted, {}) if isinstance(text, Reason) else noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A row to insert into the execution log: a run that starts, or a fire that does not run, with the reason."""

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
    """The schedule of a job as this code declares it, to be compared with the stored schedule."""

    job: str
    category: str
    schedule: str
    zone: str
