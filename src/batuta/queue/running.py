"""A running item: its current step, the stop requested by the worker, and the cancellation of its task.

    CLAIMED ──▶ HANDLING ──▶ SETTLING ◀──▶ IN_EFFECT

A cancellation of the asyncio task has one of three causes. A stop that ends the item (time limit, cancellation request)
becomes the item's result. A stop that only ends this process's work on the item (shutdown, lost lease) propagates to
the worker. Any other cancellation comes from application code and is treated as a failure of the item.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import field
from enum import Enum, auto
from typing import Any, TypeAlias, assert_never

from batuta.kernel.calls.usercode import Called, Late, Raised, Returned, ordinary, refuse_exit
from batuta.kernel.clock import Clock
from batuta.kernel.errors import ExitRefused, StoreUnavailable
from batuta.kernel.values import dataclass
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease
from batuta.queue.outcome import TIMED_OUT, Cancelled
from batuta.supervise.running import CANCEL_GRACE, MOST_CANCELS


class ItemStep(Enum):
    CLAIMED = auto()  # the item is claimed, but its task has not started
    HANDLING = auto()
    SETTLING = auto()  # the handler has ended, and the settlement is not written yet
    IN_EFFECT = auto()  # the item's effect runs in the transaction that settles the item


class Stop(Enum):
    OVERDUE = auto()  # the time limit passed: the item is settled as timed out
    REQUESTED = auto()  # a cancellation was requested: the item is settled as cancelled
    SHUTDOWN = auto()  # the process shuts down: the item is handed back
    LOST = auto()  # another process owns the item: nothing is written

    def applies_in(self, step: ItemStep) -> bool:
        """Return whether a stop for this reason may interrupt an item in the given step. A cancellation request has no
        effect once the item is being settled.
        """
        match self:
            case Stop.REQUESTED:
                return step in (ItemStep.CLAIMED, ItemStep.HANDLING)
            case Stop.OVERDUE:
                return step is not ItemStep.SETTLING
            case Stop.SHUTDOWN | Stop.LOST:
                return True
            case _:
                assert_never(self)

    def result(self) -> Called:
        """Return the result of an item whose handler was stopped for this reason. Raises CancelledError if this process
        must not settle the item.
        """
        match self:
            case Stop.OVERDUE:
                return Late(TIMED_OUT())
            case Stop.REQUESTED:
                return Returned(Cancelled())
            case Stop.SHUTDOWN | Stop.LOST:
                raise asyncio.CancelledError
            case _:
                assert_never(self)


@dataclass(slots=True)
class Running:
    """An item in progress. ``started_at`` is monotonic time in seconds. The time limit covers the handler and the
    effect. ``task`` is set when the item leaves the step CLAIMED.
    """

    lease: Lease
    handler: ItemHandler
    started_at: float
    step: ItemStep = ItemStep.CLAIMED
    stop: Stop | None = None
    outage: StoreUnavailable | None = None  # why the engine's own database did not execute the effect
    task: "asyncio.Task[None]" = field(init=False)

    @property
    def overdue_at(self) -> float:
        return self.started_at + self.handler.timeout.total_seconds()

    @property
    def is_settling(self) -> bool:
        return self.step in (ItemStep.SETTLING, ItemStep.IN_EFFECT)

    async def handle(self) -> Called:
        """Call the handler and return its result, or the result of a stop that was requested before the task started.

        The result is the same as that of ``guard(call(handler))``. This method runs for every item, so for speed it
        creates fewer coroutines.
        """
        if self.stop is not None:
            return self.stop.result()
        self.step = ItemStep.HANDLING
        try:
            try:
                value = await self.handler.handle(self.lease)
            except BaseException as exit:
                if isinstance(exit, Exception | asyncio.CancelledError):
                    raise
                raise refuse_exit(exit) from exit
            if self.task.cancelling() and self.stop is None:
                await _deliver_cancellation(self.task)
            return Returned(value)
        except asyncio.CancelledError:
            return await self._absorb_own_cancellation()
        except Exception as error:  # noqa: BLE001 - every error of a handler is a failure of its item
            return Raised(error)
        finally:
            self.step = ItemStep.SETTLING

    async def call(self, function: Callable[[], Awaitable[object]]) -> object:
        """Call application code and return its value. If the code leaves a cancellation pending, raise
        CancelledError.
        """
        value = await ordinary(function)
        if self.task.cancelling() and self.stop is None:
            await _deliver_cancellation(self.task)
        return value

    async def guard(self, work: Awaitable[object]) -> Called:
        """Await ``work`` and return its result. If ``work`` raises an error, is stopped in a way that ends the item, or
        cancels itself, return a result that says so.
        """
        try:
            return Returned(await work)
        except asyncio.CancelledError:
            return await self._absorb_own_cancellation()
        except Exception as error:  # noqa: BLE001 - every error of a handler or an effect is a failure of its item
            return Raised(error)
        finally:
            self.step = ItemStep.SETTLING

    async def _absorb_own_cancellation(self) -> Called:
        """Undo the cancellation of a handler or effect, and return the result that follows from it. Raises
        CancelledError if this process must not settle the item.
        """
        if self.stop in (Stop.SHUTDOWN, Stop.LOST):
            raise asyncio.CancelledError
        await _absorb_cancellation(self.task)
        return Raised(ExitRefused(raised="CancelledError")) if self.stop is None else self.stop.result()


async def _deliver_cancellation(task: "asyncio.Task[None]") -> None:
    """Raise CancelledError if application code requested a cancellation that is still pending. If the code has already
    handled the cancellation, clear it.
    """
    await asyncio.sleep(0)
    _uncancel(task)


async def _absorb_cancellation(task: "asyncio.Task[None]") -> None:
    """Undo every cancellation of the task, including cancellations that asyncio has not delivered yet."""
    _uncancel(task)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    _uncancel(task)


def _uncancel(task: "asyncio.Task[None]") -> None:
    for _ in range(task.cancelling()):
        task.uncancel()


Task: TypeAlias = "asyncio.Task[Any]"


@dataclass(slots=True)
class CancelState:
    at: float
    cancels: int = 1

    @property
    def again_at(self) -> float:
        return self.at + CANCEL_GRACE.total_seconds()


class Cancellations:
    """Tracks cancelled tasks that are still running. A task that does not end is cancelled a second time, and then
    reported as uncancellable.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._states: dict[Task, CancelState] = {}

    def cancel(self, task: Task) -> None:
        self._states[task] = CancelState(self._clock.monotonic())
        task.add_done_callback(self.confirm)
        task.cancel()

    def confirm(self, task: Task) -> None:
        """Record that the task reacted to its cancellation, so that no second cancellation interrupts its clean-up."""
        self._states.pop(task, None)

    @property
    def due_times(self) -> list[float]:
        """The monotonic times at which a cancelled task that is still running must be cancelled again or reported."""
        return [state.again_at for state in self._states.values()]

    def repeat(self) -> list[Task]:
        """Cancel again the tasks that have not ended in time. Return the tasks that have ignored every cancellation;
        each task is returned only once.
        """
        now = self._clock.monotonic()
        late = [(task, state) for task, state in self._states.items() if now >= state.again_at]
        for task, state in late:
            if state.cancels < MOST_CANCELS:
                state.cancels, state.at = state.cancels + 1, now
                task.cancel()
        given_up = [task for task, state in late if state.at < now]
        for task in given_up:
            del self._states[task]
        return given_up
