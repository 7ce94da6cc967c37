"""The record of each restart of a loop or process, and the policy for a child that ended.

The policy counts the exits of the last ten minutes, so ten minutes without an exit restore the whole budget. Each
restart waits longer than the previous one. At the fifth exit the child is in a crash loop: the policy raises an
alarm and retries at the longest wait. A restart is immediate after the first exit of a child that worked for a
minute, and after a request to be recycled; both count for the alarm.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from batuta.kernel.waiting import equal_jitter, exponential


class RestartReason(StrEnum):
    STUCK = "stuck"  # a loop recorded no progress for longer than allowed
    FAILED = "failed"  # a loop failed too often in a row; its process ends
    UNCANCELLABLE = "uncancellable"  # a task did not end when it was cancelled; its process ends
    BLOCKED = "blocked"  # the event loop of a process did not respond
    STALLED = "stalled"  # a process sent its parent no heartbeat
    CRASHED = "crashed"  # a process ended by itself
    CRASH_LOOP = "crash_loop"  # a process ended too often: its parent waits longer and raises an alarm
    RECYCLED = "recycled"  # a process ended normally because it was too large or too old


# First word of faulthandler's dump when its timer ends a process.
LEFT_BY_TIMEOUT = "Timeout"


def reason_of_dump(stack: str) -> RestartReason:
    """Return the reason that is written in the first line of a faulthandler dump."""
    if stack.startswith(LEFT_BY_TIMEOUT):
        return RestartReason.BLOCKED
    return RestartReason.STALLED if "Aborted" in stack.partition("\n")[0] else RestartReason.CRASHED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRestart:
    """A restart to record. ``worker_id`` is None in the parent, which knows only the pid; ``loop`` is None for a process."""

    worker_name: str
    reason: str  # a RestartReason; a row of another release may hold a word that this release does not know
    detail: str
    host: str
    pid: int
    worker_id: str | None = None
    loop: str | None = None
    stack: str | None = None
    exit_code: int | None = None
    restarts_in_window: int = 1  # count for this loop or role, including this one


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart(NewRestart):
    """A recorded restart."""

    id: str
    at: datetime
    worker_id: str


class RestartStore(Protocol):
    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        """Add a restart and return its id. ``now=None`` means the database's time."""

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        """Return the restarts since an instant, newest first."""


EXIT_CONFIG = 2  # a restart cannot fix this error
EXIT_AGAIN = 75  # the process drained and requests a restart

NO_WAIT = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=1)
    window: timedelta = timedelta(minutes=10)
    most: int = 5  # exits within the window that make a crash loop
    # A child that ended sooner than this has not worked: its restart waits, even if it requested one.
    too_young: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class RestartDecision:
    wait: timedelta | None  # None: no restart
    ends: tuple[float, ...]  # instants of the exits that count, including this one
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
    """Decide when to restart a child. ``was_ready`` is true if a child of this role was ready before. Instants are
    monotonic seconds.
    """
    counted = (*count_recent(ends, passed, budget), passed)
    is_looping = len(counted) >= budget.most
    if exit_code == EXIT_AGAIN and lived >= budget.too_young:
        return RestartDecision(NO_WAIT, counted, is_looping)
    # After a first success, a configuration error is a later change that an operator will fix.
    if exit_code == EXIT_CONFIG and not was_ready:
        return RestartDecision(None, counted, is_looping=False)
    longest = is_looping or exit_code == EXIT_CONFIG
    if len(counted) == 1 and lived >= budget.too_young and not longest:
        return RestartDecision(NO_WAIT, counted, is_looping)
    wait = budget.cap if longest else exponential(len(counted), budget.base, budget.cap)
    return RestartDecision(equal_jitter(wait, chance), counted, is_looping)


def count_recent(ends: tuple[float, ...], passed: float, budget: Budget) -> tuple[float, ...]:
    return tuple(end for end in ends if passed - end < budget.window.total_seconds())
