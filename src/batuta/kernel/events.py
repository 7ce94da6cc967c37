"""Facts, emitted once as frozen dataclasses. Log lines, metrics, the dashboard and alerts subscribe to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias


@dataclass(frozen=True, slots=True)
class Event:
    """A fact. Every event is a subclass."""


@dataclass(frozen=True, slots=True)
class ProcessStarted(Event):
    role: str
    version: str
    local_time: datetime  # in the application's zone, so that an operator can compare it with a wall clock


@dataclass(frozen=True, slots=True)
class ProcessServing(Event):
    role: str
    address: str


@dataclass(frozen=True, slots=True)
class ProcessDraining(Event):
    """The process was asked to end: it takes no new work, and running work may end."""

    role: str


@dataclass(frozen=True, slots=True)
class ProcessEnded(Event):
    role: str
    reason: str
    failed: bool


@dataclass(frozen=True, slots=True)
class ProcessHeld(Event):
    """The shutdown is over, but ``what`` (threads or tasks that it started) would keep the process alive: it exits by force."""

    role: str
    what: str


@dataclass(frozen=True, slots=True)
class ChildStarted(Event):
    role: str
    pid: int


@dataclass(frozen=True, slots=True)
class ChildReady(Event):
    role: str
    pid: int
    took: timedelta


@dataclass(frozen=True, slots=True)
class ChildSilent(Event):
    """A child showed no heartbeat for too long and is ended. ``state``: why it cannot answer, if known."""

    role: str
    pid: int
    silent_for: timedelta
    state: str | None


@dataclass(frozen=True, slots=True)
class ChildEnded(Event):
    role: str
    pid: int
    exit_code: int
    again_in: timedelta | None  # None: not restarted
    how: str = ""
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class ChildLooping(Event):
    """A child ends each time it is started. From now on it is restarted once per ``again_every``."""

    role: str
    ends: int
    within: timedelta
    again_every: timedelta


@dataclass(frozen=True, slots=True)
class ChildRecovered(Event):
    """A child left its crash loop."""

    role: str
    ends: int


@dataclass(frozen=True, slots=True)
class LoopFailed(Event):
    loop: str
    error: BaseException
    failures: int
    again_in: timedelta


@dataclass(frozen=True, slots=True)
class LoopAbandoned(Event):
    """A loop failed too often in a row; its process ends."""

    loop: str
    error: BaseException
    failures: int


@dataclass(frozen=True, slots=True)
class LoopRecovered(Event):
    loop: str
    failures: int
    down_for: timedelta


@dataclass(frozen=True, slots=True)
class LoopStuck(Event):
    """A loop recorded no progress for longer than allowed and is being stopped. ``stack``: its position."""

    loop: str
    silent_for: timedelta
    limit: timedelta
    stack: str


@dataclass(frozen=True, slots=True)
class LoopRestarted(Event):
    """A stuck loop was stopped and restarted. ``restarts``: count without a healthy period in between."""

    loop: str
    silent_for: timedelta
    restarts: int
    again_in: timedelta
    stack: str


@dataclass(frozen=True, slots=True)
class TaskDeaf(Event):
    """A task ignored every cancellation. The process drains and ends."""

    loop: str
    what: str
    stack: str


@dataclass(frozen=True, slots=True)
class EventLoopBlocked(Event):
    """The event loop does not answer the watchdog thread; at ``limit`` the process ends. ``stack``: None at first."""

    silent_for: timedelta
    limit: timedelta
    stack: str | None


@dataclass(frozen=True, slots=True)
class EventLoopAnswers(Event):
    """The event loop answers again after it was blocked."""

    silent_for: timedelta


@dataclass(frozen=True, slots=True)
class StackFound(Event):
    """The stack that a process left behind when it ended without a message."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class ProcessRecycled(Event):
    """A process grew too large or too old: it drains, ends and is started again."""

    role: str
    why: str


@dataclass(frozen=True, slots=True)
class ShutdownPhase(Event):
    """A shutdown enters a phase (``supervise.shutdown``). ``loops``: those it waits for; ``left``: until the deadline."""

    phase: str
    loops: tuple[str, ...]
    left: timedelta


@dataclass(frozen=True, slots=True)
class LoopEnded(Event):
    """``drained``: False if the deadline cut off its tick or its drain, or its drain failed."""

    loop: str
    drained: bool


# Imported under their own names: this module lists all events.


@dataclass(frozen=True, slots=True)
class SwitchChanged(Event):
    key: str
    on: bool
    by: str
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class MigrationApplied(Event):
    migration: str
    took: timedelta


@dataclass(frozen=True, slots=True)
class RequestAnswered(Event):
    method: str
    route: str  # the template, never the path: a path may carry a phone number
    status: int
    took: timedelta
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestCrashed(Event):
    method: str
    route: str
    error: BaseException
    request_id: str


@dataclass(frozen=True, slots=True)
class JobAnswered(Event):
    endpoint: str
    outcome: str
    reason: str | None
    items: int | None
    took: timedelta


