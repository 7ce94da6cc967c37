"""Health of a queue. The backlog contains only *due* items, so items waiting for a retry are excluded. Items that a
dead worker still holds are reported as stuck.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from batuta.health.aggregator import PROBE_TIMEOUT
from batuta.health.finding import QUEUES, Check, Finding, Report, Severity, merge_reports
from batuta.health.workers import FORGOTTEN_AFTER, Beats
from batuta.kernel.clock import Clock, brief
from batuta.kernel.values import dataclass
from batuta.queue.store import Unserved

HOUR = timedelta(hours=1)
# A rescuer should have released a lease that expired longer ago than this.
STUCK_AFTER = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Exact counts of the items in a queue, read from indexes."""

    now: datetime  # time of the database's or of the application's clock
    due: int
    oldest_due_at: datetime | None
    stuck: int  # items whose lease expired longer ago than STUCK_AFTER and was not released
    dead: int  # all dead items that are still stored
    dead_lately: int  # items that became dead in the last hour
    running: int = 0
    running_since: datetime | None = None  # start of the oldest item in progress
    is_held: bool = False  # whether the queue is paused, so that no progress is expected
    held_back: int = 0  # items whose lease or due time was written before the clock was set back


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLimits:
    """Thresholds for a queue's health. A large backlog is reported only if its oldest item has waited for
    ``slow_after``.
    """

    backlog_warning: int = 1_000
    backlog_critical: int = 10_000
    slow_after: timedelta = timedelta(minutes=1)
    age_warning: timedelta = timedelta(minutes=10)
    age_critical: timedelta = timedelta(minutes=60)
    stuck_warning: int = 1
    stuck_critical: int = 10
    dead_warning: int = 6  # number of dead items per hour that causes a warning
    dead_error: int = 21
    deserted_after: timedelta = timedelta(minutes=1)  # maximum time in which items may be due while no worker runs


async def _unknown() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedQueue:
    """A queue to check. ``loops`` lists the names of the loops that serve the queue; at least one running process must
    have one of these loops.

    If ``hands_over`` is true, another process runs the claimed items, so a claimed item may still be waiting.
    ``is_empty`` returns true if ``pulse`` would certainly count no item. Several queues may answer with one statement.
    """

    name: str
    pulse: Callable[[], Awaitable[Pulse]]
    loops: tuple[str, ...]
    limits: QueueLimits = QueueLimits()
    hands_over: bool = False
    is_empty: Callable[[], Awaitable[bool]] = _unknown


def judge_queue(queue: WatchedQueue, pulse: Pulse, *, has_worker: bool, because: tuple[str, ...] = ()) -> Report:
    """Return the findings about a queue, based on its item counts. ``because`` contains the causes that explain why the
    queue has no worker.
    """
    if pulse.is_held:
        held = _finding(queue, Severity.INFO, "held", pulse, value=pulse.due, threshold=None)
        return Report(findings=(held,) if pulse.due else ())
    found = list(_findings(queue, pulse, has_worker, because))
    return Report(findings=tuple(finding for finding, _ in found), lost=sum(lost for _, lost in found))


def _findings(
    queue: WatchedQueue, pulse: Pulse, has_worker: bool, because: tuple[str, ...]
) -> Iterator[tuple[Finding, int]]:
    limits, age = queue.limits, _age(pulse)
    if pulse.held_back:
        yield _finding(queue, Severity.WARNING, "clock_set_back", pulse, value=pulse.held_back, threshold=0), 5
    waiting = _add_handed_over(pulse) if queue.hands_over else pulse
    if not has_worker and _age(waiting) > limits.deserted_after:
        found = _finding(queue, Severity.CRITICAL, "deserted", waiting, value=waiting.due, threshold=0)
        yield replace(found, says="queue_unserved" if queue.hands_over else found.says, because=because), 20
    if age > limits.slow_after and pulse.due > limits.backlog_warning:
        is_worse = pulse.due > limits.backlog_critical
        limit = limits.backlog_critical if is_worse else limits.backlog_warning
        severity = Severity.CRITICAL if is_worse else Severity.WARNING
        yield _finding(queue, severity, "backlog", pulse, value=pulse.due, threshold=limit), 15 if is_worse else 5
    if age > limits.age_warning:
        is_worse = age > limits.age_critical
        limit_seconds = (limits.age_critical if is_worse else limits.age_warning).total_seconds()
        severity = Severity.CRITICAL if is_worse else Severity.WARNING
        seconds = round(age.total_seconds())
        yield _finding(queue, severity, "old", pulse, value=seconds, threshold=limit_seconds), 10 if is_worse else 5
    if pulse.stuck >= limits.stuck_warning:
        is_worse = pulse.stuck >= limits.stuck_critical
        limit = limits.stuck_critical if is_worse else limits.stuck_warning
        severity = Severity.CRITICAL if is_worse else Severity.WARNING
        yield _finding(queue, severity, "stuck", pulse, value=pulse.stuck, threshold=limit), 10 if is_worse else 5
    if pulse.dead_lately >= limits.dead_warning:
        is_worse = pulse.dead_lately >= limits.dead_error
        limit = limits.dead_error if is_worse else limits.dead_warning
        severity = Severity.ERROR if is_worse else Severity.WARNING
        yield _finding(queue, severity, "dead", pulse, value=pulse.dead_lately, threshold=limit), 10 if is_worse else 5
    elif pulse.dead:
        yield _finding(queue, Severity.INFO, "dead_kept", pulse, value=pulse.dead, threshold=None), 0


