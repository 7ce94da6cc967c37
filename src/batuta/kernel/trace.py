"""Trace ids across processes: W3C Trace Context, without a tracing system.

A run's trace is its execution's id, so it needs no column and survives a take-over:

    run ─traceparent─▶ API call ─▶ job's handler ─▶ tasks enqueued there (kept with their arguments) ─▶ their
handlers

Every step has a span of its own. Headers from outside are parsed strictly, and replaced if invalid.
"""

import random
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "traceparent"
# Later versions may append fields; the known ones come first. An id of digits alone is rejected like the one of zeros
# alone: chance does not produce it, and it could be a personal number that every log line would show.
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?![0-9]{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?")
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_LONGEST = 512


@dataclass(frozen=True, slots=True)
class Trace:
    trace_id: str
    span_id: str
    flags: str = "01"

    @property
    def traceparent(self) -> str:
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"

    def child(self) -> "Trace":
        """The next step of the same work."""
        return Trace(self.trace_id, _span_id(), self.flags)


def read(text: object) -> Trace | None:
    """Parse a traceparent; None: absent or invalid."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    return Trace(found[2], found[3], "01" if int(found[4], 16) & 1 else "00")


def begin() -> Trace:
    return Trace(secrets.token_hex(16), _span_id())


def follow(text: object) -> Trace:
    """The step after ``text``; a new trace, if ``text`` is unusable."""
    before = read(text)
    return begin() if before is None else before.child()


def trace_of_run(execution_id: str) -> Trace:
    """Trace of a run, the same in every process that works on it."""
    trace_id = execution_id.replace("-", "").lower()
    return Trace(trace_id, _span_id()) if _TRACE_ID.fullmatch(trace_id) else begin()


def bind(trace: Trace) -> None:
    """Set the trace of the current asyncio task (or thread) and of everything it starts."""
    _current.set(_Step(trace=trace))


def bind_after(text: object) -> None:
    """Like ``bind(follow(text))``, but parsed on first use: most items of a queue write no line."""
    _current.set(_Step(text=text))


def current() -> Trace | None:
    step = _current.get()
    if step is None:
        return None
    if step.trace is None:
        step.trace = follow(step.text)
    return step.trace


def onward() -> str:
    """The traceparent for the next step."""
    return (current() or begin()).traceparent


@dataclass(slots=True)
class _Step:
    """Shared by everything started from here, so that all of it has the same span."""

    text: object = None
    trace: Trace | None = None


def _span_id() -> str:
    # It only distinguishes steps and is not a secret: plain randomness is enough, and every item of a queue needs one.
    return f"{random.getrandbits(64) or 1:016x}"


_current: ContextVar[_Step | None] = ContextVar("trace", default=None)
