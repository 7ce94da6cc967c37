"""Releases the items whose worker stopped renewing. Any worker does it for all; the lease alone decides.

    lease runs out soon, or is over ──▶ [ seen ] ── unchanged 0.4 leases later, and over ──▶ released, and a crash is counted
                                          └── renewed, settled, or the store was away or slow ──▶ forgotten

A lease is released only if this process saw the same fence and the same end twice, further apart than a renewal interval by the
monotonic clock. So a clock that is put forward, a rescuer that has just started, a machine that slept and a row that was locked
while its worker wanted to renew it cost a living worker nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import Events, ItemsRescued
from batuta.kernel.leases import SilenceDetector
from batuta.queue.item import ItemState, LeaseHolder
from batuta.queue.store import Lapsing, QueueStore, Rescued
from batuta.supervise.loop import Again, Idle, Pace, Wakeup

BATCH = 500
# Leases that are watched at a time: those of several crashed workers.
MOST_WATCHED = 5_000
# A share of the lease: longer than the renewal interval of a third, with time for the renewal itself.
CONFIRM_AFTER = 0.4


class Rescuer:
    def __init__(
        self,
        name: str,
        store: QueueStore,
        lease: timedelta,
        clock: Clock,
        events: Events,
        worker_wakeup: Wakeup | None = None,
    ) -> None:
        """``worker_wakeup``: the wakeup of the worker in this process."""
        self.name = f"rescuer:{name}"
        self.wakeup = Wakeup()
        self._queue = name
        self._store = store
        self._lease = lease
        self._nobody = LeaseHolder(owner=self.name, lease=lease)
        self._clock = clock
        self._events = events
        self._wake: Callable[[], None] = (lambda: None) if worker_wakeup is None else worker_wakeup.set
        self._looked_at: datetime | None = None
        self._confirm_after = lease * CONFIRM_AFTER
        self._silence: SilenceDetector[Lapsing] = SilenceDetector(self._confirm_after)
        self._silent_for: Mapping[Lapsing, timedelta] = {}

    async def tick(self) -> Pace:
        rescued = await self.look()
        return Again() if len(rescued) == BATCH else self._next_look()

    async def look(self) -> Sequence[Rescued]:
        """Release the leases that have not changed since an earlier look, and remember those that are about to end."""
        self._notice_a_gap()
        try:
            if await self._writes_wait():
                self._silence.forget()
            confirmed = self._confirm(await self._store.lapsing(self._lease / 2, MOST_WATCHED))
            rescued = await self._store.rescue(BATCH, confirmed) if confirmed else ()
        except StoreUnavailable:
            self._silence.forget()  # while the store was away no worker could renew
            raise
        _announce(self._queue, rescued, self._events, self._wake)
        return rescued

    async def look_twice(self, waits: Callable[[timedelta], None] = lambda wait: None) -> Sequence[Rescued]:
        """Release what has expired now, for a caller that looks once. ``waits`` is called if leases have to be confirmed."""
        rescued = await self.look()
        if not self._silent_for:
            return rescued
        waits(self._confirm_after)
        await self._clock.sleep(self._confirm_after.total_seconds())
        return [*rescued, *await self.look()]

    def _confirm(self, lapsing: Sequence[Lapsing]) -> list[Lapsing]:
        """Remember the leases that are about to end, and return those that have not changed for long enough."""
        self._silent_for = self._silence.look(lapsing, self._clock.monotonic())
        return [each for each, span in self._silent_for.items() if span >= self._confirm_after]

    def _next_look(self) -> Idle:
        # A lease that was confirmed and is not over yet, or whose row is locked, waits for the usual look.
        waits = [self._confirm_after - span for span in self._silent_for.values() if span < self._confirm_after]
        return Idle(self._clock.now() + min(waits)) if waits else Idle()

    def _notice_a_gap(self) -> None:
        """This process did not look for longer than a lease, or the clock was set: other workers may live and be as late."""
        now, before = self._clock.now(), self._looked_at
        self._looked_at = now
        if before is not None and abs(now - before) > self._lease:
            self._silence.forget()

    async def _writes_wait(self) -> bool:
        """Follow the clock, and try a write that changes nothing: where they have to wait, the renewals of other workers do too."""
        began = self._clock.monotonic()
        if await self._store.follow_clock(self._lease):
            self._wake()  # items that waited for the clock are due
        await self._store.renew((), self._nobody)
        return self._clock.monotonic() - began > self._lease.total_seconds() / 3


async def recover_items(
    name: str, store: QueueStore, events: Events, ring: Callable[[], None], owners: Collection[str]
) -> int:
    """Release a batch of the items of these owners, whose processes are proven dead, without waiting for their leases."""
    rescued = await store.rescue_owned(owners, BATCH)
    _announce(name, rescued, events, ring, is_proven=True)
    return len(rescued)


def _announce(
    queue: str, rescued: Sequence[Rescued], events: Events, wake: Callable[[], None], *, is_proven: bool = False
) -> None:
    """``wake`` wakes the workers of this process: items came back."""
    if rescued:
        dead = sum(each.state is ItemState.DEAD for each in rescued)
        events.emit(ItemsRescued(queue, len(rescued), dead, proven=is_proven))
        wake()
