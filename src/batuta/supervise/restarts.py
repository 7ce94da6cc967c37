"""What was started again, and why: a loop inside its process, or a whole process by its parent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

# How long a restart is told of.
KEPT = timedelta(days=30)


class Reason(StrEnum):
    STUCK = "stuck"  # a loop made no note of progress for longer than it may
    FAILED = "failed"  # a loop failed too often in a row; its process ends
    DEAF = "deaf"  # a task did not end when it was cancelled; its process ends
    BLOCKED = "blocked"  # the event loop of a process did not answer
    STALLED = "stalled"  # a process showed its parent no sign of life
    CRASHED = "crashed"  # a process ended by itself
    CRASH_LOOP = "crash_loop"  # a process ended too often: its parent waits longer and raises an alarm
    RECYCLED = "recycled"  # a process ended in an orderly way, because it had grown too large or too old


# As Python's own fault handler begins, when its timer ends a process.
LEFT_BY_TIMEOUT = "Timeout"


def reason_of_dump(stack: str) -> Reason:
    """What the first line says that Python's own fault handler writes."""
    if stack.startswith(LEFT_BY_TIMEOUT):
        return Reason.BLOCKED
    return Reason.STALLED if "Aborted" in stack.partition("\n")[0] else Reason.CRASHED


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRestart:
    """``worker_id``: None if only its ``host`` and ``pid`` are known, as by a parent. ``loop``: None is the whole process."""

    worker_name: str
    reason: Reason
    detail: str
    host: str
    pid: int
    worker_id: str | None = None
    loop: str | None = None
    stack: str | None = None
    exit_code: int | None = None
    restarts_in_window: int = 1  # of this loop, or of this role, this one included


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    id: str
    at: datetime
    worker_id: str
    worker_name: str
    reason: str
    detail: str
    host: str
    pid: int
    loop: str | None
    stack: str | None
    exit_code: int | None
    restarts_in_window: int


class RestartStore(Protocol):
    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        """Its id. ``now``: None is the database's own time."""
        ...

    async def since(self, since: datetime, *, limit: int = 100) -> Sequence[Restart]:
        """Newest first."""
        ...

    async def prune(self, *, before: datetime) -> int: ...
