"""TaskService enqueues, queries, cancels and retries tasks. TaskRehomer moves waiting items to the queue that serves
their task. ThreadWatch counts threads that are running past their time limit.
"""

import math
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

from batuta.kernel.events import Events, TaskThreadsStuck
from batuta.kernel.storage.encryption import PLAIN, Encryption
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import (
    MAX_PAYLOAD,
    are_scalars,
    refuse_each_unstorable,
    refuse_unstorable_key,
    refuse_unstorable_priority,
)
from batuta.kernel.suggestions import check_options
from batuta.kernel.trace import current, recorder
from batuta.queue.outcome import CANCELLED
from batuta.queue.store import Unserved
from batuta.supervise.loop import FOR_EVER, Again, Idle, LoopPolicy, Pace, Wakeup
from batuta.tasks.batch import Batch, Batches
from batuta.tasks.blocking import BlockingTasks
from batuta.tasks.enqueueing import AroundEnqueue, NewCalls
from batuta.tasks.handle import Handle
from batuta.tasks.registry import TaskRegistry, TaskStatus
from batuta.tasks.task import NO_OPTIONS, AnyTask, BoundTask, Call, EnqueueOptions, TaskFunction, call_of

# The type of a transaction of the backend's database.
SomeTransaction = TypeVar("SomeTransaction", contravariant=True)
T = TypeVar("T")


class TaskBackend(Protocol[SomeTransaction]):
    async def enqueue(
        self,
        task: AnyTask,
        calls: Sequence[Call],
        options: EnqueueOptions,
        *,
        keys: Sequence[str | None],
        within: SomeTransaction | None,
    ) -> list[str]:
        """Insert the calls and return their ids in the order of the calls. If an unfinished task has the same key as a
        new call, return that task's id instead.
        """

    async def status(self, id: str) -> TaskStatus | None: ...

    async def cancel(self, id: str, reason: str, *, by: str | None = None) -> bool: ...

    async def retry(self, id: str, *, by: str | None = None) -> bool: ...

    async def failed(self, task: AnyTask, limit: int) -> list[str]:
        """Return the ids of a task's failed calls, most recent failure first."""

    async def wait(self, id: str, timeout: timedelta | None) -> None:
        """Wait until the task has ended. Return immediately if the task does not exist. Raises TimeoutError after
        ``timeout``.
        """


