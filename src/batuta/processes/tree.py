"""The parent of a process tree: starts children, receives their heartbeats, kills silent children and restarts children
that have ended.

    due ──▶ [ starting ] ── heartbeat ───▶ [ living ] ── silent for too long ──▶ [ SIGABRT for a stack ] ── 3 s ──▶ killed
     ▲                           │ ends        │ ends                                  │ ends                        │
     └── the wait that restarts.decide_restart gives ◀─────────────────────────────────┴─────────────────────────────┘

``RestartLog`` writes the restarts when the database is available; the process tree never waits for the database.

A child that cannot start because of its configuration ends the whole tree with its exit code. Any other exit of a child
leaves the other children running.
"""

import asyncio
import ctypes
import os
import random
import signal
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from math import ceil
from typing import Protocol, TypeAlias

from batuta.kernel.clock import Clock, brief
from batuta.kernel.errors import StoreReplaced, StoreUnavailable
from batuta.kernel.events import ChildEnded, ChildLooping, ChildReady, ChildRecovered, ChildSilent, ChildStarted, Events
from batuta.kernel.reasons import define, reason_of_os_error
from batuta.kernel.values import dataclass
from batuta.processes.child import STOPPED, ChildProcess, OrphanReaper, exit_reason
from batuta.processes.notify import ALIVE, NOTIFY_VARIABLES, READY, SOCKET, WATCHDOG_LIMIT, NotifyMessage, NotifySocket
from batuta.processes.restarts import (
    EXIT_AGAIN,
    LEFT_BY_TIMEOUT,
    Budget,
    NewRestart,
    RestartReason,
    count_recent,
    decide_restart,
)
from batuta.supervise.loop import FOR_EVER, Again, Idle, LoopPolicy, Pace, Wakeup

UNKILLABLE = define("unkillable", "did not end within {silent} after SIGKILL, in state {state}")
SILENT_FOR = define("silent_for", "silent for {silent}, {how}")
SILENT_IN = define("silent_in", "silent for {silent} ({state}), {how}")
NOT_STARTED_WHY = define("not_started", "it could not be started: {error}")

PR_SET_PDEATHSIG = 1
STATE_CHECK_EVERY = timedelta(milliseconds=500)
LAST_LINES = 1.0  # maximum seconds to read the last lines of a child's output
# Part of the grace that is reserved to kill the remaining children and read their last lines.
KILLING = timedelta(seconds=3)
NOT_STARTED = 127  # exit code that shells use for a program that cannot be started


