"""Waiting items that no queue or stage of this version serves, and the queue through which an operator decides about them."""

from collections.abc import Mapping
from typing import NamedTuple

from batuta.queue.store import Unserved
from batuta.stores.sql.queues import SqlQueue
from batuta.stores.sql.tasks import SqlTasks
from batuta.tasks.table import TASKS


class Stranded(NamedTuple):
    items: Unserved
    through: SqlQueue


class UnservedItems:
    def __init__(self, tasks: SqlTasks, queues: Mapping[str, SqlQueue]) -> None:
        """``queues``: every queue and stage of this version, by name."""
        self._tasks = tasks
        self._queues = queues

    async def of_tasks(self) -> list[Stranded]:
        served = [queue.name for queue in self._queues.values() if queue.table.name == TASKS.name]
        return [Stranded(each, self._tasks.queue(each.queue)) for each in await self._tasks.unserved(served)]

    async def of_stages(self) -> list[Stranded]:
        """One pass over the table of each pipeline: ask every few minutes."""
        pipelines = {
            queue.table.name: queue for queue in self._queues.values() if queue.table.queue == queue.table.state
        }
        return [Stranded(each, stage) for stage in pipelines.values() for each in await stage.unserved()]

    async def all(self) -> list[Stranded]:
        return [*await self.of_tasks(), *await self.of_stages()]
