"""The methods of ``Batuta`` that declare tasks and enqueue their calls."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Never, cast

from batuta.kernel.calls.middleware import Around
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidTask
from batuta.kernel.events import Fanout, ItemsSettled
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import check_options
from batuta.queue.limits import Limits
from batuta.queue.outcome import DEFAULT_RETRY
from batuta.queue.retry import Retry, retry_policy
from batuta.receive.endpoints import DEFAULT_TIMEOUT
from batuta.stores.connections import Connections, Wakeups
from batuta.stores.sql.database import Database, Row, Transaction
from batuta.stores.sql.migrations import Migrator
from batuta.stores.sql.queue.batches import SqlBatches
from batuta.stores.sql.queue.items import SqlItems
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.tasks.batch import Batches, NewBatch, OnEnd
from batuta.tasks.blocking import BlockingTasks
from batuta.tasks.ends import TaskEnds
from batuta.tasks.registry import TASKS
from batuta.tasks.service import TaskService
from batuta.tasks.task import DEFAULT_QUEUE, CallableTask, Task, TaskDecorator, TaskFunction, TaskRunner

if TYPE_CHECKING:
    from batuta.engine.children import ChildProcesses

DEFAULT_SECONDS = DEFAULT_TIMEOUT.total_seconds()


class TaskDeclarations:
    """Base class of ``Batuta`` with the methods that declare tasks in ``task_registry`` and enqueue their calls.
    ``Batuta`` sets the attributes.
    """

    events: Fanout
    closers: list[Callable[[], Awaitable[None]]]
    connections: Connections
    around: Around
    wakeups: Wakeups
    ids: Ids
    clock: Clock
    _migrates: bool
    _items: SqlItems

    def now(self) -> datetime | None:
        """Return the current time of the application's own clock, or None if SQL statements must use the database's
        clock.
        """
        raise NotImplementedError

    def migrator(self, database: Database | None = None) -> Migrator:
        """Return the migrator for a database. None means the application's own database."""
        raise NotImplementedError

    def _use_task_store(self, store: SqlTasks, max_payload: int) -> None:
        """Take the task registry from ``store``, and create the task service. ``max_payload`` is the maximum size of
        one call, in bytes of JSON.
        """
        self._task_store = store
        self.task_registry = store.registry
        self.tasks = TaskService[Transaction](self.task_registry, store, max_payload, store.encryption)
        self.enqueue, self.enqueue_many = self.tasks.enqueue, self.tasks.enqueue_many
        self.status, self.handle = self.tasks.status, self.tasks.handle
        self.batch_store = SqlBatches(
            store, self.tasks, self.ids, self.clock, self.events, self.now, self._items.batch_members
        )
        self.batches = self.tasks.batches = Batches(self.batch_store, self.tasks)
        self.task_ends = TaskEnds(self.batch_store, self.clock, lambda: self.wakeups.is_listening)
        self.wakeups.add(self.task_ends.name, self.task_ends.wakeup)
        self.events.subscribe(self.task_ends.on_event)
        self.closers.append(store.endings.close)
        self.tasks.blocking = BlockingTasks(self._open_aside, _close_aside)
        self.closers.append(self.tasks.blocking.close)
        # on SQLite, wake the waiters of this process here; PostgreSQL notifies the waiters of every process
        if store.database.dialect == "sqlite":
            self.events.subscribe(
                lambda event: store.endings.note_change() if isinstance(event, ItemsSettled) else None
            )

    async def _open_aside(self) -> SqlTasks:
        """Open a database connection on the event loop that serves synchronous callers. As in ``Batuta.open``, apply
        missing migrations if configured, and check the schema.
        """
        database = self.connections.aside()
        await database.open()
        try:
            migrator = self.migrator(database)
            if self._migrates:
                await migrator.migrate()
            await migrator.require_current()
        except BaseException:
            await database.close()
            raise
        # No local wake-up is needed, because the database notifies the workers of every process, including this one.
        return replace(self._task_store, database=database, wake=lambda queue: None, liveness=None)

    async def find_tasks(
        self, queue: str, limit: int = 20, *, tag: str | None = None, key: str | None = None
    ) -> Sequence[Row]:
        """Return the newest rows of a task queue, filtered by tag, by key, or by both. Pass at least one filter."""
        if tag is None and key is None:
            raise ValueError("find_tasks() needs a tag or a key: write tag=…")
        return await self._task_store.find(queue, limit, tag=tag, key=key)

    async def why_waiting(self, id: str) -> Reason | None:
        """Return the task, batch or limit that a queued task is waiting for, or None if it is waiting for none of
        these.
        """
        waits = await self.batch_store.explain([{"id": id, "status": "queued"}])
        return waits.get(id) or await self._task_store.why_waiting(id)

    @check_options
    def batch(self, name: str, *, on_end: OnEnd | None = None) -> NewBatch:
        """Return a new batch for an ``async with`` block. Entering the block stores the batch, and leaving the block
        closes it. The task ``on_end`` runs once, when all tasks in the batch have ended. If ``on_end`` has a parameter,
        it receives the counts (``BatchProgress``).
        """
        return NewBatch(self.batches, name, on_end)

    async def explain_waits(self, queue: SqlQueue, items: Sequence[Mapping[str, Any]]) -> Mapping[str, Reason]:
        """Map the id of each waiting item in a queue to the limit, task or batch that it is waiting for."""
        waits = {} if queue.table.name != TASKS.name else await self.batch_store.explain(items)
        return {**await queue.why_limited(items), **waits}

    @check_options
    def task(
        self,
        *bare: Never,
        retry: Retry | None = None,
        timeout: float = DEFAULT_SECONDS,
        keep_result: float = 3600,
        queue: str = DEFAULT_QUEUE,
        name: str | None = None,
        retry_timeout: bool = False,
        concurrency: int | None = None,
        rate: str | None = None,
        per_key: Limits | None = None,
        process: bool = False,
        memory: str | None = None,
    ) -> TaskDecorator:
        """Register a function as a task. The task can be enqueued, and can still be called like the original function.

        The function receives a context if its first parameter is annotated ``TaskContext``. Times are in seconds.
        ``retry`` is a list of waits, a policy, or rules by class of error: ``{HTTPError: [10, 60], ValueError:
        never}``. None means five retries with full jitter.

        ``concurrency`` limits how many calls run at the same time, across all processes; ``rate`` limits how many calls
        start in a period ("100/minute"). ``per_key`` applies limits to the calls with the same value of a parameter.

        With ``process`` each call runs in a child process, which may use at most ``memory`` ("512MB"). Exceeding the
        time limit or cancelling the call kills the child process.
        """

        policy = retry_policy(retry, DEFAULT_RETRY)

        def register(function: TaskFunction) -> CallableTask[..., Any, ..., Any]:
            function = function.function if isinstance(function, Task) else function
            called = name or str(getattr(function, "__name__", "task"))
            task = CallableTask[..., Any, ..., Any](
                name=called,
                function=function,
                service=self.tasks,
                queue=queue,
                timeout=timedelta(seconds=timeout),
                retry=policy,
                retry_timeout=retry_timeout,
                keep_result=timedelta(seconds=keep_result),
                whole=Limits(concurrency=concurrency, rate=rate),
                per_key=per_key,
                around=self.around,
                in_child=_in_child(called, function, process, memory),
            )
            self.task_registry.add(task)
            return task

        if bare:
            why = Reason("task_parentheses", "write @work.task() above it, with the parentheses")
            raise InvalidTask(task=str(getattr(bare[0], "__name__", "task")), why=why)
        return cast(TaskDecorator, register)

    def relay_tasks(self, runner: TaskRunner) -> None:
        """Let ``runner`` run the tasks in other processes. A worker in this process still claims the tasks and waits
        for their outcomes.
        """
        self.task_registry.relay(runner)
        self._task_store.relay()


def _in_child(task: str, function: TaskFunction, process: bool, memory: str | None) -> "ChildProcesses | None":
    if not process:
        if memory is not None:
            raise InvalidTask(task=task, why=Reason("child_only", "memory needs process=True"))
        return None
    from batuta.engine.children import in_child  # imported here, because few programs run tasks in child processes

    return in_child(task, function, memory)


async def _close_aside(store: SqlTasks) -> None:
    await store.endings.close()
    await store.database.close()
