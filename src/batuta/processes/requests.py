"""Requests that operators send to a process: finish the work in progress and end, restart, or dump the stacks.

    page or command ──▶ row of ``process_requests`` ──▶ RequestLoop of that process (watchdog thread) ──▶ answer in the row

The loop runs in the watchdog thread, so even a process whose event loop is blocked can write its stacks. A request
names one process by its worker id, so a process that starts later never receives it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup

RESTART_ASKED = define("restart_asked", "got a restart request from {by}")
REQUESTS_POLICY = LoopPolicy(
    every=timedelta(seconds=5), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)


class RequestKind(StrEnum):
    DRAIN = "drain"  # finish the running work, then end
    RESTART = "restart"  # finish the running work, end, and let the parent start the process again
    STACK = "stack"  # write the stacks of all threads and tasks


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    id: str
    worker_id: str
    request: str  # a value of RequestKind
    asked_by: str
    asked_at: datetime
    taken_at: datetime | None = None
    stack: str | None = None


class RequestStore(Protocol):
    async def open_requests(self, worker_id: str) -> Sequence[ProcessRequest]: ...
    async def take(self, id: str, *, now: datetime, stack: str | None = None) -> bool: ...


async def _is_open() -> None:
    """Do nothing. This is the default of the argument ``open``, for a store that is already open."""


@dataclass(slots=True, kw_only=True)
class RequestLoop:
    worker_id: str
    store: RequestStore
    clock: Clock
    drain_process: Callable[[], None]
    restart_process: Callable[[str], None]
    stacks: Callable[[], str]
    open: Callable[[], Awaitable[None]] = _is_open
    name: str = "requests"
    wakeup: Wakeup = field(default_factory=Wakeup)

    async def tick(self) -> Pace:
        await self.open()
        for each in await self.store.open_requests(self.worker_id):
            stack = self.stacks() if each.request == RequestKind.STACK else None
            # Mark the request as taken before acting on it, so that one request causes at most one restart.
            if not await self.store.take(each.id, now=self.clock.now(), stack=stack):
                continue
            if each.request == RequestKind.DRAIN:
                self.drain_process()
            elif each.request == RequestKind.RESTART:
                self.restart_process(RESTART_ASKED(by=each.asked_by))
        return Idle()
