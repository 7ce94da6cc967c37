"""A fire as a call of a function in this process."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from batuta.dispatch.answer import JobAnswer, Ok, Partial, Skipped, TimedOut
from batuta.dispatch.job import Run
from batuta.guard.deadline import by
from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.queue.outcome import Failed
from batuta.runlog.execution import PARTIAL, Ending, Status

JobFunction: TypeAlias = Callable[..., Any] | Callable[..., Awaitable[Any]]


class CallTarget:
    """The function gets the run, if it takes an argument. A plain ``def`` runs in a thread, which nothing can stop early."""

    repeatable = False

    def __init__(self, function: JobFunction, clock: Clock) -> None:
        self._function = function
        self._takes_run = bool(inspect.signature(function).parameters)
        self._clock = clock

    @property
    def address(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    async def deliver(self, run: Run) -> Ending:
        try:
            returned = await by(run.deadline, self._call(run), self._clock, f"job {run.execution.job}")
        except DeadlineExceeded as late:
            return Ending(status=Status.TIMEOUT, error=str(late))
        return ending_of(answer_of(returned))

    async def _call(self, run: Run) -> object:
        arguments = (run,) if self._takes_run else ()
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*arguments)
        return await asyncio.to_thread(self._function, *arguments)


def answer_of(returned: object) -> JobAnswer:
    """Nothing means done; a number is how many; an answer is itself."""
    match returned:
        case Ok() | Partial() | Skipped() | Failed() | TimedOut():
            return returned
        case None:
            return Ok()
        case bool():
            return Ok() if returned else Failed("the job returned False")
        case int():
            return Ok(items=returned)
        case _:
            return Ok(details={"returned": type(returned).__name__})


def ending_of(answer: JobAnswer) -> Ending:
    match answer:
        case Ok(items=items, details=details):
            return Ending(status=Status.SUCCESS, items=items, result=dict(details) or None)
        case Partial(reason=reason, items=items, details=details):
            return Ending(status=Status.SUCCESS, reason=f"{PARTIAL}{reason}", items=items, result=dict(details) or None)
        case Skipped(reason=reason):
            return Ending(status=Status.SKIPPED, reason=reason)
        case Failed(error=error):
            return Ending(status=Status.ERROR, error=error)
        case TimedOut(error=error):
            return Ending(status=Status.TIMEOUT, error=error)
