"""Reacts when tasks end: ends batches, and releases or cancels the tasks that are waiting for other tasks or batches.

A task with ``after`` is stored with a due time in the far future (``HELD_UNTIL``) and a row for each task or batch that
it is waiting for, so claims skip the task at no extra cost. In each worker process, one loop checks which of the
awaited tasks and batches have ended. The loop reads the state of the rows, not counts kept by workers. So if a worker
dies or loses its lease, no information is lost, and the loop in another process carries on.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.events import Event, ItemsSettled
from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass
from batuta.supervise.loop import Again, Idle, LoopPolicy, Pace, Wakeup

# The due time of a task that is waiting for another task or a batch. It is so far in the future that clock corrections
# cannot make the task due.
HELD_UNTIL = datetime(9000, 1, 1, tzinfo=UTC)
TASK_ENDS = "task-ends"
TASK_ENDS_POLICY = LoopPolicy(every=timedelta(seconds=5), stuck_after=timedelta(minutes=1), max_failures=20)
# Interval while no batch is open and no task waits. A new batch and a new wait notify this process, unless a program wrote
# them through a SQLite connection of its own.
WHILE_UNNEEDED = timedelta(seconds=10)
# How long to wait while another process is ending batches. The loop must check again afterwards, because the other
# process may not have seen the latest change.
BUSY_WAIT = timedelta(milliseconds=100)
# After a check of many waiting tasks, the loop waits for this multiple of the time that the check took.
REST = 5

WAITS_FOR_TASK = define("waits_for_task", "it is waiting for task {name} ({id}) to end")
WAITS_FOR_BATCH = define("waits_for_batch", "it is waiting for batch {name} ({id}) to end")
WAITS_FOR_SEVERAL = define(
    "waits_for_several", "it is waiting for {count} tasks or batches to end; the first is {name} ({id})"
)
AWAITED_FAILED = define("awaited_failed", "task {name} ({id}), which it was waiting for, failed")
AWAITED_CANCELLED = define("awaited_cancelled", "task {name} ({id}), which it was waiting for, was cancelled")
AWAITED_BATCH = define("awaited_batch", "not every task of batch {name} ({id}), which it was waiting for, succeeded")
AWAITED_UNKNOWN = define("awaited_unknown", "task {id}, which it was waiting for, was discarded")


def hide_unknown_due(due: datetime | None) -> datetime | None:
    """Return a task's due time for display. Return None while the task is waiting for another task or a batch, because
    its due time is not known yet.
    """
    return None if due == HELD_UNTIL else due


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedWait:
    """A task's wait for another task or for a batch that has ended. ``ended_as`` is the final state of the awaited
    task. It is None for a batch, and for a task whose row has been deleted.
    """

    task_id: str
    for_id: str
    queue: str
    due_at: datetime
    runs_anyway: bool
    name: str | None
    is_batch: bool
    batch_succeeded: bool
    ended_as: str | None

    def why_not(self) -> Reason | None:
        """Return the reason why the waiting task must be cancelled. None means that this wait does not prevent the task
        from running.
        """
        if self.runs_anyway:
            return None
        if self.is_batch:
            return None if self.batch_succeeded else AWAITED_BATCH(name=self.name, id=self.for_id)
        match self.ended_as:
            case "complete":
                return None
            case "failed":
                return AWAITED_FAILED(name=self.name, id=self.for_id)
            case "cancelled":
                return AWAITED_CANCELLED(name=self.name, id=self.for_id)
            case _:
                return AWAITED_UNKNOWN(id=self.for_id)


@dataclass(slots=True)
class Followed:
    """The result of ``follow``: the tasks to cancel, with the reasons, and the waits that are over."""

    cancelled: dict[str, Reason] = field(default_factory=dict)
    over: list[ResolvedWait] = field(default_factory=list)


def follow(waits: Iterable[ResolvedWait]) -> Followed:
    """Decide which waiting tasks to cancel and which waits are over. If an awaited task or batch failed or was
    cancelled, the waiting task is cancelled too, unless it was enqueued with ``after_failure="run"``.
    """
    found = Followed()
    for wait in waits:
        if (why := wait.why_not()) is not None:
            found.cancelled.setdefault(wait.task_id, why)
        else:
            found.over.append(wait)
    found.over = [wait for wait in found.over if wait.task_id not in found.cancelled]
    return found


def why_waiting(rows: Sequence[Mapping[str, object]]) -> Reason:
    """Return the reason why a task is waiting. ``rows`` are the tasks and batches that it is waiting for; the reason
    names the first of them.
    """
    first = rows[0]
    facts = {"name": first["name"] or "-", "id": str(first["for_id"])}
    if len(rows) > 1:
        return WAITS_FOR_SEVERAL(count=len(rows), **facts)
    return (WAITS_FOR_BATCH if first["is_batch"] else WAITS_FOR_TASK)(**facts)


class Advance(Enum):
    """The result of ``EndStore.advance``: there was nothing to do, some work was done, or another process is doing the
    work.
    """

    NOTHING = auto()
    SOME = auto()  # some work was done, and more may remain
    BUSY = auto()  # another process is doing the work


class EndStore(Protocol):
    is_needed: bool  # whether a batch is open or a task is waiting for another task

    async def advance(self) -> Advance:
        """End batches, and release or cancel a bounded number of waiting tasks."""


class TaskEnds:
    """A loop that ends batches and releases waiting tasks. It wakes when one of this process's tasks ends."""

    name = TASK_ENDS

    def __init__(self, store: EndStore, clock: Clock, hears: Callable[[], bool] = lambda: False) -> None:
        """Create the loop. ``hears`` returns whether this process receives notifications from other processes."""
        self.wakeup = Wakeup()
        self._hears = hears
        self._store = store
        self._clock = clock
        self._rests_until = 0.0

    def on_event(self, event: Event) -> None:
        if self._store.is_needed and isinstance(event, ItemsSettled):
            self.wakeup.set()

    async def tick(self) -> Pace:
        started = self._clock.monotonic()
        if started < self._rests_until:
            return Idle(self._clock.now() + timedelta(seconds=self._rests_until - started))
        done = await self._store.advance()
        took = self._clock.monotonic() - started
        match done:
            case Advance.SOME:
                return Again()
            case Advance.BUSY:
                return Idle(self._clock.now() + BUSY_WAIT)
            case Advance.NOTHING:
                self._rests_until = started + took * REST
                is_rare = self._hears() and not self._store.is_needed
                return Idle(self._clock.now() + WHILE_UNNEEDED) if is_rare else Idle()
