"""The methods of ``Batuta`` that declare the resources of a process and the middleware around its work."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, overload

from batuta.kernel.calls.middleware import Around, Middleware
from batuta.kernel.calls.resources import Resource, Resources, resource_of
from batuta.kernel.events import Fanout
from batuta.tasks.enqueueing import EnqueueMiddleware
from batuta.tasks.service import TaskService

T = TypeVar("T")
SomeMiddleware = TypeVar("SomeMiddleware", bound=Middleware)
SomeEnqueueMiddleware = TypeVar("SomeEnqueueMiddleware", bound=EnqueueMiddleware)


class HookDeclarations:
    """Base class of ``Batuta`` with the methods that declare resources and middleware. ``Batuta`` sets the
    attributes.
    """

    events: Fanout
    tasks: TaskService[Any]

    def __init__(self) -> None:
        super().__init__()
        self.around = Around()

    def _use_events(self, events: Fanout) -> None:
        self.events = events
        self.resources = Resources(events)

    @overload
    def provide(self, function: Callable[[], AsyncIterator[T]], /) -> Resource[T]: ...
    @overload
    def provide(self, function: Callable[[], Iterator[T]], /) -> Resource[T]: ...
    @overload
    def provide(self, function: Callable[[], AbstractAsyncContextManager[T]], /) -> Resource[T]: ...
    @overload
    def provide(self, function: Callable[[], AbstractContextManager[T]], /) -> Resource[T]: ...
    def provide(self, function: Callable[[], Any], /) -> Resource[Any]:
        """Register a resource: an object that each process creates before it starts any work and closes after all its
        work has ended.

        The function yields the object once, or returns a context manager. The attribute ``value`` of the returned
        resource is the object. If a resource does not start, the process ends with an error.
        """
        resource = resource_of(str(getattr(function, "__name__", "resource")), function)
        self.resources.add(resource)
        return resource

    def around_execution(self, middleware: SomeMiddleware, /) -> SomeMiddleware:
        """Register middleware around every execution of a task, a job function or a stage. The decorator returns the
        middleware unchanged.

        The middleware receives the attempt and the function ``proceed``, which calls the next middleware or the
        function itself. The middleware may return another value or an outcome, and need not call ``proceed``. The
        middleware that is registered first is the outermost.
        """
        self.around.add(middleware)
        return middleware

    def around_enqueue(self, middleware: SomeEnqueueMiddleware, /) -> SomeEnqueueMiddleware:
        """Register middleware that runs around every call that enqueues tasks. The middleware is a generator function:
        it receives the task calls and yields them once, possibly changed. The decorator returns the middleware
        unchanged.
        """
        self.tasks.around.add(middleware)
        return middleware
