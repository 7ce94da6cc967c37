"""The durable seam: what every store of items must do, whatever lies underneath."""

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

    ``lost``: a read proved that the fence moved on or the lease ended; nothing was written. ``unchecked``: another
    transaction holds the row lock, so the row was skipped: the worker keeps the lease and settles again.
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
    """A lease that ends soon, or is over. Any renewal changes ``lease_until``."""

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
    name: str | None  # of the task; None: the items of a pipeline have no name
    count: int
    oldest: datetime  # since when the oldest of them is due


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much lies in a queue. ``later``: it waits for its time."""

    due: int
    later: int
    running: int
    dead: int
    oldest_due: timedelta  # how long it has waited; nothing if none is due


class QueueStore(Protocol):
    @property
    def where(self) -> str:
        """The address of the database, as its errors name it."""
        ...

    async def put(self, items: Sequence[NewItem]) -> list[str | None]:
        """Accept items; None where one with the same key is alive. Returned means synced to disk."""
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
        """Extend the leases by ``lease_holder.lease`` from now. Never waits for a row lock."""
        ...

    async def lapsing(self, within: timedelta, limit: int) -> Sequence[Lapsing]:
        """Return leases that end within this time or are over. Rows that another transaction has locked are skipped."""
        ...

    async def rescue(self, limit: int, only: Sequence[Lapsing] | None = None) -> Sequence[Rescued]:
        """Release items whose lease expired, and count a crash. Items past the crash limit become dead.

        ``only``: those of these leases that expired and have not changed; None: whatever expired, which after a step of the
        clock may be the leases of living workers.
        """
        ...

    async def rescue_owned(self, owners: Collection[str], limit: int) -> Sequence[Rescued]:
        """As ``rescue``, for the leases of owners that are proven dead, whether or not the leases expired."""
        ...

    async def follow_clock(self, lease: timedelta) -> timedelta:
        """Note the time. Where the clock of the machine decides and was set back, correct waits and leases.

        Returns the size of the step; zero if there was none, or if the database has a clock of its own.
        """
        ...

    async def release_stray(self, owner: str, known: Collection[Lease]) -> Sequence[str]:
        """Give back the items that ``owner`` holds in this queue beyond ``known``: claims whose answer was lost.

        Counts neither a crash nor an attempt. Call it for the own, living owner, with no claim in flight.
        """
        ...

    async def owners(self) -> Sequence[str]:
        """The owners that hold leases in this table."""
        ...

    async def note(self, lease: Lease, error: str | None) -> bool:
        """Write the error of an item that is leased. False: another transaction has locked its row, or the lease is lost."""
        ...

    async def last_error(self, id: str) -> tuple[str | None, datetime]:
        """Return the recorded error of an item, and the present instant of the clock that decides."""
        ...

    async def next_at(self) -> datetime | None:
        """When the next waiting item is due; None: nothing waits."""
        ...

    async def cancel(self, id: str, reason: str) -> bool:
        """At once if nobody works on it; otherwise whoever does is asked. False: it is over, never was, or cannot be asked."""
        ...

    async def revive(self, id: str, *, by: str | None = None) -> bool:
        """A dead item is tried again from the beginning. False: it is not dead, or another with its key is alive.

        ``by``: who says so, if a person does; it is recorded with what he did.
        """
        ...

    async def discard(self, id: str, *, by: str | None = None) -> bool: ...
