"""A loop: tokens that count for nobody any more go."""

from datetime import datetime, timedelta
from typing import Protocol

from batuta.kernel.clock import Clock
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

PRUNE_AT_ONCE = 1000


class Tokens(Protocol):
    async def prune(self, *, before: datetime, limit: int) -> int: ...


class RatePruner:
    name = "rate-pruner"

    def __init__(self, tokens: Tokens, clock: Clock) -> None:
        self.doorbell = Doorbell()
        self._tokens = tokens
        self._clock = clock

    async def tick(self) -> Pace:
        pruned = await self._tokens.prune(before=self._clock.now(), limit=PRUNE_AT_ONCE)
        return Again() if pruned == PRUNE_AT_ONCE else Idle()

    async def drain(self, grace: timedelta) -> None:
        """Nothing was started that outlives a tick."""
