"""Facts, announced once. Log line, metric, dashboard and alert are subscribers; whoever announces knows none of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

# Imported by their own names: whoever announces or hears a fact finds all of them here.
from batuta.kernel.process_events import (
    ChildEnded as ChildEnded,
)
from batuta.kernel.process_events import (
    ChildLooping as ChildLooping,
)
from batuta.kernel.process_events import (
    ChildReady as ChildReady,
)
from batuta.kernel.process_events import (
    ChildRecovered as ChildRecovered,
)
from batuta.kernel.process_events import (
    ChildSilent as ChildSilent,
)
from batuta.kernel.process_events import (
    ChildStarted as ChildStarted,
)
from batuta.kernel.process_events import (
    EventLoopAnswers as EventLoopAnswers,
)
from batuta.kernel.process_events import (
    EventLoopBlocked as EventLoopBlocked,
)
from batuta.kernel.process_events import (
    LoopAbandoned as LoopAbandoned,
)
from batuta.kernel.process_events import (
    LoopEnded as LoopEnded,
)
from batuta.kernel.process_events import (
    LoopFailed as LoopFailed,
)
from batuta.kernel.process_events import (
    LoopRecovered as LoopRecovered,
)
from batuta.kernel.process_events import (
    LoopRestarted as LoopRestarted,
)
from batuta.kernel.process_events import (
    LoopStuck as LoopStuck,
)
from batuta.kernel.process_events import (
    ProcessDraining as ProcessDraining,
)
from batuta.kernel.process_events import (
    ProcessEnded as ProcessEnded,
)
from batuta.kernel.process_events import (
    ProcessEvent,
)
from batuta.kernel.process_events import (
    ProcessHeld as ProcessHeld,
)
from batuta.kernel.process_events import (
    ProcessRecycled as ProcessRecycled,
)
from batuta.kernel.process_events import (
    ProcessServing as ProcessServing,
)
from batuta.kernel.process_events import (
    ProcessStarted as ProcessStarted,
)
from batuta.kernel.process_events import (
    ShutdownPhase as ShutdownPhase,
)
from batuta.kernel.process_events import (
    StackFound as StackFound,
)
from batuta.kernel.process_events import (
    TaskDeaf as TaskDeaf,
)


@dataclass(frozen=True, slots=True)
class SwitchTurned:
    key: str
    on: bool
    by: str
    reason: str
    until: datetime | None


@dataclass(frozen=True, slots=True)
class MigrationApplied:
    migration: str
    took: timedelta


@dataclass(frozen=True, slots=True)
class RequestAnswered:
    method: str
    route: str  # the template, never the path: a path may carry a phone number
    status: int
    took: timedelta
    request_id: str


@dataclass(frozen=True, slots=True)
class RequestCrashed:
    method: str
    route: str
    error: BaseException
    request_id: str


@dataclass(frozen=True, slots=True)
class JobAnswered:
    endpoint: str
    outcome: str
    reason: str | None
    items: int | None
    took: timedelta


@dataclass(frozen=True, slots=True)
class JobCrashed:
    endpoint: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class JobsRegistered:
    """The timetable that counts from now on. ``changed``: jobs that are new or have another schedule."""

    profile: str
    jobs: int
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExecutionStarted:
    job: str
    categoria: str
    execution: str
    trigger: str
    scheduled_for: datetime | None
    attempt: int
    late: timedelta  # between the fire's instant and its delivery


@dataclass(frozen=True, slots=True)
class ExecutionEnded:
    job: str
    categoria: str
    execution: str
    status: str
    error: str | None
    reason: str | None
    items: int | None
    took: timedelta


@dataclass(frozen=True, slots=True)
class ExecutionCrashed:
    """Its target failed in a way nobody foresaw."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ExecutionLost:
    """Somebody took it over; what we had to say about it was not written."""

    job: str
    execution: str
    status: str


@dataclass(frozen=True, slots=True)
class ExecutionTakenOver:
    """Its process fell silent. ``again``: it is delivered once more, with the same key."""

    job: str
    execution: str
    attempt: int
    again: bool


