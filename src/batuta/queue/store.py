"""QueueStore: the interface that every store of items implements."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol, TypeAlias

from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.kernel.values import dataclass
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import Settlement

Endings: TypeAlias = Sequence[tuple[Lease, Settlement]]


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """The result of ``settle_and_claim``: the claimed leases, and the leases whose settlements were not written.

    ``lost`` lists leases that were lost: the fence has changed, or the lease has expired. ``unchecked`` lists leases
    whose row another transaction has locked; the worker keeps these leases and settles again. ``claim_error`` is the
    error of a claim that failed although the settlements were written.
    """

    leases: Sequence[Lease]
    lost: Sequence[Lease] = ()
    unchecked: Sequence[Lease] = ()
    claim_error: Exception | None = None


class Lapsing(NamedTuple):
    """A lease that expires soon or has expired. Every renewal changes ``lease_until``."""

    id: str
    fence: int
    lease_until: datetime


@dataclass(frozen=True, slots=True)
class Rescued:
    id: str
    # READY: the item will be retried. DEAD: it exceeded the crash limit. CANCELLED: a cancellation was requested
    state: ItemState
    crashes: int
    queue: str
    task: str | None  # name of the called task; None if the item is not a call of a task


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """Waiting items that no worker serves, because their task moved to another queue or their stage was removed."""

    queue: str
    name: str | None  # name of the task; None for items of a pipeline
    count: int
    oldest: datetime  # instant at which the oldest of these items became due


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How many items of a queue are in each state. ``due`` items may be claimed now; ``later`` items are not due yet.
    ``limited`` counts the due items that a limit of their task holds back.
    """

    due: int
    later: int
    running: int
    dead: int
    limited: int = 0
    oldest_due: timedelta  # how long the oldest due item has waited; zero if none is due


class QueueStore(Protocol):
    @property
    def where(self) -> str:
        """The address of the database, for error messages."""

    async def put(self, items: Sequence[NewItem]) -> list[str | None]:
        """Insert items and return their ids after the commit is synced to disk. An id is None if an unfinished item has
        the same key.
        """

    async def settle_and_claim(
        self, endings: Endings, lease_holder: LeaseHolder, limit: int, *, reversed: bool = False
    ) -> ClaimResult:
        """Write the settlements in ``endings`` and claim up to ``limit`` items. If a pause switch is on, no items are
        claimed.

        With ``reversed`` the claim takes the least urgent items first, so that low priorities do not starve.
        """

    async def conclude(self, lease: Lease, settlement: Settlement) -> bool:
        """Settle one item together with its effect. Return False if the lease is lost and nothing was written.

        Raises RowLocked if another transaction holds the row. In that case nothing was written, and the caller retries.
        """

    async def renew(self, leases: Collection[Lease], lease_holder: LeaseHolder) -> Renewed:
        """Extend each lease, so that it ends ``lease_holder.lease`` from now. Locked rows are skipped and reported as
        unchecked.
        """

    async def lapsing(self, within: timedelta, limit: int) -> Sequence[Lapsing]:
        """Return up to ``limit`` leases that have expired or will expire within the given time, except leases on locked
        rows.
        """

    async def rescue(self, limit: int, only: Sequence[Lapsing] | None = None) -> Sequence[Rescued]:
        """Release items whose lease has expired, and count a crash for each. Items that exceed the crash limit become
        dead.

        ``only`` restricts the release to the listed leases that are expired and unchanged. None releases all expired
        leases; after a clock step, some of them may belong to living workers.
        """

    async def rescue_owned(self, owners: Collection[str], limit: int) -> Sequence[Rescued]:
        """Release the items of owners that are proven dead, even if their leases have not expired. A crash is counted
        for each item.
        """

    async def follow_clock(self, lease: timedelta) -> timedelta:
        """Detect that the machine's clock was set back, and correct the queue's stored due times and leases. A queue
        that uses the database's clock needs no correction.

        Return how far the clock was set back. Zero means that the clock was not set back, or that the queue uses the
        database's clock.
        """

    async def release_stray(self, owner: str, known: Collection[Lease]) -> Sequence[str]:
        """Release the items that were claimed for ``owner`` although ``owner`` did not receive them, because the reply
        to the claim was lost. The rows of such items name ``owner``, and their leases are not in ``known``.

        The release counts neither a crash nor an attempt. Pass only this process's owner, and call this method only
        while no claim is in flight.
        """

    async def owners(self) -> Sequence[str]: ...

    async def note(self, lease: Lease, error: str | None) -> bool:
        """Store an error in a leased item's row. Return False if nothing was written, because the row is locked or the
        lease is lost.
        """

    async def last_error(self, id: str) -> tuple[str | None, datetime]:
        """Return an item's stored error, and the current time of the clock that the queue uses."""

    async def next_at(self) -> datetime | None:
        """Return the instant at which the next waiting item becomes due, or None if no item is waiting."""

    async def cancel(self, id: str, reason: str, *, by: str | None = None) -> bool:
        """Cancel a waiting item immediately, or request the cancellation of a running item. Return False if the item
        has ended or does not exist, or if it is running and its table lacks the column ``cancel_requested``. ``by`` is
        the operator, for the audit log.
        """

    async def revive(self, id: str, *, by: str | None = None) -> bool:
        """Make a dead item ready again. Return False if the item is not dead, or if an unfinished item has the same
        key. ``by`` is the operator, for the audit log.
        """

    async def discard(self, id: str, *, by: str | None = None) -> bool: ...
