"""A fire as a call of a function in this process."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from batuta.dispatch.job import Run
from batuta.dispatch.runner import RUNS
from batuta.kernel.clock import Clock
from batuta.kernel.errors import CancelIgnored
from batuta.kernel.usercode import Called, Late, Raised, Returned, Threads, attempt
from batuta.kernel.waiting import first_of
from batuta.queue.outcome import Failed
from batuta.receive.endpoints import JobAnswer, Ok, Partial, Skipped, TimedOut
from batuta.runlog import reasons
from batuta.runlog.execution import Ending, Status
from batuta.supervise.running import MOST_CANCELS
from batuta.supervise.stacks import task_stack
from batuta.supervise.watchdog import CANCEL_GRACE

# It takes the run or nothing, and returns an answer, a number of items, or nothing.
JobFunction: TypeAlias = Callable[[], object] | Callable[[Run], object]
# Of one function that does not end, so many threads may pile up.
MOST_LEFT_BEHIND = 4
# How long one that is stopped has to take notice.
STUBBORN = MOST_CANCELS * CANCEL_GRACE


class CallTarget:
    """The function gets the run, if it takes an argument. A plain ``def`` runs in a thread, which nothing can stop early."""

    repeatable = False

    def __init__(self, function: JobFunction, clock: Clock) -> None:
        self._function = function
        self._takes_run = bool(inspect.signature(function).parameters)
        self._clock = clock
        self._threads = Threads()

    @property
    def address(self) -> str:
        return f"{self._function.__module__}.{self._function.__qualname__}"

    async def deliver(self, run: Run) -> Ending:
        if (left := self._threads.left_behind) >= MOST_LEFT_BEHIND:
            return Ending(status=Status.SKIPPED, reason=reasons.OVERLAP_THREADS(count=left))
        match await self._attempt(run):
            case Returned(value=value):
                return ending_of(answer_of(value))
            case Late(error=error):
                return Ending(status=Status.TIMEOUT, error=error)
            case Raised(error=error):
                raise error

    async def _attempt(self, run: Run) -> Called:
        """CancelIgnored: its deadline is over, it was stopped, and goes on."""
        what, inside = f"job {run.execution.job}", list[asyncio.Task[Any] | None]()

        async def call() -> object:
            inside.append(asyncio.current_task())
            return await self._call(run)

        going = asyncio.create_task(attempt(call, run.deadline, self._clock, what))
        limit = max(0.0, (run.deadline - self._clock.now()).total_seconds()) + STUBBORN.total_seconds()
        try:
            await first_of(asyncio.wait([going]), self._clock.sleep(limit))
        except asyncio.CancelledError:
            going.cancel()
            await first_of(asyncio.wait([going]), self._clock.sleep(STUBBORN.total_seconds()))
            raise
        if not going.done():
            raise CancelIgnored(loop=RUNS, what=what, stack="".join(task_stack(task) for task in inside if task))
        return going.result()

    async def _call(self, run: Run) -> object:
        arguments = (run,) if self._takes_run else ()
        if inspect.iscoroutinefunction(self._function):
            return await self._function(*arguments)
        returned = await self._threads.call(self._function, *arguments, name=f"job {run.execution.job}")
        return await returned if inspect.isawaitable(returned) else returned


def answer_of(returned: object) -> JobAnswer:
    """Nothing means done; a number is how many; an answer is itself."""
    match returned:
        case Ok() | Partial() | Skipped() | Failed() | TimedOut():
            return returned
        case None:
            return Ok()
        case bool():
            return Ok() if returned else Failed(reasons.RETURNED_FALSE())
        case int():
            return Ok(items=returned)
        case _:
            return Ok(details={"returned": type(returned).__name__})


def ending_of(answer: JobAnswer) -> Ending:
    match answer:
        case Ok(items=items, details=details):
            return Ending(status=Status.SUCCESS, items=items, result=dict(details) or None)
        case Partial(reason=reason, items=items, details=details):
            return Ending(
                status=Status.SUCCESS, reason=reasons.PARTIAL(why=reason), items=items, result=dict(details) or None
            )
        case Skipped(reason=reason):
            return Ending(status=Status.SKIPPED, reason=reason)
        case Failed(error=error):
            return Ending(status=Status.ERROR, error=error)
        case TimedOut(error=error):
            return Ending(status=Status.TIMEOUT, error=error)
