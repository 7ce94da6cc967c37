"""One attempt at an item: the handler, its effect, and the settlement that follows from them.

    handler ── outcome ──▶ settlement ── no effect ──▶ written with others
                                      └── an effect ──▶ [ conclude: settlement and effect in one transaction ] ──▶ written
                                                             │ the engine's own store is away ──▶ again, when it is back
                                                             │ the effect fails ──▶ the item failed

The item's time limit covers the handler and the effect. Nothing that the application's code does ends the worker: exits, leaked
cancellations and a task that cancels itself are failures of the item. Only two cancellations are the worker's own: a stop with a
reason, which is the item's ending, and the end of the process, which hands the item back.
"""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import (
    EffectFailed,
    ExitRefused,
    StoreUnavailable,
    UnstorableValue,
    is_store_away,
    reason_of_error,
)
from batuta.kernel.events import Events, ItemCrashed
from batuta.kernel.reasons import ReasonCode
from batuta.kernel.usercode import name_of, ordinary
from batuta.kernel.waiting import insist
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease
from batuta.queue.outcome import (
    EFFECT_CRASHED,
    HANDLER_CRASHED,
    TIMED_OUT,
    Cancelled,
    Effect,
    Failed,
    RetryPolicy,
    Settlement,
    Writes,
    after_seconds,
    settle,
)
from batuta.queue.storable import refuse_unstorable
from batuta.queue.store import QueueStore
from batuta.supervise.running import MOST_CANCELS
from batuta.supervise.watchdog import CANCEL_GRACE

Task: TypeAlias = "asyncio.Task[Any]"


class Stop(Enum):
    """Why a handler was cancelled."""

    OVERDUE = auto()  # its time limit is over
    UNWANTED = auto()  # somebody asked for it


@dataclass(slots=True)
class CancelState:
    at: float
    cancels: int = 1

    @property
    def again_at(self) -> float:
        return self.at + CANCEL_GRACE.total_seconds()