class TaskService(Generic[SomeTransaction]):
    def __init__(
        self,
        registry: TaskRegistry,
        backend: TaskBackend[SomeTransaction],
        max_payload: int = MAX_PAYLOAD,
        encryption: Encryption = PLAIN,
    ) -> None:
        """Create the service. ``max_payload`` is the maximum size of one call's arguments, in bytes of JSON.
        ``encryption`` must be the same as the backend's encryption.
        """
        self.encryption = encryption
        self._max_payload = max_payload
        self._registry = registry
        self._backend = backend
        self.blocking: BlockingTasks[Any] | None = None  # runs calls for synchronous code
        self.around = AroundEnqueue()
        self.batches: Batches | None = None

    async def enqueue(
        self,
        task: AnyTask | BoundTask[..., Any] | TaskFunction | str,
        *arguments: Json,
        key: str | None = None,
        delay: float = 0,
        priority: int = 0,
        within: SomeTransaction | None = None,
        **named: Json,
    ) -> str:
        """Enqueue a call, sync it to disk, and return its id. ``task`` is the task, ``task.options(…)`` or the task's
        name. If ``within`` is given, the call is stored when that transaction commits.

        ``key`` deduplicates: if an unfinished task has the same key, nothing is enqueued, and the id of that task is
        returned. ``delay`` is in seconds. A smaller ``priority`` is more urgent.
        """
        options = EnqueueOptions(delay=delay, key=key, priority=priority)
        if isinstance(task, BoundTask):
            if options != NO_OPTIONS:
                raise TypeError("the task has options already: write delay, key and priority in task.options(…)")
            options, task = task.options, task.task
        (id,) = await self.put(self._registry.get(task), [Call(arguments, named)], options, within=within)
        return id

    @check_options
    async def enqueue_many(
        self,
        task: AnyTask | TaskFunction | str,
        arguments: Sequence[Sequence[Json] | Mapping[str, Json]],
        *,
        keys: Sequence[str | None] | None = None,
        delay: float = 0,
        priority: int = 0,
        batch: Batch | None = None,
        within: SomeTransaction | None = None,
    ) -> list[str]:
        """Enqueue several calls in one transaction and return their ids. Each call is a list of arguments, or a mapping
        of named arguments. ``keys`` has one element per call: a deduplication key or None. All new calls belong to
        ``batch``. A call whose key belongs to an unfinished task is not enqueued.
        """
        if isinstance(task, BoundTask):
            raise TypeError("enqueue_many() takes the task itself: write await task.options(…).enqueue_many(calls)")
        calls = [call_of(each) for each in arguments]
        if keys is not None and len(keys) != len(calls):
            raise ValueError(
                f"{len(calls)} tasks and {len(keys)} keys: pass one key per task, or None for a task without a key"
            )
        options = EnqueueOptions(delay=delay, priority=priority, batch=None if batch is None else batch.id)
        return await self.put(self._registry.get(task), calls, options, keys=keys, within=within)

    async def put(
        self,
        task: AnyTask,
        calls: Sequence[Call],
        options: EnqueueOptions,
        *,
        keys: Sequence[str | None] | None = None,
        within: SomeTransaction | None = None,
    ) -> list[str]:
        """Check the calls, enqueue them in one transaction, and return their ids. ``keys`` has one deduplication key
        (or None) per call; these keys override the key in ``options``.
        """
        if not self.around:
            return await self._put(task, calls, options, keys, within)
        with self.around.entered(NewCalls(task=task.name, calls=calls, options=options)) as new:
            return await self._put(task, new.calls, new.options, keys, within)

    async def _put(
        self,
        task: AnyTask,
        calls: Sequence[Call],
        options: EnqueueOptions,
        keys: Sequence[str | None] | None,
        within: SomeTransaction | None,
    ) -> list[str]:
        keys = keys or [options.key] * len(calls)
        calls = self._prepare(task, calls, options, keys)
        with _span(task, len(calls)):
            return await self._backend.enqueue(task, calls, options, keys=keys, within=within)

    def call_sync(self, method: str, work: Callable[[TaskBackend[Any]], Coroutine[Any, Any, T]]) -> T:
        """Run ``work`` for synchronous code, with a backend on a separate connection. If the calling thread is running
        an event loop, an error is raised that recommends the asynchronous method ``method``.
        """
        if self.blocking is None:
            raise RuntimeError("this service has no connection for synchronous code: use the tasks of a Batuta object")
        return self.blocking.call(f"{method}_sync", method, work)

    def put_sync(
        self, task: AnyTask, calls: Sequence[Call], options: EnqueueOptions, method: str = "enqueue"
    ) -> list[str]:
        """Check the calls, enqueue them from synchronous code on a separate connection, and return their ids."""
        with self.around.entered(NewCalls(task=task.name, calls=calls, options=options)) as new:
            keys, options = [new.options.key] * len(new.calls), new.options
            calls = self._prepare(task, new.calls, options, keys)
            with _span(task, len(calls)):
                return self.call_sync(
                    method, lambda backend: backend.enqueue(task, calls, options, keys=keys, within=None)
                )

    def _prepare(
        self, task: AnyTask, calls: Sequence[Call], options: EnqueueOptions, keys: Sequence[str | None]
    ) -> Sequence[Call]:
        """Return the calls with their arguments as JSON. Raises an error if the arguments do not fit the function or
        cannot be stored.
        """
        _check(keys, options)
        # Calls with the same number of arguments and the same names are all valid or all invalid, so check one of each
        # kind.
        for call in {_shape(each): each for each in calls}.values():
            task.refuse_call(call)
        if task.codec.checks and not task.codec.fits(calls):
            calls = [Call(*task.codec.encode(*call)) for call in calls]
        stored: list[list[object]] = [[[*arguments], named] for arguments, named in calls]
        is_flat = are_scalars(chain.from_iterable([arguments for arguments, _ in calls]))
        is_flat = is_flat and not any(named for _, named in calls)
        refuse_each_unstorable(stored, "task arguments", self._max_payload, is_flat=is_flat)
        return calls

    def handle(self, id: str, task: str | None = None) -> Handle[Any]:
        """Return a handle for the id of an enqueued call, even if another process enqueued it. ``task`` is the name of
        the task to which the call must belong; None accepts any task.
        """
        return Handle(id, self, task)

    async def status(self, id: str) -> TaskStatus | None:
        """Return a task's state, or None if the id is unknown or the task was deleted when its retention ended."""
        return await self._backend.status(id)

    async def wait(self, id: str, timeout: timedelta | None = None) -> TaskStatus | None:
        """Wait until a call has ended and return its status, or None if the id is unknown. Raises TimeoutError when
        ``timeout`` has passed.
        """
        return await _wait(self._backend, id, timeout)

    def status_sync(self, id: str) -> TaskStatus | None:
        return self.call_sync("status", lambda backend: backend.status(id))

    def wait_sync(self, id: str, timeout: timedelta | None = None) -> TaskStatus | None:
        return self.call_sync("result", lambda backend: _wait(backend, id, timeout))

    def cancel_sync(self, id: str, reason: str | None = None) -> bool:
        return self.call_sync("cancel", lambda backend: backend.cancel(id, reason or CANCELLED()))

    async def cancel(self, id: str, reason: str | None = None, *, by: str | None = None) -> bool:
        """Cancel a call. A waiting call is cancelled immediately, and a running call when its lease is next renewed.
        Return False if the call has ended. ``by`` is the operator to record in the audit log.
        """
        return await self._backend.cancel(id, reason or CANCELLED(), by=by)

    async def retry(self, id: str, *, by: str | None = None) -> bool:
        """Run a failed call again, immediately and with a full set of attempts. Return False if the call has not
        failed, or if an unfinished call has the same key. ``by`` is the operator to record in the audit log.
        """
        return await self._backend.retry(id, by=by)

    async def failed(self, task: AnyTask, limit: int) -> list[Handle[Any]]:
        """Return handles for a task's failed calls, most recent failure first."""
        return [self.handle(id) for id in await self._backend.failed(task, limit)]


