"""Rescuer: releases items whose worker stopped renewing their leases. Each rescuer covers the workers in all processes.

    lease expires soon, or has expired ──▶ [ observed ] ── unchanged 0.4 leases later, and expired ──▶ released; a crash is counted
                                          └── renewed, settled, or the store was unavailable or slow ──▶ dropped

A lease is released only if this process observed the same fence and the same expiry twice. Between the two
observations, more than a renewal interval passes on the monotonic clock. So a living worker keeps its leases even after
a clock step, a restart of the rescuer, a suspension of the machine, or a renewal that found its row locked.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import Events, ItemsRescued
from batuta.kernel.leases import LeaseHolder, SilenceDetector
from batuta.kernel.values import dataclass
from batuta.queue.item import ItemState
from batuta.queue.store import Lapsing, QueueStore, Rescued
from batuta.supervise.loop import Again, Idle, Pace, Wakeup

RESCUE_BATCH = 500
# Maximum number of observed leases, enough for several crashed workers.
MOST_WATCHED = 5_000
# Fraction of a lease between two observations. It exceeds the renewal interval (a third of the lease), which leaves
# time for the renewal.
CONFIRM_AFTER = 0.4


@dataclass(eq=False)
class Rescuer:
    queue: str
    store: QueueStore
    lease: timedelta
    clock: Clock
    events: Events
    # wakes the workers of this process after a release, so that they claim the released items
    wake: Callable[[], None] = lambda: None
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    def __post_init__(self) -> None:
        self.name = f"rescuer:{self.queue}"
        self._looked_at: datetime | None = None
        self._confirm_after = self.lease * CONFIRM_AFTER
        self._silence: SilenceDetector[Lapsing] = SilenceDetector(self._confirm_after)
        self._silent_for: Mapping[Lapsing, timedelta] = {}

    async def tick(self) -> Pace:
        rescued = await self.look()
        return Again() if len(rescued) == RESCUE_BATCH else self._next_look()

    async def look(self) -> Sequence[Rescued]:
        """Release expired leases that have not changed since an earlier call, and record the leases that expire soon."""
        self._forget_after_gap()
        try:
            is_slow = await self._takes_long(self._follow_clock())
            lapsing = await self.store.lapsing(self.lease / 2, MOST_WATCHED)
            # If writes are slow, other workers' renewals are slow too.
            if is_slow or (lapsing and await self._takes_long(self._write_nothing())):
                self._silence.forget()
            confirmed = self._confirm(lapsing)
            rescued = await self.store.rescue(RESCUE_BATCH, confirmed) if confirmed else ()
        except StoreUnavailable:
            self._silence.forget()  # while the store was unavailable, no worker could renew its leases
            raise
        _announce(rescued, self.events, self.wake)
        return rescued

    async def look_twice(self, waits: Callable[[timedelta], None] = lambda wait: None) -> Sequence[Rescued]:
        """Check for expired leases twice, for a command that runs once and then ends. ``waits`` is called with the
        length of the pause before the second check.
        """
        rescued = await self.look()
        if not self._silent_for:
            return rescued
        waits(self._confirm_after)
        await self.clock.sleep(self._confirm_after.total_seconds())
        return [*rescued, *await self.look()]

    def _confirm(self, lapsing: Sequence[Lapsing]) -> list[Lapsing]:
        """Record the given leases, which expire soon or have expired, and return those that have stayed unchanged for
        long enough.
        """
        self._silent_for = self._silence.look(lapsing, self.clock.monotonic())
        return [each for each, span in self._silent_for.items() if span >= self._confirm_after]

    def _next_look(self) -> Idle:
        # A lease that is confirmed but not yet expired, or whose row is locked, is checked again at the regular
        # interval.
        waits = [self._confirm_after - span for span in self._silent_for.values() if span < self._confirm_after]
        return Idle(self.clock.now() + min(waits)) if waits else Idle()

    def _forget_after_gap(self) -> None:
        """Discard all lease observations after a clock step or a long pause of this process, because a healthy worker's
        lease may then seem expired.
        """
        now, before = self.clock.now(), self._looked_at
        self._looked_at = now
        if before is not None and abs(now - before) > self.lease:
            self._silence.forget()

    async def _follow_clock(self) -> None:
        if await self.store.follow_clock(self.lease):
            self.wake()  # the correction after a clock step made items due

    async def _write_nothing(self) -> None:
        """Execute a small write, whose duration shows how fast writes are."""
        await self.store.renew((), LeaseHolder(owner=self.queue, lease=self.lease))

    async def _takes_long(self, write: Awaitable[None]) -> bool:
        began = self.clock.monotonic()
        await write
        return self.clock.monotonic() - began > self.lease.total_seconds() / 3


async def recover_items(store: QueueStore, events: Events, ring: Callable[[], None], owners: Collection[str]) -> int:
    """Release items whose owner process is proven dead, without waiting for their leases to expire. Return the number
    of released items.
    """
    rescued = await store.rescue_owned(owners, RESCUE_BATCH)
    _announce(rescued, events, ring, is_proven=True)
    return len(rescued)


def _announce(rescued: Sequence[Rescued], events: Events, wake: Callable[[], None], *, is_proven: bool = False) -> None:
    """Emit ItemsRescued for each queue that the released items belong to. Wake the workers in this process, so that
    they can claim the items.
    """
    for queue in sorted({each.queue for each in rescued}):
        items = [each for each in rescued if each.queue == queue]
        dead = sum(each.state is ItemState.DEAD for each in items)
        tasks = tuple(sorted({each.task for each in items if each.task is not None}))
        events.emit(ItemsRescued(queue, len(items), dead, proven=is_proven, tasks=tasks))
    if rescued:
        wake()
