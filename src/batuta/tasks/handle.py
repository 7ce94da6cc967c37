"""Handle: a reference to one enqueued call, with which a program reads its status and cancels it."""

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from batuta.tasks.registry import TaskStatus
    from batuta.tasks.service import TaskService

R = TypeVar("R", covariant=True)


class Handle(Generic[R]):
    """A reference to one call of a task. ``R`` is the return type of the task's function."""

    __slots__ = ("_service", "id")

    def __init__(self, id: str, service: "TaskService[Any]") -> None:
        self.id = id
        self._service = service

    async def status(self) -> "TaskStatus | None":
        """Return the state of the call, or None if the id is unknown or the retention of the call has ended."""
        return await self._service.status(self.id)

    async def cancel(self, reason: str = "cancelled") -> bool:
        """Cancel the call: at once if it waits, and within seconds if it runs. Return False if it has already ended."""
        return await self._service.cancel(self.id, reason)

    def __repr__(self) -> str:
        return f"Handle({self.id})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)
