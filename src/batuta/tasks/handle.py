"""Handle: a reference to one enqueued call. A program uses it to wait for the call's result, read its status, cancel it
or retry it.
"""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from batuta.kernel.errors import TaskCancelled, TaskFailed, TaskUnknown
from batuta.queue.outcome import Outcome

if TYPE_CHECKING:
    from batuta.tasks.registry import TaskStatus
    from batuta.tasks.service import TaskService

R = TypeVar("R", covariant=True)
T = TypeVar("T")


class Handle(Generic[R]):
    """A reference to one call to a task. ``R`` is the return type of the task's function."""

    __slots__ = ("_service", "_task", "id")

    def __init__(self, id: str, service: "TaskService[Any]", task: str | None = None) -> None:
        """Create a handle. ``task`` is the name of the task to which the call must belong; None accepts any task."""
        self.id = id
        self._service = service
        self._task = task

    async def status(self) -> "TaskStatus | None":
        """Return the call's state, or None if the id is unknown or the call was deleted when its retention ended."""
        return self._require_own_task(await self._service.status(self.id))

    @overload
    async def result(self: "Handle[Outcome]", timeout: float | None = None) -> Any: ...
    @overload
    async def result(self: "Handle[T | Outcome]", timeout: float | None = None) -> T: ...
    async def result(self, timeout: float | None = None) -> Any:
        """Wait until the call has ended and return the function's return value. ``timeout`` is in seconds; None waits
        without a limit.

        Raises TaskFailed if the last attempt failed, TaskCancelled if the call was cancelled, TimeoutError if the call
        has not ended in time, and TaskUnknown if the id is unknown or the result's retention has ended.
        """
        return self._value_of(await self._service.wait(self.id, _limit(timeout)))

    @overload
    def result_sync(self: "Handle[Outcome]", timeout: float | None = None) -> Any: ...
    @overload
    def result_sync(self: "Handle[T | Outcome]", timeout: float | None = None) -> T: ...
    def result_sync(self, timeout: float | None = None) -> Any:
        """Wait for the function's return value in synchronous code (Flask, Django, a script). Raises the same errors as
        ``result``, and RuntimeError inside a running event loop.
        """
        return self._value_of(self._service.wait_sync(self.id, _limit(timeout)))

    def status_sync(self) -> "TaskStatus | None":
        """Return the call's state in synchronous code. Raises RuntimeError inside a running event loop."""
        return self._require_own_task(self._service.status_sync(self.id))

    def cancel_sync(self, reason: str | None = None) -> bool:
        """Cancel the call in synchronous code, as ``cancel`` does. Raises RuntimeError inside a running event loop."""
        return self._service.cancel_sync(self.id, reason)

    def _require_own_task(self, status: "TaskStatus | None") -> "TaskStatus | None":
        """Return the call's status. Raises TypeError if the call belongs to a different task than this handle's,
        because its result may have a different type.
        """
        if status is not None and self._task is not None and status.name != self._task:
            raise TypeError(
                f"call {self.id} belongs to task {status.name}, not to {self._task}: write {status.name}.handle(id)"
            )
        return status

    def _value_of(self, status: "TaskStatus | None") -> Any:
        if self._require_own_task(status) is None or status is None:
            raise TaskUnknown(id=self.id)
        if status.status == "failed":
            raise TaskFailed(task=status.name, id=self.id, why=status.error)
        if status.status == "cancelled":
            raise TaskCancelled(task=status.name, id=self.id, why=status.error)
        return status.result

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancel the call. A waiting call is cancelled immediately, and a running call within seconds. Return False if
        the call has already ended.
        """
        return await self._service.cancel(self.id, reason)

    async def retry(self) -> bool:
        """Run a failed call again, immediately and with a full set of attempts. Return False if the call has not
        failed, or if an unfinished call has the same key.
        """
        return await self._service.retry(self.id)

    def __repr__(self) -> str:
        return f"Handle({self.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)


def _limit(timeout: float | None) -> timedelta | None:
    return None if timeout is None else timedelta(seconds=timeout)
