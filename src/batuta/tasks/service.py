"""TaskService enqueues, queries and cancels tasks. TaskRehomer and ThreadWatch are maintenance loops of the task queues."""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from batuta.kernel.events import Events, TaskThreadsStuck
from batuta.kernel.json import Json
from batuta.kernel.storable import (
    MAX_PAYLOAD,
    refuse_each_unstorable,
    refuse_unstorable,
    refuse_unstorable_key,
    refuse_unstorable_priority,
)
from batuta.kernel.suggestions import check_options
from batuta.queue.outcome import clamp_wait
from batuta.queue.store import Unserved
from batuta.supervise.loop import FOR_EVER, Again, Idle, LoopPolicy, Pace, Wakeup
from batuta.tasks.registry import Task, TaskFunction, TaskRegistry, TaskStatus

# The transaction type of the backend's database.
SomeTransaction = TypeVar("SomeTransaction", contravariant=True)


class TaskBackend(Protocol[SomeTransaction]):
    async def enqueue(
        self,
        task: Task,
        arguments: Sequence[tuple[Sequence[Json], dict[str, Json]]],
        *,
        keys: Sequence[str | None],
        delay: timedelta | None,
        priority: int,
        within: SomeTransaction | None,
    ) -> list[str]:
        """Insert the tasks and return their ids in order. If a live task has the key of a new one, return its id instead."""

    async def status(self, id: str) -> TaskStatus | None: ...

    async def cancel(self, id: str, reason: str) -> bool: ...


class TaskService(Generic[SomeTransaction]):
    def __init__(
        self, registry: TaskRegistry, backend: TaskBackend[SomeTransaction], max_payload: int = MAX_PAYLOAD
    ) -> None:
        """Create the service. ``max_payload`` is the maximum size of one task's arguments, in bytes of JSON."""
        self._max_payload = max_payload
        self._registry = registry
        self._backend = backend

    async def enqueue(
        self,
        task: TaskFunction | str,
        *arguments: Json,
        key: str | None = None,
        delay: float = 0,
        priority: int = 0,
        within: SomeTransaction | None = None,
        **named: Json,
    ) -> str:
        """Enqueue a task and return its id. On return the task is synced to disk; with ``within``, when that
        transaction commits.

        ``key`` deduplicates: if a live task has the same key, its id is returned instead. ``delay`` is in seconds. A
        smaller ``priority`` is more urgent.
        """
        refuse_unstorable([[*arguments], named], "task arguments", self._max_payload)
        _check([key], priority)
        known = self._registry.get(task)
        known.refuse_call(arguments, named)
        (id,) = await self._backend.enqueue(
            known, [(arguments, named)], keys=[key], delay=_wait(delay), priority=priority, within=within
        )
        return id

    @check_options
    async def enqueue_many(
        self,
        task: TaskFunction | str,
        arguments: Sequence[Sequence[Json]],
        *,
        keys: Sequence[str | None] | None = None,
        delay: float = 0,
        priority: int = 0,
        within: SomeTransaction | None = None,
    ) -> list[str]:
        """Enqueue several calls in one transaction and return their ids. ``keys`` has one deduplication key, or None, per call."""
        given: list[tuple[Sequence[Json], dict[str, Json]]] = [(each, {}) for each in arguments]
        as_lists: list[list[object]] = [[[*each] if isinstance(each, tuple) else each, {}] for each in arguments]
        refuse_each_unstorable(as_lists, "task arguments", self._max_payload)
        _check(keys or (), priority)
        if keys is not None and len(keys) != len(given):
            raise ValueError(
                f"{len(given)} tasks and {len(keys)} keys: give a key for each, None for those without one"
            )
        known = self._registry.get(task)
        for each in {_shape(arguments): arguments for arguments, _ in given}.values():
            known.refuse_call(each, {})
        return await self._backend.enqueue(
            known, given, keys=keys or [None] * len(given), delay=_wait(delay), priority=priority, within=within
        )

    async def status(self, id: str) -> TaskStatus | None:
        """Return the state of a task, or None if the id is unknown or the task's retention has ended."""
        return await self._backend.status(id)

    async def cancel(self, id: str, reason: str = "cancelled") -> bool:
        return await self._backend.cancel(id, reason)


def _wait(delay: float) -> timedelta | None:
    if delay <= 0:
        return None
    try:
        return clamp_wait(timedelta(seconds=delay))
    except (OverflowError, ValueError):
        raise ValueError("the delay is out of range: give a number of seconds") from None


def _check(keys: Sequence[str | None], priority: int) -> None:
    refuse_unstorable_priority(priority)
    for key in keys:
        refuse_unstorable_key(key)


def _shape(arguments: object) -> tuple[type, int]:
    """Return the type and length of a call's arguments. Calls of equal shape are all valid or all invalid."""
    return type(arguments), len(arguments) if isinstance(arguments, list | tuple) else 0


REHOMED_AT_ONCE = 1000
REHOMER_POLICY = LoopPolicy(every=timedelta(minutes=1), stuck_after=timedelta(minutes=2))


class TaskHomes(Protocol):
    async def find_unserved(self, served: Collection[str]) -> Collection[Unserved]:
        """Return the waiting tasks of queues that are not in ``served``."""

    async def rehome(self, name: str, source: str, target: str, limit: int) -> int: ...


class TaskRehomer:
    name = "task-rehomer"

    def __init__(self, homes: TaskHomes, registry: TaskRegistry) -> None:
        self.wakeup = Wakeup()
        self._homes = homes
        self._registry = registry

    async def tick(self) -> Pace:
        has_more = False
        for unserved in await self._homes.find_unserved(self._registry.queues):
            task = self._registry.find(unserved.name or "")
            if task is not None:
                moved = await self._homes.rehome(task.name, unserved.queue, task.queue, REHOMED_AT_ONCE)
                has_more |= moved == REHOMED_AT_ONCE
        return Again() if has_more else Idle()


THREAD_WATCH_POLICY = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)


class ThreadWatch:
    """Counts the threads of tasks that run beyond their time limit. The heartbeat contains the number, and health reports it."""

    name = "task-threads"

    def __init__(self, tasks: Iterable[Task], events: Events) -> None:
        self.wakeup = Wakeup()
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
