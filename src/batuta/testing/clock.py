"""Clocks for tests.

FakeClock moves only on request. JumpClock runs at normal speed and can jump ahead. FastClock runs faster than real
time, and several processes can share it.
"""

import asyncio
import heapq
import json
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from batuta.kernel.clock import Awaited, Clock, SystemClock
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import first_of

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # a Monday, nine in the morning in São Paulo
# Maximum event-loop iterations after a step. A task that is always ready would otherwise keep the clock from moving.
TURNS = 50


class FakeClock:
    """A clock that only the test moves. ``advance`` moves the wall clock and the monotonic clock, and wakes sleepers in
    the order in which they become due; ``step`` moves only the wall clock.
    """

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
            await asyncio.sleep(0)  # let other tasks run, without moving the clock
            return
        due = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), due))
        await due.wait()

    async def wait(self, event: Awaited, seconds: float) -> bool:
        return await first_of(event.wait(), self.sleep(seconds)) == 0

    async def advance(self, by: timedelta | float) -> None:
        """Advance the clock by this much time, and wake each sleeper when the clock reaches its wake-up time."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else float(by)
        ends = self._monotonic + seconds
        await self.settle()
        while self._sleepers and self._sleepers[0][0] <= ends:
            wakes_at, _, due = heapq.heappop(self._sleepers)
            self._pass(max(0.0, wakes_at - self._monotonic))
            due.set()
            await self.settle()
        self._pass(ends - self._monotonic)
        await self.settle()

    async def settle(self) -> None:
        """Let every ready asyncio task run before the clock moves. A subclass may also wait for work outside the event
        loop, such as a database call.
        """
        await settle()

    def step(self, by: timedelta) -> None:
        """Move only the wall clock, as happens when an operator resets a machine's clock. The monotonic clock is
        unchanged.
        """
        self._now += by

    def _pass(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


class JumpClock:
    """A clock that runs at normal speed and jumps ahead on request. A jump wakes the sleepers that it makes due."""

    def __init__(self, start: datetime) -> None:
        # In UTC, because an addition in a local time zone ignores clock changes.
        self._start = start.astimezone(UTC)
        self._machine = SystemClock()
        self._since = self._machine.monotonic()
        self._jumped = 0.0
        self._has_jumped = asyncio.Event()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return self._machine.monotonic() - self._since + self._jumped

    async def sleep(self, seconds: float) -> None:
        due = self.monotonic() + seconds
        while (rest := due - self.monotonic()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._has_jumped.wait(), rest)
        await asyncio.sleep(0)

    async def wait(self, event: Awaited, seconds: float) -> bool:
        return await first_of(event.wait(), self.sleep(seconds)) == 0

    def jump_to(self, instant: datetime) -> None:
        """Move the clock ahead to ``instant``. An instant in the past changes nothing."""
        self._jumped += max(0.0, (instant - self.now()).total_seconds())
        jumped, self._has_jumped = self._has_jumped, asyncio.Event()
        jumped.set()


async def settle() -> None:
    """Run the event loop until no asyncio task is ready."""
    ready = getattr(asyncio.get_running_loop(), "_ready", True)  # other event loops do not show what is ready
    await asyncio.sleep(0)
    for _ in range(TURNS):
        await asyncio.sleep(0)
        if not ready:
            return


@dataclass(frozen=True, slots=True, kw_only=True)
class FastClock:
    """A clock that runs ``rate`` times faster than real time.

    The clock shows ``origin`` when the machine's monotonic clock shows ``since``. ``steps`` is a file that contains the
    number of seconds by which ``step`` has moved the wall clock; such a move does not affect measured durations.
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
        """Create a clock that agrees with another process's clock on the same machine. ``text`` is the text form of
        that clock.
        """
        words = json.loads(text)
        steps = None if words["steps"] is None else Path(words["steps"])
        origin = datetime.fromisoformat(words["origin"])
        return cls(origin=origin, since=words["since"], rate=words["rate"], steps=steps)

    def text(self) -> str:
        steps = None if self.steps is None else str(self.steps)
        return json.dumps({"origin": self.origin.isoformat(), "since": self.since, "rate": self.rate, "steps": steps})

    def now(self) -> datetime:
        return self.origin + timedelta(seconds=self._measure_elapsed_time() + self._step_offset())

    def monotonic(self) -> float:
        return self._measure_elapsed_time()

    async def sleep(self, seconds: float) -> None:
        await self.machine.sleep(seconds / self.rate)

    async def wait(self, event: Awaited, seconds: float) -> bool:
        return await self.machine.wait(event, seconds / self.rate)

    def step(self, by: timedelta) -> None:
        """Move the wall clock for every process that reads the file ``steps``."""
        if self.steps is None:
            raise ValueError("a clock without a file for its steps cannot be moved")
        written = self.steps.with_suffix(".next")
        written.write_text(str(self._step_offset() + by.total_seconds()))
        written.replace(self.steps)

    def _measure_elapsed_time(self) -> float:
        return (self.machine.monotonic() - self.since) * self.rate

    def _step_offset(self) -> float:
        return float(self.steps.read_text()) if self.steps is not None and self.steps.exists() else 0.0
