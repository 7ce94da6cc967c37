"""Maintenance loops of the task queue: move tasks to the queue that serves them, count stuck threads, delete old results."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Protocol

from batuta.kernel.events import Events, TaskThreadsStuck
from batuta.queue.store import Unserved
from batuta.supervise.loop import FOR_EVER, Again, Doorbell, Idle, LoopPolicy, Pace
from batuta.tasks.registry import Task, TaskRegistry

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


COUNTING_THREADS = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)


class ThreadWatch:
    """Count the stuck threads of a process's tasks. The heartbeat carries the number, and health reports it."""

    name = "task-threads"

    def __init__(self, tasks: Iterable[Task], events: Events) -> None:
        self.doorbell = Doorbell()
        self._tasks = tasks
        self._events = events
        self._reported: dict[str, int] = {}

    @property
    def stuck_threads(self) -> int:
        return sum(task.threads.left_behind for task in self._tasks)

    async def tick(self) -> Pace:
        for task in self._tasks:
            stuck = task.threads.left_behind
            if stuck != self._reported.get(task.name, 0):
                self._reported[task.name] = stuck
                self._events.emit(TaskThreadsStuck(task.name, stuck))
        return Idle()