@dataclass(frozen=True, slots=True)
class FireExplained:
    """A fire that did not become a run, and why."""

    job: str
    categoria: str
    scheduled_for: datetime | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class TimetableActivated:
    """The schedules of this version fire from now on. ``before``: the timetable that was active until then, if any."""

    timetable: str
    before: str | None


@dataclass(frozen=True, slots=True)
class TimetableStandsBy:
    """A scheduler of a more recent version lives: this one fires nothing, and finishes its runs."""

    timetable: str
    behind: str


@dataclass(frozen=True, slots=True)
class ScheduleFailed:
    """The schedule of one job cannot be computed; the others go on."""

    job: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ClockStepped:
    """The wall clock went back. ``by`` is how far."""

    by: timedelta


@dataclass(frozen=True, slots=True)
class ControlSet:
    control: str
    by: str


@dataclass(frozen=True, slots=True)
class ItemsClaimed:
    """A batch of items that starts now. ``waited``: for each, the seconds since it was due."""

    queue: str
    waited: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ItemsSettled:
    """What became of a batch of items: how many ended in which way, and how many were somebody else's by then.

    ``took``: the seconds that handlers worked which have ended since the last such fact.
    """

    queue: str
    counts: Mapping[str, int]
    lost: int
    took: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemOverdue:
    """Its time limit is over: its handler is being stopped."""

    queue: str
    item: str
    limit: timedelta


@dataclass(frozen=True, slots=True)
class ItemCrashed:
    queue: str
    item: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class ItemLost:
    """Its lease was over before its worker was done; nothing the worker said about it was written."""

    queue: str
    item: str


@dataclass(frozen=True, slots=True)
class TaskThreadsStuck:
    """The number of threads of a plain function that run on after their time limit has changed."""

    task: str
    stuck: int


@dataclass(frozen=True, slots=True)
class ItemsRescued:
    """Items whose lease ended. ``dead``: those that were taken for the cause. ``proven``: their worker's process has ended."""

    queue: str
    rescued: int
    dead: int
    proven: bool = False


@dataclass(frozen=True, slots=True)
class CircuitMoved:
    """A circuit breaker opened, let one try, or closed."""

    circuit: str
    before: str
    after: str
    reason: str
    failures: int


@dataclass(frozen=True, slots=True)
class AlertRaised:
    """Health has something to say. ``kind``: alert or recovery."""

    kind: str
    cause: str
    severity: str
    says: str  # a sentence of ours: no text of anybody's


@dataclass(frozen=True, slots=True)
class AlertSent:
    kind: str
    cause: str
    severity: str
    sink: str


@dataclass(frozen=True, slots=True)
class AlertFailed:
    """It did not arrive; it is tried again, unless it was tried too often."""

    cause: str
    sink: str
    tries: int
    why: str


@dataclass(frozen=True, slots=True)
class PingFailed:
    """The dead man's switch could not be told that we live."""

    why: str


@dataclass(frozen=True, slots=True)
class IncidentTurned:
    """Health became critical, or is so no more."""

    incident: str
    is_open: bool
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingWarned:
    name: str
    nearest: str


@dataclass(frozen=True, slots=True)
class SubscriberFailed:
    subscriber: str
    event: str
    error: BaseException


Event: TypeAlias = (
    ProcessEvent
    | SwitchTurned
    | MigrationApplied
    | RequestAnswered
    | RequestCrashed
    | JobAnswered
    | JobCrashed
    | JobsRegistered
    | ExecutionStarted
    | ExecutionEnded
    | ExecutionCrashed
    | ExecutionLost
    | ExecutionTakenOver
    | FireExplained
    | TimetableActivated
    | TimetableStandsBy
    | ScheduleFailed
    | ClockStepped
    | ControlSet
    | ItemsClaimed
    | ItemsSettled
    | ItemOverdue
    | ItemCrashed
    | ItemLost
    | ItemsRescued
    | TaskThreadsStuck
    | CircuitMoved
    | AlertRaised
    | AlertSent
    | AlertFailed
    | PingFailed
    | IncidentTurned
    | SettingWarned
    | SubscriberFailed
)
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
