"""Settle an item together with its effect, in one transaction.

[ conclude: settlement and effect ] ──▶ written, or the lease is lost
      │ the engine's own store is away ──▶ again, when it is back
      │ the effect fails, or the time limit is over ──▶ nothing is written, and the item fails
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.errors import EffectFailed, StoreUnavailable, is_store_away
from batuta.kernel.usercode import Called
from batuta.kernel.waiting import insist
from batuta.queue.outcome import Settlement, Writes
from batuta.queue.running import Running, Step
from batuta.queue.store import QueueStore


async def conclude(
    running: Running, settlement: Settlement, store: QueueStore, clock: Clock, stop: Callable[[Running], None]
) -> Called:
    """Returned(True): it is written. Returned(False): the lease is lost. ``stop`` is called when the effect takes too long."""
    if settlement.effect is not None and not isinstance(settlement.effect, Writes):
        effect = TimedEffect(settlement.effect, running, store.where, clock, stop)
        settlement = settlement._replace(effect=effect)
    return await running.guard(insist(lambda: store.conclude(running.lease, settlement), clock))


class TimedEffect:
    """An effect under the remaining time of its item. Time in which the engine's store is away does not count.

    ``where``: the engine's store, as its errors name it.
    """

    def __init__(
        self,
        effect: Callable[[Any], Awaitable[None]],
        running: Running,
        where: str,
        clock: Clock,
        stop: Callable[[Running], None],
    ) -> None:
        self._effect = effect
        self._running = running
        self._where = where
        self._clock = clock
        self._stop = stop
        self._left = max(0.0, running.overdue_at - clock.monotonic())

    async def __call__(self, transaction: Any) -> None:
        began = self._clock.monotonic()
        self._running.step = Step.IN_EFFECT
        # A task of its own: on SQLite the effect holds the writer, and the worker's tick waits for it.
        alarm = asyncio.create_task(self._stop_in_time())
        try:
            await self._running.call(lambda: self._effect(transaction))
        except StoreUnavailable as error:
            if self._left <= self._clock.monotonic() - began or not self._is_own(error):
                raise EffectFailed(raised=type(error).__name__) from error
            raise
        finally:
            alarm.cancel()
            self._running.step = Step.SETTLING
            self._left -= self._clock.monotonic() - began

    async def _stop_in_time(self) -> None:
        await self._clock.sleep(max(0.0, self._left))
        if self._running.step is Step.IN_EFFECT:
            self._stop(self._running)

    def _is_own(self, error: StoreUnavailable) -> bool:
        """Whether the engine's own store is away: only then is an effect repeated without counting an attempt."""
        return is_store_away(error) and error.facts.get("where") == self._where
