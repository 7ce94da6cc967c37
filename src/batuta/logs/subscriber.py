"""Writes one log line per event. The table LINES defines the level and the message of each kind of event; the event's
fields follow the message.

``install_hooks`` also sends warnings and uncaught exceptions to the log. Otherwise the interpreter would print them,
including values that may be personal data.
"""

import logging
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import fields
from types import TracebackType
from typing import TextIO

from batuta.kernel import events
from batuta.kernel.clock import brief
from batuta.kernel.errors import DeadlineExceeded, StoreTimeout
from batuta.kernel.masking.credentials import WITHHELD
from batuta.kernel.values import dataclass
from batuta.logs.library import structlog
from batuta.logs.scrubbing import plain, summary
from batuta.processes.restarts import EXIT_AGAIN
from batuta.supervise.shutdown import Phase
from batuta.texts import Wording

LOGGER = "batuta"  # name of the engine's logger
# Warnings whose texts come from the interpreter or describe an API. UserWarning is excluded, because it may quote a
# value, as pydantic's warnings do.
_SAFE_WARNINGS = (
    *(DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning),
    *(ResourceWarning, RuntimeWarning, SyntaxWarning, BytesWarning, EncodingWarning),
)


def install_hooks() -> None:
    """Log warnings and uncaught exceptions of every thread from now on."""
    warnings.showwarning = _show_warning
    sys.excepthook = _log_main_thread_crash
    threading.excepthook = _log_thread_crash
    sys.unraisablehook = _log_unraisable


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    is_safe = issubclass(category, _SAFE_WARNINGS) and category.__module__ == "builtins"
    words = str(message) if is_safe else WITHHELD
    logging.getLogger("py.warnings").warning("%s:%s: %s: %s", filename, lineno, category.__name__, words)


def _log_main_thread_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)  # a KeyboardInterrupt has no message to hide
        return
    _logger().critical("uncaught exception", exc_info=error.with_traceback(trace))


