"""Settler: writes the settlements of one queue and claims its next items in the same transaction.

A bad row does not fail its whole batch. If the store refuses a batch, or an unexpected error occurs, the settler splits
the batch immediately. If a batch times out, the settler splits it over the next transactions (``Unsettled``). If the
reply to a claim is lost, items may name this process as their owner although no worker received them. For one lease
length after a failed claim, the settler searches for these items and releases them without counting an attempt or a
crash.

An item with an effect is settled together with its effect, in one transaction:

    [ conclude: settlement and effect ] ──▶ written, or the lease is lost
          │ the engine's own store is unavailable ──▶ retried when the store is available
          │ the store is still unavailable at the time limit ──▶ nothing is written, and the item waits (``outage``)
          │ the effect fails, or exceeds the time limit ──▶ nothing is written, and the item fails
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from batuta.kernel.calls.usercode import Called
from batuta.kernel.clock import Clock
from batuta.kernel.errors import (
    EffectFailed,
    StatementRefused,
    StoreConflict,
    StoreTimeout,
    StoreUnavailable,
    TransactionMisuse,
)
from batuta.kernel.events import Events, ItemCrashed, ItemLost, ItemsSettled
from batuta.kernel.leases import LeaseHolder, recheck_after
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import insist
from batuta.queue.handler import ItemHandler
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import EFFECT_CRASHED, Failed, Settlement, Writes
from batuta.queue.running import ItemStep, Running
from batuta.queue.store import ClaimResult, Endings, QueueStore

Ending: TypeAlias = tuple[Lease, Settlement]
Key: TypeAlias = tuple[str, int]


@dataclass(slots=True)
class Deferred:
    ending: Ending
    due_at: float  # monotonic time in seconds
    timeouts: int = 0


class Unsettled:
    """Settlements that are not written yet.

            add ──▶ [ waiting ] ── take ──▶ [ in flight ] ── written, or the lease was lost ──▶ removed
                        ▲                       │ the store is unavailable ──▶ waiting again
                        │                       │ the batch timed out ──▶ waiting again, behind the others, in halves
                        └──── when it is due ── [ deferred ] ◀── its row is locked, or it timed out or failed alone

    A batch that times out is repeated with half as many settlements, until the settlement that causes the timeouts is
    alone. This settlement is then deferred and retried alone, so that it does not delay the others.
    """

    def __init__(self, clock: Clock, recheck: timedelta, longest: timedelta) -> None:
        """Create an empty collection of unwritten settlements. A deferred settlement is retried after the wait
        ``recheck``, which doubles after each timeout, up to ``longest``.
        """
        self._clock = clock
        self._recheck = recheck.total_seconds()
        self._longest = longest.total_seconds()
        self._waiting: list[Ending] = []
        self._in_flight: list[Ending] = []
        self._deferred: dict[Key, Deferred] = {}
        self._at_most: int | None = None  # maximum settlements per batch after a timeout; None means no maximum

    def add(self, lease: Lease, settlement: Settlement) -> None:
        self._waiting.append((lease, settlement))

    @property
    def is_ready(self) -> bool:
        return bool(self._waiting) or bool(self._due_endings())

    @property
    def is_careful(self) -> bool:
        """Whether the next batch of settlements may time out, because an earlier attempt to write some of them did not
        succeed. If so, the transaction that writes the batch should not claim items.
        """
        return bool(self._due_endings()) or (self._at_most is not None and bool(self._waiting))

    @property
    def recheck_at(self) -> float | None:
        return min((each.due_at for each in self._deferred.values()), default=None)

    @property
    def returns_soon(self) -> bool:
        """Whether any waiting settlement would make its item ready to be claimed again."""
        return any(settlement.state is ItemState.READY for _, settlement in self._waiting)

    def __bool__(self) -> bool:
        return bool(self._waiting or self._in_flight or self._deferred)

    def __iter__(self) -> Iterator[Ending]:
        yield from self._waiting
        yield from self._in_flight
        yield from (each.ending for each in self._deferred.values())

    def take(self) -> Endings:
        """Return the next batch of settlements to write. Deferred settlements that are due come first. A settlement
        that timed out alone forms a batch of its own.
        """
        if due := self._due_endings():
            together = [each.ending for each in due if not each.timeouts]
            taken = together or [due[0].ending]
        else:
            size = len(self._waiting) if self._at_most is None else self._at_most
            taken, self._waiting = self._waiting[:size], self._waiting[size:]
        self._in_flight = taken
        return taken

    def forget(self, endings: Endings) -> None:
        """Remove the settlements that were written, or whose items now belong to another process, from this collection."""
        if endings is self._in_flight:
            self._in_flight = []
        else:
            keys = {_key(lease) for lease, _ in endings}
            self._in_flight = [each for each in self._in_flight if _key(each[0]) not in keys]
        if self._deferred:
            for lease, _ in endings:
                self._deferred.pop(_key(lease), None)

    def defer(self, leases: Sequence[Lease]) -> None:
        """Defer settlements whose rows are locked. While a row is locked, it is unknown whether its lease is still
        valid.
        """
        if not leases:
            return
        keys = {_key(lease) for lease in leases}
        locked = [each for each in self._in_flight if _key(each[0]) in keys]
        self._in_flight = [each for each in self._in_flight if _key(each[0]) not in keys]
        for ending in locked:
            self._defer(ending, 0)

    def postpone(self, lease: Lease) -> int:
        """Defer a settlement that was sent alone and failed, for example with a timeout. Return how many times this
        settlement has failed alone.
        """
        (ending,) = [each for each in self._in_flight if _key(each[0]) == _key(lease)]
        self._in_flight = [each for each in self._in_flight if each is not ending]
        before = self._deferred.get(_key(lease))
        return self._defer(ending, 1 if before is None else before.timeouts + 1)

    def put_back(self) -> None:
        """Mark the settlements in flight as waiting again, because the store became unavailable."""
        back, self._in_flight = self._in_flight, []
        self._waiting = [ending for ending in back if _key(ending[0]) not in self._deferred] + self._waiting
        for ending in back:
            if (before := self._deferred.get(_key(ending[0]))) is not None:
                self._defer(ending, before.timeouts)

    def time_out(self) -> int:
        """Split the batch in flight after a timeout. If the batch had a single settlement, return how many times this
        settlement has timed out alone; otherwise return 0.
        """
        back, self._in_flight = self._in_flight, []
        if len(back) == 1:
            before = self._deferred.get(_key(back[0][0]))
            return self._defer(back[0], 1 if before is None else before.timeouts + 1)
        self._at_most = max(1, len(back) // 2)
        for lease, _ in back:
            self._deferred.pop(_key(lease), None)
        self._waiting += back
        return 0

    def progress(self) -> None:
        """Record that a batch was written, and allow twice as many settlements in the next batch."""
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


# Errors that mean that an application's table refused a value. Other errors of a settlement are unexpected.
_REFUSALS = (StatementRefused, StoreConflict, TransactionMisuse, TypeError, ValueError, OverflowError)
# Limit for a settlement that is retried in a batch of its own. If it has an effect, it fails after this many timeouts.
# After this many unexpected errors it is dropped, and the lease of its item expires.
MOST_TIMEOUTS = 3


@dataclass(eq=False)
class Settler:
    queue: str
    store: QueueStore
    lease_holder: LeaseHolder
    handler_of: Callable[[Lease], ItemHandler | None]
    clock: Clock
    events: Events

    def __post_init__(self) -> None:
        self.unsettled = Unsettled(self.clock, recheck_after(self.lease_holder.lease), self.lease_holder.lease / 3)
        self.took: list[float] = []  # duration in seconds of each handler since the last ItemsSettled event
        self.is_claiming = False
        # set after a failed claim: until this monotonic time, items that no worker received may name this owner
        self._doubt_until: float | None = None
        self._stray_check_at = 0.0

    async def settle_and_claim(self, limit: int, *, reversed: bool = False) -> Sequence[Lease]:
        endings = self.unsettled.take()
        self.is_claiming = limit > 0
        try:
            result = await self._try_turn(endings, limit, reversed)
        except StoreTimeout:
            self._split(endings)
            self._doubt(limit)
            raise
        except BaseException:
            # the handlers have ended, so write their settlements when the store is available again
            self.unsettled.put_back()
            self._doubt(limit)
            raise
        finally:
            self.is_claiming = False
        self.unsettled.progress()
        if result.claim_error is not None:
            self._doubt(limit)
            raise result.claim_error
        return result.leases

    async def release_strays(self, held: Callable[[], Sequence[Lease]], *, at_once: bool = False) -> None:
        """Release stray items, which were claimed for this process but never reached it. They name this process as
        their owner and are not in ``held``. Requires that no claim is in flight.
        """
        now = self.clock.monotonic()
        if self._doubt_until is None or (now < self._stray_check_at and not at_once):
            return
        await self.store.release_stray(self.lease_holder.owner, held())
        self._stray_check_at = now + self.lease_holder.lease.total_seconds() / 3
        if now >= self._doubt_until:
            self._doubt_until = None

    def report(self, endings: Endings, lost: Sequence[Lease]) -> None:
        written = [settlement for lease, settlement in endings if not lost or lease not in lost]
        # few distinct objects, because many items share one settlement
        objects = {id(settlement): settlement for settlement in written}
        counts: dict[str, int] = {}
        for each, count in Counter(map(id, written)).items():
            word = objects[each].word
            counts[word] = counts.get(word, 0) + count
        took, self.took = tuple(self.took), []
        self.events.emit(ItemsSettled(self.queue, counts, len(lost), took))

    def report_concluded(self, lease: Lease, settlement: Settlement, *, is_written: bool) -> None:
        """Emit ItemsSettled for an item that was settled together with its effect, or ItemLost if its lease was lost."""
        if is_written:
            self.report([(lease, settlement)], ())
        else:
            self.events.emit(ItemLost(self.queue, lease.id))

    def _doubt(self, limit: int) -> None:
        if limit:
            self._doubt_until = self.clock.monotonic() + self.lease_holder.lease.total_seconds()
            self._stray_check_at = 0.0

    async def _try_turn(self, endings: Endings, limit: int, reversed: bool) -> ClaimResult:
        try:
            result = await self.store.settle_and_claim(endings, self.lease_holder, limit, reversed=reversed)
        except StoreUnavailable:
            raise
        except Exception as error:
            if not endings:
                raise
            self._doubt(limit)  # a claim may have run beside the settlements
            await self._settle_apart(endings, error)
            return ClaimResult(())
        self._record_result(endings, result)
        return result

    async def _settle_apart(self, endings: Endings, refusal: Exception) -> None:
        """Settle the batch in ever smaller halves, down to single settlements, so that a refused settlement does not
        affect the others.
        """
        if len(endings) == 1:
            await self._settle_refused(*endings[0], refusal)
            return
        half = len(endings) // 2
        for part in (endings[:half], endings[half:]):
            try:
                result = await self.store.settle_and_claim(part, self.lease_holder, 0)
            except StoreUnavailable:
                raise
            except Exception as error:  # noqa: BLE001 - one settlement must not block the others
                await self._settle_apart(part, error)
            else:
                self._record_result(part, result)

    async def _settle_refused(self, lease: Lease, settlement: Settlement, refusal: Exception) -> None:
        if settlement.effect is None and not isinstance(refusal, _REFUSALS):
            # No code or table of the application is involved, so the item did not cause the error.
            self._postpone(lease, settlement, refusal)
            return
        failed = self._failure_of(lease, settlement, refusal)
        try:
            result = await self.store.settle_and_claim([(lease, failed)], self.lease_holder, 0)
        except StoreUnavailable:
            raise
        except _REFUSALS:
            # The database refused this settlement too, so the lease of the item will expire.
            result = ClaimResult((), [lease])
        except Exception as error:  # noqa: BLE001 - one settlement must not block the others
            self._postpone(lease, settlement, error)
            return
        self._record_result([(lease, failed)], result)

    def _postpone(self, lease: Lease, settlement: Settlement, error: Exception) -> None:
        self.events.emit(ItemCrashed(self.queue, lease.id, error, lease.task))
        if self.unsettled.postpone(lease) >= MOST_TIMEOUTS:
            self._record_result([(lease, settlement)], ClaimResult((), [lease]))

    def _failure_of(self, lease: Lease, settlement: Settlement, error: Exception) -> Settlement:
        """Return the new settlement for an item whose settlement the database refused. If the item has an effect, the
        refusal is a failed attempt; otherwise, the item becomes dead.
        """
        self.events.emit(ItemCrashed(self.queue, lease.id, error, lease.task))
        why = EFFECT_CRASHED(error=type(error).__name__)
        if settlement.effect is None:
            return Settlement(state=ItemState.DEAD, error=why)
        handler = self.handler_of(lease)
        assert handler is not None  # an unknown item never has an effect, so its handler is known here
        return handler.settlement_of(lease.attempt, Failed(why))

    def _split(self, endings: Endings) -> None:
        """Split a batch that timed out, so that the next transactions settle fewer items. Repeated splits isolate the
        settlement that causes the timeout.
        """
        if self.unsettled.time_out() >= MOST_TIMEOUTS and endings[0][1].effect is not None:
            lease, settlement = endings[0]
            failed = self._failure_of(lease, settlement, StoreTimeout(where=self.queue, why="its effect"))
            self.unsettled.forget(endings[:1])
            self.unsettled.add(lease, failed)

    def _record_result(self, endings: Endings, result: ClaimResult) -> None:
        unchecked = {_key(lease) for lease in result.unchecked}
        settled = [each for each in endings if _key(each[0]) not in unchecked] if unchecked else endings
        self.unsettled.forget(settled)
        self.unsettled.defer(result.unchecked)
        if settled:
            self.report(settled, result.lost)
        for lease in result.lost:
            self.events.emit(ItemLost(self.queue, lease.id))


async def conclude(
    running: Running, settlement: Settlement, store: QueueStore, clock: Clock, stop: Callable[[Running], None]
) -> Called:
    """Settle an item together with its effect. The result is ``Returned(False)`` if the lease is lost. ``stop`` is
    called when the item's time limit passes.
    """
    if settlement.effect is not None and not isinstance(settlement.effect, Writes):
        effect = TimedEffect(settlement.effect, running, store.where, clock, stop)
        settlement = settlement._replace(effect=effect)
    return await running.guard(insist(lambda: store.conclude(running.lease, settlement), clock))


@dataclass(eq=False)
class TimedEffect:
    """An effect that may run for as long as its item has time left. If the database is unavailable, the effect is
    called again later; the time between two calls does not count. ``where`` is the name of the database.
    """

    effect: Callable[[Any], Awaitable[None]]
    running: Running
    where: str
    clock: Clock
    stop: Callable[[Running], None]

    def __post_init__(self) -> None:
        self._left = max(0.0, self.running.overdue_at - self.clock.monotonic())

    async def __call__(self, transaction: Any) -> None:
        began = self.clock.monotonic()
        self.running.step = ItemStep.IN_EFFECT
        # A separate task, because on SQLite the effect occupies the writer, and the worker's tick waits for the writer.
        alarm = asyncio.create_task(self._stop_in_time())
        try:
            await self.running.call(lambda: self.effect(transaction))
        except StoreUnavailable as error:
            if not self._is_own(error):
                raise EffectFailed(raised=type(error).__name__) from error
            self.running.outage = error
            if self._left <= self.clock.monotonic() - began:
                raise EffectFailed(raised=type(error).__name__) from error
            raise
        finally:
            alarm.cancel()
            self.running.step = ItemStep.SETTLING
            self._left -= self.clock.monotonic() - began

    async def _stop_in_time(self) -> None:
        await self.clock.sleep(max(0.0, self._left))
        if self.running.step is ItemStep.IN_EFFECT:
            self.stop(self.running)

    def _is_own(self, error: StoreUnavailable) -> bool:
        """Return whether the error comes from the engine's own store. If so, the effect is retried without counting an
        attempt; any other error fails the item.
        """
        return error.facts.get("where") == self.where
