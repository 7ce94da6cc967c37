"""Move waiting tasks to the queue that serves them.

A task may move to another queue between two versions. What was accepted before waits in the old queue, and if no version
serves that queue any more, nothing claims it. A worker that knows the task moves it at start-up, and every minute: during a
deploy the older version still enqueues into the old queue.
"""

from collections.abc import Collection
from datetime import timedelta
from typing import Protocol

from batuta.queue.store import Unserved
from batuta.supervise.loop import Again, Doorbell, Idle, LoopPolicy, Pace
from batuta.tasks.registry import TaskRegistry

REHOMED_AT_ONCE = 1000
REHOMING = LoopPolicy(every=timedelta(minutes=1), stuck_after=timedelta(minutes=2))


class TaskHomes(Protocol):
    async def unserved(self, served: Collection[str]) -> Collection[Unserved]:
        """Waiting tasks of queues that are not in ``served``."""
        ...

    async def rehome(self, name: str, source: str, target: str, limit: int) -> int:
        """Move at most ``limit`` waiting tasks of ``name`` from one queue to another."""
        ...


class TaskRehomer:
    name = "task-rehomer"

    def __init__(self, homes: TaskHomes, registry: TaskRegistry) -> None:
        self.doorbell = Doorbell()
        self._homes = homes
        self._registry = registry

    async def tick(self) -> Pace:
        has_more = False
        for stranded in await self._homes.unserved(self._registry.queues):
            task = self._registry.find(stranded.name or "")
            if task is not None:
                moved = await self._homes.rehome(task.name, stranded.queue, task.queue, REHOMED_AT_ONCE)
                has_more |= moved == REHOMED_AT_ONCE
        return Again() if has_more else Idle()
