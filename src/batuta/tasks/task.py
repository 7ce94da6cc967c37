"""A task: a function that can be enqueued, its options, and the context that it may receive.

    @work.task(retry=[10, 60])
    async def send(to: str, *, subject: str = "") -> str: ...

    handle = await send.enqueue("a@example.com", subject="hi")
    handle = await send.options(delay=60, key="welcome-7").enqueue("a@example.com")

The type checker compares the arguments of ``enqueue`` with the function's parameters. A decorated function stays
callable. A function receives a context only if its first parameter is annotated ``TaskContext``. The worker passes the
context; callers of ``enqueue`` do not.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime, timedelta
from functools import WRAPPER_ASSIGNMENTS, partial
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    get_args,
    get_type_hints,
    overload,
)

from batuta.kernel.calls.middleware import Around, Attempt
from batuta.kernel.calls.usercode import Threads
from batuta.kernel.errors import DamagedValue, InvalidTask, KeyMissing, UnstorableValue, reason_of_error
from batuta.kernel.reasons import Reason, define
from batuta.kernel.storage.encryption import PLAIN, Encryption, is_sealed
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.storable import MAX_PAYLOAD, refuse_unstorable
from batuta.kernel.suggestions import METHODS_ELSEWHERE, check_options, suggest_option, unknown
from batuta.kernel.trace import HEADER
from batuta.kernel.values import dataclass
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease
from batuta.queue.limits import Limits, TaskLimits, limits_of
from batuta.queue.outcome import (
    DEFAULT_RETRY,
    LONGEST_WAIT,
    PLAIN_DONE,
    Done,
    Failed,
    Outcome,
    Partial,
    RetryPolicy,
    Snooze,
    clamp_wait,
)
from batuta.tasks.arguments import Codec

if TYPE_CHECKING:
    from batuta.tasks.batch import Batch
    from batuta.tasks.handle import Handle
    from batuta.tasks.service import TaskService

P = ParamSpec("P")  # the parameters of ``enqueue``: the function's parameters without the context
Q = ParamSpec("Q")  # the parameters of a direct call
R = TypeVar("R", covariant=True)  # the return type of the function, without the coroutine
S = TypeVar("S", covariant=True)  # the return type of a direct call
T = TypeVar("T")

DEFAULT_QUEUE = "default"
# Options of ``work.enqueue``. Callers pass them as keyword arguments, together with the arguments of the task.
PUT_OPTIONS = ("key", "delay", "priority", "within")
# How long failed tasks are kept, so that an operator can inspect them.
KEEP_FAILED = timedelta(days=30)
# So long that this process never stops the call. The remote runner enforces the task's time limit, which starts after
# the wait in the remote queue.
ELSEWHERE = timedelta(days=3650)
# While this many threads of a task are running past their time limit in one process, further calls are postponed.
MAX_STUCK_THREADS = 4
PUT_OFF = timedelta(minutes=1)
# A call whose encryption key is missing is postponed by this time, and the attempt is not counted.
KEY_WAIT = timedelta(minutes=1)
# Names of a call's encrypted columns, for ``Encryption``, which authenticates them.
ARGUMENTS, RESULT, PROGRESS = "tasks.args", "tasks.result", "tasks.progress"
# A parameter with one of these names and one of these annotations looks like a context, but would not receive one.
CONTEXT_NAMES = ("ctx", "context")
UNCLEAR = (inspect.Parameter.empty, Any, object)


@dataclass(slots=True)
class TaskContext:
    """The context of a running call, passed to a function whose first parameter is annotated with this class.
    ``report`` stores progress, which ``status`` returns. ``batch`` is the batch that contains the call; the function
    may add further calls to it.
    """

    id: str
    attempt: int
    enqueued_at: datetime
    report: Callable[[Json], Awaitable[None]]
    batch: "Batch | None" = None


class Call(NamedTuple):
    """The arguments of one call. The context, which the worker adds as the first argument, is not included."""

    arguments: Sequence[Any]
    named: Mapping[str, Any]


OnConflict: TypeAlias = Literal["keep", "replace", "reschedule"]
AfterFailure: TypeAlias = Literal["cancel", "run"]
ON_CONFLICT, AFTER_FAILURE = get_args(OnConflict), get_args(AfterFailure)
LONGEST_UNIQUE = timedelta(days=366)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """A call's options; ``Task.options`` describes them."""

    delay: float = 0
    at: datetime | None = None
    key: str | None = None
    priority: int = 0
    tags: Sequence[str] = ()  # labels by which operators find the call
    unique_for: float = 0
    on_conflict: OnConflict = "keep"
    after: tuple[str, ...] = ()
    after_failure: AfterFailure = "cancel"
    batch: str | None = None  # id of the batch to which the call belongs

    def __post_init__(self) -> None:
        if not isinstance(self.delay, int | float):
            raise TypeError(f"delay is a number of seconds, not {type(self.delay).__name__}: write delay=60")
        if self.delay < 0:
            raise ValueError("delay is a number of seconds from now and cannot be negative: write delay=0 or omit it")
        if self.unique_for and not 0 <= self.unique_for <= LONGEST_UNIQUE.total_seconds():
            raise ValueError("unique_for must be a number of seconds, at most a year")
        if self.on_conflict not in ON_CONFLICT:
            raise unknown("on_conflict", str(self.on_conflict), ON_CONFLICT)
        if self.key is None and self.is_unique:
            raise ValueError("unique_for and on_conflict need the key that must be unique: give key=…")
        if self.after_failure not in AFTER_FAILURE:
            raise unknown("after_failure", str(self.after_failure), AFTER_FAILURE)
        if self.after and self.is_unique:
            raise ValueError(
                "a call that waits for others cannot replace another call: omit unique_for and on_conflict"
            )
        if self.at is not None and self.at.tzinfo is None:
            raise ValueError("at needs an instant with a zone, as in datetime(2026, 3, 2, 9, tzinfo=UTC)")
        if self.at is not None and self.delay > 0:
            raise ValueError("pass either delay or at, not both")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) and _TAG.match(tag) for tag in self.tags):
            raise ValueError(
                'tags must be a list of words without spaces, at most 100 characters each: write tags=["mail"]'
            )

    @property
    def wait(self) -> timedelta | None:
        """The call's delay, which the database adds to its current time to get the due time. None means that the call
        is due immediately.
        """
        return clamp_wait(timedelta(seconds=min(self.delay, LONGEST_WAIT.total_seconds()))) if self.delay > 0 else None

    @property
    def is_plain(self) -> bool:
        """Whether the call is due immediately, has no tags, belongs to no batch and waits for no other call
        (``after``).
        """
        return self.at is None and self.delay <= 0 and not (self.tags or self.after or self.batch)

    @property
    def is_unique(self) -> bool:
        """Whether the call has the option ``unique_for`` or may change a waiting call with the same key."""
        return self.unique_for > 0 or self.on_conflict != "keep"


