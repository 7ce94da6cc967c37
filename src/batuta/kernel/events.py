"""Events: facts that the code emits once, as frozen dataclasses. The code for logs, metrics, the dashboard and alerts
subscribes to them.
"""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias, dataclass_transform

from batuta.kernel.values import dataclass


@dataclass_transform(frozen_default=True)
@dataclass(frozen=True)
class Event:
    """Base class of every event. Every subclass becomes a frozen dataclass and needs no decorator."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class ProcessStarted(Event):
    role: str
    version: str
    local_time: datetime  # in the application's time zone, so that an operator can compare it with a wall clock


class ProcessServing(Event):
    role: str
    address: str


class ProcessDraining(Event):
    """The process received a request to stop: it takes no new work, and work in progress may finish."""

    role: str


class ProcessEnded(Event):
    role: str
    reason: str
    failed: bool


class ProcessHeld(Event):
    """The shutdown finished, but ``what`` (threads or tasks) is still running, so the process forces its exit."""

    role: str
    what: str


class ChildStarted(Event):
    role: str
    pid: int


class ChildReady(Event):
    role: str
    pid: int
    took: timedelta


class ChildSilent(Event):
    """A child process sent no heartbeat for too long, so the parent kills it. ``state`` is the state that the kernel
    reports for the child, if known.
    """

    role: str
    pid: int
    silent_for: timedelta
    state: str | None


class ChildEnded(Event):
    role: str
    pid: int
    exit_code: int
    again_in: timedelta | None  # None: the parent does not restart the child
    how: str = ""
    stack: str | None = None


class ChildLooping(Event):
    """A child process exits after every start (a crash loop). From now on the parent restarts it once per
    ``again_every``.
    """

    role: str
    ends: int
    within: timedelta
    again_every: timedelta


class ChildRecovered(Event):
    """A child process is running again after a crash loop in which it exited ``ends`` times."""

    role: str
    ends: int


class LoopFailed(Event):
    loop: str
    error: BaseException
    failures: int
    again_in: timedelta


class ResourceCloseFailed(Event):
    """The close function of a resource raised an error. The process closes the remaining resources nevertheless."""

    resource: str
    error: BaseException


class LoopAbandoned(Event):
    """A loop failed too often in a row, so its process ends."""

    loop: str
    error: BaseException
    failures: int


class LoopRecovered(Event):
    loop: str
    failures: int
    down_for: timedelta


class LoopStuck(Event):
    """A loop made no progress for longer than ``limit`` and is being stopped. ``stack`` shows the code that the loop is
    executing.
    """

    loop: str
    silent_for: timedelta
    limit: timedelta
    stack: str


class LoopRestarted(Event):
    """A stuck loop was stopped and restarted. ``restarts`` counts the restarts since the loop last ran normally."""

    loop: str
    silent_for: timedelta
    restarts: int
    again_in: timedelta
    stack: str


class TaskUncancellable(Event):
    """An asyncio task ignored every cancellation, so its process drains and ends."""

    loop: str
    what: str
    stack: str


class EventLoopBlocked(Event):
    """The event loop does not respond to the watchdog thread. If it stays blocked for ``limit``, the watchdog ends the
    process. The watchdog reports the same blocked event loop several times; ``stack`` is None in the first event.
    """

    silent_for: timedelta
    limit: timedelta
    stack: str | None


class EventLoopResponds(Event):
    """The event loop responds again after it was blocked."""

    silent_for: timedelta


class StackFound(Event):
    """An earlier process of this role ended without reporting why. Its stack trace was found in the role's crash
    file.
    """

    role: str
    pid: int
    stack: str


class ProcessRecycled(Event):
    """A process grew too large or too old, so it drains, ends and is restarted."""

    role: str
    why: str


class ShutdownPhase(Event):
    """A shutdown enters a phase (listed in ``supervise.shutdown``) and waits for ``loops``. ``left`` is the time until
    the deadline.
    """

    phase: str
    loops: tuple[str, ...]
    left: timedelta


class LoopEnded(Event):
    """A loop ended at shutdown. ``drained`` is False if the deadline interrupted the loop's tick or its drain, or if
    its drain failed.
    """

    loop: str
    drained: bool


class SwitchChanged(Event):
    key: str
    on: bool
    by: str
    reason: str
    until: datetime | None


class MigrationApplied(Event):
    migration: str
    took: timedelta


class RequestAnswered(Event):
    method: str
    route: str  # the route template instead of the path, because a path may contain a phone number
    status: int
    took: timedelta
    request_id: str
    # the name of the token or session; None if the route needs no authentication or the request was refused
    caller: str | None = None


class RequestsRefused(Event):
    """The API refused ``count`` requests from one client in the minute that starts at ``since``."""

    client: str
    since: datetime
    count: int


class RequestCrashed(Event):
    method: str
    route: str
    error: BaseException
    request_id: str


class JobAnswered(Event):
    endpoint: str
    outcome: str
    reason: str | None
    items: int | None
    took: timedelta


class JobCrashed(Event):
    endpoint: str
    error: BaseException


class JobsRegistered(Event):
    """A scheduler registered its timetable. ``changed`` lists the jobs that are new or whose schedule changed."""

    profile: str
    jobs: int
    changed: tuple[str, ...]


class ExecutionStarted(Event):
    job: str
    category: str
    execution: str
    trigger: str
    scheduled_for: datetime | None
    attempt: int
    late: timedelta  # time between the instant of the fire and its delivery


class ExecutionEnded(Event):
    job: str
    category: str
    execution: str
    status: str
    error: str | None
    reason: str | None
    items: int | None
    took: timedelta


class ExecutionCrashed(Event):
    """An unexpected error occurred while a job's run was executed or while its outcome was stored."""

    job: str
    error: BaseException


