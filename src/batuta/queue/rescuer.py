"""Brings back the items whose worker fell silent. Any worker may do it for all; the lease alone says who is gone."""

from datetime import datetime, timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import Events, ItemsRescued
from batuta.queue.item import ItemState
from batuta.queue.lease import Tenure
from batuta.queue.store import QueueStore
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

BATCH = 500


class Rescuer:
    def __init__(
        self, name: str, store: QueueStore, lease: timedelta, clock: Clock, events: Events, bell: Doorbell | None = None
    ) -> None:
        """``bell``: of whoever works on what is brought back."""
        self.name = f"rescuer:{name}"
        self.doorbell = Doorbell()
        self._queue = name
        self._store = store
        self._lease = lease
        self._nobody = Tenure(owner=self.name, lease=lease)
        self._clock = clock
        self._events = events
        self._bell = bell
        self._looked_at: datetime | None = None
        self._patient_until = 0.0

    async def tick(self) -> Pace:
        self._notice_a_gap()
        try:
            if await self._store.follow_clock(self._lease) and self._bell is not None:
                self._bell.ring()  # items that waited for the clock are due
            if await self._is_kept_waiting():
                self._be_patient()
            if self._clock.monotonic() < self._patient_until:
                return Idle()
            rescued = await self._store.rescue(BATCH)
        except StoreUnavailable:
            self._be_patient()  # while the database was away nobody could show a sign of life
            raise
        if rescued:
            dead = sum(each.state is ItemState.DEAD for each in rescued)
            self._events.emit(ItemsRescued(self._queue, len(rescued), dead))
            if self._bell is not None:
                self._bell.ring()
        return Again() if len(rescued) == BATCH else Idle()

    def _notice_a_gap(self) -> None:
        """We did not look for longer than a lease, or somebody set the clock: others may have been as silent, and be alive."""
        now, before = self._clock.now(), self._looked_at
        self._looked_at = now
        if before is not None and now - before > self._lease:
            self._be_patient()

    async def _is_kept_waiting(self) -> bool:
        """A write that changes nothing, while we are patient too: where it has to wait, so had the signs of life of others."""
        knocked = self._clock.monotonic()
        await self._store.renew((), self._nobody)
        return self._clock.monotonic() - knocked > self._lease.total_seconds() / 3

    def _be_patient(self) -> None:
        """Let the living speak first."""
        self._patient_until = self._clock.monotonic() + self._lease.total_seconds()