BATCH = "batch"  # key of the batch's id, which is stored next to the trace context
_TAG = re.compile(r"\S{1,100}\Z")
NO_OPTIONS = EnqueueOptions()
STUCK_THREADS = define(
    "stuck_threads",
    "{count} calls of task {task} are still running in their threads after their time limit: set a timeout for the calls"
    " inside the function, and restart the worker",
)
ARGUMENTS_UNFIT = define("arguments_unfit", "{why}: enqueue the call again with the arguments of this release")
TaskFunction: TypeAlias = Callable[..., Any]
# Function that runs a task in another process and returns its outcome.
TaskRunner: TypeAlias = "Callable[[AnyTask, Lease], Awaitable[Outcome]]"


@dataclass(frozen=True, kw_only=True, eq=False)
class Task(Generic[P, R]):
    """A function that can be enqueued, together with the options for running it."""

    name: str
    function: TaskFunction
    service: "TaskService[Any] | None" = None  # enqueues the calls; None if the task cannot be enqueued here
    queue: str = DEFAULT_QUEUE
    timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = DEFAULT_RETRY
    retry_timeout: bool = False
    keep_result: timedelta = timedelta(hours=1)
    whole: Limits = field(default_factory=Limits)  # limits of all calls of the task
    per_key: Limits | None = None  # limits of the calls with the same value of a parameter
    # Runs a synchronous function, with one thread per call. Python cannot stop a thread.
    threads: Threads = field(default_factory=Threads)
    around: Around = field(default_factory=Around)  # middleware around the function
    in_child: "Callable[[Sequence[Any], Mapping[str, Any]], Awaitable[object]] | None" = (
        None  # None means that the function runs in the worker
    )
    is_async: bool = field(init=False)
    is_direct: bool = field(init=False)  # whether the worker awaits the function itself
    takes_context: bool = field(init=False)
    signature: inspect.Signature = field(init=False)  # signature of the function without the context
    codec: Codec = field(init=False)
    limits: TaskLimits | None = field(init=False)  # None if the task has no limits
    __name__: str = field(init=False)

    def __post_init__(self) -> None:
        signature = inspect.signature(self.function)
        takes_context = _takes_context(self.name, self.function, signature)
        parameters = list(signature.parameters.values())[1 if takes_context else 0 :]
        derived = {
            "is_async": inspect.iscoroutinefunction(self.function),
            "is_direct": self.in_child is None and inspect.iscoroutinefunction(self.function),
            "takes_context": takes_context,
            "signature": (own := signature.replace(parameters=parameters)),
            "codec": Codec(self.name, own, hints_of(self.function)),
            "limits": limits_of(self.name, parameters, self.whole, self.per_key),
        }
        named = {each: getattr(self.function, each) for each in WRAPPER_ASSIGNMENTS if hasattr(self.function, each)}
        vars(self).update(**derived, **named, __wrapped__=self.function)

    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue a call, sync it to disk, and return its handle."""
        return await BoundTask(self, NO_OPTIONS).enqueue(*arguments, **named)

    def enqueue_sync(self, *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue a call from synchronous code (Flask, Django, a script), sync it to disk, and return its handle.
        Raises RuntimeError inside a running event loop, which the call would block.
        """
        return BoundTask(self, NO_OPTIONS).enqueue_sync(*arguments, **named)

    async def enqueue_many(self, calls: "Sequence[Sequence[Any] | Mapping[str, Any]]") -> "list[Handle[R]]":
        """Enqueue several calls in one transaction and return their handles. Each call is a list of arguments, or a
        mapping of named arguments.
        """
        return await BoundTask(self, NO_OPTIONS).enqueue_many(calls)

    def enqueue_many_sync(self, calls: "Sequence[Sequence[Any] | Mapping[str, Any]]") -> "list[Handle[R]]":
        """Enqueue several calls in one transaction from synchronous code. Raises RuntimeError inside a running event
        loop.
        """
        return BoundTask(self, NO_OPTIONS).enqueue_many_sync(calls)

    def handle(self, id: str) -> "Handle[R]":
        """Return a handle for the id of a call to this task; the handle knows the type of the result. The call may have
        been enqueued by another process.
        """
        return self.require_service().handle(id, self.name)

    async def failed(self, limit: int = 100) -> "list[Handle[R]]":
        """Return handles for the calls that failed after their last attempt, most recent failure first.
        ``handle.retry()`` runs a call again.
        """
        return await self.require_service().failed(self, limit)

    @check_options
    def options(
        self,
        *,
        delay: float = 0,
        at: datetime | None = None,
        key: str | None = None,
        priority: int = 0,
        tags: Sequence[str] = (),
        unique_for: float = 0,
        on_conflict: OnConflict = "keep",
        after: "Sequence[Handle[Any] | Batch]" = (),
        after_failure: AfterFailure = "cancel",
    ) -> "BoundTask[P, R]":
        """Return a copy of the task whose calls use the given options: ``await
        send.options(delay=60).enqueue("a@example.com")``.

        ``delay`` is in seconds; ``at`` is an instant with a time zone. A smaller ``priority`` is more urgent. Operators
        find a call by its ``tags``.

        ``key`` deduplicates: while a call to this task with the same key is waiting or running, no second call is
        stored, and ``enqueue`` returns the handle of the first call. With ``unique_for``, the key stays reserved for
        that many seconds, even if the first call has ended. A cancelled call frees its key. If the first call is still
        waiting, ``on_conflict`` determines how a second call changes it: ``keep`` leaves the first call unchanged,
        ``replace`` gives it the new arguments, and ``reschedule`` gives it the new arguments and the new time.

        ``after`` lists handles and batches. The call starts when all of them have succeeded, but not before its own
        ``at`` or ``delay``. If one of them fails or is cancelled, ``after_failure="cancel"`` cancels the call too; with
        ``"run"`` the call runs when all of them have ended.
        """
        options = EnqueueOptions(
            delay=delay,
            at=at,
            key=key,
            priority=priority,
            tags=tags,
            unique_for=unique_for,
            on_conflict=on_conflict,
            after=_ids_of(after),
            after_failure=after_failure,
        )
        return BoundTask(self, options)

    if not TYPE_CHECKING:  # a type checker must report unknown attributes

        def __getattr__(self, name: str) -> Any:
            step = METHODS_ELSEWHERE.get(name)
            raise AttributeError(f"a task has no attribute '{name}'" + ("" if step is None else f": {step}"))

    def require_service(self) -> "TaskService[Any]":
        if self.service is None:
            raise InvalidTask(
                task=self.name, why=Reason("task_alone", "it belongs to no application: use @work.task()")
            )
        return self.service

    def refuse_call(self, call: Call) -> None:
        """Raise TypeError if the arguments do not fit the function. Without this check, the task would fail only when
        it runs.
        """
        arguments, named = call
        if not isinstance(arguments, list | tuple):
            raise TypeError(
                f"each call of task {self.name} is a list of its arguments: write [[1, 'two'], [3, 'four']]"
            )
        try:
            self.signature.bind(*arguments, **named)
        except TypeError as error:
            known = [*self.signature.parameters, *PUT_OPTIONS]
            for name in named:
                if name not in known and (step := suggest_option(name, known)) is not None:
                    raise TypeError(f"task {self.name} has no parameter '{name}': {step}") from None
            raise TypeError(f"task {self.name} cannot be called with these arguments: {error}") from None

    def handler(
        self, report: Callable[[Lease, Json], Awaitable[None]], elsewhere: "TaskRunner | None" = None
    ) -> ItemHandler:
        """Return this task's item handler. If ``elsewhere`` is given, the handler uses it to run the task in another
        process, which then enforces the time limit.
        """
        return ItemHandler(
            handle=partial(self.run, report=report) if elsewhere is None else partial(elsewhere, self),
            traceparent=lambda lease: read_carried(lease.row["args"]).get(HEADER),
            timeout=self.timeout if elsewhere is None else ELSEWHERE,
            retry=self.retry,
            retry_timeout=self.retry_timeout,
            keep=self.keep_result,
            keep_dead=KEEP_FAILED,
        )

    async def run(self, lease: Lease, report: Callable[[Lease, Json], Awaitable[None]]) -> Outcome:
        if not self.is_async and (stuck := self.threads.left_behind) >= MAX_STUCK_THREADS:
            return Snooze(PUT_OFF, STUCK_THREADS(count=stuck, task=self.name))
        encryption = PLAIN if self.service is None else self.service.encryption
        try:
            arguments, named = arguments_of(lease.row["args"], encryption)
        except KeyMissing as error:
            return Snooze(KEY_WAIT, reason_of_error(error))
        except DamagedValue as error:
            return Failed(reason_of_error(error), permanent=True)
        if self.codec.decodes:
            try:
                arguments, named = self.codec.decode(arguments, named)
            except TypeError as error:
                return Failed(ARGUMENTS_UNFIT(why=str(error)), permanent=True)
        given = arguments
        if self.takes_context:
            context = TaskContext(
                id=lease.id,
                attempt=lease.attempt,
                enqueued_at=lease.created_at,
                report=lambda progress: report(lease, encryption.encrypt(progress, PROGRESS)),
                batch=self._batch_of(lease),
            )
            arguments = (context, *arguments)
        if self.around:
            attempt = Attempt(
                kind="task", name=self.name, id=lease.id, number=lease.attempt, arguments=given, named=named
            )
            returned = await self.around.call(attempt, lambda: self._call(arguments, named))
        elif self.is_direct:  # await directly, without another coroutine, because most tasks take this path
            returned = await self.function(*arguments, **named)
        else:
            returned = await self._call(arguments, named)
        return _with_encrypted_result(outcome_of(returned), encryption)

    async def _call(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> object:
        if self.in_child is not None:
            return await self.in_child(arguments, named)
        if self.is_async:
            return await self.function(*arguments, **named)
        return await self.threads.call(partial(self.function, *arguments, **named), name=f"task {self.name}")

    def _batch_of(self, lease: Lease) -> "Batch | None":
        id = read_carried(lease.row["args"]).get(BATCH)
        batches = None if self.service is None else self.service.batches
        return batches.handle(id) if batches is not None and isinstance(id, str) else None


AnyTask: TypeAlias = Task[..., Any]


class CallableTask(Task[P, R], Generic[P, R, Q, S]):
    """A task that can also be called directly, like the function that it decorates."""

    def __call__(self, *arguments: Q.args, **named: Q.kwargs) -> S:
        called: S = self.function(*arguments, **named)
        return called


class BoundTask(Generic[P, R]):
    """A task with options that apply to its next calls."""

    def __init__(self, task: Task[P, R], options: EnqueueOptions) -> None:
        self.task = task
        self.options = options

    async def enqueue(self, *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue a call, sync it to disk, and return its handle."""
        service = self.task.require_service()
        (id,) = await service.put(self.task, [Call(arguments, named)], self.options)
        return service.handle(id)

    def enqueue_sync(self, *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue a call from synchronous code, and return its handle when the call is synced to disk. Raises
        RuntimeError inside a running event loop, which the call would block.
        """
        service = self.task.require_service()
        (id,) = service.put_sync(self.task, [Call(arguments, named)], self.options)
        return service.handle(id)

    async def enqueue_within(self, transaction: Any, *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue a call in one of the engine's transactions. The call is stored when the transaction commits."""
        service = self.task.require_service()
        (id,) = await service.put(self.task, [Call(arguments, named)], self.options, within=transaction)
        return service.handle(id)

    async def enqueue_many(self, calls: "Sequence[Sequence[Any] | Mapping[str, Any]]") -> "list[Handle[R]]":
        """Enqueue several calls in one transaction and return their handles. Each call is a list of arguments, or a
        mapping of named arguments.
        """
        self._refuse_key()
        service = self.task.require_service()
        ids = await service.put(self.task, [call_of(each) for each in calls], self.options)
        return [service.handle(id) for id in ids]

    def enqueue_many_sync(self, calls: "Sequence[Sequence[Any] | Mapping[str, Any]]") -> "list[Handle[R]]":
        """Enqueue several calls in one transaction from synchronous code. Raises RuntimeError inside a running event
        loop, which the call would block.
        """
        self._refuse_key()
        service = self.task.require_service()
        ids = service.put_sync(self.task, [call_of(each) for each in calls], self.options, "enqueue_many")
        return [service.handle(id) for id in ids]

    def _refuse_key(self) -> None:
        if self.options.key is not None:
            raise ValueError("with the same key, only the first of several calls would be stored: omit key")


class TaskDecorator(Protocol):
    """The decorator that ``work.task`` returns. It accepts ``def`` and ``async def`` functions, with or without a
    context.
    """

    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext, P], Coroutine[Any, Any, T]], /
    ) -> CallableTask[P, T, Concatenate[TaskContext, P], Coroutine[Any, Any, T]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[TaskContext, P], T], /
    ) -> CallableTask[P, T, Concatenate[TaskContext, P], T]: ...
    @overload
    def __call__(
        self, function: Callable[P, Coroutine[Any, Any, T]], /
    ) -> CallableTask[P, T, P, Coroutine[Any, Any, T]]: ...
    @overload
    def __call__(self, function: Callable[P, T], /) -> CallableTask[P, T, P, T]: ...


