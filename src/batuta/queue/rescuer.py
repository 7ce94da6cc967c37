"""Brings back the items whose worker fell silent. Any worker may do it for all; the lease alone says who is gone."""

from datetime import timedelta

from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import Events, ItemsRescued
from batuta.queue.item import ItemState
from batuta.queue.store import QueueStore
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

BATCH = 500


class Rescuer:
    def __init__(self, name: str, store: QueueStore, lease: timedelta, clock: Clock, events: Events) -> None:
        self.name = f"rescuer:{name}"
        self.doorbell = Doorbell()
        self._queue = name
        self._store = store
        self._lease = lease
        self._clock = clock
        self._events = events
        self._patient_until = 0.0

    async def tick(self) -> Pace:
        if self._clock.monotonic() < self._patient_until:
            return Idle()
        try:
            rescued = await self._store.rescue(BATCH)
        except StoreUnavailable:
            # While the database was away nobody could show a sign of life: let the living do so first.
            self._patient_until = self._clock.monotonic() + self._lease.total_seconds()
            raise
        if rescued:
            dead = sum(each.state is ItemState.DEAD for each in rescued)
            self._events.emit(ItemsRescued(self._queue, len(rescued), dead))
        return Again() if len(rescued) == BATCH else Idle()

    async def drain(self, grace: timedelta) -> None:
        """Nothing was started that outlives a tick."""
