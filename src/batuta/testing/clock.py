"""Clocks for tests: FakeClock moves only on request; FastClock runs faster than real time and can be shared by several
processes.
"""

import asyncio
import heapq
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from batuta.kernel.clock import Clock, SystemClock

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # a Monday, nine in the morning in São Paulo
# Turns of the event loop after a step, so that everything that became ready has run.
TURNS = 50


class FakeClock:
    """A Clock. ``advance`` moves both times and wakes the sleepers that are due, in order; ``step`` moves the wall alone."""

    def __init__(self, start: datetime = START) -> None:
        self._now = start
        self._monotonic = 1000.0
        self._sleepers: list[tuple[float, int, asyncio.Event]] = []
        self._order = count()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)  # a turn for other tasks, without time
            return
        due = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), due))
        await due.wait()

    async def advance(self, by: timedelta | float) -> None:
        """Let this much time pass, and wake each sleeper at its own instant."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else float(by)
        ends = self._monotonic + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= ends:
            wakes_at, _, due = heapq.heappop(self._sleepers)
            self._pass(max(0.0, wakes_at - self._monotonic))
            due.set()
            await settle()
        self._pass(ends - self._monotonic)
        await settle()

    def step(self, by: timedelta) -> None:
        """Move the wall clock, as an operator does; no time passes."""
        self._now += by

    def _pass(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FastClock:
    """A Clock that runs ``rate`` times faster from ``origin`` on, which was ``since`` on the machine's monotonic clock.

    ``steps``: a file with the seconds by which the wall clock was moved; durations are unaffected.
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
    def from_text(cls, text: str) -> "FastClock":
        """Read a clock that another process wrote. The two agree only on the same machine."""
        words = json.loads(text)
        steps = None if words["steps"] is None else Path(words["steps"])
        origin = datetime.fromisoformat(words["origin"])
        return cls(origin=origin, since=words["since"], rate=words["rate"], steps=steps)

    def text(self) -> str:
        steps = None if self.steps is None else str(self.steps)
        return json.dumps({"origin": self.origin.isoformat(), "since": self.since, "rate": self.rate, "steps": steps})

    def now(self) -> datetime:
        return self.origin + timedelta(seconds=self._elapsed_time() + self._step_offset())

    def monotonic(self) -> float:
        return self._elapsed_time()

    async def sleep(self, seconds: float) -> None:
        await self.machine.sleep(seconds / self.rate)

    def step(self, by: timedelta) -> None:
        """Move the wall clock for every process that reads the file."""
        if self.steps is None:
            raise ValueError("a clock without a file for its steps cannot be put forward or back")
        written = self.steps.with_suffix(".next")
        written.write_text(str(self._step_offset() + by.total_seconds()))
        written.replace(self.steps)

    def _elapsed_time(self) -> float:
        return (self.machine.monotonic() - self.since) * self.rate

    def _step_offset(self) -> float:
        return float(self.steps.read_text()) if self.steps is not None and self.steps.exists() else 0.0
