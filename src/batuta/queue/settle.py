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
# A thousand years: beyond that, instants leave the calendar.
LONGEST_WAIT = timedelta(days=365_000)


class Settlement(NamedTuple):
    """The row an outcome leads to. READY: the item is due again after ``wait``, or at ``available_at``.

    Waits and retention are durations, which the statement adds to the clock that decides; ``available_at`` is an instant
    that the handler chose itself.

    ``gives_back``: the attempt is not counted. ``untried``: the handler never started, so the crash count stays; every
    other settlement is the orderly end of an attempt and resets it.

    A tuple, as a lease is: tens of thousands are made in a second, and a frozen dataclass takes three times as long.
    """

    state: ItemState
    wait: timedelta | None = None
    available_at: datetime | None = None
    gives_back: bool = False
    error: str | None = None
    result: Json = None
    follow_ups: tuple[NewItem, ...] = ()
    effect: Effect | None = None
    keep: timedelta | None = None  # retention of a finished item; None: for ever
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


def settle(attempt: int, outcome: Outcome, retry: RetryPolicy, chance: Callable[[], float]) -> Settlement:
    match outcome:
        case Done(result=result, emit=emit, effect=effect):
            return Settlement(state=ItemState.DONE, result=result, follow_ups=emit, effect=effect)
        case Snooze(until=until, reason=reason):
            back = Settlement(state=ItemState.READY, gives_back=True, error=told(reason, LONGEST_ERROR))
            if isinstance(until, timedelta):
                return back._replace(wait=until)
            return back._replace(available_at=within_reach(until))
        case Failed(error=error, permanent=permanent):
            try:
                wait = None if permanent else _checked(retry.wait_after(attempt, chance))
            except (Exception, SystemExit) as broken:  # noqa: BLE001 - a policy is the application's code
                why = f"{type(broken).__name__} in its retry policy, after: {error}"
                return Settlement(state=ItemState.DEAD, error=told(why, LONGEST_ERROR))
            if wait is None:
                return Settlement(state=ItemState.DEAD, error=told(error, LONGEST_ERROR))
            return Settlement(state=ItemState.READY, wait=wait, error=told(error, LONGEST_ERROR))
        case Cancelled(reason=reason):
            return Settlement(state=ItemState.CANCELLED, error=told(reason, LONGEST_ERROR))
        case _:
            assert_never(outcome)


def _checked(wait: object) -> timedelta | None:
    if wait is None or isinstance(wait, timedelta):
        return wait
    raise TypeError(f"a retry policy returns a timedelta or None, not {type(wait).__name__}")


def within_reach(at: datetime) -> datetime:
    return min(at, FARTHEST)


def bounded(wait: timedelta) -> timedelta:
    """Limit a wait or a retention, so that every database can add it to its clock. A negative wait is none."""
    return max(timedelta(0), min(wait, LONGEST_WAIT))


def given_back() -> Settlement:
    """Hand the item back at shutdown: it is due at once, and the attempt is not counted."""
    return Settlement(state=ItemState.READY, wait=timedelta(0), gives_back=True, error="its worker stopped")


def put_off(wait: timedelta) -> Settlement:
    """Hand back an item with one crash left, unstarted, because another such item runs in this process."""
    return Settlement(
        state=ItemState.READY,
        wait=wait,
        gives_back=True,
        error="its worker died twice while it ran: it waits for a place of its own",
        untried=True,
    )
