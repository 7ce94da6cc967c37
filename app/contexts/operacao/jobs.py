"""The jobs of upkeep."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol

from batuta.kernel.json import Json
from batuta.receive.endpoints import JobAnswer, JobCall, Ok, Partial

BATCH = 1000
# What is left of the time when another batch is not begun.
MARGIN = timedelta(seconds=10)


class Clock(Protocol):
    def now(self) -> datetime: ...


class Beats(Protocol):
    async def beat(self, worker_id: str, worker_name: str, loops: dict[str, Json], *, now: datetime) -> None: ...


class History(Protocol):
    async def prune(self, *, before: datetime, limit: int) -> int: ...


class Upkeep:
    def __init__(self, beats: Beats, histories: Sequence[History], keep_for: timedelta, clock: Clock) -> None:
        self._beats = beats
        self._histories = histories
        self._keep_for = keep_for
        self._clock = clock

    async def heartbeat(self, call: JobCall) -> JobAnswer:
        """The scheduler fired, the API answered and the database was written: the whole way lives."""
        await self._beats.beat("heartbeat", "heartbeat", {"execution": call.key}, now=self._clock.now())
        return Ok(items=1)

    async def limpar_historico(self, call: JobCall) -> JobAnswer:
        before = self._clock.now() - self._keep_for
        pruned, left = 0, list(self._histories)
        while left:
            if pruned and call.deadline - self._clock.now() < MARGIN:
                return Partial("the time was over; the next run goes on", items=pruned)
            batch = await left[0].prune(before=before, limit=BATCH)
            pruned += batch
            left = left if batch == BATCH else left[1:]
        return Ok(items=pruned)
