"""Renews a process's leases in a separate loop.

    every lease/3 ──▶ [ renew: one statement per holder, all concurrently ] ── some rows were locked ──▶ after lease/12
                            │ takes longer than its timeout, or fails ──▶ the supervisor retries after lease/24 to /12

The lease holders are the queue workers and the job runner. A slow claim, a drain or a handler that blocks its
connection does not delay a renewal. The keeper renews the leases of claimed work that has not started, of running work,
and of ended work that is not stored yet. The loop continues throughout the shutdown, until the holders have stored or
handed back their work.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded, StoreTimeout
from batuta.kernel.leases import recheck_after, renew_until_cancelled
from batuta.kernel.waiting import cancel_and_wait, with_timeout
from batuta.supervise.loop import Idle, LoopPolicy, Pace, Wakeup


class Holder(Protocol):
    """A loop that holds leases, which the lease keeper renews."""

    @property
    def name(self) -> str: ...

    async def renew_leases(self) -> bool:
        """Renew every lease, and stop the work whose lease is lost. Return true if at least one lease could not be
        renewed because its row was locked.
        """


class LeaseKeeper:
    def __init__(
        self, lease: timedelta, clock: Clock, name: str = "lease-keeper", timeout: timedelta | None = None
    ) -> None:
        """Create a lease keeper that has no lease holders yet. By default a renewal times out after a quarter of the
        lease, so that a second attempt can succeed before the lease ends.
        """
        self.name = name
        self.wakeup = Wakeup()
        self._lease = lease
        self._timeout = timeout or lease / 4
        self._clock = clock
        self._holders: list[Holder] = []

    @property
    def policy(self) -> LoopPolicy:
        """This loop's policy. No wait between two renewals is longer than a third of the lease, so that a lease
        survives two failed renewals in a row.
        """
        return LoopPolicy(
            every=self._lease / 3,
            longest_call=self._timeout,
            stuck_after=max(self._timeout * 4, timedelta(seconds=30)),
            max_failures=20,
            backoff=self._lease / 24,
            backoff_cap=self._lease / 12,
            outlives=True,
        )

    def add(self, holder: Holder) -> None:
        self._holders.append(holder)

    async def tick(self) -> Pace:
        results = await asyncio.gather(*(self._renew(holder) for holder in self._holders), return_exceptions=True)
        # Raise the error of a failed renewal only after renewing the leases of the other holders.
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return Idle(self._clock.now() + recheck_after(self._lease)) if any(results) else Idle()

    @asynccontextmanager
    async def ticking(self) -> AsyncIterator[None]:
        """Renew the leases in the background while the block runs. Use it for a lease holder that no supervisor
        runs.
        """
        renewing = asyncio.create_task(renew_until_cancelled(self.tick, self._lease, self._clock))
        try:
            yield
        finally:
            await cancel_and_wait(renewing)

    async def _renew(self, holder: Holder) -> bool:
        try:
            return await with_timeout(self._timeout, holder.renew_leases(), self._clock, "the renewal")
        except DeadlineExceeded:
            raise StoreTimeout(where=holder.name, why="the renewal of its leases took too long") from None
