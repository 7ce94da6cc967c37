"""Settings of an item handler: time limit, retries, and retention of finished items."""

from collections.abc import Awaitable, Callable
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any

from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass
from batuta.queue.item import ItemState, Lease
from batuta.queue.outcome import DEFAULT_RETRY, PLAIN_DONE, Failed, Outcome, RetryPolicy, Settlement, Snooze, settle


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemHandler:
    """The handler for one kind of item, with its time limit, retries and retention. ``keep`` and ``keep_dead`` are the
    retention of finished and dead items; None keeps them permanently.
    """

    handle: Callable[[Lease], Awaitable[object]]  # returns an outcome that ``settle`` accepts
    timeout: timedelta = timedelta(seconds=300)
    retry: RetryPolicy = DEFAULT_RETRY
    retry_timeout: bool = False  # whether a timed-out item is retried; False, because it would probably time out again
    # called with the attempt number, the outcome and the retry policy
    settle: Callable[[int, Any, RetryPolicy], Settlement] = settle
    keep: timedelta | None = None
    keep_dead: timedelta | None = None
    # returns the trace context of the caller that enqueued the item
    traceparent: Callable[[Lease], object] = lambda lease: None
    # The settlement of ``PLAIN_DONE``, shared by all items; None if the application provides its own ``settle``.
    success: Settlement | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.settle is settle:
            object.__setattr__(self, "success", self.settlement_of(1, PLAIN_DONE))

    def settlement_of(self, attempt: int, outcome: object, retry: RetryPolicy | None = None) -> Settlement:
        """Return the settlement for an outcome, including the retention of a finished item. ``retry`` replaces the
        handler's retry policy.
        """
        settlement = self.settle(attempt, outcome, retry or self.retry)
        if settlement.state is ItemState.READY:
            return settlement
        keep = self.keep_dead if settlement.state is ItemState.DEAD else self.keep
        return settlement if keep is None else settlement._replace(keep=keep)


ROW_UNREADABLE = define("row_unreadable", "its row cannot be read ({columns}): correct these columns, then retry it")


async def _fail_unreadable(lease: Lease) -> Outcome:
    columns = ", ".join(lease.unreadable)
    return Failed(ROW_UNREADABLE(columns=columns), permanent=True)


UNREADABLE = ItemHandler(handle=_fail_unreadable, keep_dead=timedelta(days=30))


# An unknown task waits for a release that defines it, first for this long. After UNKNOWN_AT_MOST the task is dead.
UNKNOWN_FIRST_WAIT = timedelta(seconds=15)
UNKNOWN_LONGEST_WAIT = timedelta(minutes=5)
UNKNOWN_AT_MOST = timedelta(minutes=20)
UNKNOWN_TASK = define(
    "unknown_task", "no worker here knows this task (since {since}): deploy a version that knows it, or cancel it"
)
UNKNOWN_TASK_DEAD = define(
    "unknown_task_dead", "no worker has known this task since {since}: deploy a version that knows it, then retry it"
)


def unknown_item_handler(last_error: Callable[[str], Awaitable[tuple[str | None, datetime]]]) -> ItemHandler:
    """Return the handler for calls of a task that this release does not define. The handler postpones such an item
    without counting an attempt.

    The item becomes dead when UNKNOWN_AT_MOST has passed. The first worker that does not know the task stores the
    current time in the item's error column, and later workers read that time. A worker that knows the task overwrites
    the error.
    """

    async def handle(lease: Lease) -> Outcome:
        error, now = await last_error(lease.id)
        since = _unknown_since(error) or now
        age = max(timedelta(0), now - since)
        if age >= UNKNOWN_AT_MOST:
            return Failed(UNKNOWN_TASK_DEAD(since=since), permanent=True)
        wait = min(max(UNKNOWN_FIRST_WAIT, age), UNKNOWN_LONGEST_WAIT)
        return Snooze(wait, UNKNOWN_TASK(since=since))

    return ItemHandler(handle=handle, settle=_settle_untried, keep_dead=timedelta(days=30))


def _settle_untried(attempt: int, outcome: Outcome, retry: RetryPolicy) -> Settlement:
    return settle(attempt, outcome, retry)._replace(untried=True)


def _unknown_since(error: str | None) -> datetime | None:
    since = error.facts.get("since") if isinstance(error, Reason) and error.code == UNKNOWN_TASK else None
    return since if isinstance(since, datetime) and since.tzinfo is not None else None
