"""Remembers every fact, and lets a test wait for one instead of sleeping."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from batuta.kernel.events import Event

E = TypeVar("E")
PATIENCE = 10.0


class EventRecorder:
    """An Events, and a subscriber for a Fanout as well."""

    def __init__(self) -> None:
        self.all: list[Event] = []
        self._more = asyncio.Event()

    def emit(self, event: Event) -> None:
        self.all.append(event)
        self._more.set()

    __call__ = emit

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.all if isinstance(event, kind)]

    async def wait_for(self, kind: type[E], where: Callable[[E], bool] = lambda event: True) -> E:
        """The first such fact, already announced or yet to come. Real time, bounded: a test that waits in vain fails."""
        async with asyncio.timeout(PATIENCE):
            while not (found := [event for event in self.of(kind) if where(event)]):
                self._more.clear()
                await self._more.wait()
        return found[0]
