"""Checks from the watchdog thread whether the event loop of this process responds, and ends the process if it does not.

the process's thread                      the watchdog thread, with its own event loop
┌───────────────────────────┐   ask     ┌──────────────────────────────────┐   alive   ┌────────┐
│ event loop                │ ◀──────── │ monitor: does it respond?        │ ────────▶ │ parent │
│  ├ loops, watchdog        │ ────────▶ │ heartbeat: worker_heartbeats     │           └────────┘
│  └ handlers, requests     │  answer   │  on its own connection           │
└───────────────────────────┘           └──────────────────────────────────┘

responds ──▶ the parent gets a heartbeat
no response for 2 s ──▶ a warning · for 7.5 s ──▶ the stack in the log, `stalled` in the heartbeat
            for 15 s ──▶ a row of worker_restarts with the stack, and the process exits with 75: its parent restarts it
a thread holds the interpreter lock (an endless regular expression): faulthandler's timer, re-armed every other second, writes every
stack into a file and ends the process; the next process reports the file
"""

import asyncio
import contextlib
import faulthandler
import math
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import field
from datetime import timedelta
from typing import TextIO

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreError
from batuta.kernel.events import EventLoopBlocked, EventLoopResponds, Events
from batuta.kernel.values import dataclass
from batuta.processes.heartbeat import cpu_seconds
from batuta.processes.notify import Notifier
from batuta.processes.restarts import EXIT_AGAIN, LEFT_BY_TIMEOUT
from batuta.supervise.loop import FOR_EVER, Idle, LoopPolicy, Pace, Wakeup
from batuta.supervise.stacks import thread_stack
from batuta.supervise.supervisor import Supervisor

# faulthandler's timer fires this long after the watchdog thread should have acted, because the thread ends the process
# more gently.
TIMER_MARGIN = timedelta(seconds=1)
REARM_EVERY = timedelta(seconds=2)
REPORT_TIMEOUT = timedelta(seconds=3)
# If a sleep took this much longer than requested, the whole process was suspended.
OVERSLEPT = timedelta(seconds=2)
# An event loop that has not responded for this long may be blocked.
ANSWERS_WITHIN = timedelta(seconds=2)


def exit_now(code: int) -> None:
    """Flush the output and exit immediately, for a process in which uncancellable work would block an orderly exit."""
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def monitor_policy(limit: timedelta, notifier: Notifier) -> LoopPolicy:
    """Return the loop policy for the monitor, with an interval that suits the block limit and the parent's timeout."""
    often = [timedelta(seconds=1), limit / 10, *([notifier.watchdog_every / 2] if notifier.watchdog_every else [])]
    return LoopPolicy(
        every=min(often), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER, outlives=True
    )


