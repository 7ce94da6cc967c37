"""QueueStore: the contract of every store of items."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeAlias

from batuta.queue.item import ItemState, Lease, LeaseHolder, NewItem
from batuta.queue.outcome import Settlement

Endings: TypeAlias = Sequence[tuple[Lease, Settlement]]


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of a turn: claimed leases, and the endings that were not written.

    ``lost``: a read proved that the fence changed or the lease ended. ``unchecked``: another transaction holds the row lock;
    the worker keeps the lease and settles again.
    """

    leases: Sequence[Lease]
    lost: Sequence[Lease] = ()
    unchecked: Sequence[Lease] = ()


@dataclass(frozen=True, slots=True)
class Renewed:
    """``lost``: proven losses only. ``unchecked``: another transaction holds the row lock; the lease was not renewed."""

    lost: Collection[str]
    cancelled: Collection[str]  # a cancellation was requested
    unchecked: Collection[str] = ()


class Lapsing(NamedTuple):
    """A lease that ends soon or has ended. Every renewal changes ``lease_until``."""

    id: str
    fence: int
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Rescued:
    id: str
    state: ItemState  # READY: retried. DEAD: past the crash limit. CANCELLED: a cancellation was requested
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Waiting items of a queue that no code serves: a task moved to another queue, or a removed stage of a pipeline."""

    queue: str
    name: str | None  # of the task; None: items of a pipeline have no name
    count: int
    oldest: datetime  # when the oldest of them became due


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """Counts of a queue's items. ``later``: items that wait for their time."""

    due: int
    later: int
    running: int
    dead: int
    oldest_due: timedelta  # how long the oldest due item has waited; zero: none is due


class QueueStore(Protocol):
    @property
    def where(self) -> str:
        """The address of the database, as its errors name it."""
        ...

    async def put(self, items: Sequence[NewItem]) -> list[str | None]:
        """Insert items and return their ids once they are synced to disk; None: an item with the same key is alive."""
        ...

    async def settle_and_claim(
        self, endings: Endings, lease_holder: LeaseHolder, limit: int, *, reversed: bool = False
    ) -> ClaimResult:
        """Settle the endings and claim up to ``limit`` items. The claiming statement reads the pause switches.

        ``reversed``: claim the least urgent first, so that low priorities do not starve.
        """
        ...

    async def conclude(self, lease: Lease, settlement: Settlement) -> bool:
        """Settle one item together with its effect. False: the lease is lost, and neither was written.

        Raises RowLocked if another transaction holds the row: nothing was written, and the caller tries again.
        """
        ...

    async def renew(self, leases: Collection[Lease], lease_holder: LeaseHolder) -> Renewed:
        """Extend the leases by ``lease_holder.lease`` from now, without waiting for row locks."""
        ...

    async def lapsing(self, within: timedelta, limit: int) -> Sequence[Lapsing]:
        """Return leases that end within this time or have ended, except those whose rows are locked."""
        ...

    async def rescue(self, limit: int, only: Sequence[Lapsing] | None = None) -> Sequence[Rescued]:
        """Release items whose lease expired, and count a crash. Items past the crash limit become dead.

        ``only``: release those of these leases that expired unchanged. None: all expired leases, which after a clock step may
        include leases of living workers.
        """
        ...

    async def rescue_owned(self, owners: Collection[str], limit: int) -> Sequence[Rescued]:
        """Like ``rescue``, for the leases of owners that are proven dead, expired or not."""
        ...

    async def follow_clock(self, lease: timedelta) -> timedelta:
        """Record the time. If the machine's clock decides and was set back, correct waits and leases.

        Return the size of the step; zero: there was no step, or the database has its own clock.
        """
        ...

    async def release_stray(self, owner: str, known: Collection[Lease]) -> Sequence[str]:
        """Release items that ``owner`` holds in this queue beyond ``known``: claims whose answer was lost.

        Counts neither a crash nor an attempt. Only for this process's own owner, with no claim in flight.
        """
        ...

    async def owners(self) -> Sequence[str]: ...

    async def note(self, lease: Lease, error: str | None) -> bool:
        """Write the error of a leased item. False: another transaction has locked its row, or the lease is lost."""
        ...

    async def last_error(self, id: str) -> tuple[str | None, datetime]:
        """Return the recorded error of an item, and the present time of the clock that decides."""
        ...

    async def next_at(self) -> datetime | None:
        """Return when the next waiting item is due; None: nothing waits."""
        ...

    async def cancel(self, id: str, reason: str) -> bool:
        """Cancel a waiting item at once, or ask the worker of a running one. False: ended, unknown, or its table cannot ask."""
        ...

    async def revive(self, id: str, *, by: str | None = None) -> bool:
        """Start a dead item again. False: not dead, or another item with its key is alive. ``by``: operator, for the audit log."""
        ...

    async def discard(self, id: str, *, by: str | None = None) -> bool: ...
