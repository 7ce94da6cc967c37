"""The reasons why a fire did not run, and the reasons why a run ended as it did. Their Portuguese sentences are in
``texts/pt_BR.toml``.
"""

from batuta.kernel.reasons import Reason, code_of, define

HELD = define("held", "held: {why}")
PAUSED_ALL = define("paused_all", "everything is paused{setting}")
PAUSED_CATEGORY = define("paused_category", "category {name} is paused{setting}")
PAUSED_JOB = define("paused_job", "job {name} is paused{setting}")
LIFTED_LATER = define("lifted_later", "switch {switch} held the job at that time; {by} released it later")
PAUSE_LIFTED_LATER = define("pause_lifted_later", "a pause held the job at that time; {by} released it later")
PAUSES = (PAUSED_ALL, PAUSED_CATEGORY, PAUSED_JOB, PAUSE_LIFTED_LATER)
WINDOW_CLOSED = define("window_closed", "window {window} is closed")
SWITCHES_UNREADABLE = define("switches_unreadable", "the switches cannot be read")
BY_HAND = define("by_hand", "run by hand although {why}")
ALREADY_RUNNING = define("already_running", "it is already running")
WAIT_AND_REPEAT = define("already_running_next", "wait until it ends and try again")
LIFT_OR_INSIST = define(
    "held_next", "release the pause or switch that holds it back, or use --even-if-held if you are sure"
)

# Reasons to skip a fire because an earlier run of the job is still in progress.
OVERLAP = define("overlap", "overlap: the previous run has not ended")
REPLACED = define("replaced", "a later fire replaced it")
OVERLAP_BUSY = define("overlap_busy", "overlap: the endpoint is busy with an earlier call")
OVERLAP_THREADS = define(
    "overlap_threads", "overlap: {count} earlier runs exceeded their time limit and are still running in their threads"
)

PARTIAL = define("partial", "partial: {why}")
UNFINISHED = define("unfinished", "not implemented yet")
NO_REASON = define("no_reason", "no reason was given")

MISSED_SKIP = define("missed_skip", "no scheduler was running, and catch_up is 'skip'")
MISSED_LATEST = define(
    "missed_latest", "no scheduler was running; only the latest fire is caught up, if it is not too old"
)
MISSED_OLD = define("missed_old", "no scheduler was running, and the fire is too old to be caught up")
MISSED_CHANGED = define("missed_changed", "no scheduler was running, and then the schedule changed")
MISSED_RESTORED = define(
    "missed_restored",
    "the database was restored from a backup of {taken_at}; fires since then may have run, and are not repeated",
)
MANY_FIRES = define("many_fires", "{why}; {count} fires")

# Reasons to take over or abandon a run.
SILENT = define("silent", "its process stopped renewing its lease")
HANDED_BACK = define("handed_back", "the scheduler stopped before the run ended")
DEAD = define("process_dead", "the process ended before the run did")
RESTORED = define("restored", "its process ended before the database was restored")
INTERRUPTED = define("interrupted", "interrupted by the person who ran it by hand")
EACH_ATTEMPT = define("each_attempt", "{why}, at each of {attempts} attempts")
UNKNOWN_JOB = define("unknown_job", "{why}, and no scheduler knows this job any more")
HELD_NOW = define("held_now", "{why}, and the job is held now: {held}")

# Reasons for a failed call.
CRASHED = define("job_crashed", "{error} in the job; the log has the traceback")
DETAILS_REFUSED = define("details_refused", "the database refused the rest of the answer")
RETURNED_FALSE = define("returned_false", "the job returned False")
CONNECTION_LOST = define("connection_lost", "the connection was lost before the answer arrived ({error})")
ANSWER_TOO_LONG = define("answer_too_long", "the answer is longer than 1 MB")
NO_JSON = define("no_json", "HTTP {status}, and the answer is not a JSON object")
HTTP_STATUS = define("http_status", "HTTP {status}")
HTTP_STATUS_SAID = define("http_status_said", "HTTP {status}: {said}")
TOO_MANY_REQUESTS = define("too_many_requests", "429 Too Many Requests")
TOO_MANY_REQUESTS_SAID = define("too_many_requests_said", "429 Too Many Requests: {said}")
ENDPOINT_ERROR = define("endpoint_error", "the endpoint reported an error")
ENDPOINT_ERROR_SAID = define("endpoint_error_said", "the endpoint reported an error: {said}")
NO_ANSWER = define("no_answer", "it did not answer before its deadline")
REFUSED = define(
    "connection_refused",
    "connection refused by {where}, {count} attempts ({error}): check that the server is running there"
    " (for this program's own API, PORT is the port with which it was started)",
)


def hold_reason(why: str) -> Reason:
    """Return the reason to record for a fire that did not run because its job was held back. ``why`` says what held the
    job back.
    """
    return HELD(why=why)


def is_pause(reason: str | None) -> bool:
    """Return whether a fire was skipped because an operator had paused the job, its category or everything."""
    why = reason.facts.get("why") if isinstance(reason, Reason) and reason.code == HELD else None
    return code_of(why if isinstance(why, str) else None) in PAUSES


def is_partial(reason: str | None) -> bool:
    return code_of(reason) == PARTIAL


def is_unfinished(reason: str | None) -> bool:
    return code_of(reason) == UNFINISHED
