"""How an item is worked on, and how long it stays when it has ended."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import Failed, Outcome
from batuta.queue.retry import FullJitter, RetryPolicy, after_seconds
from batuta.queue.settle import Settlement, settle


def _settled(lease: Lease, outcome: Outcome, retry: RetryPolicy) -> Settlement:
    return settle(lease.attempt, outcome, retry, random.random)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """``keep`` and ``keep_dead``: how long a finished item stays; None: for ever."""

    handle: Callable[[Lease], Awaitable[object]]  # an outcome that ``settle`` understands
    timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = field(default_factory=FullJitter)
    retry_timeout: bool = True
    settle: Callable[[Lease, Any, RetryPolicy], Settlement] = _settled
    keep: timedelta | None = None
    keep_dead: timedelta | None = None
    traceparent: Callable[[Lease], object] = lambda lease: None  # what whoever put it there was doing

    def kept(self, settlement: Settlement) -> Settlement:
        """Add the retention of a finished item."""
        if settlement.state is ItemState.READY:
            return settlement
        keep = self.keep_dead if settlement.state is ItemState.DEAD else self.keep
        return settlement if keep is None else settlement._replace(keep=keep)


async def _refuse(lease: Lease) -> Outcome:
    return Failed("nobody here knows how to work on it")


async def _tell_spoilt(lease: Lease) -> Outcome:
    columns = ", ".join(lease.spoilt)
    return Failed(f"its row cannot be read ({columns}): write there what can, and try it again", permanent=True)


SPOILT = Recipe(handle=_tell_spoilt, keep_dead=timedelta(days=30))
# Another version of the program may know it, and be about to start: a deployment's time, and then it is nobody's.
UNKNOWN = Recipe(handle=_refuse, retry=after_seconds([15, 60, 300, 900]), keep_dead=timedelta(days=30))
