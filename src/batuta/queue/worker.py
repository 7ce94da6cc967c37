"""Claims, runs and settles items of one queue.

        ┌──────────── bell: something ended, something came, or the next is due ───────────┐
        ▼                                                                                  │
    [ tick: settle what ended and claim what fits, in one transaction ] ──▶ start handlers ┘

A handler's result is a value; what it means for the item is decided by ``settle``. A lease that was lost makes the handler's work
worthless: it is cancelled, and nothing it says is written.
"""

import asyncio
import heapq
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.clock import Clock
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemsSettled
from batuta.kernel.waiting import ended, first_of, insist
from batuta.queue.item import ItemState, Lease
from batuta.queue.lease import Tenure
from batuta.queue.outcome import Cancelled, Failed, Outcome
from batuta.queue.retry import FullJitter, RetryPolicy
from batuta.queue.settle import Settlement, settle
from batuta.queue.store import QueueStore
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

# Every so many claims the least urgent come first, so that nobody starves.
TURN_OF_THE_LAST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one item is to be worked on. ``keep`` and ``keep_dead``: how long a finished item stays; None: for ever."""

    handle: Callable[[Lease], Awaitable[object]]  # an outcome that ``settle`` understands
    timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = field(default_factory=FullJitter)
    retry_timeout: bool = True
    settle: "Callable[[Lease, Any, RetryPolicy, datetime], Settlement]" = field(default_factory=lambda: _settled)
    keep: timedelta | None = None
    keep_dead: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPolicy:
    limit: int = 20  # handlers at a time
    batch: int = 500  # items in one claim, at most


@dataclass(slots=True)
class Running:
    lease: Lease
    task: "asyncio.Task[None]"
    overdue_at: float
    is_overdue: bool = False


class Worker:
    def __init__(
        self,
        name: str,
        store: QueueStore,
        recipe_of: Callable[[Lease], Recipe | None],
        tenure: Tenure,
        policy: WorkerPolicy,
        clock: Clock,
        events: Events,
    ) -> None:
        """``recipe_of`` gives None for an item nobody here knows how to work on."""
        self.name = f"worker:{name}"
        self.doorbell = Doorbell()
        self._queue = name
        self._store = store
        self._recipe_of = recipe_of
        self._tenure = tenure
        self._policy = policy
        self._clock = clock
        self._events = events
        self._running: dict[str, Running] = {}
        # One clock for all time limits: an alarm for each item would cost more than most items.
        self._limits: list[tuple[float, str]] = []
        self._endings: list[tuple[Lease, Settlement]] = []
        self._turns = 0
        self._beat_at = 0.0

    async def tick(self) -> Pace:
        await self._keep_leases()
        self._stop_overdue()
        asked = min(self._policy.batch, self._policy.limit - len(self._running))
        if asked <= 0 and not self._endings:
            return Idle(self._soon())
        claimed = await self._turn(max(asked, 0))
        if claimed and claimed == asked:
            return Again() if len(self._running) < self._policy.limit else Idle(self._soon())
        return Idle(await self._wake_at())

    async def drain(self, grace: timedelta) -> None:
        """Let handlers end; what does not is given back by its lease, and counts as a crash of ours, not of the item's."""
        await first_of(self._finish(), self._clock.sleep(grace.total_seconds() * 0.9))
        left = list(self._running.values())
        await ended(*(running.task for running in left))
        self._endings += [(running.lease, _given_back(self._clock.now())) for running in left]
        await self._turn(0)

    async def _finish(self) -> None:
        while self._running:
            tasks = [running.task for running in self._running.values()]
            beat = self._clock.sleep(self._tenure.lease.total_seconds() / 3)
            await first_of(asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED), beat)
            await self._keep_leases()
            self._stop_overdue()
            await self._turn(0)

    async def _turn(self, limit: int) -> int:
        endings, self._endings = self._endings, []
        self._turns += 1
        is_last_first = self._turns % TURN_OF_THE_LAST == 0
        try:
            turned = await self._store.turn(endings, self._tenure, limit, reversed=is_last_first)
        except BaseException:
            self._endings = endings + self._endings  # they happened: they are written as soon as it can be
            raise
        if endings:
            self._tell(endings, len(turned.lost))
        for lease in turned.lost:
            self._events.emit(ItemLost(self._queue, lease.id))
        for lease in turned.leases:
            self._start(lease)
        return len(turned.leases)

    def _start(self, lease: Lease) -> None:
        recipe = self._recipe_of(lease) or UNKNOWN
        overdue_at = self._clock.monotonic() + recipe.timeout.total_seconds()
        self._running[lease.id] = Running(lease, asyncio.create_task(self._work(lease, recipe)), overdue_at)
        heapq.heappush(self._limits, (overdue_at, lease.id))

    async def _work(self, lease: Lease, recipe: Recipe) -> None:
        outcome, may_retry = await self._outcome(lease, recipe)
        settlement: Settlement | None = self._settlement(lease, recipe, outcome, may_retry)
        if settlement is not None and (settlement.effect is not None or settlement.follow_ups):
            settlement = await self._concluded(lease, recipe, settlement)
        if settlement is not None:
            self._endings.append((lease, settlement))
        self._running.pop(lease.id, None)
        self.doorbell.ring()

    def _stop_overdue(self) -> None:
        now = self._clock.monotonic()
        while self._limits and self._limits[0][0] <= now:
            overdue_at, id = heapq.heappop(self._limits)
            running = self._running.get(id)
            if running is not None and running.overdue_at == overdue_at:
                running.is_overdue = True
                running.task.cancel()

    async def _concluded(self, lease: Lease, recipe: Recipe, settlement: Settlement) -> Settlement | None:
        """Settle it alone, with what belongs to it. What fails then is the item's failure, and harms no other item."""
        try:
            if await insist(lambda: self._store.conclude(lease, settlement), self._clock):
                self._tell([(lease, settlement)], 0)
            else:
                self._events.emit(ItemLost(self._queue, lease.id))
        except Exception as error:  # noqa: BLE001 - whatever an effect meets is the item's failure, told as one
            self._events.emit(ItemCrashed(self._queue, lease.id, error))
            outcome = Failed(f"{type(error).__name__} while it was settled; the log has the traceback")
            return self._settlement(lease, recipe, outcome, True)
        return None

    def _settlement(self, lease: Lease, recipe: Recipe, outcome: object, may_retry: bool) -> Settlement:
        retry = recipe.retry if may_retry else _NEVER
        return _kept(recipe.settle(lease, outcome, retry, self._clock.now()), recipe, self._clock.now())

    async def _outcome(self, lease: Lease, recipe: Recipe) -> tuple[object, bool]:
        try:
            return await recipe.handle(lease), True
        except asyncio.CancelledError:
            if not self._is_overdue(lease):
                raise
            return Failed("Job timeout exceeded"), recipe.retry_timeout
        except Exception as error:  # noqa: BLE001 - whatever a handler meets is the item's failure, told as one
            self._events.emit(ItemCrashed(self._queue, lease.id, error))
            return Failed(f"{type(error).__name__} in the handler; the log has the traceback"), True

    def _is_overdue(self, lease: Lease) -> bool:
        """It was our own time limit that ended it: the cancellation is used up, and the task goes on."""
        running, task = self._running.get(lease.id), asyncio.current_task()
        if running is None or not running.is_overdue or task is None:
            return False
        task.uncancel()
        return True

    async def _keep_leases(self) -> None:
        now = self._clock.monotonic()
        if not self._running or now < self._beat_at:
            return
        self._beat_at = now + self._tenure.lease.total_seconds() / 3
        renewed = await self._store.renew([running.lease for running in self._running.values()], self._tenure)
        for id in (*renewed.lost, *renewed.cancelled):
            running = self._running.pop(id, None)
            if running is None:
                continue
            await ended(running.task)
            if id in renewed.cancelled:
                settlement = settle(running.lease.attempt, Cancelled(), _NEVER, self._clock.now(), random.random)
                self._endings.append((running.lease, settlement))
            else:
                self._events.emit(ItemLost(self._queue, id))

    async def _wake_at(self) -> datetime | None:
        soon = self._soon()
        due = await self._store.next_at()
        return min((at for at in (soon, due) if at is not None), default=None)

    def _soon(self) -> datetime | None:
        """When a lease wants to be renewed, or a time limit is over."""
        if not self._running:
            self._limits.clear()
            return None
        moments = [self._beat_at, *(overdue_at for overdue_at, _ in self._limits[:1])]
        return self._clock.now() + timedelta(seconds=max(0.0, min(moments) - self._clock.monotonic()))

    def _tell(self, endings: list[tuple[Lease, Settlement]], lost: int) -> None:
        counts: dict[str, int] = {}
        for _, settlement in endings:
            counts[settlement.state.value] = counts.get(settlement.state.value, 0) + 1
        self._events.emit(ItemsSettled(self._queue, counts, lost))


class _Never:
    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return None


_NEVER = _Never()


def _settled(lease: Lease, outcome: Outcome, retry: RetryPolicy, now: datetime) -> Settlement:
    return settle(lease.attempt, outcome, retry, now, random.random)


async def _refuse(lease: Lease) -> Outcome:
    return Failed("nobody here knows how to work on it", permanent=True)


UNKNOWN = Recipe(handle=_refuse, retry=_NEVER)


def _given_back(now: datetime) -> Settlement:
    return Settlement(state=ItemState.READY, available_at=now, gives_back=True, error="its worker stopped")


def _kept(settlement: Settlement, recipe: Recipe, now: datetime) -> Settlement:
    if settlement.state is ItemState.READY:
        return settlement
    keep = recipe.keep_dead if settlement.state is ItemState.DEAD else recipe.keep
    return settlement if keep is None else replace(settlement, expires_at=now + keep)
