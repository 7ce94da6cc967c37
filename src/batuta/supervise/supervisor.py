"""The supervisor: the only ``while`` loop around ticks.

A loop under supervision:

        ┌────────── wake-up, or the rest has passed ────┐
        ▼                                               │
    [ tick ] ── Again ──▶ [ tick ]                      │
        │ ── Idle(until) ─────────────────────────▶ [ rest ]
        │ ── an error ──▶ back off (longer each time) ──┘
        │ ── the max_failures-th error in a row ──▶ every loop drains, LoopGaveUp
        │ ── silent for stuck_after ──▶ cancelled by the watchdog ──▶ [ tick ] again, max_restarts times ──▶ LoopGaveUp
        │                                     └── ignores it ──▶ every other loop drains, CancelIgnored
      stop ──▶ the shutdown (below)

A shutdown (``supervise.shutdown`` has its phases and its one deadline):

    a loop without a drain            cancelled immediately
    a loop with a drain               its current tick may end; then it drains in the remaining time
    a loop that outlives the others   keeps ticking until the others have ended; then it stops and drains

A loop never gives up because the store is unavailable: the supervisor backs off and retries without limit.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeAlias, TypeVar

from batuta.kernel.clock import Clock, brief
from batuta.kernel.errors import CancelIgnored, ExitRefused, LoopGaveUp, StoreUnavailable, require
from batuta.kernel.events import (
    Events,
    LoopAbandoned,
    LoopEnded,
    LoopFailed,
    LoopRecovered,
    LoopRestarted,
    ShutdownPhase,
    TaskUncancellable,
)
from batuta.kernel.reasons import Reason
from batuta.kernel.waiting import cancel_and_wait, equal_jitter, exponential, first_of
from batuta.supervise.loop import Again, Idle, Loop, LoopPolicy, Pace, bind, drain_of
from batuta.supervise.running import CANCEL_GRACE, WATCHDOG_POLICY, LoopState, StuckTick, Watchdog
from batuta.supervise.shutdown import Phase, Shutdown

T = TypeVar("T")
Keepers: TypeAlias = dict[str, "asyncio.Task[None]"]

NO_WAIT = timedelta(0)
# Longest wait between ticks while the database is unavailable, so that work resumes soon after the outage.
WHILE_AWAY = timedelta(seconds=10)
# Longest wait before a stuck tick is restarted; the policy limits the number of restarts.
AFTER_SILENCE = timedelta(seconds=5)
# Time within which a drain that was cancelled at the deadline must end.
CUT_OFF = timedelta(seconds=1)
# Minimum and maximum time for the drains of loops that outlive the others. The minimum applies even after the deadline.
LAST_AT_LEAST = timedelta(seconds=1)
LAST_AT_MOST = timedelta(seconds=3)
TOGETHER = 0.25  # seconds: the start time of a supervisor is rounded down to a multiple of this
# A shutdown shorter than this is not announced.
ANNOUNCE_AFTER = timedelta(milliseconds=50)


class Supervisor:
    """Runs loops: it repeats their ticks, restarts stuck loops, and drains all loops at shutdown."""

    def __init__(self, clock: Clock, events: Events, chance: Callable[[], float] = random.random) -> None:
        self._clock = clock
        self._events = events
        self._chance = chance
        self._running: list[LoopState] = []
        self._watchdog = LoopState(Watchdog(lambda: self._running, clock, events), WATCHDOG_POLICY)
        # Rounded, because the supervisors of one process start at nearly the same time and their loops should wake at
        # the same instants.
        self._began = clock.monotonic() // TOGETHER * TOGETHER

    def add(self, loop: Loop, policy: LoopPolicy) -> None:
        is_new = all(running.loop.name != loop.name for running in (*self._running, self._watchdog))
        require("loop", loop.name, is_new, Reason("loop_taken", "another loop has this name"))
        self._running.append(LoopState(loop, policy))

    @property
    def running(self) -> tuple[LoopState, ...]:
        return tuple(self._running)

    async def run(self, stop: asyncio.Event, grace: timedelta) -> None:
        """Run every loop until ``stop`` is set, then shut down within ``grace``.

        Raise LoopGaveUp if a loop cannot continue, and CancelIgnored if a tick cannot be stopped.
        """
        others_ended = asyncio.Event()
        keepers: Keepers = {}
        for running in (*self._running, self._watchdog):
            ends = others_ended if running.policy.outlives else stop
            running.keeper = keepers[running.loop.name] = asyncio.create_task(self._keep(running, stop, ends))
        try:
            # If a loop's task ends before ``stop`` is set, the loop could not continue, so shut down the process.
            await first_of(stop.wait(), asyncio.wait(keepers.values(), return_when=asyncio.FIRST_COMPLETED))
        finally:
            stop.set()
            await self._shut_down(Shutdown.begin(self._clock, grace), others_ended)
        self._raise_failure(keepers)

    async def _shut_down(self, shutdown: Shutdown, others_ended: asyncio.Event) -> None:
        for running in self._running:
            running.is_ending = True
        first = [running for running in self._running if not running.policy.outlives]
        await self._become_quiet(first, shutdown)
        await self._end_together(first, shutdown)
        others_ended.set()
        last = max(LAST_AT_LEAST, min(LAST_AT_MOST, shutdown.time_left()))
        outliving = [running for running in self._running if running.policy.outlives]
        self._cancel_idle(outliving)
        await self._end_together(outliving, Shutdown.begin(self._clock, last), is_announced=False)
        await cancel_and_wait(_keeper(self._watchdog))

    async def _become_quiet(self, loops: Sequence[LoopState], shutdown: Shutdown) -> None:
        """Cancel idle loops, but give ticks in progress a short time to end, because a tick may start work in another
        loop.
        """
        self._cancel_idle(loops)
        ticking = [running for running in loops if running.is_ticking and _finishes(running)]
        if ticking:
            names = tuple(running.loop.name for running in ticking)
            self._events.emit(ShutdownPhase(Phase.QUIET, names, shutdown.time_left()))
            await shutdown.run_within(Phase.QUIET, _wait_for_all([_keeper(running) for running in ticking]))

    def _cancel_idle(self, loops: Sequence[LoopState]) -> None:
        for running in loops:
            is_finishing = running.is_ticking and _finishes(running)
            if not (is_finishing or _keeper(running).cancelling()):  # the watchdog may already be cancelling the tick
                _keeper(running).cancel()

    async def _end_together(self, loops: Sequence[LoopState], shutdown: Shutdown, *, is_announced: bool = True) -> None:
        ending = {running.loop.name: asyncio.create_task(self._end(running, shutdown)) for running in loops}
        if not ending:
            return
        announcing = asyncio.create_task(self._announce(ending, shutdown)) if is_announced else None
        try:
            await asyncio.wait(ending.values())
        finally:
            await cancel_and_wait(*ending.values(), *([announcing] if announcing else []))

    async def _end(self, running: LoopState, shutdown: Shutdown) -> None:
        has_finished = await self._end_tick(running, shutdown)
        has_drained = await self._drain(running, shutdown)
        self._events.emit(LoopEnded(running.loop.name, drained=has_finished and has_drained))

    async def _end_tick(self, running: LoopState, shutdown: Shutdown) -> bool:
        """Let the current tick run until the finish phase ends, then cancel it. Return whether the tick ended by
        itself.
        """
        keeper = _keeper(running)
        if is_finishing := not (keeper.done() or keeper.cancelling()):
            if await shutdown.run_within(Phase.FINISH, _wait_for_all([keeper])):
                return True
            keeper.cancel()
        timeout = min(
            CANCEL_GRACE, shutdown.time_left(Phase.HAND_BACK if drain_of(running.loop) is None else Phase.CANCEL)
        )
        await first_of(_wait_for_all([keeper]), self._clock.sleep(timeout.total_seconds()))
        return keeper.done() and not is_finishing

    async def _drain(self, running: LoopState, shutdown: Shutdown) -> bool:
        """Drain the loop. Return whether the drain ended within the deadline and without an error."""
        if (drain := drain_of(running.loop)) is None:
            return True
        draining = asyncio.create_task(_refuse_exit(drain(shutdown.time_left())))
        try:
            is_in_time = await shutdown.run_within(Phase.HAND_BACK, _wait_for_all([draining]))
        finally:
            draining.cancel()
        await first_of(_wait_for_all([draining]), self._clock.sleep(CUT_OFF.total_seconds()))
        error = draining.exception() if draining.done() and not draining.cancelled() else None
        if error is not None:
            self._events.emit(LoopFailed(running.loop.name, error, running.failures + 1, NO_WAIT))
        return is_in_time and error is None

    async def _announce(self, ending: Keepers, shutdown: Shutdown) -> None:
        await self._clock.sleep(ANNOUNCE_AFTER.total_seconds())
        for phase in (Phase.FINISH, Phase.CANCEL, Phase.HAND_BACK):
            if going := tuple(name for name, task in ending.items() if not task.done()):
                self._events.emit(ShutdownPhase(phase, going, shutdown.time_left()))
            await self._clock.sleep(shutdown.time_left(phase).total_seconds())

    def _raise_failure(self, keepers: Keepers) -> None:
        for keeper in keepers.values():
            if keeper.done() and not keeper.cancelled():
                keeper.result()  # raises the error that ended the loop
        for name, keeper in keepers.items():
            if not keeper.done():
                raise CancelIgnored(loop=name, what="its tick", stack="")

    async def _keep(self, running: LoopState, stop: asyncio.Event, ends: asyncio.Event) -> None:
        """Repeat a loop's ticks until the event ``ends`` is set. A loop that cannot continue sets ``stop``, which ends
        all loops.
        """
        running.is_alive = True
        bind(lambda: running.note(self._clock.monotonic()))
        try:
            while not ends.is_set():
                # Clear the wake-up before the tick, so that a wake-up during the tick is not lost.
                running.loop.wakeup.clear()
                pause = await self._tick(running, stop)
                if not ends.is_set():
                    await self._rest(running, pause)
        finally:
            running.is_alive = False

    async def _tick(self, running: LoopState, stop: asyncio.Event) -> timedelta:
        running.is_ticking, running.last_beat = True, self._clock.monotonic()
        try:
            pause = self._pause(await _refuse_exit(running.loop.tick()), running)
        except asyncio.CancelledError as error:
            if (stuck_tick := _take_stuck_tick(running)) is not None:
                return self._note_restart(running, stuck_tick, stop)
            if _cancels():
                raise
            # an operation that the tick was awaiting was cancelled, not this loop
            return self._note_failure(running, error, stop)
        except CancelIgnored as ignored:
            self._events.emit(TaskUncancellable(**{name: str(fact) for name, fact in ignored.facts.items()}))
            stop.set()
            raise
        except Exception as error:  # noqa: BLE001 - no error of one loop may stop the others
            if (stuck_tick := _take_stuck_tick(running)) is not None:
                return self._note_restart(running, stuck_tick, stop)
            if _cancels():  # the shutdown cancelled the tick, so the error is only a consequence
                return NO_WAIT
            return self._note_failure(running, error, stop)
        finally:
            running.is_ticking, running.last_beat = False, self._clock.monotonic()
        if (stuck_tick := _take_stuck_tick(running)) is not None:  # the tick caught the cancellation and returned
            return self._note_restart(running, stuck_tick, stop)
        self._note_success(running)
        return pause

    def _pause(self, pace: Pace, running: LoopState) -> timedelta:
        match pace:
            case Again():
                return NO_WAIT
            case Idle(until=None):
                return self._rest_together(running.policy.every)
            case Idle(until=datetime() as until):
                return max(NO_WAIT, until - self._clock.now())
            case _:
                raise TypeError(
                    f"loop {running.loop.name} returned {type(pace).__name__}: return None, Again() or Idle(until)"
                )

    def _rest_together(self, every: timedelta) -> timedelta:
        """Return the time until the next multiple of ``every``, counted from the supervisor's start, so that loops with
        the same interval wake at the same instant. If this time is shorter than half of ``every``, return ``every``
        instead.
        """
        left = every - timedelta(seconds=self._clock.monotonic() - self._began) % every
        return left if left * 2 > every else every

    def _note_success(self, running: LoopState) -> None:
        if running.failures:
            down_for = timedelta(seconds=self._clock.monotonic() - running.failing_since)
            self._events.emit(LoopRecovered(running.loop.name, running.failures, down_for))
        running.failures = 0
        running.worked_at = self._clock.monotonic()

    def _note_failure(self, running: LoopState, error: BaseException, stop: asyncio.Event) -> timedelta:
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

    def _note_restart(self, running: LoopState, stuck_tick: StuckTick, stop: asyncio.Event) -> timedelta:
        """Record a restart after a stuck tick, and return how long to wait before the next tick. Raises LoopGaveUp
        after too many restarts.
        """
        now, policy = self._clock.monotonic(), running.policy
        running.failures += 1
        if running.failures == 1:
            running.failing_since = now
        lately = running.count_restart(now)
        cap = min(policy.backoff_cap, AFTER_SILENCE)
        wait = equal_jitter(exponential(lately, policy.backoff, cap), self._chance())
        name = running.loop.name
        self._events.emit(LoopRestarted(name, stuck_tick.silent_for, lately, wait, stuck_tick.stack))
        if lately > policy.max_restarts:
            error = TimeoutError(f"silent for {brief(stuck_tick.silent_for)}")
            self._events.emit(LoopAbandoned(name, error, running.failures))
            stop.set()
            raise LoopGaveUp(loop=name, failures=running.failures, error="silence") from error
        return wait

    async def _rest(self, running: LoopState, pause: timedelta) -> None:
        if pause <= NO_WAIT:
            await asyncio.sleep(0)  # let other tasks run between two ticks
            return
        await self._clock.wait(running.loop.wakeup, pause.total_seconds())


def _keeper(running: LoopState) -> "asyncio.Task[None]":
    assert running.keeper is not None
    return running.keeper


def _finishes(running: LoopState) -> bool:
    """Return whether a shutdown lets the loop's current tick end by itself instead of cancelling it immediately."""
    return running.policy.finishes_tick or drain_of(running.loop) is not None


async def _refuse_exit(code: Awaitable[T]) -> T:
    """Await a loop's code and turn ``sys.exit`` into a failure. Otherwise one loop's exit would end the other loops
    too, perhaps with a success code.
    """
    try:
        return await code
    except SystemExit as exit:
        raise ExitRefused(raised=type(exit).__name__) from exit


def _take_stuck_tick(running: LoopState) -> StuckTick | None:
    """Return the watchdog's record of the stuck tick and clear it. Return None if the tick was cancelled for another
    reason.
    """
    if (stuck_tick := running.stuck_tick) is None or _cancels() > stuck_tick.cancels:
        return None
    running.stuck_tick = None
    if (task := asyncio.current_task()) is not None:
        for _ in range(stuck_tick.cancels):
            task.uncancel()
    return stuck_tick


def _cancels() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


async def _wait_for_all(tasks: "Collection[asyncio.Task[Any]]") -> None:
    await asyncio.wait(tasks)
