"""A stage, and what its handler says happened."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TypeAlias

from batuta.queue.item import Lease, NewItem
from batuta.queue.outcome import Effect, Failed, Snooze
from batuta.queue.retry import RetryPolicy, Waits

# The first attempt, and three retries.
PATIENCE = Waits((timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15)))


@dataclass(frozen=True, slots=True)
class Next:
    """On to the following stage; after the last, it is finished."""

    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """On to another stage than the following."""

    stage: str
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """One item becomes several at the following stage, and is itself finished. Each needs a key: a repeat adds none."""

    items: tuple[NewItem, ...]
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Drop:
    """Nothing here for us, and that is fine."""

    reason: str
    effect: Effect | None = None


@dataclass(frozen=True, slots=True)
class Finish:
    """Finished here, although stages follow: what it was for is done."""

    effect: Effect | None = None


StageOutcome: TypeAlias = Next | Jump | FanOut | Drop | Finish | Snooze | Failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """``budget``: items of this stage at a time, in one worker."""

    name: str
    handle: Callable[[Lease], Awaitable[StageOutcome]]
    budget: int = 10
    timeout: timedelta = timedelta(seconds=60)
    retry: RetryPolicy = field(default=PATIENCE)
