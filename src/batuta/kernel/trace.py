"""Which piece of work a line belongs to, across processes: W3C Trace Context, without a tracing system.

A run's trace is its execution's id, so that it needs no place of its own and survives whoever takes the run over:

    run ─traceparent─▶ API call ─▶ job's handler ─▶ tasks enqueued there (kept with their arguments) ─▶ their handlers

Every step has a span of its own. What comes from outside is read strictly, and replaced if it is anything else.
"""

import random
import re
import secrets
from contextvars import ContextVar
from dataclasses import dataclass

HEADER = "traceparent"
# Of a later version more may follow; what we know stands at the beginning. An id of nothing but digits is refused with the one
# of nothing but zeros: chance does not make it, and it could be somebody's number, which would then stand in every line.
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
    """None: there is none, or it is not one."""
    if not isinstance(text, str) or len(text) > _LONGEST:
        return None
    found = _FORM.fullmatch(text)
    if found is None or (found[1] == "00" and found[5] is not None):
        return None
    return Trace(found[2], found[3], "01" if int(found[4], 16) & 1 else "00")


def begin() -> Trace:
    return Trace(secrets.token_hex(16), _span_id())


def follow(text: object) -> Trace:
    """The next step after what ``text`` says; a beginning, if it says nothing that can be used."""
    before = read(text)
    return begin() if before is None else before.child()


def trace_of_run(execution_id: str) -> Trace:
    """The same for every process that ever works on the run."""
    trace_id = execution_id.replace("-", "").lower()
    return Trace(trace_id, _span_id()) if _TRACE_ID.fullmatch(trace_id) else begin()


def bind(trace: Trace) -> None:
    """From here on, for the current asyncio task (or thread) and whatever it starts."""
    _current.set(_Step(trace=trace))


def bind_after(text: object) -> None:
    """As ``bind(follow(text))``, read when somebody asks: most items of a queue write no line."""
    _current.set(_Step(text=text))


def current() -> Trace | None:
    step = _current.get()
    if step is None:
        return None
    if step.trace is None:
        step.trace = follow(step.text)
    return step.trace


def onward() -> str:
    """What to hand to whoever does the next step."""
    return (current() or begin()).traceparent


@dataclass(slots=True)
class _Step:
    """Shared by everything that was started from here, so that all of it agrees on the span."""

    text: object = None
    trace: Trace | None = None


def _span_id() -> str:
    # It tells steps apart and keeps no secret: plain chance is enough, and every item of a queue needs one.
    return f"{random.getrandbits(64) or 1:016x}"


_current: ContextVar[_Step | None] = ContextVar("trace", default=None)
