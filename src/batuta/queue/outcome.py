"""Outcomes, retry policies, and the settlement that follows from an outcome and a policy. This module computes the
settlement; the store writes it.

Jobs, job endpoints, tasks, queue handlers and stages return the same outcomes. One pure function per consumer
interprets them: ``settle`` for items, ``Pipeline.settle`` for stages, ``ending_of`` for the row of a run,
``reply_body`` for HTTP.

    outcome    item of a queue                 stage                  run of a job        HTTP
    Done       done                            finished here          success             200 ok
    Partial    done, with the reason           finished here          success, degraded   200 partial
    Skipped    done, with the reason           dropped                skipped             200 skipped
    Snooze     ready later, attempt uncounted  the same               skipped             200 skipped
    Failed     ready after a wait, or dead     the same               error               500, or 400 if permanent
    TimedOut   ready after a wait, or dead     the same               timeout             504
    Cancelled  cancelled                       the same               skipped             200 skipped

A stage may also move its item: ``Next``, ``Jump``, ``FanOut``.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, Protocol, TypeAlias, assert_never

from batuta.kernel.clock import FARTHEST
from batuta.kernel.errors import InvalidEffect
from batuta.kernel.reasons import Reason, define
from batuta.kernel.storage.json import Json
from batuta.kernel.storage.query import Query
from batuta.kernel.storage.storable import mask_text
from batuta.kernel.values import dataclass
from batuta.kernel.waiting import exponential, full_jitter
from batuta.queue.item import ItemState, NewItem


class RetryPolicy(Protocol):
    """Computes the waits between an item's attempts."""

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        """Return the wait after failed attempt number ``attempt`` (counted from 1), or None if the item is not retried."""


@dataclass(frozen=True, slots=True)
class Waits:
    """A retry policy with a fixed list of waiting times. A list of n waiting times allows n retries."""

    waits: tuple[timedelta, ...]

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return self.waits[attempt - 1] if attempt <= len(self.waits) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class FullJitter:
    """A retry policy with random waits below a limit that grows exponentially, so that many failed items do not retry
    at the same time.
    """

    base: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=15)
    retries: int = 5

    def wait_after(self, attempt: int, chance: Callable[[], float]) -> timedelta | None:
        return None if attempt > self.retries else full_jitter(exponential(attempt, self.base, self.cap), chance())


# Default retry policy of tasks and queue items. Stages use ``DEFAULT_STAGE_RETRY``.
DEFAULT_RETRY = FullJitter()


def after_seconds(waits: Sequence[float]) -> Waits:
    """Return a retry policy with one retry after each of the given waits, in seconds."""
    return Waits(tuple(timedelta(seconds=wait) for wait in waits))


HANDLER_CRASHED = define("handler_crashed", "{error} in the handler; the log has the traceback")
EFFECT_CRASHED = define("effect_crashed", "{error} while the outcome was written; the log has the traceback")
TIMED_OUT = define("timed_out", "Job timeout exceeded")
CANCELLED = define("cancelled", "cancelled")
CANCELLED_BY = define("cancelled_by", "cancelled by {by}")


@dataclass(frozen=True, slots=True)
class Writes:
    """An effect that consists of SQL statements with their values. The statements of many items run in one batch.

    Each distinct statement runs once, with the values of all items. If any item lists statement A before statement B, A
    runs before B for all items. So a statement must not rely on a statement that another item lists later.
    """

    statements: tuple[tuple[Query, Mapping[str, object]], ...] = ()

    def __add__(self, other: "Writes") -> "Writes":
        return Writes(self.statements + other.statements)


