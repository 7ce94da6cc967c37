"""What a job says happened. The HTTP status follows from it in one place, so a failure can never look like success."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

from batuta.kernel.json import Json
from batuta.queue.outcome import Failed

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
        case Failed():
            return 500
        case TimedOut():
            return 504
        case _:
            assert_never(answer)


def body(answer: JobAnswer) -> dict[str, Json]:
    match answer:
        case Ok(items=items, details=details):
            return {**details, "status": "ok", "items_processed": items}
        case Partial(reason=reason, items=items, details=details):
            return {**details, "status": "partial", "items_processed": items, "reason": reason}
        case Skipped(reason=reason):
            return {"status": "skipped", "items_processed": 0, "reason": reason}
        case Failed(error=error) | TimedOut(error=error):
            return {"status": "error", "items_processed": None, "error": error[:500]}
        case _:
            assert_never(answer)


def outcome(answer: JobAnswer) -> str:
    """One word for logs and counters."""
    return {Ok: "ok", Partial: "partial", Skipped: "skipped", Failed: "error", TimedOut: "timeout"}[type(answer)]
