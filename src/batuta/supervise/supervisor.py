"""The one ``while``.

A loop under supervision:

        ┌────────── ring, or the rest is over ──────────┐
        ▼                                               │
    [ tick ] ── Again ──▶ [ tick ]                      │
        │ ── Idle(until) ─────────────────────────▶ [ rest ]
        │ ── an error ──▶ back off (longer each time) ──┘
        │ ── the max_failures-th error in a row ──▶ every loop drains, LoopGaveUp
        │ ── silent for stuck_after ──▶ cancelled by the watchdog ──▶ [ tick ] again, max_restarts times ──▶ LoopGaveUp
        │                                     └── goes on all the same ──▶ every other loop drains, CancelIgnored
      stop ──▶ the ticks that are going may end, for the grace ──▶ cancel ──▶ [ drain, in the reverse order of adding ]

A database that is away is not the loop's fault: ``StoreUnavailable`` backs off and never gives up.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

from batuta.kernel.backoff import equal_jitter, exponential
from batuta.kernel.clock import Clock
from batuta.kernel.durations import brief
from batuta.kernel.errors import CancelIgnored, ExitRefused, InvalidName, LoopGaveUp, StoreUnavailable
from batuta.kernel.events import (
    Events,
    LoopAbandoned,
    LoopEnded,
    LoopFailed,
    LoopRecovered,
    LoopRestarted,
    TaskDeaf,
)
from batuta.kernel.waiting import ended, first_of
from batuta.supervise.loop import Again, Idle, Loop, LoopPolicy, Pace
from batuta.supervise.progress import bind
from batuta.supervise.running import Running, Treatment
from batuta.supervise.watchdog import GRACE, WATCHING, Watchdog

T = TypeVar("T")
Keepers: TypeAlias = dict[str, "asyncio.Task[None]"]

AT_ONCE = timedelta(0)
# The longest rest while the database is away: when it is back, nobody should have to wait for us.
WHILE_AWAY = timedelta(seconds=10)
# The longest rest after a tick that was stuck; how often that may be is counted.
AFTER_SILENCE = timedelta(seconds=5)
# What each loop has to drain, however long the others took.
AT_LEAST = timedelta(seconds=1)


class Supervisor:
    def __init__(self, clock: Clock, events: Events, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._events = events
        self._chance = chance
        self._running: list[Running] = []
        self._watchdog = Running(Watchdog(lambda: self._running, clock, events), WATCHING)

    def add(self, loop: Loop, policy: LoopPolicy) -> None:
        if any(running.loop.name == loop.name for running in (*self._running, self._watchdog)):
            raise InvalidName(name=loop.name, kind="loop", why="another loop is called that already")
        self._running.append(Running(loop, policy))

    @property
    def running(self) -> tuple[Running, ...]:
        return tuple(self._running)

    async def run(self, stop: asyncio.Event, grace: timedelta) -> None:
        """Keep every loop going until ``stop``, then drain.

        Raise LoopGaveUp if one of them cannot go on, and CancelIgnored if one cannot be stopped.
        """
        every = (*self._running, self._watchdog)
        keepers = {running.loop.name: asyncio.create_task(self._keep(running, stop)) for running in every}
        for running in every:
            running.keeper = keepers[running.loop.name]
        waker = asyncio.create_task(self._ring_all_when(stop))
        try:
            await self._until_stopped(keepers, stop, grace)
        finally:
            stop.set()
            cut_off = {name for name, keeper in keepers.items() if not keeper.done()}
            await self._cancelled(waker, *keepers.values())
            await self._drain(grace, cut_off)
        self._raise_what_ended(keepers)

    async def _until_stopped(self, keepers: Keepers, stop: asyncio.Event, grace: timedelta) -> None:
        """Wait for the stop, and then for the ticks that are still going, but no longer than ``grace``."""
        stopped = asyncio.create_task(stop.wait())
        # A keeper that ends before the stop could not go on: that is a stop too.
        await asyncio.wait({*keepers.values(), stopped}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        deaf = {running.loop.name for running in self._running if running.is_deaf}
        still_going = [keeper for name, keeper in keepers.items() if not keeper.done() and name not in deaf]
        if still_going:
            await first_of(_all_done(still_going), self._clock.sleep(grace.total_seconds()))
        await ended(stopped)

    async def _cancelled(self, *tasks: "asyncio.Task[Any]") -> None:
        """Not for ever: one that goes on all the same must not keep the others from draining."""
        for task in tasks:
            task.cancel()
        await first_of(_all_done(tasks), self._clock.sleep(GRACE.total_seconds()))

    def _raise_what_ended(self, keepers: Keepers) -> None:
        for keeper in keepers.values():
            if keeper.done() and not keeper.cancelled():
                keeper.result()  # raises what a loop could not go on with
        for name, keeper in keepers.items():
            if not keeper.done():
                raise CancelIgnored(loop=name, what="its tick", stack="")

    async def _keep(self, running: Running, stop: asyncio.Event) -> None:
        running.is_alive = True
        bind(partial(self._note, running))
        try:
            while not stop.is_set():
                # Answered before the tick, not after: a ring that lands mid-tick must survive it.
                running.loop.doorbell.answer()
                pause = await self._tick(running, stop)
                if not stop.is_set():
                    await self._rest(running, pause)
        finally:
            running.is_alive = False

    def _note(self, running: Running) -> None:
        running.note(self._clock.monotonic())

    async def _tick(self, running: Running, stop: asyncio.Event) -> timedelta:
        running.is_ticking, running.last_beat = True, self._clock.monotonic()
        try:
            pause = self._pause(await _ordinary(running.loop.tick()), running)
        except asyncio.CancelledError as error:
            if (treated := _treated(running)) is not None:
                return self._restarted(running, treated, stop)
            if _cancels():
                raise
            return self._failed(running, error, stop)  # something it awaited was cancelled, not we
        except CancelIgnored as deaf:
            self._events.emit(TaskDeaf(str(deaf.facts["loop"]), str(deaf.facts["what"]), str(deaf.facts["stack"])))
            stop.set()
            raise
        except Exception as error:  # noqa: BLE001 - whatever a loop meets, its neighbours go on
            if (treated := _treated(running)) is not None:
                return self._restarted(running, treated, stop)
            return self._failed(running, error, stop)
        finally:
            running.is_ticking, running.last_beat = False, self._clock.monotonic()
        if (treated := _treated(running)) is not None:  # it took the cancellation for its own end
            return self._restarted(running, treated, stop)
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

    def _restarted(self, running: Running, treated: Treatment, stop: asyncio.Event) -> timedelta:
        """Its tick was silent for too long and has been stopped; it begins anew, unless that happens too often."""
        now, policy = self._clock.monotonic(), running.policy
        running.failures += 1
        if running.failures == 1:
            running.failing_since = now
        lately = running.count_restart(now)
        cap = min(policy.backoff_cap, AFTER_SILENCE)
        wait = equal_jitter(exponential(lately, policy.backoff, cap), self._chance())
        name = running.loop.name
        self._events.emit(LoopRestarted(name, treated.silent_for, lately, wait, treated.stack))
        if lately > policy.max_restarts:
            error = TimeoutError(f"silent for {brief(treated.silent_for)}")
            self._events.emit(LoopAbandoned(name, error, running.failures))
            stop.set()
            raise LoopGaveUp(loop=name, failures=running.failures, error="silence") from error
        return wait

    async def _rest(self, running: Running, pause: timedelta) -> None:
        if pause <= AT_ONCE:
            await asyncio.sleep(0)  # let the others have a turn between two ticks
            return
        await first_of(running.loop.doorbell.wait(), self._clock.sleep(pause.total_seconds()))

    async def _ring_all_when(self, stop: asyncio.Event) -> None:
        await stop.wait()
        for running in (*self._running, self._watchdog):
            running.loop.doorbell.ring()

    async def _drain(self, grace: timedelta, cut_off: Collection[str]) -> None:
        """One after the other, and the grace is for all of them: while one drains, the others' work goes on too."""
        ends = self._clock.monotonic() + grace.total_seconds()
        for running in reversed(self._running):
            left = max(min(AT_LEAST, grace), timedelta(seconds=ends - self._clock.monotonic()))
            draining = asyncio.create_task(_ordinary(running.loop.drain(left)))
            await first_of(_all_done([draining]), self._clock.sleep(left.total_seconds()))
            has_ended = draining.done()
            if not has_ended:
                await self._cancelled(draining)
            # What one loop meets while draining must not keep the others from it.
            error = draining.exception() if draining.done() and not draining.cancelled() else None
            if error is not None:
                self._events.emit(LoopFailed(running.loop.name, error, running.failures + 1, AT_ONCE))
            is_drained = has_ended and error is None and running.loop.name not in cut_off
            self._events.emit(LoopEnded(running.loop.name, drained=is_drained))


async def _ordinary(code: Awaitable[T]) -> T:
    """A loop whose code calls ``sys.exit`` has failed: it would end its neighbours with it, and perhaps say that all is well."""
    try:
        return await code
    except SystemExit as exit:
        raise ExitRefused(raised=type(exit).__name__) from exit


def _treated(running: Running) -> Treatment | None:
    """What it was cancelled for by the watchdog, and by nobody else; after this it is no longer being treated."""
    if (treatment := running.treatment) is None or _cancels() > treatment.cancels:
        return None
    running.treatment = None
    if (task := asyncio.current_task()) is not None:
        for _ in range(treatment.cancels):
            task.uncancel()
    return treatment


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _all_done(tasks: "Collection[asyncio.Task[Any]]") -> None:
    await asyncio.wait(tasks)
