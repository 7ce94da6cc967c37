"""What an outcome means for the item: decided here, written by the store."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple, assert_never

from batuta.kernel.instants import FARTHEST
from batuta.kernel.json import Json
from batuta.kernel.writable import told
from batuta.queue.item import ItemState, NewItem
from batuta.queue.outcome import Cancelled, Done, Effect, Failed, Outcome, Snooze, Writes
from batuta.queue.retry import RetryPolicy

LONGEST_ERROR = 500


class Settlement(NamedTuple):
    """The row an outcome leads to. ``state`` READY with ``available_at``: the item is due again then.

    ``gives_back``: the attempt is not counted. ``untried``: the handler never started, so the crash count stays; every
    other settlement is the orderly end of an attempt and resets it.

    A tuple, as a lease is: tens of thousands are made in a second, and a frozen dataclass takes three times as long.
    """

    state: ItemState
    available_at: datetime | None = None
    gives_back: bool = False
    error: str | None = None
    result: Json = None
    follow_ups: tuple[NewItem, ...] = ()
    effect: Effect | None = None
    expires_at: datetime | None = None  # of a finished item: when it may go
    stage: str | None = None  # of a pipeline: where it goes on; its attempts begin anew there
    untried: bool = False

    @property
    def word(self) -> str:
        """What became of the item, as it is counted."""
        if self.state is not ItemState.READY:
            return self.state.value
        if self.stage is not None:
            return "moved"
        return "put_back" if self.gives_back else "retried"

    @property
    def goes_with_others(self) -> bool:
        """It is settled in one transaction with whatever else ended: the bulk of the work is small."""
        if self.effect is None:
            return not self.follow_ups
        return isinstance(self.effect, Writes)


def settle(
    attempt: int, outcome: Outcome, retry: RetryPolicy, now: datetime, chance: Callable[[], float]
) -> Settlement:
    match outcome:
        case Done(result=result, emit=emit, effect=effect):
            return Settlement(state=ItemState.DONE, result=result, follow_ups=emit, effect=effect)
        case Snooze(until=until, reason=reason):
            return Settlement(
                state=ItemState.READY,
                available_at=within_reach(until),
                gives_back=True,
                error=told(reason, LONGEST_ERROR),
            )
        case Failed(error=error, permanent=permanent):
            wait = None if permanent else retry.wait_after(attempt, chance)
            if wait is None:
                return Settlement(state=ItemState.DEAD, error=told(error, LONGEST_ERROR))
            return Settlement(state=ItemState.READY, available_at=later(now, wait), error=told(error, LONGEST_ERROR))
        case Cancelled(reason=reason):
            return Settlement(state=ItemState.CANCELLED, error=told(reason, LONGEST_ERROR))
        case _:
            assert_never(outcome)


def within_reach(at: datetime) -> datetime:
    return min(at, FARTHEST)


def later(now: datetime, wait: timedelta) -> datetime:
    return FARTHEST if wait > FARTHEST - now else now + wait


def given_back(now: datetime) -> Settlement:
    return Settlement(state=ItemState.READY, available_at=now, gives_back=True, error="its worker stopped")


def put_off(until: datetime) -> Settlement:
    return Settlement(
        state=ItemState.READY,
        available_at=until,
        gives_back=True,
        error="its worker died twice while it ran: it waits for a place of its own",
        untried=True,
    )
