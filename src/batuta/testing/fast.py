"""Time that runs faster than the machine's, and the same in every process that was told of it."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from batuta.kernel.clock import Clock, SystemClock


@dataclass(frozen=True, slots=True, kw_only=True)
class FastClock:
    """A Clock. At ``origin``, which was ``since`` on the machine's monotonic clock, it began to run ``rate`` times faster.

    ``steps``: a file with the seconds by which somebody put the wall clock forward or back; durations do not notice.
    """

    origin: datetime
    since: float
    rate: float = 1.0
    steps: Path | None = None
    machine: Clock = field(default_factory=SystemClock)

    @classmethod
    def start(cls, origin: datetime, rate: float, steps: Path | None = None) -> "FastClock":
        return cls(origin=origin, since=SystemClock().monotonic(), rate=rate, steps=steps)

    @classmethod
    def told(cls, text: str) -> "FastClock":
        """The clock another process wrote down. Only on the same machine do the two agree."""
        words = json.loads(text)
        steps = None if words["steps"] is None else Path(words["steps"])
        origin = datetime.fromisoformat(words["origin"])
        return cls(origin=origin, since=words["since"], rate=words["rate"], steps=steps)

    def text(self) -> str:
        steps = None if self.steps is None else str(self.steps)
        return json.dumps({"origin": self.origin.isoformat(), "since": self.since, "rate": self.rate, "steps": steps})

    def now(self) -> datetime:
        return self.origin + timedelta(seconds=self._passed() + self._stepped())

    def monotonic(self) -> float:
        return self._passed()

    async def sleep(self, seconds: float) -> None:
        await self.machine.sleep(seconds / self.rate)

    def step(self, by: timedelta) -> None:
        """Put the wall clock forward, or back, for everybody who reads the file."""
        if self.steps is None:
            raise ValueError("a clock without a file for its steps cannot be put forward or back")
        written = self.steps.with_suffix(".next")
        written.write_text(str(self._stepped() + by.total_seconds()))
        written.replace(self.steps)

    def _passed(self) -> float:
        return (self.machine.monotonic() - self.since) * self.rate

    def _stepped(self) -> float:
        return float(self.steps.read_text()) if self.steps is not None and self.steps.exists() else 0.0