def call_of(row: Any) -> Call:
    """Create a call from a list of arguments, or from a mapping of named arguments."""
    return Call((), row) if isinstance(row, Mapping) else Call(row, {})


def outcome_of(returned: object) -> Outcome:
    """Return an outcome unchanged, and any other value as the result of a Done outcome."""
    if returned is None:
        return PLAIN_DONE
    return returned if isinstance(returned, Outcome) else Done(result=returned)  # type: ignore[arg-type]


def arguments_to_store(call: Call, carried: Json, encryption: Encryption) -> list[Json]:
    """Return the value to store in the column ``args``: arguments, named arguments and trace context. The trace context
    is not encrypted.
    """
    arguments, named = call
    if not encryption.is_on:
        return [arguments, named, carried]
    return [encryption.encrypt([[*arguments], dict(named)], ARGUMENTS), {}, carried]


def arguments_of(stored: Any, encryption: Encryption) -> Call:
    """Return the call that a value from the column ``args`` contains. Raises KeyMissing or DamagedValue if the value
    cannot be decrypted.
    """
    first, named, *_ = stored
    if not is_sealed(first):
        return Call(first, named)
    found: Any = encryption.decrypt(first, ARGUMENTS)
    return Call(*found)


def _with_encrypted_result(outcome: Outcome, encryption: Encryption) -> Outcome:
    if not isinstance(outcome, Done | Partial) or outcome.result is None:
        return outcome
    if encryption.is_on:
        try:
            refuse_unstorable(outcome.result, "task result", MAX_PAYLOAD)
        except UnstorableValue:
            return outcome  # the worker refuses this outcome and stores the reason
    stored = encryption.encrypt(outcome.result, RESULT)
    return outcome if stored is outcome.result else replace(outcome, result=stored)


