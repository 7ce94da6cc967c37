"""Time that passes only when the test says so."""

import asyncio
import heapq
from datetime import UTC, datetime, timedelta
from itertools import count

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)  # a Monday, nine in the morning in São Paulo
# How often the event loop is given a turn, so that everything a passed moment made ready has run.
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
            await asyncio.sleep(0)  # a turn for the others, and no time
            return
        due = asyncio.Event()
        heapq.heappush(self._sleepers, (self._monotonic + seconds, next(self._order), due))
        await due.wait()

    async def advance(self, by: timedelta | float) -> None:
        """Let this much time pass, waking each sleeper at its own instant."""
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
        """The wall clock jumps, as when somebody sets it; no time passes."""
        self._now += by

    def _pass(self, seconds: float) -> None:
        self._monotonic += seconds
        self._now += timedelta(seconds=seconds)


async def settle() -> None:
    """Let everything that is ready run."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