def _log_thread_crash(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
        _logger().critical("uncaught exception in a thread", exc_info=args.exc_value)


def _log_unraisable(args: "sys.UnraisableHookArgs") -> None:
    _logger().error("exception ignored in a %s", type(args.object).__qualname__, exc_info=args.exc_value)


def _logger() -> logging.Logger:
    return logging.getLogger(LOGGER)


FAILED_OUTCOMES = frozenset({"error", "timeout"})
# Tags that operators search for: an operation exceeded its time limit, or the watchdog acted.
TIMEOUT, WATCHDOG = "[TIMEOUT]", "[WATCHDOG]"


@dataclass(frozen=True, slots=True)
class EventLine:
    words: str
    level: int = logging.INFO
    trace: BaseException | None = None  # error to show with its frames


class LogSubscriber:
    """Writes one log line per event. For an error, the line shows the class and the safe part of the message; for a
    crash, it also shows the stack frames.
    """

    def __init__(self, wording: Wording | None = None) -> None:
        self._wording = wording or Wording()

    def __call__(self, event: events.Event) -> None:
        line = LINES[type(event)](event)
        if not logging.getLogger(LOGGER).isEnabledFor(line.level):
            return
        trace = {"exc_info": line.trace} if line.trace is not None else {}
        fields = {self._wording.rename(name): value for name, value in fields_of(event).items()}
        phrase = self._wording.phrase(event, line.words)
        structlog.stdlib.get_logger(LOGGER).log(line.level, phrase, **trace, **fields)


def fields_of(event: events.Event) -> dict[str, object]:
    return {
        field_label(type(event), field.name): _render(getattr(event, field.name))
        for field in fields(event)
        if (type(event), field.name) not in _OMITTED
    }


def field_label(kind: type, field: str) -> str:
    return _RENAMED.get((kind, field), field)


# Fields omitted from the log: durations per item and counts per job, which only the metrics use, and details that
# another log line shows.
_OMITTED = {
    (events.ItemsClaimed, "waited"),
    (events.ItemsSettled, "took"),
    (events.ChildEnded, "how"),
    (events.FiresMissed, "counts"),
    (events.LoopRestarted, "stack"),
}
# A field `name` would be masked as a person's name, and `event` is the line's message.
_RENAMED = {(events.SettingWarned, "name"): "setting", (events.SubscriberFailed, "event"): "failed_on"}


def _render(value: object) -> object:
    return summary(value) if isinstance(value, BaseException) else plain(value)


def _child_silent(event: events.ChildSilent) -> EventLine:
    why = f" ({event.state})" if event.state else ", its stack is requested"
    return EventLine(f"[WATCHDOG] {event.role} silent for {brief(event.silent_for)}{why}: ending it", logging.ERROR)


def _child_end_line(event: events.ChildEnded) -> EventLine:
    if event.exit_code == 0 and event.again_in is None:
        return EventLine(f"child {event.role} ended")
    if event.exit_code == EXIT_AGAIN:
        return EventLine(f"child {event.role} restarts at its own request")
    how = f": {event.how}" if event.how else ""
    again = "" if event.again_in is None else f"; restart in {event.again_in.total_seconds():.1f} s"
    return EventLine(
        f"child {event.role} ended{' with an error' if event.exit_code else ''}{how}{again}", logging.WARNING
    )


def _child_looping(event: events.ChildLooping) -> EventLine:
    often = f"{event.ends} times in {brief(event.within)}"
    return EventLine(
        f"[WATCHDOG] {event.role} ended {often}: crash loop, restarted every {brief(event.again_every)}",
        logging.ERROR,
    )


def _loop_failure_line(event: events.LoopFailed) -> EventLine:
    # Warn at the 1st, 2nd, 4th, 8th … failure, so that an outage does not flood the log.
    is_warning = event.failures & (event.failures - 1) == 0
    is_late = isinstance(event.error, TimeoutError | DeadlineExceeded | StoreTimeout)
    return EventLine(
        f"{TIMEOUT} loop failed" if is_late else "loop failed",
        logging.WARNING if is_warning else logging.DEBUG,
        trace=event.error if event.failures == 1 else None,
    )


def _blocked_loop_line(event: events.EventLoopBlocked) -> EventLine:
    if event.silent_for >= event.limit:
        return EventLine(f"{WATCHDOG} event loop blocked: FAIL, the process ends", logging.CRITICAL)
    return EventLine(f"{WATCHDOG} event loop blocked", logging.ERROR if event.stack else logging.WARNING)


def _shutdown_phase(event: events.ShutdownPhase) -> EventLine:
    words, level = _PHASES[event.phase]
    return EventLine(f"shutdown, {event.phase}: {words}", level)


_PHASES: Mapping[str, tuple[str, int]] = {
    Phase.QUIET: ("no new work is claimed; waiting for ticks in progress", logging.INFO),
    Phase.FINISH: ("waiting for work in progress to end", logging.INFO),
    Phase.CANCEL: ("cancelling work that still runs", logging.WARNING),
    Phase.HAND_BACK: ("releasing unfinished work for other processes", logging.WARNING),
}


def _loop_end_line(event: events.LoopEnded) -> EventLine:
    # Debug level: an orderly shutdown has dozens of these lines.
    return (
        EventLine("loop ended", logging.DEBUG)
        if event.drained
        else EventLine("loop ended before its drain finished", logging.WARNING)
    )


def _request_line(event: events.RequestAnswered) -> EventLine:
    if event.status >= 500:
        return EventLine("request answered", logging.ERROR)
    if event.caller is None and (event.status >= 400 or event.method == "GET"):
        # Any client can send such requests, so they are not logged one by one. RequestsRefused writes their number once
        # per minute.
        return EventLine("request answered", logging.DEBUG)
    # Debug level for frequent health requests and for job calls, which are also logged as runs.
    is_routine = event.route.startswith(("/health", "/jobs/"))
    return EventLine("request answered", logging.DEBUG if is_routine else logging.INFO)


def _job_answer_line(event: events.JobAnswered) -> EventLine:
    if event.outcome in FAILED_OUTCOMES:
        return EventLine("job answered: FAIL", logging.ERROR)
    return EventLine("job answered")


def _execution_end_line(event: events.ExecutionEnded) -> EventLine:
    if event.status in FAILED_OUTCOMES or event.status == "abandoned":
        tag = f"{TIMEOUT} " if event.status == "timeout" else ""
        return EventLine(f"{tag}job {event.status}: FAIL", logging.ERROR)
    return EventLine(f"job ended: {event.status}")


def _alert_line(event: events.AlertRaised) -> EventLine:
    if event.kind == "recovery":
        return EventLine("alert over")
    return EventLine("alert", logging.ERROR if event.severity in ("critical", "error") else logging.WARNING)


def _incident_line(event: events.IncidentChanged) -> EventLine:
    return EventLine("incident opened", logging.ERROR) if event.is_open else EventLine("incident closed")


def _rescue_line(event: events.ItemsRescued) -> EventLine:
    why = "their worker's process has ended" if event.proven else "their worker stopped renewing"
    return EventLine(f"items rescued: {why}", logging.WARNING)


LINES: Mapping[type[events.Event], Callable[..., EventLine]] = {
    events.ProcessStarted: lambda event: EventLine(f"process started at {event.local_time:%Y-%m-%d %H:%M:%S %z}"),
    events.ProcessServing: lambda event: EventLine(f"up: {event.address}/painel (Ctrl-C stops)"),
    events.ProcessDraining: lambda event: EventLine(
        "draining: running work may finish; a second signal ends the process now"
    ),
    events.ProcessEnded: lambda event: EventLine("process ended", logging.ERROR if event.failed else logging.INFO),
    events.ProcessHeld: lambda event: EventLine(
        f"{WATCHDOG} shutdown blocked by {event.what}; forcing exit", logging.WARNING
    ),
    events.ChildStarted: lambda event: EventLine(f"child {event.role} started"),
    events.ChildReady: lambda event: EventLine(f"child {event.role} ready"),
    events.ChildSilent: _child_silent,
    events.ChildEnded: _child_end_line,
    events.ChildLooping: _child_looping,
    events.ChildRecovered: lambda event: EventLine(f"[WATCHDOG] {event.role} works again: the crash loop ended"),
    events.ResourceCloseFailed: lambda event: EventLine(
        "resource could not be closed", logging.WARNING, trace=event.error
    ),
    events.LoopFailed: _loop_failure_line,
    events.LoopAbandoned: lambda event: EventLine("loop abandoned: FAIL", logging.ERROR, trace=event.error),
    events.LoopRecovered: lambda event: EventLine("loop recovered"),
    events.LoopStuck: lambda event: EventLine(f"{WATCHDOG} loop stuck: its tick is cancelled", logging.ERROR),
    events.LoopRestarted: lambda event: EventLine(f"{WATCHDOG} loop restarted", logging.WARNING),
    events.TaskUncancellable: lambda event: EventLine(
        f"{WATCHDOG} a task ignores its cancellation: FAIL, the process ends", logging.ERROR
    ),
    events.EventLoopBlocked: _blocked_loop_line,
    events.EventLoopResponds: lambda event: EventLine(f"{WATCHDOG} event loop responds again", logging.WARNING),
    events.StackFound: lambda event: EventLine(
        f"{WATCHDOG} stack of a process that died without a report", logging.ERROR
    ),
    events.ProcessRecycled: lambda event: EventLine(f"{WATCHDOG} process recycled: it drains and restarts"),
    events.ShutdownPhase: _shutdown_phase,
    events.LoopEnded: _loop_end_line,
    events.SwitchChanged: lambda event: EventLine("switch turned on" if event.on else "switch turned off"),
    events.MigrationApplied: lambda event: EventLine("migration applied"),
    events.RequestAnswered: _request_line,
    events.RequestsRefused: lambda event: EventLine("requests refused", logging.WARNING),
    events.RequestCrashed: lambda event: EventLine("request crashed", logging.ERROR, trace=event.error),
    events.JobAnswered: _job_answer_line,
    events.JobCrashed: lambda event: EventLine("job crashed", logging.ERROR, trace=event.error),
    events.JobsRegistered: lambda event: EventLine("timetable in force"),
    events.ExecutionStarted: lambda event: EventLine("job started"),
    events.ExecutionEnded: _execution_end_line,
    events.ExecutionCrashed: lambda event: EventLine("job crashed", logging.ERROR, trace=event.error),
    events.ExecutionLost: lambda event: EventLine("run was taken over by another process", logging.WARNING),
    events.ExecutionTakenOver: lambda event: EventLine(
        "run taken over" if event.again else "run abandoned", logging.WARNING
    ),
    events.FiresMissed: lambda event: EventLine(
        "fires missed: no scheduler ran at their time; `batuta executions --status missed` lists them", logging.WARNING
    ),
    events.FireExplained: lambda event: EventLine(f"fire {event.status}"),
    events.TimetableActivated: lambda event: EventLine("timetable activated: its schedules fire"),
    events.TimetableStandsBy: lambda event: EventLine(
        "scheduler stands by: a more recent release runs; stop this one when the deployment is complete",
        logging.WARNING,
    ),
    events.ScheduleFailed: lambda event: EventLine(
        "schedule cannot be computed: FAIL", logging.ERROR, trace=event.error
    ),
    events.ClockStepped: lambda event: EventLine("clock set back", logging.WARNING),
    events.ControlSet: lambda event: EventLine("control set"),
    events.ItemsClaimed: lambda event: EventLine("items claimed", logging.DEBUG),
    # One line for each batch of settled items.
    events.ItemsSettled: lambda event: EventLine("items settled"),
    events.BatchFinished: lambda event: EventLine("batch ended"),
    events.ItemOverdue: lambda event: EventLine(
        f"{TIMEOUT} item exceeded its time limit: it is stopped", logging.WARNING
    ),
    # "crash" means the end of a process, so an error of a handler is a failure.
    events.ItemCrashed: lambda event: EventLine(
        "item failed" if event.task is None else "task failed", logging.ERROR, trace=event.error
    ),
    events.CallRejected: lambda event: EventLine(
        "rejected a call in Redis that is not JSON: another program writes to this Redis; "
        "change REDIS_PASSWORD and delete the key",
        logging.ERROR,
    ),
    events.ItemLost: lambda event: EventLine("item was taken over by another worker", logging.WARNING),
    events.ItemsRescued: _rescue_line,
    events.TaskThreadsStuck: lambda event: EventLine(
        f"{TIMEOUT} threads of a task still run after their time limit",
        logging.WARNING if event.stuck else logging.INFO,
    ),
    events.CircuitMoved: lambda event: EventLine(
        f"circuit {event.after}", logging.WARNING if event.after == "open" else logging.INFO
    ),
    events.AlertRaised: _alert_line,
    events.AlertSent: lambda event: EventLine("alert sent", logging.DEBUG),
    events.AlertFailed: lambda event: EventLine("alert could not be sent", logging.WARNING),
    events.PingFailed: lambda event: EventLine("ping to the dead man's switch failed", logging.WARNING),
    events.IncidentChanged: _incident_line,
    events.SettingWarned: lambda event: EventLine(
        f"{event.name} is not a setting: did you mean {event.nearest}?", logging.WARNING
    ),
    events.SubscriberFailed: lambda event: EventLine("subscriber failed", logging.ERROR, trace=event.error),
}
