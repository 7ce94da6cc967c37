"""The state of a running loop, and the watchdog: a loop that restarts stuck loops on its own event loop.

    silent for stuck_after ──▶ cancel ──5 s──▶ cancel again ──5 s──▶ uncancellable: other loops drain, the process ends
                                 └── the tick ends ──▶ restarted, at most max_restarts times (see ``supervisor``)

Code that blocks the event loop also blocks this watchdog. ``processes.loop_monitor`` detects a blocked event loop from
another thread.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import field
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import Events, LoopStuck
from batuta.kernel.values import dataclass
from batuta.supervise.loop import Idle, Loop, LoopPolicy, Pace, Wakeup
from batuta.supervise.stacks import task_stack

# After this many cancellations, a stuck loop is treated as uncancellable.
MOST_CANCELS = 2


@dataclass(slots=True)
class LoopState:
    """A loop's state. Only code on the loop's own event loop writes it; any thread may read it. Instants are in seconds
    of the monotonic clock.
    """

    loop: Loop
    policy: LoopPolicy
    last_beat: float = 0.0  # last activity: the start or end of a tick, or a call of ``note_progress``
    worked_at: float | None = None  # end of the last successful tick
    notes: int = 0  # number of calls of ``note_progress`` since the start
    failures: int = 0  # number of consecutive failures
    failing_since: float = 0.0
    restarts: int = 0  # number of restarts since the process started
    is_ticking: bool = False
    is_alive: bool = True  # whether the task that repeats the ticks runs or has not started yet
    is_ending: bool = False  # whether the process is shutting down
    stuck_tick: "StuckTick | None" = None  # set while the watchdog is stopping the stuck tick
    keeper: "asyncio.Task[None] | None" = None
    _lately: "deque[float]" = field(default_factory=deque)  # instants of the restarts since the last healthy period

    def note(self, at: float) -> None:
        self.notes += 1
        self.last_beat = at

    def silent_for(self, now: float) -> timedelta:
        """Return the time since the loop last recorded progress, or zero while the loop is waiting between two
        ticks.
        """
        return timedelta(seconds=max(0.0, now - self.last_beat)) if self.is_ticking else timedelta(0)

    def is_stuck(self, now: float) -> bool:
        return self.silent_for(now) >= self.policy.stuck_after

    @property
    def is_uncancellable(self) -> bool:
        """Whether the tick has been cancelled MOST_CANCELS times and is still running. More cancellations would not
        stop it.
        """
        return self.stuck_tick is not None and self.stuck_tick.cancels >= MOST_CANCELS

    def count_restart(self, now: float) -> int:
        """Count a restart. Return how many restarts, including this one, have happened since the loop last ran for
        ``healthy_after`` without a restart.
        """
        if self._lately and now - self._lately[-1] >= self.policy.healthy_after.total_seconds():
            self._lately.clear()
        self._lately.append(now)
        self.restarts += 1
        return len(self._lately)

    def cancel_tick(self, now: float) -> "StuckTick":
        """Cancel the current tick and record its stack."""
        assert self.keeper is not None
        if self.stuck_tick is None:
            stack_of_thread: Callable[[], str] = getattr(self.loop, "stack", str)
            stack = task_stack(self.keeper) + stack_of_thread()
            self.stuck_tick = StuckTick(silent_for=self.silent_for(now), stack=stack)
        self.stuck_tick.cancelled_at = now
        self.stuck_tick.cancels += 1
        self.keeper.cancel()
        return self.stuck_tick


@dataclass(slots=True)
class StuckTick:
    silent_for: timedelta
    stack: str
    cancelled_at: float = 0.0
    cancels: int = 0


# Time within which a cancelled tick must end.
CANCEL_GRACE = timedelta(seconds=5)
# The watchdog also runs during a shutdown, because loops that outlive the others may get stuck.
WATCHDOG_POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), outlives=True)


class Watchdog:
    name = "watchdog"

    def __init__(self, running: Callable[[], Sequence[LoopState]], clock: Clock, events: Events) -> None:
        self.wakeup = Wakeup()
        self._running = running
        self._clock = clock
        self._events = events

    async def tick(self) -> Pace:
        now = self._clock.monotonic()
        for each in self._running():
            self._look_at(each, now)
        soon = min((self._due(each, now) for each in self._running()), default=now + 1)
        return Idle(self._clock.now() + timedelta(seconds=max(0.01, soon - now)))

    def _look_at(self, each: LoopState, now: float) -> None:
        stuck = each.stuck_tick
        if stuck is None:
            if each.is_stuck(now):
                stuck = each.cancel_tick(now)
                self._events.emit(LoopStuck(each.loop.name, stuck.silent_for, each.policy.stuck_after, stuck.stack))
        elif now - stuck.cancelled_at >= CANCEL_GRACE.total_seconds():
            if each.is_uncancellable:
                raise CancelIgnored(loop=each.loop.name, what="its tick", stack=stuck.stack)
            each.cancel_tick(now)

    def _due(self, each: LoopState, now: float) -> float:
        """Return the instant at which the watchdog must act if the loop records no progress until then."""
        timeout = each.policy.stuck_after.total_seconds()
        if each.stuck_tick is not None:
            return min(each.stuck_tick.cancelled_at + CANCEL_GRACE.total_seconds(), now + timeout)
        return (each.last_beat if each.is_ticking else now) + timeout
