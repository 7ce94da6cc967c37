"""Trace ids across processes: W3C Trace Context, without a tracing system.

The trace id of a run is the id of its execution, so it needs no column and survives a take-over:

    run ─traceparent─▶ API call ─▶ job's handler ─▶ tasks that it enqueues (stored with their arguments) ─▶ their handlers

Every step has its own span. Headers of external requests are parsed strictly; an invalid header is replaced by a new
trace.
"""

import random
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "traceparent"
# Later versions of the header may append fields after the known ones. An id of only digits is rejected, like the id of
# only zeros. A random id practically never has only digits. Such an id could be a personal number, which every log line
# would then show.
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
        """Return a trace with the same trace id and a new span, for the next step of the same work."""
        return Trace(self.trace_id, _span_id(), self.flags)


def read(text: object) -> Trace | None:
    """Parse a traceparent header; return None if it is absent or invalid."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    return Trace(found[2], found[3], "01" if int(found[4], 16) & 1 else "00")


def begin() -> Trace:
    return Trace(secrets.token_hex(16), _span_id())


def follow(text: object) -> Trace:
    """Return a new span in the trace of the traceparent ``text``, or a new trace if ``text`` is invalid."""
    before = read(text)
    return begin() if before is None else before.child()


def trace_of_run(execution_id: str) -> Trace:
    """Return the trace of a run; its trace id is the same in every process that works on the run."""
    trace_id = execution_id.replace("-", "").lower()
    return Trace(trace_id, _span_id()) if _TRACE_ID.fullmatch(trace_id) else begin()


def bind(trace: Trace) -> None:
    """Set the trace of the current asyncio task or thread, and of all tasks and threads that it starts."""
    _current.set(_Step(trace=trace))


def bind_after(text: object) -> None:
    """Set the trace like ``bind(follow(text))``, but parse ``text`` on first use, because most queue items write no log line."""
    _current.set(_Step(text=text))


def current() -> Trace | None:
    step = _current.get()
    if step is None:
        return None
    if step.trace is None:
        step.trace = follow(step.text)
    return step.trace


def onward() -> str:
    """Return the traceparent to pass to the next step. Without a current trace, a new trace begins."""
    return (current() or begin()).traceparent


@dataclass(slots=True)
class _Step:
    """The current step of a trace. Every task started from the step shares this object, so that all of them have the same span."""

    text: object = None
    trace: Trace | None = None


def _span_id() -> str:
    # A fast random source: a span id is not a secret, and every item of a queue needs one.
    return f"{random.getrandbits(64) or 1:016x}"


_current: ContextVar[_Step | None] = ContextVar("trace", default=None)