@dataclass(slots=True, kw_only=True)
class LoopMonitor:
    """Loop in the watchdog thread that monitors the process's event loop. Before it ends the process, it passes the
    stack trace to ``report_block``.
    """

    home: asyncio.AbstractEventLoop
    thread: int  # id of the thread that runs the monitored event loop
    limit: timedelta
    clock: Clock
    events: Events
    notifier: Notifier
    report_block: Callable[[str, timedelta], Awaitable[None]]
    state_changed: Callable[[], None]  # called when the state that operators see has changed
    dump: TextIO | None  # file for faulthandler's timer; None means no timer
    exit: Callable[[int], None] = os._exit
    name: str = "event-loop-monitor"
    wakeup: Wakeup = field(default_factory=Wakeup)
    _asked_at: float | None = None  # when the monitor asked; None if the event loop has responded
    _last_look: "tuple[float, float] | None" = None  # instant of the last check and the CPU time at that instant
    _warnings: int = 0  # number of warnings already reported
    _silent: timedelta = timedelta(0)
    _armed_at: float = -math.inf
    _notified_at: float = -math.inf  # when the parent received the last heartbeat

    @property
    def is_blocked(self) -> bool:
        return self._warnings > 0

    @property
    def is_answered(self) -> bool:
        """Whether the event loop has responded to the questions that are older than ANSWERS_WITHIN."""
        asked_at = self._asked_at
        return asked_at is None or self.clock.monotonic() - asked_at < ANSWERS_WITHIN.total_seconds()

    async def tick(self) -> Pace:
        now = self.clock.monotonic()
        self._discount_pause(now)
        self._ask(now)
        silent = timedelta(seconds=0.0 if self._asked_at is None else now - self._asked_at)
        self._arm(silent, now)
        if silent < self.limit:
            self._notify_parent(now)
        await self._report(silent)
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        if self.dump is not None:
            faulthandler.cancel_dump_traceback_later()

    def _discount_pause(self, now: float) -> None:
        """Restart the measurement if the whole process was suspended. A suspension is assumed if a sleep took much
        longer than requested and the process used little CPU time during that sleep.
        """
        used = cpu_seconds()
        if self._last_look is not None and self._asked_at is not None:
            slept, worked = now - self._last_look[0], used - self._last_look[1]
            if slept > OVERSLEPT.total_seconds() and worked < slept / 2:
                self._asked_at = now
        self._last_look = now, used

    def _ask(self, now: float) -> None:
        if self._asked_at is not None:
            return
        self._asked_at = now
        try:
            self.home.call_soon_threadsafe(self._answer)
        except RuntimeError:  # the monitored event loop is closed
            self._asked_at = None

    def _answer(self) -> None:
        """Record that the event loop is responding. This method runs on the monitored event loop."""
        self._asked_at = None

    def _arm(self, silent: timedelta, now: float) -> None:
        """Restart faulthandler's timer. Each restart creates a thread, so while the event loop responds, the timer is
        restarted at most once per REARM_EVERY.
        """
        if self.dump is None or (not silent and now - self._armed_at < REARM_EVERY.total_seconds()):
            return
        spare = timedelta(0) if silent else REARM_EVERY
        left = max(REPORT_TIMEOUT, self.limit - silent) + TIMER_MARGIN + spare
        faulthandler.dump_traceback_later(left.total_seconds(), exit=True, file=self.dump)
        self._armed_at = now

    def _notify_parent(self, now: float) -> None:
        """Send a heartbeat to the parent, but at most ten within the parent's time limit, because each heartbeat wakes
        the parent.
        """
        limit = self.notifier.watchdog_limit
        if limit is None or now - self._notified_at >= limit.total_seconds() / 10:
            self.notifier.alive()
            self._notified_at = now

    async def _report(self, silent: timedelta) -> None:
        steps = (self.limit * (2 / 15), self.limit / 2, self.limit)
        reached = sum(silent >= step for step in steps)
        self._silent = max(silent, self._silent) if reached else self._silent
        if reached < self._warnings and reached == 0:
            self._warnings = 0
            self.events.emit(EventLoopResponds(self._silent))
            self._silent = timedelta(0)
            self.state_changed()
        elif reached > self._warnings:
            self._warnings = reached
            stack = thread_stack(self.thread) if reached > 1 else None
            self.events.emit(EventLoopBlocked(silent, self.limit, stack))
            self.state_changed()
            if stack is not None and reached == len(steps):
                await self._end(stack, silent)

    async def _end(self, stack: str, silent: timedelta) -> None:
        try:
            async with asyncio.timeout(REPORT_TIMEOUT.total_seconds()):
                await self.report_block(stack, silent)
        except (TimeoutError, StoreError):
            self._write_stack_file(stack)
        self.exit(EXIT_AGAIN)

    def _write_stack_file(self, stack: str) -> None:
        """Write the stack trace to a file, because the database may not have accepted it. The next process of this role
        reports the stack trace.
        """
        if self.dump is not None:
            with contextlib.suppress(OSError):
                self.dump.write(f"{LEFT_BY_TIMEOUT}\n{stack}\n")
                self.dump.flush()


THREAD_GRACE = timedelta(seconds=2)
BEGINS_WITHIN = 10.0  # maximum seconds for the thread to start
ENDS_WITHIN = 4.0  # maximum seconds for the thread to end; part of the margin after the grace


class WatchdogThread:
    def __init__(self, *supervisors: Supervisor, close: Callable[[], Awaitable[None]]) -> None:
        """Create the thread. After all supervisors in the thread have ended, the thread awaits ``close``."""
        self._supervisors = supervisors
        self._close = close
        self._home: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._begun = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._watch()), name="batuta-watchdog", daemon=True)

    def begin(self) -> None:
        self._thread.start()
        self._begun.wait(BEGINS_WITHIN)

    async def end(self) -> None:
        """Stop the thread's loops, and wait up to ENDS_WITHIN seconds until the last heartbeat is written."""
        if self._home is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the thread's event loop is already closed
                self._home.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, ENDS_WITHIN)

    async def _watch(self) -> None:
        self._stop, self._home = asyncio.Event(), asyncio.get_running_loop()
        self._begun.set()
        try:
            await asyncio.gather(*(supervisor.run(self._stop, THREAD_GRACE) for supervisor in self._supervisors))
        finally:
            await self._close()
