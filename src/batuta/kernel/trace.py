"""Trace ids across processes: W3C Trace Context, without a tracing system.

The trace id of a run is the id of its execution, so the trace id needs no column and survives a take-over:

    run ─traceparent─▶ API call ─▶ job's handler ─▶ tasks that it enqueues (stored with their arguments) ─▶ their handlers

Every step has its own span. Headers of external requests are parsed strictly: if a header is invalid, a new trace
begins. A tracing system can record the steps (``record_with``); without a tracing system, a step costs one comparison.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeAlias

from batuta.kernel.values import dataclass

HEADER = "traceparent"
# Later versions of the header may append fields after the known ones. The pattern rejects an id of only zeros, as the
# standard requires. It also rejects an id of only digits, because it could be a personal number, which every log line
# would then show. A random id practically never has only digits.
_FORM = re.compile(r"(?!ff)([0-9a-f]{2})-(?![0-9]{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[!-~]*)?")
_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_LONGEST = 512


class Work(Protocol):
    """The work to which log lines belong: an attempt to run a task or item, or a run of a job."""

    @property
    def id(self) -> str: ...
    @property
    def attempt(self) -> int: ...


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
    # A fast random source: an id is not a secret, and every enqueued item may begin a trace.
    return Trace(f"{random.getrandbits(128) or 1:032x}", _span_id())


def follow(text: object) -> Trace:
    """Return a new span in the trace of the traceparent ``text``, or a new trace if ``text`` is invalid."""
    before = read(text)
    return begin() if before is None else before.child()


def trace_of_run(execution_id: str) -> Trace:
    """Return a run's trace. Its trace id is the same in every process that works on the run."""
    trace_id = execution_id.replace("-", "").lower()
    return Trace(trace_id, _span_id()) if _TRACE_ID.fullmatch(trace_id) else begin()


def bind(trace: Trace, work: Work | None = None) -> None:
    """Set the trace of the current asyncio task or thread, and of all tasks and threads that it starts. ``work`` is the
    attempt to which their log lines belong.
    """
    _current.set(TracedStep(trace=trace, work=work))


def bind_after(read: Callable[[Any], object], work: Work) -> None:
    """Set the trace of an attempt, but compute the trace only when it is first used, because most queue items write no
    log line and therefore need no trace.
    """
    _current.set(TracedStep(read=read, work=work))


def current_step() -> "TracedStep | None":
    return _current.get()


def current() -> Trace | None:
    step = _current.get()
    if step is None:
        return None
    if step.trace is None:
        step.trace = follow(step.read(step.work))
    return step.trace


def onward() -> str:
    """Return the traceparent header for the next step of the current work. If there is no current trace, a new trace
    begins.
    """
    return (current() or begin()).traceparent


@contextmanager
def bound(trace: Trace) -> Iterator[None]:
    """Make ``trace`` the current trace while the ``with`` block runs."""
    before = _current.get()
    token = _current.set(TracedStep(trace=trace, work=None if before is None else before.work))
    try:
        yield
    finally:
        _current.reset(token)


SpanKind: TypeAlias = Literal["enqueue", "item", "run"]
# Callable that ends a span. Arguments: the name of the outcome, and whether the outcome is a failure.
EndSpan: TypeAlias = Callable[[str, bool], None]


class Recorder(Protocol):
    """Records steps as spans of a tracing system. ``facts`` contains names, ids and counts, never application data such
    as arguments or results.
    """

    def span(
        self, kind: SpanKind, name: str, parent: Trace | None, facts: Mapping[str, str | int]
    ) -> AbstractContextManager[EndSpan]:
        """Record the ``with`` block as a span, which is the current trace inside the block. ``parent`` is the trace of
        the caller that enqueued or started the work.
        """


def record_with(recorder: Recorder | None) -> None:
    """From now on, record this process's steps with ``recorder``; None stops the recording."""
    global _recorder
    _recorder = recorder


def recorder() -> Recorder | None:
    return _recorder


@dataclass(slots=True)
class TracedStep:
    """The current step of a trace. All asyncio tasks that the step starts share this object, so they have the same
    span.
    """

    read: Callable[[Any], object] = lambda work: None
    trace: Trace | None = None
    work: Work | None = None
    lines: int = 0  # number of log lines that the step has kept
    characters: int = 0


def _span_id() -> str:
    return f"{random.getrandbits(64) or 1:016x}"


_recorder: Recorder | None = None
_current: ContextVar[TracedStep | None] = ContextVar("trace", default=None)
