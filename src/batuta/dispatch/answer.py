"""What a job says happened. The HTTP status follows from it in one place, so a failure can never look like success."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from batuta.kernel.json import Json
from batuta.kernel.writable import count, json_object, told
from batuta.queue.outcome import Failed
from batuta.runlog.execution import LONGEST_ERROR

LARGEST_DETAILS = 1024 * 1024
Details: TypeAlias = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Ok:
    """It worked. ``items`` is how many it worked on; None where counting makes no sense."""

    items: int | None = None
    details: Details = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Partial:
    """It worked for some. Kept as a success with a reason, and the job shows as degraded."""

    reason: str
    items: int | None = None
    details: Details = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Skipped:
    """It had good reason not to do anything: a pause, a window, pilot mode."""

    reason: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Its deadline came first, and it was stopped."""

    error: str


JobAnswer: TypeAlias = Ok | Partial | Skipped | Failed | TimedOut


def http_status(answer: JobAnswer) -> int:
    match answer:
        case Ok() | Partial() | Skipped():
            return 200
        case Failed(permanent=True):
            return 400  # as it was asked for it can never work: nobody need ask again
        case Failed():
            return 500
        case TimedOut():
            return 504
        case _:
            assert_never(answer)


def body(answer: JobAnswer) -> dict[str, Json]:
    """As it can be sent and kept: whatever the handler put into it, with texts in which nobody's data shows."""
    match answer:
        case Ok(items=items, details=details):
            return {**_sent(details), "status": "ok", "items_processed": count(items)}
        case Partial(reason=reason, items=items, details=details):
            said = {"status": "partial", "items_processed": count(items), "reason": told(reason, LONGEST_ERROR)}
            return {**_sent(details), **said}
        case Skipped(reason=reason):
            return {"status": "skipped", "items_processed": 0, "reason": told(reason, LONGEST_ERROR)}
        case Failed(error=error) | TimedOut(error=error):
            return {"status": "error", "items_processed": None, "error": told(error, LONGEST_ERROR)}
        case _:
            assert_never(answer)


def _sent(details: Details) -> dict[str, Json]:
    if not isinstance(details, Mapping):
        return {"details": told(details, LONGEST_ERROR)}
    sent = json_object(details, LARGEST_DETAILS)
    return {"details": "left out: they are longer than 1 MB"} if sent is None else sent


def outcome(answer: JobAnswer) -> str:
    """One word for logs and counters."""
    return {Ok: "ok", Partial: "partial", Skipped: "skipped", Failed: "error", TimedOut: "timeout"}[type(answer)]
