"""A loop: tokens that count for nobody any more go."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from batuta.guard.rate import Limit
from batuta.supervise.loop import Again, Doorbell, Idle, Pace

PRUNE_AT_ONCE = 1000


class Tokens(Protocol):
    async def prune(self, *, spare: timedelta, limit: int) -> int: ...


class RatePruner:
    """``limits``: all there are. A token that was taken for a short window counts in the long one of its key too."""

    name = "rate-pruner"

    def __init__(self, tokens: Tokens, limits: Mapping[str, Limit]) -> None:
        self.doorbell = Doorbell()
        self._tokens = tokens
        self._limits = limits

    async def tick(self) -> Pace:
        longest = max((limit.per for limit in self._limits.values()), default=timedelta(0))
        pruned = await self._tokens.prune(spare=longest, limit=PRUNE_AT_ONCE)
        return Again() if pruned == PRUNE_AT_ONCE else Idle()
