"""A process's heartbeat: the state of its loops, its memory and CPU use, and its loops' restarts."""

import asyncio
import os
import resource
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from batuta.kernel.clock import Clock, brief
from batuta.kernel.events import Event, LoopAbandoned, LoopRestarted, TaskUncancellable
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.processes.restarts import NewRestart, RestartReason, RestartStore
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup
from batuta.supervise.running import LoopState

NO_PROGRESS = define("no_progress", "no progress for {silent}")
LOOP_FAILURES = define("loop_failures", "{count} failures in a row; the last: {error}")
IGNORES_CANCEL = define("ignores_cancel", "{what} ignores its cancellation")

_PAGE = resource.getpagesize()
_STATM = Path("/proc/self/statm")


def rss_bytes() -> int:
    """Return how much memory this process uses, in bytes, or its peak if the system does not report the current
    value.
    """
    try:
        return int(_STATM.read_text().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def cpu_seconds() -> float:
    used = os.times()
    return round(used.user + used.system, 2)


HEARTBEAT_EVERY = timedelta(seconds=15)
HEARTBEAT_POLICY = LoopPolicy(
    every=HEARTBEAT_EVERY,
    stuck_after=timedelta(minutes=1),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    outlives=True,
)

MOST_PENDING = 100

LoopStatuses: TypeAlias = Mapping[str, Mapping[str, bool | float | int | None]]


class ProcessStatus(StrEnum):
    ONLINE = "online"
    DEGRADED = "degraded"  # a loop fails, is stuck, or has ended
    DRAINING = "draining"
    STALLED = "stalled"  # the event loop does not respond
    OFFLINE = "offline"  # the process ended normally


class BeatStore(Protocol):
    async def beat(
        self,
        worker_id: str,
        worker_name: str,
        loops: LoopStatuses,
        *,
        now: datetime | None = None,
        status: str = "online",
        rss_bytes: int | None = None,
        cpu_seconds: float | None = None,
    ) -> None: ...


async def _is_open() -> None:
    """Do nothing. This is the default of ``Heartbeat.open``, for a store that is already open."""


@dataclass(slots=True, kw_only=True)
class Heartbeat:
    """Loop that writes a process's heartbeat, with the state of all its loops. The heartbeat may run on a different event
    loop from the loops that it reports.

    ``running`` returns the loops to report; it is called at each heartbeat. ``now`` returns the time to write, or None
    for the database's time. ``state`` returns the state of the whole process, or None to derive it from all loops.
    ``open`` is called before each heartbeat. ``shows`` lists the names of the loops that the heartbeat reports; None
    means all.
    """

    worker_id: str
    worker_name: str
    store: BeatStore
    restarts: RestartStore
    running: Callable[[], Collection[LoopState]]
    clock: Clock
    now: Callable[[], datetime | None]
    state: Callable[[], ProcessStatus | None] = lambda: None
    open: Callable[[], Awaitable[None]] = _is_open
    shows: Collection[str] | None = None
    name: str = "heartbeat"
    wakeup: Wakeup = field(default_factory=Wakeup)
    _pending: "deque[NewRestart]" = field(default_factory=lambda: deque(maxlen=MOST_PENDING))
    _home: asyncio.AbstractEventLoop | None = None

    async def tick(self) -> Pace:
        self._home = asyncio.get_running_loop()
        await self.open()
        await self._write_restarts()
        await self._beat(self.state() or status_of(self._neighbours(), self.clock.monotonic()))
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        """Write the last heartbeat, which marks the process as ended normally."""
        await self.open()
        await self._write_restarts()
        await self._beat(ProcessStatus.OFFLINE)

    def on_event(self, event: Event) -> None:
        """Receive an event from the supervisor. If the event is about a restart, record the restart."""
        match event:
            case LoopRestarted(loop=loop, silent_for=silent, restarts=restarts, stack=stack):
                detail = NO_PROGRESS(silent=brief(silent))
                restart = self.restart(RestartReason.STUCK, detail, loop=loop, stack=stack, restarts=restarts)
            case LoopAbandoned(loop=loop, error=error, failures=failures):
                detail = LOOP_FAILURES(count=failures, error=type(error).__name__)
                restart = self.restart(RestartReason.FAILED, detail, loop=loop)
            case TaskUncancellable(loop=loop, what=what, stack=stack):
                restart = self.restart(RestartReason.UNCANCELLABLE, IGNORES_CANCEL(what=what), loop=loop, stack=stack)
            case _:
                return
        self.record(restart)

    def record(self, restart: NewRestart) -> None:
        """Record a restart, and write a heartbeat with it immediately. May be called from any thread."""
        self._pending.append(restart)
        self.wake()

    def wake(self) -> None:
        """Write a heartbeat immediately. May be called from any thread."""
        if self._home is not None and not self._home.is_closed():
            self._home.call_soon_threadsafe(self.wakeup.set)

    def restart(
        self,
        reason: RestartReason,
        detail: str,
        *,
        loop: str | None = None,
        stack: str | None = None,
        restarts: int = 1,
    ) -> NewRestart:
        """Create the record of a restart, either of this process or of one of its loops."""
        return NewRestart(
            worker_id=self.worker_id,
            worker_name=self.worker_name,
            reason=reason,
            detail=detail,
            host=socket.gethostname(),
            pid=os.getpid(),
            loop=loop,
            stack=stack,
            restarts_in_window=restarts,
        )

    async def write_last(self, restart: NewRestart, status: ProcessStatus) -> None:
        """Write a restart and the last heartbeat. Call this method before forcing the process to exit."""
        await self.open()
        await self.restarts.add(restart, now=self.now())
        await self._beat(status)

    def _neighbours(self) -> list[LoopState]:
        return [each for each in self.running() if each.loop is not self]

    async def _beat(self, status: ProcessStatus) -> None:
        passed = self.clock.monotonic()
        await self.store.beat(
            self.worker_id,
            self.worker_name,
            {each.loop.name: describe_loop(each, passed) for each in self._neighbours() if self._is_shown(each)},
            now=self.now(),
            status=status.value,
            rss_bytes=rss_bytes(),
            cpu_seconds=cpu_seconds(),
        )

    def _is_shown(self, running: LoopState) -> bool:
        return self.shows is None or running.loop.name in self.shows

    async def _write_restarts(self) -> None:
        for _ in range(len(self._pending)):
            await self.restarts.add(self._pending[0], now=self.now())
            self._pending.popleft()


def status_of(neighbours: Collection[LoopState], passed: float) -> ProcessStatus:
    if any(each.is_ending for each in neighbours):
        return ProcessStatus.DRAINING
    is_well = all(
        each.is_alive and not each.failures and each.stuck_tick is None and not each.is_stuck(passed)
        for each in neighbours
    )
    return ProcessStatus.ONLINE if is_well else ProcessStatus.DEGRADED


def describe_loop(running: LoopState, passed: float) -> Mapping[str, bool | float | int | None]:
    """Describe a loop's state with durations instead of instants, because the clocks of two machines may differ."""
    return {
        "alive": running.is_alive and not running.is_stuck(passed),
        "last_ping_ago": _ago(running.last_beat or None, passed),
        "last_progress_ago": _ago(running.worked_at, passed),
        "progress": running.notes,
        "failures": running.failures,
        "restarts": running.restarts,
        "stuck_threads": getattr(running.loop, "stuck_threads", 0),
        "concurrency": getattr(running.loop, "concurrency", None),
    }


def _ago(at: float | None, passed: float) -> float | None:
    return None if at is None else round(max(0.0, passed - at), 3)
