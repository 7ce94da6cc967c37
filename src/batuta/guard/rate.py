"""Rate limits: never more than so many in any window of that length, in all processes together.

A token is reserved before the effect and confirmed after it. It counts from the confirmation for the length of the window; until
then it counts as if the effect came at the last instant at which it may (``use_within``). So the effects themselves, whenever they
happen between the two, never exceed the limit in any window, and one whose process died counts as having happened.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Protocol, TypeAlias

from batuta.guard.base import Admit, Effect, EffectReport, Hold, Verdict
from batuta.guard.switches import RECHECK_AFTER
from batuta.kernel.errors import InvalidName, StoreUnavailable
from batuta.kernel.reasons import Reason, define

LONGEST_WINDOW = timedelta(days=366)
USE_WITHIN = timedelta(minutes=1)
RATE_LIMIT = define("rate_limit", "rate limit {limit}: {most} in {per}")
RATES_AWAY = define("rates_away", "cannot reserve: the rates cannot be read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``most`` in any ``per``. Limits with the same ``key`` count the same tokens. ``name`` is for people.

    ``each``: a limit for every customer or every device: ``of`` makes the limit of one of them.
    """

    name: str
    key: str
    most: int
    per: timedelta
    each: bool = False

    def __post_init__(self) -> None:
        if not self.name.strip() or not self.key.strip():
            raise InvalidName(name=self.name, kind="limit", why=Reason("limit_name", "it needs a name and a key"))
        if self.most < 1:
            raise InvalidName(
                name=self.name,
                kind="limit",
                why=Reason("limit_least", "it allows at least one; a switch stops everything"),
            )
        if not timedelta(0) < self.per <= LONGEST_WINDOW:
            raise InvalidName(
                name=self.name,
                kind="limit",
                why=Reason("limit_window", "its window is longer than nothing and at most a year"),
            )

    def of(self, whom: str) -> "Limit":
        return replace(self, key=f"{self.key}:{whom}", each=False)


def gap(name: str, key: str, length: timedelta, *, each: bool = False) -> Limit:
    """At least so long between two."""
    return Limit(name=name, key=key, most=1, per=length, each=each)


@dataclass(frozen=True, slots=True)
class Reserved:
    """``act_by``: afterwards somebody else may have taken its place."""

    id: str
    act_by: datetime


Reservation: TypeAlias = Reserved | Hold


class Rates(Protocol):
    """``within``: a transaction of the application's own; what is reserved in it is reserved when that commits."""

    async def reserve(
        self, limits: Sequence[Limit], *, use_within: timedelta = USE_WITHIN, within: Any | None = None
    ) -> Reservation:
        """A token of every limit, or of none and the instant at which there is room in all of them."""
        ...

    async def confirm(self, id: str, *, within: Any | None = None) -> None:
        """It happened: it counts from now on."""
        ...

    async def release(self, id: str, *, within: Any | None = None) -> None:
        """It provably did not happen. What was confirmed stays."""
        ...

    async def count_used(self, limits: Sequence[Limit]) -> Mapping[str, int]:
        """How many count now, by the name of the limit."""
        ...


def full_until(limit: Limit, blocking: datetime | None, now: datetime) -> datetime | None:
    """When it has room again; None: now. ``blocking``: when the token counts that has to go first, if there are so many."""
    if blocking is None or blocking + limit.per <= now:
        return None
    # Not confirmed yet: it may be given back at any moment.
    return blocking + limit.per if blocking <= now else now + min(limit.per, RECHECK_AFTER)


def verdict(full: Mapping[Limit, datetime]) -> Hold | None:
    """Held by the one that takes longest: before that, asking again is in vain."""
    if not full:
        return None
    limit, until = max(full.items(), key=lambda each: each[1])
    return Hold(until, RATE_LIMIT(limit=limit.name, most=limit.most, per=limit.per))


@dataclass(frozen=True, slots=True, kw_only=True)
class RateGuard:
    """An admitted call must happen within ``use_within``; ``Admit.by`` is its deadline."""

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
        # By the caller's own clock, from before it asked: whatever the database's says, that is not later.
        return Admit(RateTicket(self.rates, reserved.id), by=now + self.use_within)


@dataclass(frozen=True, slots=True)
class RateTicket:
    """What cannot be written counts as used at the last instant: the safe side."""

    rates: Rates
    id: str

    async def report(self, report: EffectReport) -> None:
        with suppress(StoreUnavailable):
            await (self.rates.release(self.id) if report.effect is Effect.UNREACHED else self.rates.confirm(self.id))

    async def give_back(self) -> None:
        with suppress(StoreUnavailable):
            await self.rates.release(self.id)
