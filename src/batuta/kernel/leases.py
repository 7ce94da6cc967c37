"""Leases: renewal by their holder, and detection of a silent holder by another process."""

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from datetime import timedelta
from typing import Generic, NoReturn, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.waiting import insist

Key = TypeVar("Key", bound=Hashable)


async def renew_until_cancelled(renew: Callable[[], Awaitable[object]], lease: timedelta, clock: Clock) -> NoReturn:
    """Renew every third of the lease, for work that runs without a supervisor. Retry while the store is unavailable."""
    while True:
        await clock.sleep(lease.total_seconds() / 3)
        await insist(renew, clock)


class SilenceDetector(Generic[Key]):
    """Measures how long leases stay unchanged, by the monotonic clock: evidence that needs no wall clock.

    A key holds everything that a renewal changes. The time between two looks counts for ``longest_look`` at most: if
    this process or the database stood still, a holder may have as well.
    """

    def __init__(self, longest_look: timedelta) -> None:
        self._longest_look = longest_look
        self._seen: dict[Key, timedelta] = {}
        self._looked_at: float | None = None

    def look(self, keys: Collection[Key], monotonic: float) -> Mapping[Key, timedelta]:
        """Return how long each key was seen at every look. A key that is missing now is forgotten."""
        since = timedelta(0) if self._looked_at is None else timedelta(seconds=monotonic - self._looked_at)
        counted = min(since, self._longest_look)
        self._looked_at = monotonic
        self._seen = {key: self._seen[key] + counted if key in self._seen else timedelta(0) for key in keys}
        return self._seen

    def forget(self) -> None:
        """Start again: the holders could not renew, so their silence proves nothing."""
        self._seen = {}
