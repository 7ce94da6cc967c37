"""Settler: writes the endings of one queue and claims its next items in the same transaction, a turn.

One bad row never fails a batch. A turn that the store refuses is split at once; a turn that times out is split over the next
turns (``Unsettled``). A claim whose answer was lost leaves items that carry this process as their owner and that no worker
knows: for one lease after a failed claim, the settler looks for them and releases them without counting an attempt or a crash.

An item with an effect is settled together with it, in one transaction:

[ conclude: settlement and effect ] ──▶ written, or the lease is lost
      │ the engine's own store is away ──▶ again, when it is back
      │ the effect fails, or the time limit is over ──▶ nothing is written, and the item fails
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.errors import (
    EffectFailed,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
    is_store_away,
)
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemsSettled
from batuta.kernel.usercode import Called
from batuta.kernel.waiting import insist
from batuta.queue.handler import ItemHandler
from batuta.queue.item import ItemState, Lease, LeaseHolder
from batuta.queue.lease_keeper import recheck_after
from batuta.queue.outcome import EFFECT_CRASHED, Failed, Settlement, Writes
from batuta.queue.running import Running, Step
from batuta.queue.store import ClaimResult, Endings, QueueStore

Ending: TypeAlias = tuple[Lease, Settlement]
Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Deferred:
    ending: Ending
    due_at: float  # monotonic time
    timeouts: int = 0


class Unsettled:
    """Endings that are not written yet.

        add ──▶ [ waiting ] ── take ──▶ [ in flight ] ── written, or the lease was lost ──▶ gone
                    ▲                       │ the store is away ──▶ waiting again
                    │                       │ the turn timed out ──▶ waiting again, behind the others, in halves
                    └──── when it is time ── [ deferred ] ◀── its row is locked, or its turn times out alone

    A turn that times out is repeated with half as many endings, until the blocking one is alone. That one is deferred and
    retried alone, so one bad row never delays the rest.
    """

    def __init__(self, clock: Clock, recheck: timedelta, longest: timedelta) -> None:
        """``recheck``: the pause before a deferred ending is retried; it doubles after each timeout, up to ``longest``."""
        self._clock = clock
        self._recheck = recheck.total_seconds()
        self._longest = longest.total_seconds()
        self._waiting: list[Ending] = []
        self._in_flight: dict[Key, Ending] = {}
        self._deferred: dict[Key, Deferred] = {}
        self._at_most: int | None = None  # endings per turn after a timeout; None: all

    def add(self, lease: Lease, settlement: Settlement) -> None:
        self._waiting.append((lease, settlement))

    @property
    def is_ready(self) -> bool:
        return bool(self._waiting) or bool(self._due_endings())

    @property
    def is_careful(self) -> bool:
        """True if the next turn may time out again: it should claim nothing."""
        return bool(self._due_endings()) or (self._at_most is not None and bool(self._waiting))

    @property
    def recheck_at(self) -> float | None:
        return min((each.due_at for each in self._deferred.values()), default=None)

    @property
    def returns_soon(self) -> bool:
        """True if an ending returns its item to the queue."""
        return any(settlement.state is ItemState.READY for _, settlement in self._waiting)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._in_flight or self._deferred)

    def __iter__(self) -> Iterator[Ending]:
        yield from self._waiting
        yield from self._in_flight.values()
        yield from (each.ending for each in self._deferred.values())

    def take(self) -> Endings:
        """Return the endings of the next turn: deferred ones that are due come first; one that timed out goes alone."""
        if due := self._due_endings():
            together = [each.ending for each in due if not each.timeouts]
            taken = together or [due[0].ending]
        else:
            size = len(self._waiting) if self._at_most is None else self._at_most
            taken, self._waiting = self._waiting[:size], self._waiting[size:]
        self._in_flight = {_key(lease): (lease, settlement) for lease, settlement in taken}
        return taken

    def forget(self, leases: Collection[Lease]) -> None:
        """Remove endings that are settled or whose items another process owns."""
        for lease in leases:
            self._in_flight.pop(_key(lease), None)
            self._deferred.pop(_key(lease), None)

    def defer(self, leases: Sequence[Lease]) -> None:
        """Defer endings whose rows are locked: their state is unknown."""
        for lease in leases:
            if (ending := self._in_flight.pop(_key(lease), None)) is not None:
                self._defer(ending, 0)

    def put_back(self) -> None:
        """Queue the endings in flight again: the store is away."""
        back, self._in_flight = self._in_flight, {}
        self._waiting = [ending for key, ending in back.items() if key not in self._deferred] + self._waiting
        for key, ending in back.items():
            if (before := self._deferred.get(key)) is not None:
                self._defer(ending, before.timeouts)

    def time_out(self) -> int:
        """Split the turn in flight. Return how often its only ending timed out alone; 0: it had several endings."""
        back, self._in_flight = self._in_flight, {}
        if len(back) == 1:
            ((key, ending),) = back.items()
            before = self._deferred.get(key)
            return self._defer(ending, 1 if before is None else before.timeouts + 1)
        self._at_most = max(1, len(back) // 2)
        self._waiting += [self._deferred.pop(key).ending if key in self._deferred else back[key] for key in back]
        return 0

    def progress(self) -> None:
        """Allow twice as many endings in the next turn: one was written."""
        if self._at_most is not None:
            self._at_most = self._at_most * 2 if self._waiting else None

    def _defer(self, ending: Ending, timeouts: int) -> int:
        pause = min(self._recheck * 2**timeouts, self._longest)
        self._deferred[_key(ending[0])] = Deferred(ending, self._clock.monotonic() + pause, timeouts)
        return timeouts

    def _due_endings(self) -> list[Deferred]:
        if not self._deferred:
            return []
        now = self._clock.monotonic()
        return [each for each in self._deferred.values() if each.due_at <= now]


def _key(lease: Lease) -> Key:
    return lease.id, lease.fence


# Errors of an application's table that refuses a value.
_REFUSALS = (StatementRefused, StoreConflict, TransactionMisuse, TypeError, ValueError, OverflowError)
# An ending whose effect times out alone this often counts as failed.
MOST_TIMEOUTS = 3


class Settler:
    def __init__(
        self,
        queue: str,
        store: QueueStore,
        lease_holder: LeaseHolder,
        handler_of: Callable[[Lease], ItemHandler | None],
        clock: Clock,
        events: Events,
    ) -> None:
        self.unsettled = Unsettled(clock, recheck_after(lease_holder.lease), lease_holder.lease / 3)
        self.took: list[float] = []  # seconds of each handler, since the last report
        self._queue = queue
        self._store = store
        self._lease_holder = lease_holder
        self._handler_of = handler_of
        self._clock = clock
        self._events = events
        self._is_claiming = False
        self._doubt_until: float | None = None  # after a failed claim: unknown items may carry our owner until then
        self._stray_check_at = 0.0

    @property
    def is_claiming(self) -> bool:
        return self._is_claiming

    async def settle_and_claim(self, limit: int, *, reversed: bool = False) -> Sequence[Lease]:
        endings = self.unsettled.take()
        self._is_claiming = limit > 0
        try:
            leases = await self._try_turn(endings, limit, reversed)
        except StoreTimeout:
            self._split(endings)
            self._doubt(limit)
            raise
        except BaseException:
            self.unsettled.put_back()  # the endings happened: write them when the store is back
            self._doubt(limit)
            raise
        finally:
            self._is_claiming = False
        self.unsettled.progress()
        return leases

    async def release_strays(self, held: Sequence[Lease], *, at_once: bool = False) -> None:
        """Release items of this queue that carry our owner and are not ``held``. Requires that no claim is in flight."""
        now = self._clock.monotonic()
        if self._doubt_until is None or (now < self._stray_check_at and not at_once):
            return
        await self._store.release_stray(self._lease_holder.owner, held)
        self._stray_check_at = now + self._lease_holder.lease.total_seconds() / 3
        if now >= self._doubt_until:
            self._doubt_until = None

    def report(self, endings: Endings, lost: Sequence[Lease]) -> None:
        counts: dict[str, int] = {}
        for lease, settlement in endings:
            if not lost or lease not in lost:
                counts[settlement.word] = counts.get(settlement.word, 0) + 1
        took, self.took = tuple(self.took), []
        self._events.emit(ItemsSettled(self._queue, counts, len(lost), took))

    def report_concluded(self, lease: Lease, settlement: Settlement, *, is_written: bool) -> None:
        """Report an item that was settled together with its effect, or lost."""
        if is_written:
            self.report([(lease, settlement)], ())
        else:
            self._events.emit(ItemLost(self._queue, lease.id))

    def _doubt(self, limit: int) -> None:
        if limit:
            self._doubt_until = self._clock.monotonic() + self._lease_holder.lease.total_seconds()
            self._stray_check_at = 0.0

    async def _try_turn(self, endings: Endings, limit: int, reversed: bool) -> Sequence[Lease]:
        try:
            result = await self._store.settle_and_claim(endings, self._lease_holder, limit, reversed=reversed)
        except _REFUSALS as error:
            if not endings:
                raise
            await self._settle_apart(endings, error)
            return ()
        self._record_result(endings, result)
        return result.leases

    async def _settle_apart(self, endings: Endings, refusal: Exception) -> None:
        """Settle the halves, down to single endings, so that a refused one affects no other."""
        if len(endings) == 1:
            await self._settle_refused(*endings[0], refusal)
            return
        half = len(endings) // 2
        for part in (endings[:half], endings[half:]):
            try:
                result = await self._store.settle_and_claim(part, self._lease_holder, 0)
            except _REFUSALS as error:
                await self._settle_apart(part, error)
            else:
                self._record_result(part, result)

    async def _settle_refused(self, lease: Lease, settlement: Settlement, refusal: Exception) -> None:
        failed = self._failure_of(lease, settlement, refusal)
        try:
            result = await self._store.settle_and_claim([(lease, failed)], self._lease_holder, 0)
        except _REFUSALS:
            result = ClaimResult((), [lease])  # its table accepts no ending at all: the lease will expire
        self._record_result([(lease, failed)], result)

    def _failure_of(self, lease: Lease, settlement: Settlement, error: Exception) -> Settlement:
        """Return the settlement after a refusal: a refused effect is retried, a refused ending makes the item dead."""
        self._events.emit(ItemCrashed(self._queue, lease.id, error))
        why = EFFECT_CRASHED(error=type(error).__name__)
        if settlement.effect is None:
            return Settlement(state=ItemState.DEAD, error=why)
        handler = self._handler_of(lease) or ItemHandler(handle=_nothing)
        return handler.with_retention(handler.settle(lease, Failed(why), handler.retry))

    def _split(self, endings: Endings) -> None:
        """Settle fewer items in the next turns, until the one that times out is alone."""
        if self.unsettled.time_out() >= MOST_TIMEOUTS and endings[0][1].effect is not None:
            lease, settlement = endings[0]
            failed = self._failure_of(lease, settlement, StoreTimeout(where=self._queue, why="its effect"))
            self.unsettled.forget([lease])
            self.unsettled.add(lease, failed)

    def _record_result(self, endings: Endings, result: ClaimResult) -> None:
        unchecked = {(lease.id, lease.fence) for lease in result.unchecked}
        settled = [each for each in endings if (each[0].id, each[0].fence) not in unchecked] if unchecked else endings
        self.unsettled.forget([lease for lease, _ in settled])
        self.unsettled.defer(result.unchecked)
        if settled:
            self.report(settled, result.lost)
        for lease in result.lost:
            self._events.emit(ItemLost(self._queue, lease.id))


async def _nothing(lease: Lease) -> object:
    return None


async def conclude(
    running: Running, settlement: Settlement, store: QueueStore, clock: Clock, stop: Callable[[Running], None]
) -> Called:
    """Settle an item with its effect. Returned(False): the lease is lost. ``stop`` is called when the effect takes too long."""
    if settlement.effect is not None and not isinstance(settlement.effect, Writes):
        effect = TimedEffect(settlement.effect, running, store.where, clock, stop)
        settlement = settlement._replace(effect=effect)
    return await running.guard(insist(lambda: store.conclude(running.lease, settlement), clock))


class TimedEffect:
    """An effect limited to its item's remaining time; outages of ``where``, the engine's store, do not count."""

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
        # A separate task: on SQLite the effect holds the writer, and the worker's tick waits for it.
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
        """Return whether the engine's own store is away: only then is the effect retried without counting an attempt."""
        return is_store_away(error) and error.facts.get("where") == self._where
