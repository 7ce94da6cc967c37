"""Keeps the counts of large queues for a few seconds, so that many viewers of the dashboard share one count.

A count reads one index entry per item, so it takes milliseconds for ten thousand items. Smaller queues are counted for
each page. After an action in the same process, everything is counted again.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from batuta.health.queues import Pulse, WatchedQueue
from batuta.kernel.clock import Clock
from batuta.queue.inspection import ErrorGroup
from batuta.queue.store import Depth
from batuta.stores.sql.queue.inspection import QueueInspection
from batuta.stores.sql.queue.store import SqlQueue

KEPT_SECONDS = 5.0
LARGE = 10_000  # items

T = TypeVar("T")


class LargeCounts:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[float, object]] = {}

    async def depth(self, queue: SqlQueue) -> Depth:
        return await self._keep(("depth", queue.name), queue.depth, lambda it: it.due + it.later + it.running + it.dead)

    async def pulse(self, queue: WatchedQueue) -> Pulse:
        return await self._keep(("pulse", queue.name), queue.pulse, lambda it: it.due + it.running + it.dead)

    async def groups(self, inspection: QueueInspection, dead: int) -> list[ErrorGroup]:
        return await self._keep(("groups", inspection.queue.name), inspection.groups, lambda _: dead)

    def forget(self) -> None:
        self._kept.clear()

    async def _keep(self, key: tuple[str, str], read: Callable[[], Awaitable[T]], size: Callable[[T], int]) -> T:
        at, kept = self._kept.get(key, (float("-inf"), None))
        if self._clock.monotonic() - at < KEPT_SECONDS:
            return kept  # type: ignore[return-value]
        found = await read()
        if size(found) >= LARGE:
            self._kept[key] = (self._clock.monotonic(), found)
        else:
            self._kept.pop(key, None)
        return found
