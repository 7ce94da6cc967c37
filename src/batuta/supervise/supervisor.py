"""The one ``while``.

A loop under supervision:

        ┌────────── ring, or the rest is over ──────────┐
        ▼                                               │
    [ tick ] ── Again ──▶ [ tick ]                      │
        │ ── Idle(until) ─────────────────────────▶ [ rest ]
        │ ── an error ──▶ back off (longer each time) ──┘
        │ ── the max_failures-th error in a row ──▶ every loop drains, LoopGaveUp
      stop ──▶ [ drain, in the reverse order of adding ] ──▶ end

A database that is away is not the loop's fault: ``StoreUnavailable`` backs off and never gives up.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from batuta.kernel.backoff import equal_jitter, exponential
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidName, LoopGaveUp, StoreUnavailable
from batuta.kernel.events import Events, LoopEnded, LoopFailed, LoopRecovered
from batuta.kernel.waiting import ended, first_of
from batuta.supervise.loop import Again, Idle, Loop, LoopPolicy, Pace

AT_ONCE = timedelta(0)


@dataclass(slots=True)
class Running:
    loop: Loop
    policy: LoopPolicy
    last_beat: float = 0.0
    failures: int = 0  # in a row
    failing_since: float = 0.0


class Supervisor:
    def __init__(self, clock: Clock, events: Events, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._events = events
        self._chance = chance
        self._running: list[Running] = []

    def add(self, loop: Loop, policy: LoopPolicy) -> None:
        if any(running.loop.name == loop.name for running in self._running):
            raise InvalidName(name=loop.name, kind="loop", why="another loop is called that already")
        self._running.append(Running(loop, policy))

    @property
    def running(self) -> tuple[Running, ...]:
        return tuple(self._running)

    async def run(self, stop: asyncio.Event, grace: timedelta) -> None:
        """Keep every loop going until ``stop``, then drain. Raise LoopGaveUp if one of them cannot go on."""
        keepers = [asyncio.create_task(self._keep(running, stop), name=running.loop.name) for running in self._running]
        waker = asyncio.create_task(self._ring_all_when(stop))
        try:
            await asyncio.gather(*keepers)
        finally:
            stop.set()
            await ended(waker, *keepers)
            await self._drain(grace)

    async def _keep(self, running: Running, stop: asyncio.Event) -> None:
        while not stop.is_set():
            running.last_beat = self._clock.monotonic()
            # Answered before the tick, not after: a ring that lands mid-tick must survive it.
            running.loop.doorbell.answer()
            pause = await self._tick(running, stop)
            if not stop.is_set():
                await self._rest(running, pause)

    async def _tick(self, running: Running, stop: asyncio.Event) -> timedelta:
        try:
            pace = await running.loop.tick()
        except Exception as error:  # noqa: BLE001 - whatever a loop meets, its neighbours go on
            return self._failed(running, error, stop)
        self._worked(running)
        return self._pause(pace, running.policy)

    def _pause(self, pace: Pace, policy: LoopPolicy) -> timedelta:
        match pace:
            case Again():
                return AT_ONCE
            case Idle(until=until):
                return policy.every if until is None else max(AT_ONCE, until - self._clock.now())

    def _worked(self, running: Running) -> None:
        if running.failures:
            down_for = timedelta(seconds=self._clock.monotonic() - running.failing_since)
            self._events.emit(LoopRecovered(running.loop.name, running.failures, down_for))
        running.failures = 0

    def _failed(self, running: Running, error: Exception, stop: asyncio.Event) -> timedelta:
        running.failures += 1
        if running.failures == 1:
            running.failing_since = self._clock.monotonic()
        policy = running.policy
        wait = equal_jitter(exponential(running.failures, policy.backoff, policy.backoff_cap), self._chance())
        self._events.emit(LoopFailed(running.loop.name, error, running.failures, wait))
        if running.failures >= policy.max_failures and not isinstance(error, StoreUnavailable):
            stop.set()
            raise LoopGaveUp(loop=running.loop.name, failures=running.failures, error=type(error).__name__) from error
        return wait

    async def _rest(self, running: Running, pause: timedelta) -> None:
        if pause <= AT_ONCE:
            await asyncio.sleep(0)  # let the others have a turn between two ticks
            return
        await first_of(running.loop.doorbell.wait(), self._clock.sleep(pause.total_seconds()))

    async def _ring_all_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        for running in self._running:
            running.loop.doorbell.ring()

    async def _drain(self, grace: timedelta) -> None:
        for running in reversed(self._running):
            drained = await first_of(running.loop.drain(grace), self._clock.sleep(grace.total_seconds())) == 0
            self._events.emit(LoopEnded(running.loop.name, drained))
