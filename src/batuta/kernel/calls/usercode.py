"""Calls application code and returns its value or its error as an outcome. So an error in that code neither ends the
process nor looks like an error in the engine.
"""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import ChildFailed, DeadlineExceeded, EffectFailed, ExitRefused, reason_of_error
from batuta.kernel.masking.messages import message_of
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import cancel_and_wait, with_deadline


class Returned(NamedTuple):
    """The outcome of application code that returned a value. This class is a tuple for speed, because one instance is
    created for every item.
    """

    value: object


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of application code that raised an error."""

    error: Exception


@dataclass(frozen=True, slots=True)
class Late:
    """The outcome of application code that was cancelled because it had not ended by its deadline. ``error`` is the
    reason.
    """

    error: str


Called: TypeAlias = Returned | Raised | Late
DOES_NOT_END = define("does_not_end", "{what} does not end")
# Time that a cancelled call has to end before it is treated as late.
CANCEL_TIMEOUT = timedelta(seconds=1)


async def call(function: Callable[[], Awaitable[object]]) -> Returned | Raised:
    """Call application code and return its outcome. Errors become outcomes; only a cancellation is raised."""
    try:
        return Returned(await ordinary(function))
    except Exception as error:  # noqa: BLE001 - every error of the code is a value for its caller
        return Raised(error)


async def call_with_deadline(
    function: Callable[[], Awaitable[object]], deadline: datetime, clock: Clock, what: str
) -> Called:
    """Call application code, cancel it at ``deadline``, and return its outcome. Only a cancellation of the calling task
    is raised.
    """
    try:
        return await with_deadline(deadline, call(function), clock, what)
    except DeadlineExceeded as late:
        # This error always comes from with_deadline: a DeadlineExceeded that the code raises is already a Raised value.
        return Late(reason_of_error(late))
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Raised(refuse_exit(cancelled))


class Question:
    """A check that is called repeatedly with a time limit. If the previous call ignores its cancellation and is still
    running, ``ask`` does not start another call and returns ``Late``.
    """

    def __init__(self, call: Callable[[], Awaitable[object]], timeout: timedelta, clock: Clock, what: str) -> None:
        self._call = call
        self._timeout = timeout
        self._clock = clock
        self._what = what
        self._asking: asyncio.Task[Called] | None = None

    async def ask(self) -> Called:
        if self._asking is None or self._asking.done():
            deadline = self._clock.now() + self._timeout
            self._asking = asyncio.create_task(call_with_deadline(self._call, deadline, self._clock, self._what))
        asking = self._asking
        alarm = asyncio.create_task(self._clock.sleep((self._timeout + CANCEL_TIMEOUT).total_seconds()))
        try:
            await asyncio.wait([asking, alarm], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await cancel_and_wait(alarm)
        return asking.result() if asking.done() else Late(DOES_NOT_END(what=self._what))


def name_of(error: Exception) -> str:
    """Return the class name of an error for display, with its message if this process shows messages."""
    if isinstance(error, ExitRefused | EffectFailed | ChildFailed):
        return str(error.facts["raised"])
    message = message_of(error)
    return f"{type(error).__name__} ({message})" if message else type(error).__name__


class Threads:
    """Runs each call in its own thread, so that no call waits for a free thread of a shared pool.

    A thread cannot be stopped. If the caller stops waiting, the thread's result is ignored, and the process can end
    without waiting for the thread.
    """

    def __init__(self) -> None:
        self._threads: dict[threading.Thread, asyncio.Future[Returned | Raised]] = {}

    @property
    def left_behind(self) -> int:
        return sum(thread.is_alive() and result.cancelled() for thread, result in self._threads.items())

    @property
    def idents(self) -> list[int]:
        """The identifiers of the threads that are currently running a call."""
        return [thread.ident for thread in self._threads if thread.is_alive() and thread.ident is not None]

    async def call(self, function: Callable[..., object], *arguments: object, name: str) -> object:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Returned | Raised] = loop.create_future()
        inside = partial(contextvars.copy_context().run, function, *arguments)

        def work() -> None:
            outcome = _outcome_here(inside)
            with suppress(RuntimeError):  # the event loop is closed, so no caller waits
                loop.call_soon_threadsafe(_set_outcome, result, outcome)

        thread = threading.Thread(target=work, name=name, daemon=True)
        thread.start()
        self._threads = {each: future for each, future in self._threads.items() if each.is_alive()} | {thread: result}
        outcome = await result
        if isinstance(outcome, Raised):
            raise outcome.error
        return outcome.value


def _set_outcome(result: "asyncio.Future[Returned | Raised]", outcome: Returned | Raised) -> None:
    if not result.done():
        result.set_result(outcome)


async def ordinary(call: Callable[[], Awaitable[object]]) -> object:
    """Await the result of ``call`` and return it. Any error that would end the process, such as SystemExit, becomes
    ExitRefused; other errors and cancellations are raised unchanged.
    """
    try:
        return await call()
    except BaseException as exit:
        if isinstance(exit, Exception | asyncio.CancelledError):
            raise
        raise refuse_exit(exit) from exit


def _outcome_here(call: Callable[[], object]) -> Returned | Raised:
    try:
        return Returned(_ordinary_here(call))
    except Exception as error:  # noqa: BLE001 - the waiting caller receives the error as a value
        return Raised(error)


def _ordinary_here(call: Callable[[], object]) -> object:
    try:
        return call()
    except BaseException as exit:
        if isinstance(exit, Exception):
            raise
        raise refuse_exit(exit) from exit


def refuse_exit(exit: BaseException) -> ExitRefused:
    """Return the error for application code that tried to end the process or its own task."""
    return ExitRefused(raised=type(exit).__name__)
