"""Brings back the items of workers that are proven dead, before their leases end."""

from collections.abc import Callable, Collection

from batuta.kernel.events import Events, ItemsRescued
from batuta.queue.item import ItemState
from batuta.queue.store import QueueStore

BATCH = 500
MOST_BATCHES = 200


class ItemRecovery:
    """``ring`` tells the workers of this process that items came back."""

    def __init__(self, name: str, store: QueueStore, events: Events, ring: Callable[[], None]) -> None:
        self._name = name
        self._store = store
        self._events = events
        self._ring = ring

    async def recover(self, owners: Collection[str]) -> int:
        recovered = 0
        for _ in range(MOST_BATCHES):
            rescued = await self._store.rescue_owned(owners, BATCH)
            if rescued:
                recovered += len(rescued)
                dead = sum(each.state is ItemState.DEAD for each in rescued)
                self._events.emit(ItemsRescued(self._name, len(rescued), dead, proven=True))
                self._ring()
            if len(rescued) < BATCH:
                break
        return recovered
