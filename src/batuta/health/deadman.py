"""The dead man's switch: while the scheduler's dispatcher works, somebody outside is told. When that ends, they raise the alarm."""

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta

from batuta.health.workers import DISPATCHER
from batuta.kernel.clock import Clock
from batuta.kernel.events import Events, PingFailed
from batuta.kernel.usercode import Returned, attempt, name_of
from batuta.supervise.loop import Doorbell, Idle, LoopPolicy, Pace
from batuta.supervise.running import Running

EVERY = timedelta(minutes=1)
PINGING = LoopPolicy(every=EVERY, stuck_after=timedelta(minutes=2), max_failures=1_000)
FRESH = timedelta(seconds=30)  # a dispatcher that worked longer ago is not alive
PING_TIMEOUT = timedelta(seconds=10)


class DeadMansSwitch:
    name = "deadman"

    def __init__(
        self,
        ping: Callable[[], Awaitable[None]],
        running: Callable[[], Collection[Running]],
        clock: Clock,
        events: Events,
    ) -> None:
        self.doorbell = Doorbell()
        self._ping = ping
        self._running = running
        self._clock = clock
        self._events = events

    async def tick(self) -> Pace:
        if not self._ticks():
            return Idle(self._clock.now() + timedelta(seconds=1))  # the first ping goes out with the first tick
        outcome = await attempt(self._ping, self._clock.now() + PING_TIMEOUT, self._clock, "the dead man's switch")
        if not isinstance(outcome, Returned):
            self._events.emit(PingFailed(outcome.error if isinstance(outcome.error, str) else name_of(outcome.error)))
        return Idle()

    def _ticks(self) -> bool:
        worked = [each.worked_at for each in self._running() if each.loop.name == DISPATCHER]
        return any(at is not None and self._clock.monotonic() - at <= FRESH.total_seconds() for at in worked)
