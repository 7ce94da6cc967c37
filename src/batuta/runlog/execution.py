"""One fire of a job, from its opening to its end.

                ┌─▶ success | error | timeout | skipped      its runner closes it, fenced by the attempt
running ────────┤
 (lease)        ├─▶ running, attempt + 1                     its process died: another scheduler takes it over
                └─▶ abandoned                                its process died, and a repeat is not allowed or not possible
skipped | missed                                             opened and closed in one write: the row holds the reason

The reasons below say why a fire did not run and how a run ended. Their Portuguese sentences are in
``texts/pt_BR.toml``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from batuta.kernel.json import Json
from batuta.kernel.masking import mask
from batuta.kernel.reasons import Reason, code_of, define
from batuta.kernel.writable import count, json_object, make_writable, mask_text

HELD = define("held", "held: {why}")
PAUSED_ALL = define("paused_all", "switch pause.all is on{turned}")
PAUSED_CATEGORY = define("paused_category", "switch pause.category.{name} is on{turned}")
PAUSED_JOB = define("paused_job", "switch pause.job.{name} is on{turned}")
LIFTED_LATER = define("lifted_later", "switch {switch} was lifted only later, by {by}")
WINDOW_CLOSED = define("window_closed", "window {window} is closed")
SWITCHES_UNREADABLE = define("switches_unreadable", "the switches cannot be read")
BY_HAND = define("by_hand", "run by hand although {why}")
ALREADY_RUNNING = define("already_running", "it is running already")
WAIT_AND_REPEAT = define("already_running_next", "wait until it ends and ask again")
LIFT_OR_INSIST = define("held_next", "lift what holds it, or say --even-if-held if you are sure")

# Reasons of a fire that was skipped because an earlier run of the job is still in progress.
OVERLAP = define("overlap", "overlap: the run before it is still going")
OVERLAP_BUSY = define("overlap_busy", "overlap: the endpoint is busy with an earlier call")
OVERLAP_THREADS = define(
    "overlap_threads", "overlap: {count} earlier runs took too long and still go on in their threads"
)

PARTIAL = define("partial", "partial: {why}")
UNFINISHED = define("unfinished", "not implemented yet")
NO_REASON = define("no_reason", "no reason was given")

MISSED_SKIP = define("missed_skip", "no scheduler was running, and catch_up is 'skip'")
MISSED_LATEST = define(
    "missed_latest", "no scheduler was running; only the latest fire is caught up, and not when it is too old"
)
MISSED_OLD = define("missed_old", "no scheduler was running, and the fire is too old to be caught up")
MISSED_CHANGED = define("missed_changed", "no scheduler was running, and then the schedule changed")
MISSED_RESTORED = define(
    "missed_restored",
    "the database was restored from a backup of {taken_at}; fires since then may have run, and are not repeated",
)
MANY_FIRES = define("many_fires", "{why}; {count} fires")

# Reasons why a run was taken over or abandoned.
SILENT = define("silent", "its process stopped renewing its lease")
HANDED_BACK = define("handed_back", "its scheduler stopped before it ended")
DEAD = define("process_dead", "its process ended before it did")
RESTORED = define("restored", "its process ended before the database was restored")
INTERRUPTED = define("interrupted", "interrupted by the person who ran it by hand")
EACH_ATTEMPT = define("each_attempt", "{why}, at each of {attempts} attempts")
UNKNOWN_JOB = define("unknown_job", "{why}, and no scheduler knows this job any more")
HELD_NOW = define("held_now", "{why}, and now it is {held}")

# Reasons of a failed call.
CRASHED = define("job_crashed", "{error} in the job; the log has the traceback")
DETAILS_REFUSED = define("details_refused", "the database refused the rest of what it said")
RETURNED_FALSE = define("returned_false", "the job returned False")
CONNECTION_LOST = define("connection_lost", "the connection was lost before the answer came ({error})")
ANSWER_TOO_LONG = define("answer_too_long", "the answer is longer than 1 MB")
NO_JSON = define("no_json", "HTTP {status}, and the answer is not a JSON object")
HTTP_STATUS = define("http_status", "HTTP {status}")
HTTP_STATUS_SAID = define("http_status_said", "HTTP {status}: {said}")
TOO_MANY_REQUESTS = define("too_many_requests", "429 Too Many Requests")
TOO_MANY_REQUESTS_SAID = define("too_many_requests_said", "429 Too Many Requests: {said}")
ENDPOINT_ERROR = define("endpoint_error", "the endpoint says error")
ENDPOINT_ERROR_SAID = define("endpoint_error_said", "the endpoint says error: {said}")
NO_ANSWER = define("no_answer", "it did not answer by its deadline")
REFUSED = define(
    "connection_refused",
    "connection refused by {where}, {count} tries ({error}): check that the server runs there"
    " (of this program's own API, PORT is the one it was started with)",
)


def hold_reason(why: str) -> Reason:
    """Return the reason of a held fire. ``why`` is the reason that holds the job."""
    return HELD(why=why)


def is_partial(reason: str | None) -> bool:
    return code_of(reason) == PARTIAL


def is_unfinished(reason: str | None) -> bool:
    return code_of(reason) == UNFINISHED


LONGEST_ERROR = 500  # characters, of an error or a reason
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
    scheduled_for: datetime | None  # None: an operator requested the run
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
    retry_at: datetime | None = None  # Retry-After of the called service; not stored


def storable(ending: Ending) -> Ending:
    """Return a copy of the ending that both databases can store, with personal data masked. Every text of a job passes
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
    """Return a reduced ending, for a database that refuses the full one: status, code, ASCII texts and a note that
    details are missing.
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
    """Return the text in ASCII with a note and without its facts, because the database may have refused one of them. A
    reason keeps its code.
    """
    if text is None:
        return None
    note = f"; {DETAILS_REFUSED()}"
    noted = text[: LONGEST_ERROR - len(note)].encode("ascii", "replace").decode() + note
    return Reason.restore(text.code, noted, {}) if isinstance(text, Reason) else noted


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A row to insert: a run that starts, or a fire that does not run, with the reason."""

    job: str
    category: str
    scheduled_for: datetime | None
    trigger: Trigger
    status: Status
    reason: str | None = None
    params: Mapping[str, str] | None = None
    covers: Mapping[str, Json] | None = None  # for one missed row that covers many fires: from, to and count


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The schedule of a job in this code, to be compared with the stored schedule."""

    job: str
    category: str
    schedule: str
    zone: str