@dataclass(frozen=True, slots=True)
class ChildSpec:
    role: str
    argv: Sequence[str]
    env: Mapping[str, str]
    name: str = ""  # name of a child if its role has several children; otherwise the role

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.role)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time limits for a child: for its start, for the time between two heartbeats, and for its shutdown after a
    signal.
    """

    starting: timedelta = timedelta(seconds=120)  # long, because a busy machine imports modules slowly
    living: timedelta = timedelta(seconds=20)
    stack: timedelta = timedelta(seconds=3)
    kill: timedelta = timedelta(seconds=10)  # maximum time until SIGKILL takes effect
    # If the parent itself was paused for longer than this (stopped, suspended), it may have missed heartbeats, so the
    # pause is not treated as silence of its children.
    absence: timedelta = timedelta(seconds=5)


@dataclass(slots=True)
class Child:
    spec: ChildSpec
    process: ChildProcess | None = None
    due_at: float = 0.0
    started_at: float = 0.0
    last_message_at: float = 0.0
    is_ready: bool = False  # whether the current child is ready
    # whether the current child has sent a heartbeat, so that it must continue to send them
    sends_heartbeats: bool = False
    was_ready: bool = False  # whether the current child or an earlier one was ready
    silent_for: timedelta | None = None  # set while a silent child is being killed
    stack_requested_at: float = 0.0
    state: str | None = None
    ends: tuple[float, ...] = ()
    is_looping: bool = False
    has_ended: bool = False  # whether a child of this role has ended at least once


@dataclass(frozen=True, slots=True)
class End:
    pid: int
    exit_code: int
    how: str
    stack: str | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """A child process that has stopped sending heartbeats."""

    host: str
    pid: int


Entry: TypeAlias = Stall | NewRestart


@dataclass(slots=True)
class ProcessTree:
    """Loop in the parent process: each tick checks the running children, cleans up after children that have ended, and
    starts children that are due.
    """

    specs: Sequence[ChildSpec]
    clock: Clock
    events: Events
    stop: asyncio.Event
    on_line: Callable[[str, str], None]  # receives the name of a child and a line of its output
    notify_socket: NotifySocket | None = None  # None disables the detection of silent children
    record: Callable[[Entry], None] = lambda entry: None
    # Returns the stack that a process of this role and pid wrote into its own file before it ended, or None.
    take_stack: Callable[[str, int], str | None] = lambda role, pid: None
    timeouts: Timeouts = field(default_factory=Timeouts)
    budget: Budget = field(default_factory=Budget)
    chance: Callable[[], float] = random.random
    changed: Callable[[], None] = lambda: None  # called when a child becomes ready or ends
    beat: Callable[[], object] = lambda: None  # called at each tick to send the parent's own heartbeat
    name: str = "children"
    wakeup: Wakeup = field(default_factory=Wakeup)
    exit_code: int = 0
    _children: list[Child] = field(default_factory=list)
    _orphan_reaper: OrphanReaper = field(default_factory=OrphanReaper)
    _unkilled: list[ChildProcess] = field(default_factory=list)  # children that SIGKILL has not ended yet
    _looked_at: float | None = None
    _is_starting: bool = False  # whether a child is being started, whose process is not known yet
    _early: list[NotifyMessage] = field(default_factory=list)  # messages from unknown processes during that time

    @property
    def children(self) -> Sequence[Child]:
        return tuple(self._children)

    @property
    def is_complete(self) -> bool:
        """Whether every child has become ready or ended at least once."""
        return bool(self._children) and all(child.was_ready or child.has_ended for child in self._children)

    async def tick(self) -> Pace:
        if not self._children:
            self._begin()
        self._receive()
        passed = self.clock.monotonic()
        self._discount_own_pause(passed)
        for child in self._children:
            await self._attend_to(child, passed)
        self.beat()
        return self._rest()

    async def drain(self, grace: timedelta) -> None:
        """Send SIGTERM to all children at the same time. Each child may use the whole grace period, except the time
        that is reserved for killing children.
        """
        timeouts = max(grace - KILLING, grace / 2)
        await asyncio.gather(*(self._end(child, child.process, timeouts) for child in self._children if child.process))
        await asyncio.gather(*(process.clean_up(LAST_LINES) for process in self._unkilled))
        if self.notify_socket is not None:
            asyncio.get_running_loop().remove_reader(self.notify_socket.fileno())
        self._orphan_reaper.dismiss()

    def _begin(self) -> None:
        self._children = [Child(spec) for spec in self.specs]
        if self.notify_socket is not None:
            asyncio.get_running_loop().add_reader(self.notify_socket.fileno(), self._receive)

    def _receive(self) -> None:
        if self.notify_socket is None:
            return
        living = {child.process.pid: child for child in self._children if child.process is not None}
        messages, self._early = [*self._early, *self.notify_socket.receive()], []
        for message in messages:
            if (child := living.get(message.pid)) is None:
                self._early += [message] if self._is_starting else []
            else:
                child.last_message_at = self.clock.monotonic()
                child.sends_heartbeats = child.sends_heartbeats or ALIVE in message.words
                if READY in message.words and not child.is_ready:
                    self._note_ready(child)

    def _note_ready(self, child: Child) -> None:
        child.is_ready = child.was_ready = True
        took = timedelta(seconds=child.last_message_at - child.started_at)
        self.events.emit(ChildReady(child.spec.name, child.process.pid if child.process else 0, took))
        self.changed()

    def _discount_own_pause(self, passed: float) -> None:
        if self._looked_at is not None and passed - self._looked_at > self.timeouts.absence.total_seconds():
            for child in self._children:
                child.last_message_at = passed
        self._looked_at = passed

    async def _attend_to(self, child: Child, passed: float) -> None:
        if child.process is not None and child.process.exit_code is not None:
            await self._clean_up(child, child.process, child.process.exit_code)
        elif child.process is not None:
            self._check_running(child, child.process, passed)
        if child.process is None and not self.stop.is_set() and passed >= child.due_at:
            await self._start(child)
        if child.is_looping and len(count_recent(child.ends, passed, self.budget)) < self.budget.most:
            child.is_looping = False
            self.events.emit(ChildRecovered(child.spec.name, len(child.ends)))

    async def _start(self, child: Child) -> None:
        name, env = child.spec.name, dict(child.spec.env)
        child.started_at = child.last_message_at = self.clock.monotonic()
        child.is_ready, child.sends_heartbeats, child.silent_for, child.state = False, False, None, None
        for variable in NOTIFY_VARIABLES:
            env.pop(variable, None)
        if self.notify_socket is not None:
            limit = self.timeouts.living // timedelta(microseconds=1)
            env |= {SOCKET: self.notify_socket.address, WATCHDOG_LIMIT: str(limit), "PYTHONFAULTHANDLER": "1"}
        self._is_starting = True
        try:
            child.process = await ChildProcess.start(
                child.spec.argv, env, lambda line: self.on_line(name, line), self.wakeup.set
            )
        except OSError as error:  # most likely the limit of processes is reached; the other children continue
            self._decide(child, End(0, NOT_STARTED, NOT_STARTED_WHY(error=reason_of_os_error(error))))
            return
        finally:
            self._is_starting = False
        self._update_reaper()
        self.events.emit(ChildStarted(name, child.process.pid))
        self._receive()

    def _check_running(self, child: Child, process: ChildProcess, passed: float) -> None:
        if child.silent_for is not None:
            self._kill_silent(child, process, timedelta(seconds=passed - child.stack_requested_at))
            return
        silent_for = timedelta(seconds=passed - child.last_message_at)
        if (limit := self._limit(child)) is None or silent_for <= limit:
            return
        child.silent_for, child.stack_requested_at, child.state = silent_for, passed, process.state
        self.events.emit(ChildSilent(child.spec.name, process.pid, silent_for, child.state))
        self.record(Stall(socket.gethostname(), process.pid))
        if child.state == STOPPED:
            process.kill()  # send SIGKILL immediately, because a stopped process cannot write a stack
        else:
            process.ask_for_stack()

    def _kill_silent(self, child: Child, process: ChildProcess, requested_ago: timedelta) -> None:
        if requested_ago >= self.timeouts.stack:
            process.kill()
        if requested_ago >= self.timeouts.stack + self.timeouts.kill:
            # The process waits in the kernel for a device and ends later. A new child replaces it now.
            self._unkilled.append(process)
            child.process = None
            how = UNKILLABLE(silent=brief(requested_ago), state=process.state or "D")
            self._decide(child, End(process.pid, -signal.SIGKILL, how))

    def _limit(self, child: Child) -> timedelta | None:
        """Return the longest allowed time without a heartbeat, or None for a child that sends no heartbeats."""
        if self.notify_socket is None or (child.is_ready and not child.sends_heartbeats):
            return None
        return self.timeouts.living if child.sends_heartbeats else self.timeouts.starting

    async def _clean_up(self, child: Child, process: ChildProcess, exit_code: int) -> None:
        await process.clean_up(LAST_LINES)
        child.process = None
        self._update_reaper()
        how = exit_reason(exit_code)
        if child.silent_for is not None:
            how = (SILENT_IN if child.state else SILENT_FOR)(silent=brief(child.silent_for), state=child.state, how=how)
        stack = process.stack or self.take_stack(child.spec.role, process.pid)
        self._decide(child, End(process.pid, exit_code, how, stack))

    def _decide(self, child: Child, end: End) -> None:
        passed = self.clock.monotonic()
        lived = timedelta(seconds=passed - child.started_at)
        decided = decide_restart(end.exit_code, lived, child.was_ready, child.ends, passed, self.chance(), self.budget)
        # The log shows the first paragraph, which is the main thread's stack. The database row has all threads.
        where = None if end.stack is None else end.stack.partition("\n\n")[0]
        self.events.emit(ChildEnded(child.spec.name, end.pid, end.exit_code, decided.wait, end.how, where))
        begins_to_loop = decided.is_looping and not child.is_looping
        if begins_to_loop:
            self.events.emit(ChildLooping(child.spec.name, len(decided.ends), self.budget.window, self.budget.cap))
        asked = end.exit_code == EXIT_AGAIN  # with this exit code, the child has recorded the reason itself
        if not asked or decided.is_looping:
            self._record(child, end, len(decided.ends), is_loop=begins_to_loop or asked)
        child.ends, child.is_looping, child.has_ended = decided.ends, decided.is_looping, True
        if decided.wait is None:
            self.exit_code = end.exit_code
            self.stop.set()
        else:
            child.due_at = passed + decided.wait.total_seconds()
        self.changed()

    def _record(self, child: Child, end: End, ends: int, is_loop: bool) -> None:
        if is_loop:
            reason = RestartReason.CRASH_LOOP
        elif child.silent_for is not None:
            reason = RestartReason.STALLED
        elif end.stack is not None and end.stack.startswith(LEFT_BY_TIMEOUT):
            reason = RestartReason.BLOCKED
        else:
            reason = RestartReason.CRASHED
        self.record(
            NewRestart(
                worker_name=child.spec.role,
                reason=reason,
                detail=end.how,
                host=socket.gethostname(),
                pid=end.pid,
                stack=end.stack,
                exit_code=end.exit_code,
                restarts_in_window=ends,
            )
        )

    def _rest(self) -> Pace:
        passed = self.clock.monotonic()
        due = [child.due_at - passed for child in self._children if child.process is None]
        return Idle(self.clock.now() + timedelta(seconds=max(0.0, min([*due, 1.0]))))

    def _update_reaper(self) -> None:
        self._orphan_reaper.watch(child.process.pid for child in self._children if child.process is not None)

    async def _end(self, child: Child, process: ChildProcess, timeouts: timedelta) -> None:
        process.ask_to_end()
        for _ in range(max(1, ceil(timeouts / STATE_CHECK_EVERY))):
            # A stopped process (SIGSTOP) cannot react to the signal.
            if await process.has_ended(STATE_CHECK_EVERY.total_seconds()) or process.state == STOPPED:
                break
        await process.clean_up(LAST_LINES)
        exit_code = process.exit_code if process.exit_code is not None else -signal.SIGKILL
        child.process = None
        if exit_code:
            how = exit_reason(exit_code)
            self.events.emit(ChildEnded(child.spec.name, process.pid, exit_code, None, how, process.stack))


def die_with_parent(parent: int) -> bool:
    """Make Linux kill this process when its parent ends, and return whether the parent is still running.

    The signal is SIGKILL, because no process would remain to enforce an orderly shutdown.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Checked after prctl, because the parent may have died before the call.
    return os.getppid() == parent


