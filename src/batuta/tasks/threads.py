"""Threads of plain functions that passed their time limit: Python cannot stop them, so their number is bounded and reported."""

from collections.abc import Iterable
from datetime import timedelta

from batuta.kernel.events import Events, TaskThreadsStuck
from batuta.supervise.loop import FOR_EVER, Doorbell, Idle, LoopPolicy, Pace
from batuta.tasks.registry import Task

WATCHING = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)


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

    async def drain(self, grace: timedelta) -> None:
        """Nothing to drain: the process does not wait for its threads."""
