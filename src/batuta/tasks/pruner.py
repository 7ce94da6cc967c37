"""A loop: results go when their time is over."""

from datetime import datetime
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

PRUNE_AT_ONCE = 1000


class Results(Protocol):
    async def prune(self, *, before: datetime, limit: int) -> int: ...


class TaskPruner:
    name = "task-pruner"

    def __init__(self, results: Results, clock: Clock) -> None:
        self.doorbell = Doorbell()
        self._results = results
        self._clock = clock

    async def tick(self) -> Pace:
        pruned = await self._results.prune(before=self._clock.now(), limit=PRUNE_AT_ONCE)
        return Again() if pruned == PRUNE_AT_ONCE else Idle()
