"""The registry of an application's tasks, the queue table that stores calls to them, and the status of a call."""

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from batuta.kernel.errors import InvalidTask, require
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease, QueueTable
from batuta.queue.limits import TaskLimits
from batuta.queue.retry import RetryByError
from batuta.tasks.task import AnyTask, Task, TaskFunction, TaskRunner

TaskState: TypeAlias = Literal["queued", "in_progress", "complete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """A task's state: when it was enqueued, started and ended, its attempts, its progress, and its result or error."""

    job_id: str
    name: str
    status: TaskState
    enqueue_time: datetime
    start_time: datetime | None
    finish_time: datetime | None
    attempts: int
    result: Json
    error: str | None
    progress: Json
    key: str | None = None
    tags: tuple[str, ...] = ()


TASKS = QueueTable(
    name="tasks",
    ready=("queued",),
    running="in_progress",
    done="complete",
    dead="failed",
    priority="priority",
    key="unique_key",
    queue="queue",
    result="result",
    expires_at="expires_at",
    started_at="started_at",
    cancel_requested="cancel_requested",
    fixed_times=False,
    limit_key="limit_key",
    given=("name", "args"),
    documents=("args",),
)
# Description of the table for tasks that another process runs. The worker only waits for the outcome, so a worker crash
# does not count as a crash of the task.
RELAYED_TASKS = replace(TASKS, crash_cap=1_000_000)


_NAME = re.compile(r"^[a-z_][a-z0-9_.]*$")


class TaskRegistry:
    def __init__(self) -> None:
        self._tasks: dict[str, AnyTask] = {}
        self._names: dict[TaskFunction, str] = {}
        self._limits: dict[str, dict[str, TaskLimits]] = {}
        self.elsewhere: TaskRunner | None = None  # None if workers run the tasks themselves

    def add(self, task: AnyTask) -> None:
        name = task.name
        require(
            "task", name, _NAME.match(name), Reason("task_name", "use lowercase letters, digits, dots and underscores")
        )
        require("task", name, name not in self._tasks, Reason("task_taken", "another task has this name"))
        if not task.timeout > timedelta(0) <= task.keep_result:
            raise InvalidTask(task=name, why=Reason("task_timeout", "its timeout must be greater than zero"))
        if self.elsewhere is not None:
            _refuse_elsewhere(task)
        if task.limits is not None:
            self.limits_in(task.queue)[name] = task.limits
        self._tasks[name] = task
        self._names[task.function] = name

    def relay(self, runner: TaskRunner) -> None:
        """Make the engine's workers pass every task to ``runner``, which runs it in another process. Raise InvalidTask
        if a task has an option that this does not support.
        """
        for task in self:
            _refuse_elsewhere(task)
        self.elsewhere = runner

    def limits_in(self, queue: str) -> dict[str, TaskLimits]:
        """Return the limits of a queue's tasks, by task name. The returned mapping is live: it also includes tasks that
        are added later.
        """
        return self._limits.setdefault(queue, {})

    @property
    def limited(self) -> tuple[str, ...]:
        return tuple(task.name for task in self if task.limits is not None)

    def get(self, task: AnyTask | TaskFunction | str) -> AnyTask:
        if isinstance(task, Task) and self._tasks.get(task.name) is task:
            return task
        name = task if isinstance(task, str) else self._name_of(task)
        if name not in self._tasks:
            raise unknown("task", name, self._tasks)
        return self._tasks[name]

    def _name_of(self, task: AnyTask | TaskFunction) -> str:
        function = task.function if isinstance(task, Task) else task
        return self._names.get(function, getattr(function, "__name__", repr(function)))

    def find(self, name: str) -> AnyTask | None:
        return self._tasks.get(name)

    def handlers(self, report: Callable[[Lease, Json], Awaitable[None]]) -> dict[str, ItemHandler]:
        return {task.name: task.handler(report, self.elsewhere) for task in self}

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task.queue for task in self))

    def __iter__(self) -> Iterator[AnyTask]:
        return iter(self._tasks.values())


def _refuse_elsewhere(task: AnyTask) -> None:
    """Raise InvalidTask if a task that other processes run (see ``relay``) has limits or retry rules by error class.
    Limits count leases, but a task in another process may outlive its lease. Retry rules by error class need the class
    of the error, which another process does not report.
    """
    if task.limits is not None:
        why = Reason(
            "limits_elsewhere", "limits need TASKS_BACKEND=sql: remove its limits, or run the tasks on the database"
        )
        raise InvalidTask(task=task.name, why=why)
    if isinstance(task.retry, RetryByError):
        why = Reason(
            "retry_elsewhere",
            "retry rules by class of error need TASKS_BACKEND=sql: write a list of waits, or run the tasks on the database",
        )
        raise InvalidTask(task=task.name, why=why)
