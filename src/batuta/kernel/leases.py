"""Renewal of leases by their holder, and detection of holders that no longer renew."""

from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping
from datetime import timedelta
from typing import Generic, NoReturn, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import insist

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseHolder:
    """A process that holds leases of length ``lease``. ``owner`` is unique for each start of the process."""

    owner: str
    lease: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The ids of rows that need attention after a renewal: rows whose lease is lost, rows whose lease could not be
    checked, and rows whose work was cancelled.
    """

    lost: frozenset[str] = frozenset()  # the holder no longer has these leases
    unchecked: frozenset[str] = frozenset()  # another transaction has locked the row, so the holder retries the renewal
    cancelled: frozenset[str] = frozenset()  # an operator or the program requested cancellation of the work


def recheck_after(lease: timedelta) -> timedelta:
    """Return how long to wait before retrying a write to a locked row."""
    return lease / 12


async def renew_until_cancelled(renew: Callable[[], Awaitable[object]], lease: timedelta, clock: Clock) -> NoReturn:
    """Renew a lease whenever a third of its length has passed, until this task is cancelled. Use this function for work
    whose lease is not renewed by a supervised loop.
    """
    while True:
        await clock.sleep(lease.total_seconds() / 3)
        await insist(renew, clock)


class SilenceDetector(Generic[Key]):
    """Measures with the monotonic clock how long a lease has been unchanged, so that a wrong wall clock has no effect.

    The key of a lease contains every value that a renewal changes. Each call of ``look`` adds at most ``longest_look``
    to the measured time: a longer pause may mean that the machine, including the lease holder, was suspended.
    """

    def __init__(self, longest_look: timedelta) -> None:
        self._longest_look = longest_look
        self._seen: dict[Key, timedelta] = {}
        self._looked_at: float | None = None

    def look(self, keys: Collection[Key], monotonic: float) -> Mapping[Key, timedelta]:
        """Record the keys of the current leases, and return how long each key has been present without interruption. A
        key that is missing from ``keys`` is forgotten: if it appears again later, its time starts at zero.
        """
        since = timedelta(0) if self._looked_at is None else timedelta(seconds=monotonic - self._looked_at)
        counted = min(since, self._longest_look)
        self._looked_at = monotonic
        self._seen = {key: self._seen[key] + counted if key in self._seen else timedelta(0) for key in keys}
        return self._seen

    def forget(self) -> None:
        """Reset all measurements after an outage during which the holders could not renew their leases."""
        self._seen = {}
