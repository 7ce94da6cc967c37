"""Renews the leases of every worker in the process, in a separate loop.

    every lease/3 ──▶ [ renew: one statement per queue, all queues concurrently ] ── some rows were locked ──▶ again after lease/12
                            │ takes longer than lease/4, or fails ──▶ the supervisor retries after lease/24 … lease/12

Renewals are independent of the workers: a slow claim, a drain or a handler that blocks its queue's connection does
not delay them. They cover every lease of a worker: running items, ended items that are not settled yet, and items
that wait to start. The loop continues during the whole shutdown, until the workers have settled their items.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded, StoreTimeout
from batuta.kernel.leases import LeaseHolder, renew_until_cancelled
from batuta.kernel.waiting import cancel_and_wait, with_timeout
from batuta.queue.item import Lease
from batuta.queue.store import Renewed
from batuta.supervise.loop import Idle, LoopPolicy, Pace, Wakeup


class Holder(Protocol):
    """The part of a worker's interface that the lease keeper uses."""

    @property
    def name(self) -> str: ...

    def held_leases(self) -> Sequence[Lease]: ...

    async def renew(self, leases: Sequence[Lease], lease_holder: LeaseHolder) -> Renewed: ...

    def lose(self, leases: Sequence[Lease]) -> None:
        """Stop work on items that another process owns. If an item is being settled, the settlement statement detects
        the lost lease.
        """
        ...

    def stop_cancelled(self, leases: Sequence[Lease]) -> None: ...


class LeaseKeeper:
    def __init__(self, lease_holder: LeaseHolder, clock: Clock, name: str = "lease-keeper") -> None:
        self.name = name
        self.wakeup = Wakeup()
        self._lease_holder = lease_holder
        self._clock = clock
        self._holders: list[Holder] = []

    def add(self, holder: Holder) -> None:
        self._holders.append(holder)

    async def tick(self) -> Pace:
        holding = [(holder, leases) for holder in self._holders if (leases := holder.held_leases())]
        results = await asyncio.gather(*(self._renew(*each) for each in holding), return_exceptions=True)
        # Raise the error of a failed renewal only after the leases of the other queues are renewed.
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Idle(self._clock.now() + recheck_after(self._lease_holder.lease)) if any(results) else Idle()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Renew the leases in the background while the block runs, for a worker without a supervisor."""
        renewing = asyncio.create_task(renew_until_cancelled(self.tick, self._lease_holder.lease, self._clock))
        try:
            yield
        finally:
            await cancel_and_wait(renewing)

    async def _renew(self, holder: Holder, leases: Sequence[Lease]) -> bool:
        """Renew leases of one worker and return whether locked rows prevented the renewal of some of them."""
        limit = renewal_timeout(self._lease_holder.lease)
        try:
            renewed = await with_timeout(limit, holder.renew(leases, self._lease_holder), self._clock, "the renewal")
        except DeadlineExceeded:
            raise StoreTimeout(where=holder.name, why="the renewal of its leases took too long") from None
        holder.lose([lease for lease in leases if lease.id in renewed.lost])
        holder.stop_cancelled([lease for lease in leases if lease.id in renewed.cancelled])
        return bool(renewed.unchecked)


def renewal_timeout(lease: timedelta) -> timedelta:
    """Return the timeout of a renewal: a quarter of the lease, so that the next try can succeed well before the lease ends."""
    return lease / 4


def recheck_after(lease: timedelta) -> timedelta:
    """Return the pause before the renewal of a locked row is retried."""
    return lease / 12


def renewal_policy(lease: timedelta) -> LoopPolicy:
    """Return the loop policy of the keeper. Every wait before a renewal is shorter than a third of the lease, so two
    failures in a row lose no lease.
    """
    return LoopPolicy(
        every=lease / 3,
        longest_call=renewal_timeout(lease),
        stuck_after=max(lease, timedelta(seconds=30)),
        max_failures=20,
        backoff=lease / 24,
        backoff_cap=lease / 12,
        outlives=True,
    )
