"""Tasks: functions that can be enqueued by name, the queue table that stores them, and the settings with which each task runs."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from batuta.kernel.errors import require
from batuta.kernel.json import Json
from batuta.kernel.reasons import Reason, define
from batuta.kernel.suggestions import nearest, unknown
from batuta.kernel.trace import HEADER
from batuta.kernel.usercode import Threads
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease, QueueTable
from batuta.queue.outcome import DEFAULT_RETRY, Done, Outcome, RetryPolicy, Snooze, after_seconds

TaskState: TypeAlias = Literal["queued", "in_progress", "complete", "failed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    """The state of a task: its instants, attempts, progress, and result or error."""

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
    given=("name", "args", "created_at"),
)
# For tasks that another process runs: a crash of the process that waits for the outcome does not count for the task.
RELAYED_TASKS = replace(TASKS, crash_cap=1_000_000)


TaskFunction: TypeAlias = Callable[..., Any]
# Runs a task in another process and returns its outcome.
TaskRunner: TypeAlias = "Callable[[Task, Lease], Awaitable[Outcome]]"
DEFAULT_QUEUE = "default"
# Options of ``enqueue``. They share the keyword arguments with the parameters of the task.
PUT_OPTIONS = ("key", "delay", "priority", "within")
# Retention of failed tasks, so that an operator can inspect them.
KEEP_FAILED = timedelta(days=30)
# No limit in this process: the remote runner enforces the time limit, which excludes the wait in the remote queue.
ELSEWHERE = timedelta(days=3650)
# Limit per task and process: further calls are postponed while this many threads run beyond their time limit.
MAX_STUCK_THREADS = 4
PUT_OFF = timedelta(minutes=1)
_NAME = re.compile(r"^[a-z_][a-z0-9_.]*$")


class TaskContext(NamedTuple):
    """The first argument of a task function. ``report`` stores progress, which ``status`` returns."""

    id: str
    attempt: int
    enqueued_at: datetime
    report: Callable[[Json], Awaitable[None]]


STUCK_THREADS = define(
    "stuck_threads",
    "{count} calls of task {task} are still running in their threads after their time limit: set a timeout for the calls"
    " inside the function, and restart the worker",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    function: TaskFunction
    queue: str = DEFAULT_QUEUE
    timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = DEFAULT_RETRY
    retry_timeout: bool = False
    keep_result: timedelta = timedelta(hours=1)
    # For a synchronous function: one thread per call, which Python cannot stop.
    threads: Threads = field(default_factory=Threads)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_async", inspect.iscoroutinefunction(self.function))

    def refuse_call(self, arguments: object, named: Mapping[str, object]) -> None:
        """Raise TypeError if the arguments do not fit the function, instead of failing the task later."""
        if not isinstance(arguments, list | tuple):
            raise TypeError(
                f"each call of task {self.name} is a list of its arguments: write [[1, 'two'], [3, 'four']]"
            )
        signature = inspect.signature(self.function)
        try:
            signature.bind(None, *arguments, **named)
        except TypeError as error:
            known = [*signature.parameters, *PUT_OPTIONS]
            for name in named:
                if name not in known and (near := nearest(name, known)) is not None:
                    raise TypeError(f"task {self.name} has no parameter '{name}': write {near}=…") from None
            raise TypeError(f"task {self.name} cannot be called with these arguments: {error}") from None

    def handler(
        self, report: Callable[[Lease, Json], Awaitable[None]], elsewhere: "TaskRunner | None" = None
    ) -> ItemHandler:
        """Return the item handler of this task. ``elsewhere`` runs the task in another process, with its time limit."""
        return ItemHandler(
            handle=lambda lease: self.run(lease, report) if elsewhere is None else elsewhere(self, lease),
            traceparent=lambda lease: _trace_of(lease.row["args"]),
            timeout=self.timeout if elsewhere is None else ELSEWHERE,
            retry=self.retry,
            retry_timeout=self.retry_timeout,
            keep=self.keep_result,
            keep_dead=KEEP_FAILED,
        )

    async def run(self, lease: Lease, report: Callable[[Lease, Json], Awaitable[None]]) -> Outcome:
        if not self.is_async and (stuck := self.threads.left_behind) >= MAX_STUCK_THREADS:
            return Snooze(PUT_OFF, STUCK_THREADS(count=stuck, task=self.name))
        arguments, named, *_ = lease.row["args"]
        context = TaskContext(
            id=lease.id,
            attempt=lease.attempt,
            enqueued_at=lease.row["created_at"],
            report=lambda progress: report(lease, progress),
        )
        if self.is_async:
            returned = await self.function(context, *arguments, **named)
        else:
            call = partial(self.function, context, *arguments, **named)
            returned = await self.threads.call(call, name=f"task {self.name}")
        return outcome_of(returned)


def _trace_of(args: object) -> object:
    """Return the trace context of the enqueuing caller: the third element of ``args``, which is not trusted."""
    match args:
        case [_, _, {**carried}]:
            return carried.get(HEADER)
        case _:
            return None


def outcome_of(returned: object) -> Outcome:
    """Return an outcome unchanged; wrap any other value in Done as the result."""
    return returned if isinstance(returned, Outcome) else Done(result=returned)  # type: ignore[arg-type]


class TaskRegistry:
    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}
        self._names: dict[TaskFunction, str] = {}
        self.elsewhere: TaskRunner | None = None  # None: workers run tasks themselves

    def add(self, task: Task) -> None:
        name, takes = task.name, inspect.signature(task.function).parameters
        lasts = task.timeout > timedelta(0) <= task.keep_result
        require(
            "task", name, _NAME.match(name), Reason("task_name", "use lowercase letters, digits, dots and underscores")
        )
        require("task", name, name not in self._tasks, Reason("task_taken", "another task has this name"))
        require("task", name, takes, Reason("task_context", "it must take the context as its first argument"))
        require("task", name, lasts, Reason("task_timeout", "its timeout must be greater than zero"))
        self._tasks[name] = task
        self._names[task.function] = name

    def get(self, task: TaskFunction | str) -> Task:
        name = task if isinstance(task, str) else self._names.get(task, getattr(task, "__name__", repr(task)))
        if name not in self._tasks:
            raise unknown("task", name, self._tasks)
        return self._tasks[name]

    def find(self, name: str) -> Task | None:
        return self._tasks.get(name)

    def handlers(self, report: Callable[[Lease, Json], Awaitable[None]]) -> dict[str, ItemHandler]:
        return {task.name: task.handler(report, self.elsewhere) for task in self}

    @property
    def queues(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(task.queue for task in self))

    def __iter__(self) -> Iterator[Task]:
        return iter(self._tasks.values())


def retry_policy(retry: RetryPolicy | Sequence[float] | None) -> RetryPolicy:
    """Return the retry policy for a list of waits in seconds, one per retry. None gives ``DEFAULT_RETRY``."""
    if retry is None:
        return DEFAULT_RETRY
    return after_seconds(retry) if isinstance(retry, Sequence) else retry