# Work that runs inside the transaction that settles the item, so that both are committed or neither is.
ItemEffect: TypeAlias = Callable[[Any], Awaitable[None]] | Writes


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of work that succeeded. The transaction that settles the item also enqueues the items in ``emit`` and
    runs ``effect``.

    ``items`` is the number of objects that a job processed, or None if the job does not count them. For a job,
    ``result`` must be a mapping.
    """

    result: Json = None
    emit: tuple[NewItem, ...] = ()
    effect: ItemEffect | None = None
    items: int | None = None


# The outcome of most items. It is one shared object, so an identity comparison recognises it.
PLAIN_DONE = Done()


@dataclass(frozen=True, slots=True)
class Partial:
    """The outcome of work that succeeded only in part. Health checks show a job with this outcome as degraded."""

    reason: str
    items: int | None = None
    result: Json = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """The outcome of a handler that did no work for an expected reason: a pause, a closed window, or an item that needs
    no work.
    """

    reason: str
    effect: ItemEffect | None = None


@dataclass(frozen=True, slots=True)
class Snooze:
    """The outcome that postpones an item until an instant, or for a duration, without counting an attempt.

    Prefer a duration: the database adds it to its own clock, so it does not matter if this machine's clock is wrong.
    """

    until: datetime | timedelta
    reason: str

    def __post_init__(self) -> None:
        if isinstance(self.until, datetime) and self.until.tzinfo is None:
            raise ValueError("Snooze(until) needs an instant with a time zone, such as work.clock.now()")


@dataclass(frozen=True, slots=True)
class Failed:
    """The outcome of work that failed. The retry policy decides whether the work is retried; ``permanent`` prevents a
    retry. Operators read ``error``, so it must not contain personal data.
    """

    error: str
    permanent: bool = False


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The outcome of work that exceeded its time limit or deadline and was stopped."""

    error: str


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The outcome of work that was stopped because its cancellation was requested."""

    reason: str = field(default_factory=CANCELLED)


Outcome: TypeAlias = Done | Partial | Skipped | Snooze | Failed | TimedOut | Cancelled


@dataclass(frozen=True, slots=True)
class Next:
    """The outcome of a stage that moves its item to the next stage. After the last stage, the item is finished."""

    effect: ItemEffect | None = None


@dataclass(frozen=True, slots=True)
class Jump:
    """The outcome of a stage that moves its item to a named stage."""

    stage: str
    effect: ItemEffect | None = None


@dataclass(frozen=True, slots=True)
class FanOut:
    """The outcome of a stage that finishes its item and creates items at the next stage. Each new item needs a key, so
    that a repeated fan-out creates it only once.
    """

    items: tuple[NewItem, ...]
    effect: ItemEffect | None = None


StageOutcome: TypeAlias = Outcome | Next | Jump | FanOut


LONGEST_ERROR = 500
WORKER_STOPPED = define("worker_stopped", "its worker stopped")
# Error text of a claimed item that waits to run alone (see ``isolation``). If the process dies during this wait, no
# crash is counted for the item.
WAITS_ALONE = define("waits_alone", "its worker died twice while running it: the item is waiting to run alone")
# A thousand years. Later instants exceed the range of dates.
LONGEST_WAIT = timedelta(days=365_000)


class Settlement(NamedTuple):
    """The changes to an item's row that follow from an outcome. In state READY the item becomes due again after
    ``wait`` or at ``available_at``.

    Waits and retention are durations, which the SQL statement adds to the database's clock. ``available_at`` is an
    instant that the handler chose.

    ``gives_back`` means that the attempt is not counted. ``untried`` means that the handler never started, so the crash
    count is kept; any other settlement resets the crash count.

    The class is a tuple for speed: a worker creates tens of thousands of settlements per second, and creating a frozen
    dataclass would take three times as long.
    """

    state: ItemState
    wait: timedelta | None = None
    available_at: datetime | None = None
    gives_back: bool = False
    error: str | None = None
    result: Json = None
    follow_ups: tuple[NewItem, ...] = ()
    effect: ItemEffect | None = None
    keep: timedelta | None = None  # retention of a finished item; None keeps it permanently
    stage: str | None = None  # in a pipeline: the stage to which the item moves; its attempts are counted from 1 again
    untried: bool = False

    @property
    def word(self) -> str:
        """The name of the outcome in metrics and events."""
        if self.state is not ItemState.READY:
            return self.state.value
        if self.stage is not None:
            return "moved"
        return "put_back" if self.gives_back else "retried"

    @property
    def is_plain_success(self) -> bool:
        """Whether the settlement only marks the item as done and sets its retention."""
        return self == Settlement(ItemState.DONE, keep=self.keep)

    @property
    def goes_with_others(self) -> bool:
        """Whether the item may be settled together with other items in one transaction."""
        if self.effect is None:
            return not self.follow_ups
        return isinstance(self.effect, Writes)


def settle(
    attempt: int, outcome: Outcome, retry: RetryPolicy, chance: Callable[[], float] = random.random
) -> Settlement:
    match outcome:
        case Done(result=result, emit=emit, effect=effect):
            return Settlement(state=ItemState.DONE, result=result, follow_ups=emit, effect=effect)
        case Snooze(until=until, reason=reason):
            back = Settlement(state=ItemState.READY, gives_back=True, error=mask_text(reason, LONGEST_ERROR))
            if isinstance(until, timedelta):
                return back._replace(wait=until)
            return back._replace(available_at=clamp_instant(until))
        case Partial(reason=reason, result=result):
            return Settlement(state=ItemState.DONE, result=result, error=mask_text(reason, LONGEST_ERROR))
        case Skipped(reason=reason, effect=effect):
            return Settlement(state=ItemState.DONE, error=mask_text(reason, LONGEST_ERROR), effect=effect)
        case Failed(error=error) | TimedOut(error=error):
            is_permanent = isinstance(outcome, Failed) and outcome.permanent
            try:
                wait = None if is_permanent else _check_wait(retry.wait_after(attempt, chance))
            except (Exception, SystemExit) as broken:  # noqa: BLE001 - a policy is the application's code
                why = f"{type(broken).__name__} in its retry policy, after: {error}"
                return Settlement(state=ItemState.DEAD, error=mask_text(why, LONGEST_ERROR))
            if wait is None:
                return Settlement(state=ItemState.DEAD, error=mask_text(error, LONGEST_ERROR))
            return Settlement(state=ItemState.READY, wait=wait, error=mask_text(error, LONGEST_ERROR))
        case Cancelled(reason=reason):
            return Settlement(state=ItemState.CANCELLED, error=mask_text(reason, LONGEST_ERROR))
        case _:
            assert_never(outcome)


def refuse_wrong_effect(effect: object) -> None:
    """Raise InvalidEffect unless the effect has the shape of an ``ItemEffect``. The settlements of many items share one
    transaction, so a wrong effect must be refused before that transaction begins.
    """
    if not isinstance(effect, Writes):
        if not callable(effect):
            raise InvalidEffect(why=Reason("effect_type", "it is of type {type}", type=type(effect).__name__))
        return
    for statement in effect.statements:
        match statement:
            case (Query() as query, Mapping() as values):
                if missing := [name for name in query.parameters if name not in values]:
                    why = Reason(
                        "effect_value", "statement {query} has no value for :{name}", query=query.name, name=missing[0]
                    )
                    raise InvalidEffect(why=why)
            case (other, _):
                why = Reason("effect_statement", "a statement is of type {type}", type=type(other).__name__)
                raise InvalidEffect(why=why)
            case _:
                raise InvalidEffect(why=Reason("effect_pair", "an entry is not a pair of statement and values"))


def _check_wait(wait: object) -> timedelta | None:
    if wait is None or isinstance(wait, timedelta):
        return wait
    raise TypeError(f"a retry policy returns a timedelta or None, not {type(wait).__name__}")


def clamp_instant(at: datetime) -> datetime:
    return min(at, FARTHEST)


def clamp_wait(wait: timedelta) -> timedelta:
    """Limit a wait or a retention to the range that PostgreSQL and SQLite can add to their clocks. A negative wait
    becomes zero.
    """
    return max(timedelta(0), min(wait, LONGEST_WAIT))


def give_back() -> Settlement:
    """Return the settlement for an item that a worker hands back at shutdown. The item is due immediately, and its
    attempt is not counted.
    """
    return Settlement(state=ItemState.READY, wait=timedelta(0), gives_back=True, error=WORKER_STOPPED())


def put_off(wait: timedelta) -> Settlement:
    """Return the settlement that postpones an item by ``wait``, because the item must run alone and other handlers are
    running.
    """
    return Settlement(state=ItemState.READY, wait=wait, gives_back=True, error=WAITS_ALONE(), untried=True)