class ExecutionLost(Event):
    """Another scheduler took the run over, so this process's result for the run was not written."""

    job: str
    execution: str
    status: str


class ExecutionTakenOver(Event):
    """The process that owned a run no longer works on it. If ``again`` is true, the run is delivered again with the
    same idempotency key; otherwise the run is abandoned.
    """

    job: str
    execution: str
    attempt: int
    again: bool
    reason: str


class FiresMissed(Event):
    """Fires were missed because no scheduler was running when they were due. One event reports all missed fires that
    one check found; ``counts`` maps each job to the number of its missed fires.
    """

    fires: int
    jobs: int
    first: datetime
    last: datetime
    counts: Mapping[str, int]


class FireExplained(Event):
    """A fire was skipped. ``status`` is the recorded state, and ``reason`` says why the fire was skipped."""

    job: str
    category: str
    scheduled_for: datetime | None
    status: str
    reason: str | None


class TimetableActivated(Event):
    """A release's timetable became active: from now on the jobs and schedules of this release fire. ``before`` is the
    timetable that was active until now, if any.
    """

    timetable: str
    before: str | None


class TimetableStandsBy(Event):
    """This scheduler starts no runs and only finishes its runs in progress, because a scheduler of a newer release is
    alive.
    """

    timetable: str
    behind: str


class ScheduleFailed(Event):
    """The next fires of one job cannot be computed. The other jobs are not affected."""

    job: str
    error: BaseException


class ClockStepped(Event):
    """The wall clock jumped backwards by the duration ``by``."""

    by: timedelta


class ControlSet(Event):
    control: str
    by: str


class ItemsClaimed(Event):
    """A worker claimed a batch of items and is starting them. ``waited`` contains, for each item, the seconds from its
    due time to the claim.
    """

    queue: str
    waited: tuple[float, ...]


class ItemsSettled(Event):
    """A batch of items was settled. ``counts`` says how many items had each outcome. ``lost`` is the number of items
    whose lease now belongs to another worker. ``took`` contains the duration in seconds of each handler that ended
    since the previous ItemsSettled event.
    """

    queue: str
    counts: Mapping[str, int]
    lost: int
    took: tuple[float, ...] = ()


