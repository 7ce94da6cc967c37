"""Delete finished tasks whose retention is over."""

from typing import Protocol

from batuta.supervise.loop import Again, Doorbell, Idle, Pace

PRUNE_AT_ONCE = 1000


class Results(Protocol):
    async def prune(self, limit: int) -> int:
        """Delete at most ``limit`` tasks that are past their retention by the clock of the database."""
        ...


class TaskPruner:
    name = "task-pruner"

    def __init__(self, results: Results) -> None:
        self.doorbell = Doorbell()
        self._results = results

    async def tick(self) -> Pace:
        pruned = await self._results.prune(PRUNE_AT_ONCE)
        return Again() if pruned == PRUNE_AT_ONCE else Idle()
