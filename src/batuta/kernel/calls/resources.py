"""Resources: objects that a process creates before it starts any work and closes after all its work has ended, such as
a connection pool.

    @work.provide
    async def http() -> AsyncIterator[Client]:
        async with Client() as client:
            yield client

    http.value.get(…)                       # in a task, job, stage or loop, with ``def`` or ``async def``

Resources start in the order of their declaration and close in the reverse order.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from datetime import timedelta
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from batuta.kernel.errors import InvalidName, ResourceFailed, ResourceMissing
from batuta.kernel.events import Events, ResourceCloseFailed
from batuta.kernel.reasons import Reason, define

T = TypeVar("T")
Made: TypeAlias = AsyncIterator[T] | Iterator[T] | AbstractAsyncContextManager[T, Any] | AbstractContextManager[T, Any]
START_TIMEOUT: Final = timedelta(seconds=60)
CLOSE_TIMEOUT: Final = timedelta(seconds=5)
_NOTHING: Final = object()
START_TOOK_LONG = define("resource_slow", "it did not start within {limit}")


class Resource(Generic[T]):
    """Provides an object that the process creates before it starts any work and closes after all its work has ended.
    The attribute ``value`` is the object. ``work.provide`` creates a resource.
    """

    def __init__(self, name: str, make: "Callable[[], Made[T]]") -> None:
        self.name = name
        self._make = make
        self._value: object = _NOTHING

    @property
    def value(self) -> T:
        """The object that the resource created. Raises ResourceMissing if the resource has not started, as in a process
        that runs no work.
        """
        if self._value is _NOTHING:
            raise ResourceMissing(resource=self.name)
        return cast(T, self._value)

    @contextmanager
    def replaced_by(self, value: T) -> Iterator[None]:
        """Replace the resource's object with ``value`` while the ``with`` block runs, for tests. During that time the
        function that normally creates the object is not called.
        """
        before, self._value = self._value, value
        try:
            yield
        finally:
            self._value = before

    @asynccontextmanager
    async def started(self, events: Events) -> AsyncIterator[None]:
        """Create the resource's object, run the ``async with`` block, and then close the object. Raises ResourceFailed
        if the object cannot be created. An error while closing is emitted as an event, so that the other resources
        close too.
        """
        if self._value is not _NOTHING:  # a test replaced the object
            yield
            return
        opened = await self._open()
        try:
            yield
        finally:
            self._value = _NOTHING
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT.total_seconds()):
                    await opened.aclose()
            except Exception as error:  # noqa: BLE001 - the other resources must close too
                events.emit(ResourceCloseFailed(self.name, error))

    async def _open(self) -> AsyncExitStack:
        stack = AsyncExitStack()
        try:
            async with asyncio.timeout(START_TIMEOUT.total_seconds()) as limit:
                self._value = await _enter(stack, self._make)
        except Exception as error:
            why: str = type(error).__name__
            if limit.expired():
                why = START_TOOK_LONG(limit=START_TIMEOUT)
            raise ResourceFailed(resource=self.name, why=why) from error
        return stack


class Resources:
    """All resources of a program. Blocks ``async with resources.started()`` may be nested: only the outermost block
    starts and closes the resources.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._resources: list[Resource[Any]] = []
        self._users = 0

    def add(self, resource: Resource[Any]) -> None:
        if any(each.name == resource.name for each in self._resources):
            why = Reason("resource_taken", "another resource has this name: rename its function")
            raise InvalidName(name=resource.name, kind="resource", why=why)
        self._resources.append(resource)

    @asynccontextmanager
    async def started(self) -> AsyncIterator[None]:
        """Start all resources in the order of declaration, run the ``async with`` block, and then close the resources
        in reverse order.
        """
        self._users += 1
        try:
            if self._users > 1:
                yield
                return
            async with AsyncExitStack() as stack:
                for resource in self._resources:
                    await stack.enter_async_context(resource.started(self._events))
                yield
        finally:
            self._users -= 1


def resource_of(name: str, make: Callable[[], Any]) -> Resource[Any]:
    """Create a resource from the function that provides its object. Raises InvalidName if the function takes arguments
    or does not yield.
    """
    try:
        with suppress(ValueError):  # a class of an extension module may have no signature
            inspect.signature(make).bind()
    except TypeError:
        why = Reason("resource_arguments", "its function must take no arguments: get other resources with `value`")
        raise InvalidName(name=name, kind="resource", why=why) from None
    if inspect.iscoroutinefunction(make):
        why = Reason("resource_yield", "its function must yield the object: write yield instead of return")
        raise InvalidName(name=name, kind="resource", why=why)
    return Resource(name, make)


async def _enter(stack: AsyncExitStack, make: Callable[[], Any]) -> Any:
    if inspect.isasyncgenfunction(make):
        return await stack.enter_async_context(asynccontextmanager(make)())
    if inspect.isgeneratorfunction(make):
        return stack.enter_context(contextmanager(make)())
    made = make()
    return await stack.enter_async_context(made) if hasattr(made, "__aenter__") else stack.enter_context(made)