class BatchFinished(Event):
    """A batch of tasks has ended. The counts say how many of its tasks ended with each outcome."""

    batch: str
    succeeded: int
    failed: int
    cancelled: int


class ItemOverdue(Event):
    """An item exceeded its time limit, and the worker is stopping its handler."""

    queue: str
    item: str
    limit: timedelta


class ItemCrashed(Event):
    """A handler raised an error. ``task`` is None if the item is not a task call."""

    queue: str
    item: str
    error: BaseException
    task: str | None = None


class CallRejected(Event):
    """A call or a result in Redis is not valid JSON, so it cannot come from the engine, and the engine ignores it.
    ``size`` is in bytes.
    """

    size: int


class ItemLost(Event):
    """An item's lease ended before its worker had finished, so the worker's result was not written."""

    queue: str
    item: str


class TaskThreadsStuck(Event):
    """Threads of a task are still running although the task's time limit has passed. ``stuck`` is the number of these
    threads; the event is emitted when this number changes.
    """

    task: str
    stuck: int


class ItemsRescued(Event):
    """Items whose leases expired were released. ``dead`` counts the items that were marked dead after repeated worker
    crashes. ``proven`` is true if the kernel confirmed that the worker's process ended. ``tasks`` names the called
    tasks; it is empty if the items are not task calls.
    """

    queue: str
    rescued: int
    dead: int
    proven: bool = False
    tasks: tuple[str, ...] = ()


class CircuitMoved(Event):
    """A circuit breaker opened, became half-open for a probe, or closed."""

    circuit: str
    before: str
    after: str
    reason: str
    failures: int


class AlertRaised(Event):
    """Health checks raised an alert or reported a recovery; ``kind`` is ``alert`` or ``recovery``."""

    kind: str
    cause: str
    severity: str
    says: str  # a sentence of the engine's texts, without personal data


class AlertSent(Event):
    kind: str
    cause: str
    severity: str
    sink: str


class AlertFailed(Event):
    """A receiver of alerts, such as Slack, did not accept an alert. The engine repeats the delivery a limited number of
    times.
    """

    cause: str
    sink: str
    tries: int
    why: str


class PingFailed(Event):
    """The ping to the dead man's switch failed."""

    why: str


class IncidentChanged(Event):
    """An incident opened because health became critical, or was resolved because health recovered."""

    incident: str
    is_open: bool
    causes: tuple[str, ...]


class SettingWarned(Event):
    name: str
    nearest: str


class SubscriberFailed(Event):
    subscriber: str
    event: str
    error: BaseException


Subscriber: TypeAlias = Callable[[Event], None]


class Events(Protocol):
    def emit(self, event: Event) -> None:
        """Pass the event to the subscribers without blocking. Subscribers' errors are not raised."""


class Fanout:
    """Passes each event to every subscriber, in the order in which they subscribed. An error in one subscriber reaches
    neither the emitter nor the other subscribers.
    """

    def __init__(self, *subscribers: Subscriber) -> None:
        self._subscribers = list(subscribers)

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def unsubscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.remove(subscriber)

    @property
    def subscribers(self) -> tuple[Subscriber, ...]:
        return tuple(self._subscribers)

    def has(self, *kinds: type) -> bool:
        """Return whether any subscriber is an instance of one of the classes ``kinds``."""
        return any(isinstance(each, kinds) for each in self._subscribers)

    def emit(self, event: Event) -> None:
        for subscriber in self._subscribers:
            try:
                subscriber(event)
            except Exception as error:  # noqa: BLE001 - a failing subscriber must not harm the emitter
                self._report(subscriber, event, error)

    def _report(self, failed: Subscriber, event: Event, error: Exception) -> None:
        if isinstance(event, SubscriberFailed):
            return  # not logged, because the log would raise the same error again
        name = getattr(failed, "__qualname__", type(failed).__qualname__)
        self.emit(SubscriberFailed(name, type(event).__name__, error))
