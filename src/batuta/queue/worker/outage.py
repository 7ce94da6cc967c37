"""Handles failures of the engine's own database while an item is running. The item did not cause them, so they use up
no attempt.

    the handler or the effect raises StoreUnavailable
        │ of another database, or the retry rules name the error ──▶ a failed attempt
        └ of the engine's database ──▶ ready after a wait, attempt uncounted ── AT_MOST passed ──▶ a failed attempt

The item is still claimed and settled, so the database executes some statements and is usually just slow. If failures
continue after AT_MOST, a statement of the item itself is probably too slow, so each further failure uses up an attempt.
"""

from datetime import datetime, timedelta
from typing import Final

from batuta.kernel.errors import EffectFailed, StoreUnavailable
from batuta.kernel.reasons import Reason, define
from batuta.queue.outcome import Failed, Outcome, RetryPolicy, Snooze
from batuta.queue.retry import RetryByError

# Each wait is as long as the outage has lasted so far, within these limits.
FIRST_WAIT: Final = timedelta(seconds=5)
LONGEST_WAIT: Final = timedelta(minutes=5)
AT_MOST: Final = timedelta(days=1)
STORE_AWAY = define(
    "store_away", "{error}: the database has not finished the work in time since {since}; no attempt is counted"
)
STORE_AWAY_DEAD = define(
    "store_away_dead",
    "{error}: the database has not finished the work in time since {since}: find the slow statement, then retry it",
)


def find_outage(error: Exception | None, where: str, retry: RetryPolicy) -> StoreUnavailable | None:
    """Return the database failure that ended a handler or an effect. ``where`` is the address of the engine's database.
    Return None if the error is not a failure of that database, or if the retry rules cover the error.
    """
    cause = error.__cause__ if isinstance(error, EffectFailed) else error
    if not isinstance(cause, StoreUnavailable) or cause.facts.get("where") != where:
        return None
    return None if isinstance(retry, RetryByError) and retry.names(cause, StoreUnavailable) else cause


def outcome_of(outage: StoreUnavailable, last_error: str | None, now: datetime) -> Outcome:
    """Return the outcome for an item that ended because of a database outage. ``last_error`` is the item's stored
    error, which contains the time at which the outage began.
    """
    since, error = _began_at(last_error) or now, type(outage).__name__
    age = max(timedelta(0), now - since)
    if age >= AT_MOST:
        return Failed(STORE_AWAY_DEAD(error=error, since=since))
    return Snooze(min(max(FIRST_WAIT, age), LONGEST_WAIT), STORE_AWAY(error=error, since=since))


def _began_at(error: str | None) -> datetime | None:
    if not isinstance(error, Reason) or error.code not in (STORE_AWAY, STORE_AWAY_DEAD):
        return None
    since = error.facts.get("since")
    return since if isinstance(since, datetime) and since.tzinfo is not None else None
