"""Requests that operators send to a process: finish the work in progress and end, restart, or dump the stacks.

    page or command ──▶ row of ``process_requests`` ──▶ RequestLoop of that process (watchdog thread) ──▶ answer in the row

The loop runs in the watchdog thread, so even a process whose event loop is blocked can write its stacks. A request
names one process by its worker id, so a process that starts later never receives it.

A new request notifies the processes that listen. Such a process reads the requests rarely while it hears notifications,
that is while its event loop responds. Every other process reads them every five seconds.
"""

import asyncio
import math
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
REQUESTS = "process-requests"  # name of the notification about a new request
# Interval at which a process that hears notifications reads the requests, because a notification may be lost.
UNLESS_CALLED = timedelta(seconds=30)


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
    hears: Callable[[], bool] = lambda: False  # whether a notification would reach this process now
    name: str = "requests"
    wakeup: Wakeup = field(default_factory=Wakeup)
    _read_at: float = -math.inf
    _is_called: bool = False
    _home: asyncio.AbstractEventLoop | None = None

    def call(self) -> None:
        """Read the requests soon, but at most as often as a process that hears no notifications. May be called from any
        thread.
        """
        self._is_called = True
        if self._home is not None and not self._home.is_closed():
            self._home.call_soon_threadsafe(self.wakeup.set)

    async def tick(self) -> Pace:
        self._home, now = asyncio.get_running_loop(), self.clock.monotonic()
        wait = UNLESS_CALLED if self.hears() and not self._is_called else REQUESTS_POLICY.every
        if (left := self._read_at + wait.total_seconds() - now) > 0:
            return Idle(self.clock.now() + timedelta(seconds=left)) if self._is_called else Idle()
        self._is_called, self._read_at = False, now
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
