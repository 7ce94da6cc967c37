"""End the process when its database file was deleted or replaced, so that it starts again on the file that is there now."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreReplaced
from batuta.supervise.comeback import EXIT_AGAIN
from batuta.supervise.lag import leave
from batuta.supervise.loop import FOR_EVER, Doorbell, Idle, LoopPolicy, Pace

# An idle process must notice within a second.
WATCHING_FILE = LoopPolicy(
    every=timedelta(milliseconds=500), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
# What still runs cannot be recorded any more, so the drain is short.
GRACE = timedelta(seconds=3)


@dataclass(slots=True, kw_only=True)
class FileWatch:
    """A loop. ``check`` raises StoreReplaced; ``stop`` is then called once, and the process ends after GRACE at the latest."""

    check: Callable[[], None]
    stop: Callable[[], None]
    clock: Clock
    forced: Callable[[StoreReplaced], None] = lambda error: None
    exit: Callable[[int], None] = leave
    name: str = "file_watch"
    doorbell: Doorbell = field(default_factory=Doorbell)
    lost: StoreReplaced | None = None
    _lost_at: float = 0.0

    async def tick(self) -> Pace:
        try:
            self.check()
        except StoreReplaced as error:
            self._notice(error)
        return Idle()

    def _notice(self, error: StoreReplaced) -> None:
        now = self.clock.monotonic()
        if self.lost is None:
            self.lost, self._lost_at = error, now
            self.stop()
        elif now - self._lost_at >= GRACE.total_seconds():
            self.forced(error)
            self.exit(EXIT_AGAIN)
