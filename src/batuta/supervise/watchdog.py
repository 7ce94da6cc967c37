"""The loop that watches its neighbours on the same event loop: who is silent for too long is stopped and begins anew.

    silent for stuck_after ──▶ cancel ──5 s──▶ cancel again ──5 s──▶ deaf: the others drain, and the process ends
                                 └── it ends ──▶ restarted, with a budget (``supervisor``)

Whatever blocks the event loop blocks this loop too; ``processes.watchdog_thread`` covers that.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.events import Events, LoopStuck
from batuta.supervise.loop import Doorbell, Idle, LoopPolicy, Pace
from batuta.supervise.running import Running

# How long one that is cancelled has to take notice.
CANCEL_GRACE = timedelta(seconds=5)
# It watches during a shutdown too: loops that outlive the others must not get stuck then.
WATCHDOG_POLICY = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), outlives=True)


class Watchdog:
    name = "watchdog"

    def __init__(self, running: Callable[[], Sequence[Running]], clock: Clock, events: Events) -> None:
        self.doorbell = Doorbell()
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
        """When there is something to do about it, if nothing happens until then."""
        patience = each.policy.stuck_after.total_seconds()
        if each.treatment is not None:
            return min(each.treatment.cancelled_at + CANCEL_GRACE.total_seconds(), now + patience)
        return (each.last_beat if each.is_ticking else now) + patience
