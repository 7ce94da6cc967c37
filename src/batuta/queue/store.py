"""The durable seam: what every store of items must do, whatever lies underneath."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.lease import Tenure
from batuta.queue.settle import Settlement

Endings: TypeAlias = Sequence[tuple[Lease, Settlement]]


@dataclass(frozen=True, slots=True)
class Turned:
    """``lost``: leases that somebody else has by now; nothing was written about them."""

    leases: Sequence[Lease]
    lost: Sequence[Lease] = ()


@dataclass(frozen=True, slots=True)
class Renewed:
    lost: Collection[str]
    cancelled: Collection[str]  # somebody asked for them to stop


@dataclass(frozen=True, slots=True)
class Rescued:
    id: str
    state: ItemState  # READY: it is tried again. DEAD: it was taken for the cause. CANCELLED: somebody had asked for it
    crashes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How much lies in a queue. ``later``: it waits for its time."""

    due: int
    later: int
    running: int
    dead: int
    oldest_due: timedelta  # how long it has waited; nothing if none is due


class QueueStore(Protocol):
    async def put(self, items: Sequence[NewItem]) -> list[str | None]:
        """Accept items; None where one with the same key is alive. Returned means synced to disk."""
        ...

    async def turn(self, endings: Endings, tenure: Tenure, limit: int, *, reversed: bool = False) -> Turned:
        """Settle what ended and claim up to ``limit`` more. A pause is read in the claiming statement.

        ``reversed``: the least urgent first, now and then, so that nobody starves.
        """
        ...

    async def conclude(self, lease: Lease, settlement: Settlement) -> bool:
        """Settle one item together with its effect. False: somebody else has it, and neither was done."""
        ...

    async def renew(self, leases: Collection[Lease], tenure: Tenure) -> Renewed: ...

    async def rescue(self, limit: int) -> Sequence[Rescued]:
        """Items whose lease is over: no list of workers is needed to know that their worker is gone."""
        ...

    async def rescue_owned(self, owners: Collection[str], limit: int) -> Sequence[Rescued]:
        """Items of owners whose processes are proven dead, before their leases end; a crash is counted as in ``rescue``."""
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
