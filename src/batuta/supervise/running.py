"""The state of one loop while it runs, and the watchdog: a loop that restarts its silent neighbours on the same event loop.

    silent for stuck_after ──▶ cancel ──5 s──▶ cancel again ──5 s──▶ deaf: the others drain, and the process ends
                                 └── it ends ──▶ restarted, with a budget (``supervisor``)

Whatever blocks the event loop blocks the watchdog too; ``processes.loop_monitor`` covers that.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import Events, LoopStuck
from batuta.supervise.loop import Idle, Loop, LoopPolicy, Pace, Wakeup
from batuta.supervise.stacks import task_stack

# Number of cancellations of a stuck loop.
MOST_CANCELS = 2


@dataclass(slots=True)
class Running:
    """State of a loop, written on its own event loop and read from anywhere; instants are of the monotonic clock."""

    loop: Loop
    policy: LoopPolicy
    last_beat: float = 0.0  # last record: the start or end of a tick, or a record of progress
    worked_at: float | None = None  # the end of its last good tick
    notes: int = 0  # records of progress since the start
    failures: int = 0  # consecutive
    failing_since: float = 0.0
    restarts: int = 0  # since the process started
    is_ticking: bool = False
    is_alive: bool = True  # its keeper runs, or has not started yet
    is_ending: bool = False  # its process shuts down
    treatment: "Treatment | None" = None  # it is being stopped after too long a silence
    keeper: "asyncio.Task[None] | None" = None
    _lately: "deque[float]" = field(default_factory=deque)  # restarts without a healthy period in between

    def note(self, at: float) -> None:
        self.notes += 1
        self.last_beat = at

    def silent_for(self, now: float) -> timedelta:
        """Time since the last record of progress; zero while the loop rests."""
        return timedelta(seconds=max(0.0, now - self.last_beat)) if self.is_ticking else timedelta(0)

    def is_stuck(self, now: float) -> bool:
        return self.silent_for(now) >= self.policy.stuck_after

    @property
    def is_deaf(self) -> bool:
        """Whether it ignored every cancellation: there is nothing to wait for."""
        return self.treatment is not None and self.treatment.cancels >= MOST_CANCELS

    def count_restart(self, now: float) -> int:
        """Count a restart and return the number without a healthy period in between, including this one."""
        if self._lately and now - self._lately[-1] >= self.policy.healthy_after.total_seconds():
            self._lately.clear()
        self._lately.append(now)
        self.restarts += 1
        return len(self._lately)

    def treat(self, now: float) -> "Treatment":
        """Cancel the current work and record its position."""
        assert self.keeper is not None
        if self.treatment is None:
            self.treatment = Treatment(silent_for=self.silent_for(now), stack=task_stack(self.keeper))
        self.treatment.cancelled_at = now
        self.treatment.cancels += 1
        self.keeper.cancel()
        return self.treatment


@dataclass(slots=True)
class Treatment:
    silent_for: timedelta
    stack: str
    cancelled_at: float = 0.0
    cancels: int = 0


# Time that a cancelled tick has to end.
CANCEL_GRACE = timedelta(seconds=5)
# It watches during a shutdown too: loops that outlive the others must not get stuck then.
WATCHDOG_POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), outlives=True)


class Watchdog:
    name = "watchdog"

    def __init__(self, running: Callable[[], Sequence[Running]], clock: Clock, events: Events) -> None:
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

    def _look_at(self, each: Running, now: float) -> None:
        treatment = each.treatment
        if treatment is None:
            if each.is_stuck(now):
                treated = each.treat(now)
                self._events.emit(LoopStuck(each.loop.name, treated.silent_for, each.policy.stuck_after, treated.stack))
        elif now - treatment.cancelled_at >= CANCEL_GRACE.total_seconds():
            if each.is_deaf:
                raise CancelIgnored(loop=each.loop.name, what="its tick", stack=treatment.stack)
            each.treat(now)

    def _due(self, each: Running, now: float) -> float:
        """When the watchdog must act next, if nothing changes."""
        timeout = each.policy.stuck_after.total_seconds()
        if each.treatment is not None:
            return min(each.treatment.cancelled_at + CANCEL_GRACE.total_seconds(), now + timeout)
        return (each.last_beat if each.is_ticking else now) + timeout