@dataclass(frozen=True, slots=True)
class JobCrashed(Event):
    endpoint: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class JobsRegistered(Event):
    """Registration of the current timetable. ``changed``: jobs that are new or have another schedule."""

    profile: str
    jobs: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionStarted(Event):
    job: str
    category: str
    execution: str
    trigger: str
    scheduled_for: datetime | None
    attempt: int
    late: timedelta  # between the fire's instant and its delivery


@dataclass(frozen=True, slots=True)
class ExecutionEnded(Event):
    job: str
    category: str
    execution: str
    status: str
    error: str | None
    reason: str | None
    items: int | None
    took: timedelta


@dataclass(frozen=True, slots=True)
class ExecutionCrashed(Event):
    """The target of a run raised an unexpected error."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ExecutionLost(Event):
    """Another scheduler took the run over; the result of this process was not written."""

    job: str
    execution: str
    status: str


@dataclass(frozen=True, slots=True)
class ExecutionTakenOver(Event):
    """The owner of a run no longer runs it. ``again``: it is delivered again with the same key; otherwise abandoned."""

    job: str
    execution: str
    attempt: int
    again: bool
    reason: str


@dataclass(frozen=True, slots=True)
class FireExplained(Event):
    """A fire that did not become a run, with the reason."""

    job: str
    category: str
    scheduled_for: datetime | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class TimetableActivated(Event):
    """The schedules of this version fire from now on. ``before``: the timetable that was active until then, if any."""

    timetable: str
    before: str | None


@dataclass(frozen=True, slots=True)
class TimetableStandsBy(Event):
    """A scheduler of a more recent version lives: this one fires nothing, and finishes its runs."""

    timetable: str
    behind: str


@dataclass(frozen=True, slots=True)
class ScheduleFailed(Event):
    """The schedule of one job cannot be computed; the other jobs continue."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ClockStepped(Event):
    """The wall clock was set back by ``by``."""

    by: timedelta


@dataclass(frozen=True, slots=True)
class ControlSet(Event):
    control: str
    by: str


@dataclass(frozen=True, slots=True)
class ItemsClaimed(Event):
    """A batch of items that starts now. ``waited``: for each, the seconds since it was due."""

    queue: str
    waited: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ItemsSettled(Event):
    """A batch of items was settled. ``counts``: items per outcome; ``lost``: items whose lease another worker held;
    ``took``: seconds of each handler that ended since the last such event.
    """

    queue: str
    counts: Mapping[str, int]
    lost: int
    took: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemOverdue(Event):
    """An item exceeded its time limit: its handler is being stopped."""

    queue: str
    item: str
    limit: timedelta


@dataclass(frozen=True, slots=True)
class ItemCrashed(Event):
    queue: str
    item: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ItemLost(Event):
    """The lease of an item ended before its worker finished; the worker's result was not written."""

    queue: str
    item: str


@dataclass(frozen=True, slots=True)
class TaskThreadsStuck(Event):
    """The number of threads of a plain function that run beyond their time limit has changed."""

    task: str
    stuck: int


@dataclass(frozen=True, slots=True)
class ItemsRescued(Event):
    """Items whose lease ended. ``dead``: those judged to be the cause. ``proven``: their worker's process has ended."""

    queue: str
    rescued: int
    dead: int
    proven: bool = False


@dataclass(frozen=True, slots=True)
class CircuitMoved(Event):
    """A circuit breaker opened, allowed a probe, or closed."""

    circuit: str
    before: str
    after: str
    reason: str
    failures: int


@dataclass(frozen=True, slots=True)
class AlertRaised(Event):
    """A health alert. ``kind``: alert or recovery."""

    kind: str
    cause: str
    severity: str
    says: str  # a sentence of the engine, without personal data


@dataclass(frozen=True, slots=True)
class AlertSent(Event):
    kind: str
    cause: str
    severity: str
    sink: str


@dataclass(frozen=True, slots=True)
class AlertFailed(Event):
    """An alert was not delivered; it is retried up to a limit."""

    cause: str
    sink: str
    tries: int
    why: str


@dataclass(frozen=True, slots=True)
class PingFailed(Event):
    """The ping of the dead man's switch failed."""

    why: str


@dataclass(frozen=True, slots=True)
class IncidentChanged(Event):
    """Health became critical, or recovered."""

    incident: str
    is_open: bool
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingWarned(Event):
    name: str
    nearest: str


@dataclass(frozen=True, slots=True)
class SubscriberFailed(Event):
    subscriber: str
    event: str
    error: BaseException


Subscriber: TypeAlias = Callable[[Event], None]


class Events(Protocol):
    def emit(self, event: Event) -> None:
        """Return at once and never raise."""
        ...


class Fanout:
    """Hands each event to every subscriber in order. A subscriber that fails harms neither the caller nor the others."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # noqa: BLE001 - a failing subscriber must not harm the emitter
                self._report(subscriber, event, error)

    def _report(self, failed: Subscriber, event: Event, error: Exception) -> None:
        if isinstance(event, SubscriberFailed):
            return  # a subscriber that fails on its own failure event does not receive it again
        name = getattr(failed, "__qualname__", type(failed).__qualname__)
        self.emit(SubscriberFailed(name, type(event).__name__, error))
