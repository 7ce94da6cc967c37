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
    local_time: datetime  # in the application's zone, so that an operator can compare it with the wall


@dataclass(frozen=True, slots=True)
class ProcessServing(Event):
    role: str
    address: str


@dataclass(frozen=True, slots=True)
class ProcessDraining(Event):
    """It was asked to end: nothing new is taken, what runs may end."""

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
    """It showed its parent no sign of life for too long, and is ended. ``state``: why it cannot answer, where that is known."""

    role: str
    pid: int
    silent_for: timedelta
    state: str | None


@dataclass(frozen=True, slots=True)
class ChildEnded(Event):
    role: str
    pid: int
    exit_code: int
    again_in: timedelta | None  # None: it is not started again
    how: str = ""
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class ChildLooping(Event):
    """It ends as often as it is started. From now on it is tried once in ``again_every``, for as long as it takes."""

    role: str
    ends: int
    within: timedelta
    again_every: timedelta


@dataclass(frozen=True, slots=True)
class ChildRecovered(Event):
    """It was in a crash loop, and lives."""

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
    """It failed too often in a row; its process ends."""

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
    """It made no note of progress for longer than it may, and is being stopped. ``stack``: where it was."""

    loop: str
    silent_for: timedelta
    limit: timedelta
    stack: str


@dataclass(frozen=True, slots=True)
class LoopRestarted(Event):
    """It was stuck, has been stopped, and begins anew. ``restarts``: without a healthy stretch between them."""

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
    """Again, after it was blocked."""

    silent_for: timedelta


@dataclass(frozen=True, slots=True)
class StackFound(Event):
    """What a process that ended without a word left behind."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class ProcessRecycled(Event):
    """It has grown too large or too old: it drains and ends, and is started again."""

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


# Imported by their own names: whoever announces or hears a fact finds all of them here.


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
    """The timetable that counts from now on. ``changed``: jobs that are new or have another schedule."""

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
    """Its target failed in a way nobody foresaw."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ExecutionLost(Event):
    """Somebody took it over; what we had to say about it was not written."""

    job: str
    execution: str
    status: str


@dataclass(frozen=True, slots=True)
class ExecutionTakenOver(Event):
    """Its process does not run it any more. ``again``: it is delivered once more, with the same key; otherwise abandoned."""

    job: str
    execution: str
    attempt: int
    again: bool
    reason: str


@dataclass(frozen=True, slots=True)
class FireExplained(Event):
    """A fire that did not become a run, and why."""

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
    """The schedule of one job cannot be computed; the others go on."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ClockStepped(Event):
    """The wall clock went back. ``by`` is how far."""

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
    """What became of a batch of items: how many ended in which way, and how many were somebody else's by then.

    ``took``: the seconds that handlers worked which have ended since the last such fact.
    """

    queue: str
    counts: Mapping[str, int]
    lost: int
    took: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemOverdue(Event):
    """Its time limit is over: its handler is being stopped."""

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
    """Its lease was over before its worker was done; nothing the worker said about it was written."""

    queue: str
    item: str


@dataclass(frozen=True, slots=True)
class TaskThreadsStuck(Event):
    """The number of threads of a plain function that run on after their time limit has changed."""

    task: str
    stuck: int


@dataclass(frozen=True, slots=True)
class ItemsRescued(Event):
    """Items whose lease ended. ``dead``: those that were taken for the cause. ``proven``: their worker's process has ended."""

    queue: str
    rescued: int
    dead: int
    proven: bool = False


@dataclass(frozen=True, slots=True)
class CircuitMoved(Event):
    """A circuit breaker opened, let one try, or closed."""

    circuit: str
    before: str
    after: str
    reason: str
    failures: int


@dataclass(frozen=True, slots=True)
class AlertRaised(Event):
    """Health has something to say. ``kind``: alert or recovery."""

    kind: str
    cause: str
    severity: str
    says: str  # a sentence of ours: no text of anybody's


@dataclass(frozen=True, slots=True)
class AlertSent(Event):
    kind: str
    cause: str
    severity: str
    sink: str


@dataclass(frozen=True, slots=True)
class AlertFailed(Event):
    """It did not arrive; it is tried again, unless it was tried too often."""

    cause: str
    sink: str
    tries: int
    why: str


@dataclass(frozen=True, slots=True)
class PingFailed(Event):
    """The dead man's switch could not be told that we live."""

    why: str


@dataclass(frozen=True, slots=True)
class IncidentChanged(Event):
    """Health became critical, or is so no more."""

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
    """Hands each fact to every subscriber, in the order they came. One that fails harms neither the caller nor the others."""

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # noqa: BLE001 - a fact was announced; whoever announced it must not pay for a listener
                self._report(subscriber, event, error)

    def _report(self, failed: Subscriber, event: Event, error: Exception) -> None:
        if isinstance(event, SubscriberFailed):
            return  # a listener that fails on the news of a failure is not told again
        name = getattr(failed, "__qualname__", type(failed).__qualname__)
        self.emit(SubscriberFailed(name, type(event).__name__, error))
