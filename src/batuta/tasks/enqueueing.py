"""Middleware for enqueueing tasks: a generator that receives the new calls and yields them, with or without changes.

    @work.around_enqueue
    def tag(new: NewCalls) -> Iterator[NewCalls]:
        yield new.with_tags(tenant.get())          # the calls are stored here; an error is raised here

The middleware is a plain generator, so that it also runs in ``enqueue_sync`` and ``enqueue_in_sync``.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from typing import TypeAlias

from batuta.kernel.errors import InvalidName
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass
from batuta.tasks.task import Call, EnqueueOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCalls:
    """Calls to one task that are about to be enqueued together. The arguments may contain personal data."""

    task: str
    calls: Sequence[Call]
    options: EnqueueOptions

    def with_tags(self, *tags: str) -> "NewCalls":
        """Return the calls with additional tags."""
        return replace(self, options=replace(self.options, tags=(*self.options.tags, *tags)))


EnqueueMiddleware: TypeAlias = Callable[[NewCalls], Iterator[NewCalls]]


class AroundEnqueue:
    """All middleware functions that an application registered for enqueueing tasks. The function that was added first
    surrounds all others.
    """

    def __init__(self) -> None:
        self._middleware: list[Callable[[NewCalls], AbstractContextManager[NewCalls]]] = []

    def add(self, middleware: EnqueueMiddleware) -> None:
        if not inspect.isgeneratorfunction(middleware):
            name = str(getattr(middleware, "__name__", "middleware"))
            why = Reason("middleware_yield", "write it as def {name}(new) with one yield of the calls", name=name)
            raise InvalidName(name=name, kind="middleware", why=why)
        self._middleware.append(contextmanager(middleware))

    def __bool__(self) -> bool:
        return bool(self._middleware)

    @contextmanager
    def entered(self, new: NewCalls) -> Iterator[NewCalls]:
        """Pass the calls through all middleware functions, and yield the result of the innermost one."""
        with ExitStack() as stack:
            for middleware in self._middleware:
                new = stack.enter_context(middleware(new))
            yield new