def _takes_context(task: str, function: TaskFunction, signature: inspect.Signature) -> bool:
    """Return whether the first parameter is annotated ``TaskContext``. Raise InvalidTask if a context parameter is in
    another position or has no annotation.
    """
    hints, is_first = hints_of(function), False
    for place, parameter in enumerate(signature.parameters.values()):
        annotation = hints.get(parameter.name, parameter.annotation)
        is_unclear = annotation in UNCLEAR and parameter.name in CONTEXT_NAMES
        if is_unclear or TaskContext in get_args(annotation):
            why = Reason(
                "task_context",
                "annotate {name} as TaskContext to receive the context, or rename it: write ({name}: TaskContext, …)",
                name=parameter.name,
            )
            raise InvalidTask(task=task, why=why)
        if annotation not in (TaskContext, "TaskContext", "batuta.TaskContext"):
            continue
        is_first = place == 0 and parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        if not is_first:
            why = Reason(
                "task_context_place",
                "the context {name} must be its first parameter: move it to the front",
                name=parameter.name,
            )
            raise InvalidTask(task=task, why=why)
    return is_first


def hints_of(function: TaskFunction) -> dict[str, Any]:
    """Return a function's evaluated annotations. If a name cannot be resolved, return an empty mapping; the caller then
    compares the annotations as text.
    """
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def read_carried(args: object) -> Mapping[str, object]:
    """Return the third element of ``args``: values that ``enqueue`` added, such as the caller's trace context. Code
    that reads these values must not trust them.
    """
    match args:
        case [_, _, dict() as carried]:
            return carried
        case _:
            return {}


def _ids_of(after: object) -> tuple[str, ...]:
    if not isinstance(after, Sequence) or not all(isinstance(getattr(each, "id", None), str) for each in after):
        raise TypeError("after must be a list of handles and batches: write after=[handle]")
    return tuple(dict.fromkeys(each.id for each in after))
