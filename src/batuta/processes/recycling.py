"""Reasons for a process to drain and start again: it grew too large or too old, or its database file was replaced."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from batuta.kernel.clock import Clock, brief
from batuta.kernel.errors import StoreReplaced
from batuta.processes.heartbeat import rss_bytes
from batuta.processes.loop_monitor import leave
from batuta.processes.restarts import EXIT_AGAIN
from batuta.supervise.loop import FOR_EVER, Doorbell, Idle, LoopPolicy, Pace

LOOKING = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=1_000)
MEGABYTE = 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Recycler:
    """A loop of the watchdog thread. ``recycle`` receives the reason, once. None: no such limit."""

    most_megabytes: int | None
    longest: timedelta | None
    clock: Clock
    recycle: Callable[[str], None]
    name: str = "recycler"
    doorbell: Doorbell = field(default_factory=Doorbell)
    rss: Callable[[], int] = rss_bytes
    why: str | None = None
    _born_at: float | None = None

    async def tick(self) -> Pace:
        now = self.clock.monotonic()
        self._born_at = now if self._born_at is None else self._born_at
        if self.why is None and (why := self._reason(now - self._born_at)) is not None:
            self.why = why
            self.recycle(why)
        return Idle()

    def _reason(self, age: float) -> str | None:
        megabytes = self.rss() // MEGABYTE
        if self.most_megabytes is not None and megabytes > self.most_megabytes:
            return f"holds {megabytes} MB, more than {self.most_megabytes}"
        if self.longest is not None and age > self.longest.total_seconds():
            return f"has run for {brief(timedelta(seconds=age))}, longer than {brief(self.longest)}"
        return None


# An idle process must notice within a second.
WATCHING_FILE = LoopPolicy(
    every=timedelta(milliseconds=500), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
# What still runs cannot be recorded any more, so the drain is short.
REPLACED_FILE_GRACE = timedelta(seconds=3)


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
        elif now - self._lost_at >= REPLACED_FILE_GRACE.total_seconds():
            self.forced(error)
            self.exit(EXIT_AGAIN)
