"""A process that has grown too large or too old drains, ends and is started again."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.durations import brief
from batuta.supervise.loop import Doorbell, Idle, LoopPolicy, Pace
from batuta.supervise.vitals import rss_bytes

LOOKING = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=1_000)
MEGABYTE = 1024 * 1024


@dataclass(slots=True, kw_only=True)
class Recycler:
    """A loop of the sentry's. ``recycle`` is given the reason, once. None: no such limit."""

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
