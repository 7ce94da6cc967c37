"""Rate limits: at most N effects in any period of a given length (the window), across all processes.

A token is reserved before the effect and confirmed after it. A confirmed token counts towards the limit for one window
after the confirmation. A token without a confirmation is treated as if its effect happened at the last permitted
instant (``use_within`` after the reservation). So the limit is never exceeded in any window, even if a process dies
between the reservation and the confirmation.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias

from batuta.guard.base import Admit, Effect, EffectReport, Hold, Verdict
from batuta.guard.switches import RECHECK_AFTER
from batuta.kernel.errors import StoreUnavailable, require
from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass

LONGEST_WINDOW = timedelta(days=366)
USE_WITHIN = timedelta(minutes=1)
RATE_LIMIT = define("rate_limit", "rate limit {limit}: {most} in {per}")
RATES_AWAY = define("rates_away", "cannot read the rate limits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A rate limit of at most ``most`` effects in any period of length ``per``.

    Limits with the same ``key`` share their tokens. ``name`` is for operators. If ``each`` is true, every customer or
    device has a separate limit, which the method ``of`` creates.
    """

    name: str
    key: str
    most: int
    per: timedelta
    each: bool = False

    def __post_init__(self) -> None:
        name, is_window = self.name, timedelta(0) < self.per <= LONGEST_WINDOW
        is_named = self.name.strip() and self.key.strip()
        require("limit", name, is_named, Reason("limit_name", "it needs a name and a key"))
        why = Reason("limit_least", "it must allow at least one; to stop everything, use a switch")
        require("limit", name, self.most >= 1, why)
        require("limit", name, is_window, Reason("limit_window", "its window must be positive and at most a year"))

    def of(self, whom: str) -> "Limit":
        return replace(self, key=f"{self.key}:{whom}", each=False)


def gap(name: str, key: str, length: timedelta, *, each: bool = False) -> Limit:
    """Return a limit that enforces a minimum time between two effects."""
    return Limit(name=name, key=key, most=1, per=length, each=each)


@dataclass(frozen=True, slots=True)
class Reserved:
    """A reserved token. The effect must happen before the instant ``act_by``. After that instant the token may expire,
    and another caller may get a token in its place.
    """

    id: str
    act_by: datetime


Reservation: TypeAlias = Reserved | Hold


class Rates(Protocol):
    """Interface of the rate-limit store. If ``within`` is a transaction of the caller, the reservation takes effect
    when that transaction commits.
    """

    async def reserve(
        self, limits: Sequence[Limit], *, use_within: timedelta = USE_WITHIN, within: Any | None = None
    ) -> Reservation:
        """Reserve one token for each limit. If any limit is exhausted, reserve no token and return a Hold until all
        limits have room.
        """

    async def confirm(self, id: str, *, within: Any | None = None) -> None:
        """Confirm that the effect for which tokens were reserved has happened. From now on, these tokens count towards
        their limits for one window.
        """

    async def release(self, id: str, *, within: Any | None = None) -> None:
        """Release tokens whose effect provably did not happen. Confirmed tokens are not released."""

    async def count_used(self, limits: Sequence[Limit]) -> Mapping[str, int]:
        """Return the number of tokens in use, by limit name."""


def full_until(limit: Limit, blocking: datetime | None, now: datetime) -> datetime | None:
    """Return when a limit has room again, or None if it has room now. ``blocking`` is the instant of the token that
    must expire first, or None if the limit is not exhausted.
    """
    if blocking is None or blocking + limit.per <= now:
        return None
    # An unconfirmed token may be released at any moment, so check again soon.
    return blocking + limit.per if blocking <= now else now + min(limit.per, RECHECK_AFTER)


def verdict(full: Mapping[Limit, datetime]) -> Hold | None:
    """Return a Hold until all exhausted limits have room again, or None if no limit is exhausted."""
    if not full:
        return None
    limit, until = max(full.items(), key=lambda each: each[1])
    return Hold(until, RATE_LIMIT(limit=limit.name, most=limit.most, per=limit.per))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGuard:
    """Guard for several rate limits. An admitted call must happen within ``use_within``; ``Admit.by`` is its
    deadline.
    """

    rates: Rates
    limits: tuple[Limit, ...]
    use_within: timedelta = USE_WITHIN

    async def admit(self, now: datetime) -> Verdict:
        try:
            reserved = await self.rates.reserve(self.limits, use_within=self.use_within)
        except StoreUnavailable:
            return Hold(now + RECHECK_AFTER, RATES_AWAY())
        if isinstance(reserved, Hold):
            return reserved
        # Computed with the caller's clock from before the reservation, so it is never later than the database's
        # deadline.
        return Admit(RateTicket(self.rates, reserved.id), by=now + self.use_within)


@dataclass(frozen=True, slots=True)
class RateTicket:
    """Ticket for reserved tokens. If its report cannot be stored, the tokens are treated as if they had been used at
    the last permitted instant.
    """

    rates: Rates
    id: str

    async def report(self, report: EffectReport) -> None:
        with suppress(StoreUnavailable):
            await (self.rates.release(self.id) if report.effect is Effect.UNREACHED else self.rates.confirm(self.id))

    async def give_back(self) -> None:
        with suppress(StoreUnavailable):
            await self.rates.release(self.id)