MOST_PENDING = 500  # maximum restarts that wait to be written; beyond it, the oldest are dropped
LAST_WRITES_TIMEOUT = timedelta(seconds=3)
# This loop never ends the parent, because a failed write must not end the children.
RESTART_LOG_POLICY = LoopPolicy(
    every=timedelta(minutes=1),
    stuck_after=timedelta(minutes=2),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    backoff_cap=timedelta(seconds=10),
    outlives=True,  # outlives the other loops, so that the exits of the children at shutdown are recorded too
)


class Stalls(Protocol):
    async def record_stall(self, *, host: str, pid: int) -> bool: ...


class NewRestarts(Protocol):
    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str: ...


@dataclass(eq=False)
class RestartLog:
    """Loop that writes restarts to the database. The loop awaits ``open`` before the first write, and again after a
    restore has replaced the database file.
    """

    name = "restart-log"

    open: Callable[[], Awaitable[None]]
    stalls: Stalls
    restarts: NewRestarts
    clock: Clock
    now: Callable[[], datetime | None]
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    def __post_init__(self) -> None:
        self._is_open = False
        self._failed = False
        self._waiting: deque[tuple[datetime, Entry]] = deque(maxlen=MOST_PENDING)

    def record(self, entry: Entry) -> None:
        self._waiting.append((self.clock.now(), entry))
        self.wakeup.set()

    async def tick(self) -> Pace:
        if not self._waiting:
            return Idle()
        at, entry = self._waiting.popleft()
        try:
            await self._write(entry, at)
        except StoreUnavailable as error:
            self._is_open = self._is_open and not isinstance(error, StoreReplaced)
            self._failed = True
            self._waiting.appendleft((at, entry))
            raise
        self._failed = self._failed and bool(self._waiting)
        return Again()

    async def drain(self, grace: timedelta) -> None:
        """Write the remaining restarts for up to LAST_WRITES_TIMEOUT, then drop the rest."""
        try:
            async with asyncio.timeout(min(grace, LAST_WRITES_TIMEOUT).total_seconds()):
                for _ in range(len(self._waiting)):
                    await self.tick()
        except TimeoutError:
            self._waiting.clear()

    async def _write(self, entry: Entry, at: datetime) -> None:
        if not self._is_open:
            await self.open()
            self._is_open = True
        match entry:
            case Stall(host, pid):
                await self.stalls.record_stall(host=host, pid=pid)
            case NewRestart():
                # A delayed row gets the time at which the restart happened; otherwise the database's time is used.
                await self.restarts.add(entry, now=at if self._failed else self.now())
