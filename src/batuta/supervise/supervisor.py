"""The one ``while``.

A loop under supervision:

        ┌────────── ring, or the rest is over ──────────┐
        ▼                                               │
    [ tick ] ── Again ──▶ [ tick ]                      │
        │ ── Idle(until) ─────────────────────────▶ [ rest ]
        │ ── an error ──▶ back off (longer each time) ──┘
        │ ── the max_failures-th error in a row ──▶ every loop drains, LoopGaveUp
      stop ──▶ the ticks that are going may end, for the grace ──▶ cancel ──▶ [ drain, in the reverse order of adding ]

A database that is away is not the loop's fault: ``StoreUnavailable`` backs off and never gives up.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from batuta.kernel.backoff import equal_jitter, exponential
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidName, LoopGaveUp, StoreUnavailable
from batuta.kernel.events import Events, LoopAbandoned, LoopEnded, LoopFailed, LoopRecovered
from batuta.kernel.waiting import ended, first_of
from batuta.supervise.loop import Again, Idle, Loop, LoopPolicy, Pace

Keepers: TypeAlias = dict[str, "asyncio.Task[None]"]

AT_ONCE = timedelta(0)
# The longest rest while the database is away: when it is back, nobody should have to wait for us.
WHILE_AWAY = timedelta(seconds=10)


@dataclass(slots=True)
class Running:
    loop: Loop
    policy: LoopPolicy
    last_beat: float = 0.0
    worked_at: float | None = None  # the end of its last good tick
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
        keepers = {running.loop.name: asyncio.create_task(self._keep(running, stop)) for running in self._running}
        waker = asyncio.create_task(self._ring_all_when(stop))
        try:
            await self._until_stopped(keepers, stop, grace)
        finally:
            stop.set()
            cut_off = {name for name, keeper in keepers.items() if not keeper.done()}
            await ended(waker, *keepers.values())
            await self._drain(grace, cut_off)
        for keeper in keepers.values():
            if not keeper.cancelled():
                keeper.result()  # raises what a loop could not go on with

    async def _until_stopped(self, keepers: Keepers, stop: asyncio.Event, grace: timedelta) -> None:
        """Wait for the stop, and then for the ticks that are still going, but no longer than ``grace``."""
        stopped = asyncio.create_task(stop.wait())
        # A keeper that ends before the stop could not go on: that is a stop too.
        await asyncio.wait({*keepers.values(), stopped}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        still_going = [keeper for keeper in keepers.values() if not keeper.done()]
        if still_going:
            await first_of(_all_done(still_going), self._clock.sleep(grace.total_seconds()))
        await ended(stopped)

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
            pause = self._pause(await running.loop.tick(), running)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            return self._failed(running, error, stop)  # something it awaited was cancelled, not we
        except Exception as error:  # noqa: BLE001 - whatever a loop meets, its neighbours go on
            return self._failed(running, error, stop)
        self._worked(running)
        return pause

    def _pause(self, pace: Pace, running: Running) -> timedelta:
        match pace:
            case Again():
                return AT_ONCE
            case Idle(until=None):
                return running.policy.every
            case Idle(until=datetime() as until):
                return max(AT_ONCE, until - self._clock.now())
            case _:
                raise TypeError(
                    f"loop {running.loop.name} returned {type(pace).__name__}: return None, Again() or Idle(until)"
                )

    def _worked(self, running: Running) -> None:
        if running.failures:
            down_for = timedelta(seconds=self._clock.monotonic() - running.failing_since)
            self._events.emit(LoopRecovered(running.loop.name, running.failures, down_for))
        running.failures = 0
        running.worked_at = self._clock.monotonic()

    def _failed(self, running: Running, error: BaseException, stop: asyncio.Event) -> timedelta:
        running.failures += 1
        if running.failures == 1:
            running.failing_since = self._clock.monotonic()
        policy, is_away = running.policy, isinstance(error, StoreUnavailable)
        cap = min(policy.backoff_cap, WHILE_AWAY) if is_away else policy.backoff_cap
        wait = equal_jitter(exponential(running.failures, policy.backoff, cap), self._chance())
        self._events.emit(LoopFailed(running.loop.name, error, running.failures, wait))
        if running.failures >= policy.max_failures and not is_away:
            self._events.emit(LoopAbandoned(running.loop.name, error, running.failures))
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

    async def _drain(self, grace: timedelta, cut_off: set[str]) -> None:
        for running in reversed(self._running):
            waiting = first_of(running.loop.drain(grace), self._clock.sleep(grace.total_seconds()))
            # What one loop meets while draining must not keep the others from it.
            (ending,) = await asyncio.gather(waiting, return_exceptions=True)
            if isinstance(ending, Exception):
                self._events.emit(LoopFailed(running.loop.name, ending, running.failures + 1, AT_ONCE))
            self._events.emit(LoopEnded(running.loop.name, drained=ending == 0 and running.loop.name not in cut_off))


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _all_done(tasks: list["asyncio.Task[None]"]) -> None:
    await asyncio.wait(tasks)