async def _wait(backend: TaskBackend[Any], id: str, timeout: timedelta | None) -> TaskStatus | None:
    await backend.wait(id, timeout)
    return await backend.status(id)


def _span(task: AnyTask, calls: int) -> AbstractContextManager[object]:
    """Return a context manager that records the enqueueing as a span. If no tracing system is recording this process,
    the context manager has no effect.
    """
    if (tracing := recorder()) is None:
        return _NO_SPAN
    return tracing.span(
        "enqueue", f"enqueue {task.name}", current(), {"batuta.queue": task.queue, "batuta.calls": calls}
    )


_NO_SPAN: AbstractContextManager[object] = nullcontext()


def _check(keys: Sequence[str | None], options: EnqueueOptions) -> None:
    refuse_unstorable_priority(options.priority)
    if not math.isfinite(options.delay):
        raise ValueError("the delay is out of range: give a number of seconds")
    for key in keys:
        refuse_unstorable_key(key)


def _shape(call: Call) -> tuple[type, int, frozenset[str]]:
    arguments, named = call
    return type(arguments), len(arguments) if isinstance(arguments, list | tuple) else 0, frozenset(named)


REHOMED_AT_ONCE = 1000
REHOMER_POLICY = LoopPolicy(every=timedelta(minutes=1), stuck_after=timedelta(minutes=2))


class TaskHomes(Protocol):
    async def find_unserved(self, served: Collection[str]) -> Collection[Unserved]:
        """Return the waiting tasks in queues that are not in ``served``."""

    async def rehome(self, name: str, source: str, target: str, limit: int) -> int: ...

    async def unlabel(self, limited: Collection[str], limit: int) -> int:
        """Clear the limit key of waiting items whose task is not in ``limited``, so that the statement that claims
        tasks without limits finds them. Return the number of changed items.
        """


class LabelledItems(Protocol):
    async def unlabel(self, limit: int) -> int:
        """Clear the limit key of waiting items whose stage has no limits. Return the number of changed items."""


class TaskRehomer:
    """A loop that moves waiting items to the queue that serves their task. It also clears the limit keys of items whose
    task or stage no longer has limits, because the statement that claims items without limits would otherwise skip
    these items.
    """

    name = "task-rehomer"

    def __init__(self, homes: TaskHomes, registry: TaskRegistry, items: LabelledItems | None = None) -> None:
        """Create the loop. ``items`` gives access to pipeline items; if it is None, the loop handles only tasks."""
        self.wakeup = Wakeup()
        self._homes = homes
        self._items = items
        self._registry = registry

    async def tick(self) -> Pace:
        has_more = await self._homes.unlabel(self._registry.limited, REHOMED_AT_ONCE) == REHOMED_AT_ONCE
        if self._items is not None:
            has_more |= await self._items.unlabel(REHOMED_AT_ONCE) >= REHOMED_AT_ONCE
        for unserved in await self._homes.find_unserved(self._registry.queues):
            task = self._registry.find(unserved.name or "")
            if task is not None:
                moved = await self._homes.rehome(task.name, unserved.queue, task.queue, REHOMED_AT_ONCE)
                has_more |= moved == REHOMED_AT_ONCE
        return Again() if has_more else Idle()


THREAD_WATCH_POLICY = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER)


class ThreadWatch:
    """Counts task threads that are running past their time limit. The heartbeat contains the number, and a health check
    reports it.
    """

    name = "task-threads"

    def __init__(self, tasks: Iterable[AnyTask], events: Events) -> None:
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