def _finding(
    queue: WatchedQueue, severity: Severity, what: str, pulse: Pulse, *, value: float, threshold: float | None
) -> Finding:
    return Finding(
        severity=severity,
        source=QUEUES,
        cause=f"queue.{what}.{queue.name}",
        says=f"queue_{what}",
        facts={"queue": queue.name, "count": int(value), "age": brief(_age(pulse))},
        value=value,
        threshold=threshold,
        since=pulse.oldest_due_at if what in ("deserted", "old", "backlog") else None,
        # While no worker runs, the finding "deserted" explains the findings "backlog", "old" and "stuck", so they cause
        # no alert.
        because=(f"queue.deserted.{queue.name}",) if what in ("backlog", "old", "stuck") else (),
    )


def _add_handed_over(pulse: Pulse) -> Pulse:
    since = [at for at in (pulse.oldest_due_at, pulse.running_since) if at is not None]
    return replace(pulse, due=pulse.due + pulse.running, oldest_due_at=min(since, default=None))


def _age(pulse: Pulse) -> timedelta:
    return timedelta(0) if pulse.oldest_due_at is None else max(timedelta(0), pulse.now - pulse.oldest_due_at)


# A worker that knows a moved task moves its rows within a minute. Rows that stay longer than this need an operator.
REPORTED_AFTER = timedelta(minutes=5)
# Minimum time between two counts of the items of removed stages, because a count reads the whole table of a pipeline.
STAGES_EVERY = timedelta(minutes=5)

Ask = Callable[[], Awaitable[Sequence[Unserved]]]


def unserved_check(tasks: Ask, stages: Ask, beats: Beats, now: Callable[[], datetime | None], clock: Clock) -> Check:
    asked = _PeriodicQuery(stages, clock)

    async def ask() -> Report:
        if not (found := [*await tasks(), *await asked()]):
            return Report()
        signs = await beats.read_signs(within=FORGOTTEN_AFTER, now=now())
        return judge_unserved(found, signs.living_loops, signs.now)

    return Check(name="unserved", section=QUEUES, ask=ask, timeout=2 * PROBE_TIMEOUT)


class _PeriodicQuery:
    """Runs a query again only if the last run was some minutes ago, or if the last result contains items. Any other
    call returns the last result.
    """

    def __init__(self, ask: Ask, clock: Clock) -> None:
        self._ask = ask
        self._clock = clock
        self._asked_at = float("-inf")
        self._answer: Sequence[Unserved] = ()

    async def __call__(self) -> Sequence[Unserved]:
        passed = self._clock.monotonic()
        # While the query finds items, repeat it every time, so that the finding ends right after the operator's action.
        if self._answer or passed - self._asked_at >= STAGES_EVERY.total_seconds():
            self._answer = await self._ask()
            self._asked_at = passed
        return self._answer


def judge_unserved(found: Iterable[Unserved], living_loops: Collection[str], now: datetime) -> Report:
    """Report items of queues that no process serves. A queue that a process of another release serves is not reported."""
    by_queue: dict[str, list[Unserved]] = {}
    for each in found:
        if f"worker:{each.queue}" not in living_loops:
            by_queue.setdefault(each.queue, []).append(each)
    return merge_reports(_queue(queue, items, now) for queue, items in sorted(by_queue.items()))


def _queue(queue: str, items: Sequence[Unserved], now: datetime) -> Report:
    since = min(each.oldest for each in items)
    if now - since <= REPORTED_AFTER:
        return Report()
    count = sum(each.count for each in items)
    finding = Finding(
        severity=Severity.ERROR,
        source=QUEUES,
        cause=f"queue.orphaned.{queue}",
        says="queue_orphaned",
        facts={"queue": queue, "count": count, "age": brief(now - since)},
        value=count,
        threshold=0,
        since=since,
    )
    return Report(findings=(finding,), lost=10)
