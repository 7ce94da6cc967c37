"""Middleware around the functions of tasks, jobs and stages.

    first(attempt, proceed) ──▶ second(attempt, proceed) ──▶ the function

The middleware that was added first is the outermost. Without middleware, a call has no additional cost.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Literal, TypeAlias

from batuta.kernel.errors import InvalidName
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One execution of a function, as passed to middleware. The arguments may contain personal data."""

    kind: Literal["task", "job", "stage"]
    name: str
    id: str  # id of the call, the run or the item
    number: int  # counted from 1
    arguments: Sequence[Any] = ()
    named: Mapping[str, Any] = field(default_factory=dict)


# Calls the next middleware, or the function if there is none. Returns the function's value or outcome, or raises its
# error.
Proceed: TypeAlias = Callable[[], Awaitable[object]]
Middleware: TypeAlias = Callable[[Attempt, Proceed], Awaitable[object]]


class Around:
    """All middleware functions of a program, in the order in which they were added."""

    def __init__(self) -> None:
        self._middleware: list[Middleware] = []

    def add(self, middleware: Middleware) -> None:
        name = str(getattr(middleware, "__name__", "middleware"))
        if not inspect.iscoroutinefunction(middleware):
            why = Reason("middleware_async", "write it as async def {name}(attempt, proceed)", name=name)
            raise InvalidName(name=name, kind="middleware", why=why)
        self._middleware.append(middleware)

    def __bool__(self) -> bool:
        return bool(self._middleware)

    async def call(self, attempt: Attempt, function: Proceed) -> object:
        """Call the outermost middleware function. Each middleware function calls the next one, and the last one calls
        the function of the task, job or stage.
        """
        for middleware in reversed(self._middleware):
            function = partial(middleware, attempt, function)
        return await function()
