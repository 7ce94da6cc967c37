"""The record of each restart of a loop or process, and the policy for restarting a child that has ended.

The policy counts the exits in the last ten minutes. Each restart waits longer than the previous one. At the fifth exit
the child is in a crash loop: the policy raises an alarm and retries at the longest interval. A restart is immediate if
it follows the first exit of a child that worked for at least a minute, or if the child asked to be recycled. Immediate
restarts count towards the alarm too.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from batuta.kernel.values import dataclass
from batuta.kernel.waiting import equal_jitter, exponential


class RestartReason(StrEnum):
    STUCK = "stuck"  # a loop recorded no progress for longer than allowed
    FAILED = "failed"  # a loop failed too often in a row, so its process ends
    UNCANCELLABLE = "uncancellable"  # a task did not end when it was cancelled, so its process ends
    BLOCKED = "blocked"  # the event loop of a process did not respond
    STALLED = "stalled"  # a process sent no heartbeat to its parent
    CRASHED = "crashed"  # a process ended unexpectedly
    # a process ended too often, so its parent waits longer between restarts and raises an alarm
    CRASH_LOOP = "crash_loop"
    RECYCLED = "recycled"  # a process ended normally because it was too large or too old


# First word of faulthandler's dump when its timer ends a process.
LEFT_BY_TIMEOUT = "Timeout"


def reason_of_dump(stack: str) -> RestartReason:
    """Return the reason for a restart, derived from the first line of a faulthandler dump."""
    if stack.startswith(LEFT_BY_TIMEOUT):
        return RestartReason.BLOCKED
    return RestartReason.STALLED if "Aborted" in stack.partition("\n")[0] else RestartReason.CRASHED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRestart:
    """The record of a restart, before it is stored. ``worker_id`` is None if the parent records the restart, because
    the parent knows only the pid. ``loop`` is None if the whole process was restarted.
    """

    worker_name: str
    reason: str  # a value of RestartReason; a row from another release may contain an unknown word
    detail: str
    host: str
    pid: int
    worker_id: str | None = None
    loop: str | None = None
    stack: str | None = None
    exit_code: int | None = None
    restarts_in_window: int = 1  # number of recent restarts of this loop or role, including this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(NewRestart):
    """The stored record of a restart, with the record's id and the time of the restart."""

    id: str
    at: datetime
    worker_id: str


class RestartStore(Protocol):
    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        """Store the record of a restart and return the record's id. ``now=None`` means the database's time."""

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        """Return the restarts recorded since a given time, newest first."""


EXIT_CONFIG = 2  # exit code for a configuration error, which a restart cannot fix
EXIT_AGAIN = 75  # exit code of a process that drained and requests a restart

NO_WAIT = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=1)
    window: timedelta = timedelta(minutes=10)
    most: int = 5  # number of exits within the window that makes a crash loop
    # A child that ran for less than this has probably done no work. Its restart waits even if the child requested it.
    too_young: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RestartDecision:
    wait: timedelta | None  # None means no restart
    ends: tuple[float, ...]  # monotonic instants of the exits within the window, including this one
    is_looping: bool


def decide_restart(
    exit_code: int,
    lived: timedelta,
    was_ready: bool,
    ends: tuple[float, ...],
    passed: float,
    chance: float,
    budget: Budget,
) -> RestartDecision:
    """Decide whether and when to restart a child that has ended. ``was_ready`` is true if any child of this role was
    ready before. Instants are monotonic seconds.
    """
    counted = (*count_recent(ends, passed, budget), passed)
    is_looping = len(counted) >= budget.most
    if exit_code == EXIT_AGAIN and lived >= budget.too_young:
        return RestartDecision(NO_WAIT, counted, is_looping)
    # A configuration error ends the tree only if no child of this role was ever ready. Otherwise the configuration was
    # changed later, and the parent retries until an operator corrects it.
    if exit_code == EXIT_CONFIG and not was_ready:
        return RestartDecision(None, counted, is_looping=False)
    longest = is_looping or exit_code == EXIT_CONFIG
    if len(counted) == 1 and lived >= budget.too_young and not longest:
        return RestartDecision(NO_WAIT, counted, is_looping)
    wait = budget.cap if longest else exponential(len(counted), budget.base, budget.cap)
    return RestartDecision(equal_jitter(wait, chance), counted, is_looping)


def count_recent(ends: tuple[float, ...], passed: float, budget: Budget) -> tuple[float, ...]:
    return tuple(end for end in ends if passed - end < budget.window.total_seconds())
