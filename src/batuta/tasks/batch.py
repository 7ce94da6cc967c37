"""A batch: a set of tasks that is counted, awaited and cancelled as a unit, and whose end can start another task.

    async with work.batch("import 7", on_end=report) as batch:
        await batch.add(send, rows)

    open ── close ──▶ running ── the last task ended ──▶ ended       on_end runs once
      └────── cancel ─────┴──▶ cancelling ── the last task ended ──▶ cancelled

The task ``on_end`` is stored together with the batch and waits for the batch to end. So it runs once, even if processes
die. If ``on_end`` has a parameter, it receives the counts.
"""

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar, overload, runtime_checkable

from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import Json
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass
from batuta.queue.outcome import CANCELLED
from batuta.tasks.handle import Handle
from batuta.tasks.task import NO_OPTIONS, AnyTask, BoundTask, Call, Task, hints_of

if TYPE_CHECKING:
    from batuta.tasks.service import TaskService

P = ParamSpec("P")
R = TypeVar("R")
BatchState: TypeAlias = Literal["open", "running", "cancelling", "ended", "cancelled"]
# Maximum rows of ``Batch.add`` that one transaction stores.
ADDED_AT_ONCE = 1000
LONGEST_NAME = 200
FILLING_FAILED = define("batch_filling_failed", "the program that added its tasks failed: {kind}")
BATCH_CANCELLED = define("batch_cancelled", "its batch was cancelled: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProgress:
    """A batch's state, and the number of its tasks in each state. ``waiting`` includes tasks that are waiting for a
    retry.
    """

    id: str
    name: str
    state: BatchState
    total: int
    waiting: int
    running: int
    succeeded: int
    failed: int
    cancelled: int
    created_at: datetime
    ended_at: datetime | None = None
    reason: str | None = None  # the reason of a cancellation, or None

    @property
    def done(self) -> int:
        """The number of tasks that have ended."""
        return self.succeeded + self.failed + self.cancelled

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

    def as_json(self) -> dict[str, Json]:
        ended_at = None if self.ended_at is None else self.ended_at.isoformat()
        return {**asdict(self), "created_at": self.created_at.isoformat(), "ended_at": ended_at}


def state_of_batch(
    *, closed_at: datetime | None, cancelled_at: datetime | None, ended_at: datetime | None
) -> BatchState:
    if cancelled_at is not None:
        return "cancelling" if ended_at is None else "cancelled"
    if ended_at is not None:
        return "ended"
    return "open" if closed_at is None else "running"


class TakesNothing(Protocol):
    """A task without parameters."""

    async def enqueue(self) -> Handle[Any]: ...


class TakesProgress(Protocol):
    """A task with one parameter, which receives the batch's progress."""

    async def enqueue(self, progress: BatchProgress, /) -> Handle[Any]: ...


OnEnd: TypeAlias = TakesNothing | TakesProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberCounts:
    """The number of records in each state, for a batch whose members are records of the application
    (``BatchMembers``).
    """

    waiting: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0


class BatchMembers(Protocol):
    """Interface to the program's own records (for example the rows of its own queue table) that belong to batches in
    addition to tasks. ``work.batches.add_members`` registers an implementation.

    The methods receive a connection to the engine's database, or a transaction in it.
    """

    name: str

    async def find_unfinished(self, reading: Any, ids: Sequence[str]) -> Collection[str]:
        """Return those of the given batches that have an unfinished record or may still get one."""

    async def count(self, reading: Any, ids: Sequence[str]) -> Mapping[str, MemberCounts]:
        """Count the records of each given batch by state, and return the counts by batch id. A batch without records
        may be omitted.
        """

    async def cancel(self, transaction: Any, id: str, reason: str) -> None:
        """Cancel the unfinished records of a batch. The engine calls this method in the transaction that cancels the
        batch.
        """

    async def end(self, transaction: Any, progress: BatchProgress) -> None:
        """Store the changes that the program makes when a batch ends. The engine calls this method in the transaction
        that ends the batch, so the changes are stored exactly once.
        """


class BatchStore(Protocol):
    async def create(
        self,
        name: str,
        on_end: BoundTask[..., Any] | None,
        *,
        members: str | None = None,
        id: str | None = None,
        within: Any | None = None,
    ) -> str: ...

    def add_members(self, members: BatchMembers) -> None: ...

    async def close(self, id: str, *, by: str | None = None, within: Any | None = None) -> bool: ...

    async def cancel(self, id: str, reason: str, *, by: str | None = None, within: Any | None = None) -> bool: ...

    async def progress(self, id: str) -> BatchProgress | None: ...

    async def wait(self, id: str, timeout: timedelta | None) -> None: ...

    async def newest(self, limit: int) -> list[BatchProgress]: ...


@runtime_checkable
class TakesItems(Protocol):
    """A pipeline of functions into which a batch can put items."""

    async def put_many(self, items: Sequence[Json], *, batch: "Batch | None" = None) -> list[str]: ...


class Batch:
    """A reference to a batch. In a running task, ``TaskContext.batch`` is the batch to which the task belongs."""

    __slots__ = ("_service", "_store", "id")

    def __init__(self, id: str, store: BatchStore, service: "TaskService[Any]") -> None:
        self.id = id
        self._store = store
        self._service = service

    @overload
    async def add(self, task: "Task[..., R] | BoundTask[..., R]", rows: Iterable[object], /) -> "list[Handle[R]]": ...

    @overload
    async def add(self, pipeline: TakesItems, items: Iterable[Json], /) -> list[str]: ...

    async def add(self, task: Any, rows: Iterable[Any], /) -> "list[Any]":
        """Enqueue one call to the task per row, sync the calls to disk, and return their handles. If ``task`` is a
        pipeline, put each row into its first stage instead, and return the ids of the items.

        A row that is a mapping contains named arguments; a tuple or a list contains positional arguments; any other row
        is the only argument. Each transaction stores up to a thousand rows. The batch's own tasks may add further tasks
        to the batch. Raises BatchEnded if the batch has ended or was cancelled.
        """
        left, ids = iter(rows), list[str]()
        bound = None if isinstance(task, TakesItems) else _bind(task)
        for first in left:
            part = [first, *islice(left, ADDED_AT_ONCE - 1)]
            if bound is None:
                ids += await task.put_many(part, batch=self)
            else:
                calls = [_call_of_row(row) for row in part]
                ids += await self._service.put(bound.task, calls, replace(bound.options, batch=self.id))
        return ids if bound is None else [self._service.handle(id) for id in ids]

    async def enqueue(self, task: "Task[P, R] | BoundTask[P, R]", *arguments: P.args, **named: P.kwargs) -> "Handle[R]":
        """Enqueue one call in the batch. The type checker compares the arguments with the task's parameters."""
        bound = _bind(task)
        (id,) = await self._service.put(bound.task, [Call(arguments, named)], replace(bound.options, batch=self.id))
        return self._service.handle(id)

    async def close(self, *, by: str | None = None, within: Any | None = None) -> bool:
        """Close the batch. A closed batch ends when its last task has ended. Return False if it is already closed.
        ``by`` is the operator to record in the audit log; ``within`` is one of the engine's transactions.
        """
        return await self._store.close(self.id, by=by, within=within)

    async def progress(self) -> BatchProgress:
        """Return the batch's state and counts. The counts no longer change once the batch has ended."""
        found = await self._store.progress(self.id)
        if found is None:
            raise unknown("batch", self.id, ())
        return found

    async def wait(self, timeout: float | None = None) -> BatchProgress:
        """Wait until the batch has ended and return its counts. ``timeout`` is in seconds; None waits without a limit.
        Raises TimeoutError when the timeout has passed.
        """
        await self._store.wait(self.id, None if timeout is None else timedelta(seconds=timeout))
        return await self.progress()

    async def cancel(self, reason: str | None = None, *, by: str | None = None, within: Any | None = None) -> bool:
        """Cancel every unfinished task in the batch. Return False if the batch has ended or is already cancelled.
        ``within`` is one of the engine's transactions.
        """
        return await self._store.cancel(self.id, reason or CANCELLED(), by=by, within=within)

    def __repr__(self) -> str:
        return f"Batch({self.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


class NewBatch:
    """A context manager that creates a batch at the start of an ``async with`` block and closes it at the end.

    If the block raises an error, the batch is cancelled.
    """

    def __init__(self, batches: "Batches", name: str, on_end: OnEnd | None) -> None:
        self._batches = batches
        self._name = name
        self._on_end = on_end
        self._batch: Batch | None = None

    async def __aenter__(self) -> Batch:
        self._batch = await self._batches.create(self._name, on_end=self._on_end)
        return self._batch

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._batch is not None
        if kind is None:
            await self._batch.close()
            return
        with suppress(StoreUnavailable):  # the batch then stays open, and a health check reports it
            await self._batch.cancel(FILLING_FAILED(kind=kind.__name__))


class Batches:
    """An application's batches: ``work.batches``."""

    def __init__(self, store: BatchStore, service: "TaskService[Any]") -> None:
        self._store = store
        self._service = service
        self._members: dict[str, BatchMembers] = {}

    def add_members(self, members: BatchMembers) -> None:
        """Register the program's own records that may belong to batches. Every process must call this method before it
        runs work.
        """
        if self._members.setdefault(members.name, members) is not members:
            raise ValueError(f"other members have the name '{members.name}': choose another name")
        self._store.add_members(members)

    async def create(
        self,
        name: str,
        *,
        on_end: OnEnd | None = None,
        members: BatchMembers | None = None,
        id: str | None = None,
        within: Any | None = None,
    ) -> Batch:
        """Create an open batch. After ``close``, the batch ends when all its tasks have ended; then the task ``on_end``
        runs.

        ``members`` are the program's own records, which the batch counts and awaits together with its tasks. ``id`` is
        a UUID that the program chooses, for example the id of the record that the tasks work on. ``within`` is one of
        the engine's transactions.
        """
        if members is not None and self._members.get(members.name) is not members:
            raise ValueError(f"the members '{members.name}' are not registered: call work.batches.add_members first")
        if not name.strip() or len(name) > LONGEST_NAME:
            raise ValueError(f"the name of a batch must have 1 to {LONGEST_NAME} characters: choose another name")
        bound = None if on_end is None else _bind(on_end)
        of = None if members is None else members.name
        return self.handle(await self._store.create(name, bound, members=of, id=id, within=within))

    async def get(self, id: str) -> Batch:
        """Return the batch with this id. Raises UnknownWord if the batch does not exist."""
        if await self._store.progress(id) is None:
            raise unknown("batch", id, ())
        return self.handle(id)

    def handle(self, id: str) -> Batch:
        """Return a reference to a batch without checking that the batch exists."""
        return Batch(id, self._store, self._service)

    async def newest(self, limit: int = 20) -> list[BatchProgress]:
        """Return the newest batches with their counts."""
        return await self._store.newest(limit)


def takes_progress(task: AnyTask) -> bool:
    """Return whether the function of an ``on_end`` task has a parameter, which then receives the batch's counts."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.kind in positional for each in task.signature.parameters.values())


def call_at_end(task: AnyTask, progress: BatchProgress) -> Call:
    """Return the call to the ``on_end`` task, to be stored with the batch. If the task has a parameter, its argument is
    ``progress``.
    """
    if not takes_progress(task):
        return Call((), {})
    first = next(iter(task.signature.parameters))
    return Call((progress if hints_of(task.function).get(first) is BatchProgress else progress.as_json(),), {})


def _bind(task: Any) -> BoundTask[..., Any]:
    bound = task if isinstance(task, BoundTask) else BoundTask(task, NO_OPTIONS)
    if not isinstance(bound.task, Task):
        raise TypeError(f"{task!r} is not a task: declare it with @work.task()")
    if bound.options.key is not None:
        raise ValueError("with the same key, only the first of several calls would be stored: omit key")
    return bound


def _call_of_row(row: object) -> Call:
    match row:
        case Mapping():
            return Call((), dict(row))
        case tuple() | list():
            return Call(row, {})
        case _:
            return Call((row,), {})