class Stopping:
    """Cancelled handlers that have not ended yet: cancelled a second time, then given up."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[Task, CancelState] = {}

    def cancel(self, task: Task) -> None:
        self._told[task] = CancelState(self._clock.monotonic())
        task.add_done_callback(self.heard)
        task.cancel()

    def heard(self, task: Task) -> None:
        """It has taken notice: what it does now must not be cut off by a second word."""
        self._told.pop(task, None)

    @property
    def moments(self) -> list[float]:
        """When there is something to do about each."""
        return [told.again_at for told in self._told.values()]

    def deaf(self) -> list[Task]:
        """Those that go on although they were told often enough, named once. The others are told once more, if it is time."""
        now = self._clock.monotonic()
        late = [(task, told) for task, told in self._told.items() if now >= told.again_at]
        for task, told in late:
            if told.cancels < MOST_CANCELS:
                told.cancels, told.at = told.cancels + 1, now
                task.cancel()
        given_up = [task for task, told in late if told.at < now]
        for task in given_up:
            del self._told[task]
        return given_up


def take_back(task: Task) -> None:
    """Every cancellation of it: what it was told for has happened."""
    for _ in range(task.cancelling()):
        task.uncancel()


_NEVER = after_seconds([])


@dataclass(slots=True)
class Running:
    """An item whose handler or effect runs. ``overdue_at``: of the handler, an instant of the monotonic clock."""

    lease: Lease
    handler: ItemHandler
    overdue_at: float
    stopped: Stop | None = None
    is_cancelled: bool = False  # the worker cancelled the task; any other cancellation is the application's
    has_begun: bool = False  # a task that is cancelled before it begins runs nothing, and settles nothing
    is_settling: bool = False  # the handler has ended: its settlement is being written
    in_effect: bool = False
    effect_left: float = 0.0  # seconds that the effect may still take
    task: "asyncio.Task[None]" = field(init=False)


class Attempts:
    """``stop_effect`` is called when an effect has used up its time."""

    def __init__(
        self,
        queue: str,
        store: QueueStore,
        clock: Clock,
        events: Events,
        max_result: int,
        stop_effect: Callable[[Running], None],
    ) -> None:
        self._queue = queue
        self._store = store
        self._clock = clock
        self._events = events
        self._max_result = max_result
        self._stop_effect = stop_effect

    async def handle(self, running: Running) -> Settlement:
        """Run the handler. Its outcome, its failure and a stop with a reason are all settlements."""
        running.has_begun = True
        if running.stopped:
            return self.settlement_of_stopped(running)
        try:
            outcome = await ordinary(lambda: running.handler.handle(running.lease))
            if running.task.cancelling() and not running.is_cancelled:
                await _deliver_cancellation(running.task)
            return self._settlement(running, outcome, running.handler.retry)
        except asyncio.CancelledError:
            return await self._cancelled(running, HANDLER_CRASHED)
        except Exception as error:  # noqa: BLE001 - every error of a handler is a failure of its item
            return self._failed(running, error, HANDLER_CRASHED)

    async def conclude(self, running: Running, settlement: Settlement) -> Settlement | bool:
        """Settle the item together with its effect.

        Returns whether it was written; False: the lease is lost. A settlement: the effect failed, and so did the item.
        """
        running.effect_left = max(0.0, running.overdue_at - self._clock.monotonic())
        bounded = settlement._replace(effect=self._bounded(running, settlement.effect))
        try:
            return await insist(lambda: self._store.conclude(running.lease, bounded), self._clock)
        except asyncio.CancelledError:
            return await self._cancelled(running, EFFECT_CRASHED)
        except Exception as error:  # noqa: BLE001 - every error of an effect is a failure of its item
            return self._failed(running, error, EFFECT_CRASHED)

    def settlement_of_stopped(self, running: Running) -> Settlement:
        if running.stopped is Stop.OVERDUE:
            retry = running.handler.retry if running.handler.retry_timeout else _NEVER
            return self._settlement(running, Failed(TIMED_OUT()), retry)
        return running.handler.with_retention(settle(running.lease.attempt, Cancelled(), _NEVER, random.random))

    async def _cancelled(self, running: Running, code: ReasonCode) -> Settlement:
        """Distinguish three cancellations: a stop (settle), the end of the process (re-raise), the item's own (fail)."""
        if running.stopped is None and running.is_cancelled:
            raise asyncio.CancelledError
        await _absorb_cancellation(running.task)
        if running.stopped is not None:
            return self.settlement_of_stopped(running)
        return self._failed(running, ExitRefused(raised="CancelledError"), code)

    def _failed(self, running: Running, error: Exception, code: ReasonCode) -> Settlement:
        self._events.emit(ItemCrashed(self._queue, running.lease.id, error))
        return self._settlement(running, Failed(code(error=name_of(error))), running.handler.retry)

    def _settlement(self, running: Running, outcome: object, retry: RetryPolicy) -> Settlement:
        settlement = running.handler.settle(running.lease, outcome, retry)
        try:
            refuse_unstorable(settlement.result, "task result", self._max_result)
        except UnstorableValue as error:
            # The handler has run: another run returns the same value and repeats its effects.
            self._events.emit(ItemCrashed(self._queue, running.lease.id, error))
            settlement = running.handler.settle(running.lease, Failed(reason_of_error(error), permanent=True), retry)
        return running.handler.with_retention(settlement)

    def _bounded(self, running: Running, effect: Effect | None) -> Effect | None:
        """The effect under the item's remaining time. Time in which the engine's store is away does not count."""
        if effect is None or isinstance(effect, Writes):
            return effect
        call = effect

        async def bounded(transaction: Any) -> None:
            began, running.in_effect = self._clock.monotonic(), True
            # A task of its own: on SQLite the effect holds the writer, and the worker's tick waits for it.
            alarm = asyncio.create_task(self._stop_in_time(running))
            try:
                await ordinary(lambda: call(transaction))
                if running.task.cancelling() and not running.is_cancelled:
                    await _deliver_cancellation(running.task)
            except StoreUnavailable as error:
                if running.effect_left <= self._clock.monotonic() - began or not self._is_own(error):
                    raise EffectFailed(raised=type(error).__name__) from error
                raise
            finally:
                alarm.cancel()
                running.in_effect = False
                running.effect_left -= self._clock.monotonic() - began

        return bounded

    async def _stop_in_time(self, running: Running) -> None:
        await self._clock.sleep(max(0.0, running.effect_left))
        if running.in_effect:
            self._stop_effect(running)

    def _is_own(self, error: StoreUnavailable) -> bool:
        """Whether the engine's own store is away: only then is an effect repeated without counting an attempt."""
        return is_store_away(error) and error.facts.get("where") == self._store.where


async def _deliver_cancellation(task: "asyncio.Task[None]") -> None:
    """Raise a cancellation that the code asked for and that is still to be delivered. Forget one that the code has handled."""
    await asyncio.sleep(0)
    take_back(task)


async def _absorb_cancellation(task: "asyncio.Task[None]") -> None:
    """Undo every cancellation of the task, also one that is still to be delivered."""
    take_back(task)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)
    take_back(task)
