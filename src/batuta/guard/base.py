"""The guard interface, and two guards on it: opening hours, and several guards as one.

may = AllOf(SwitchGuard(…), HoursGuard(…), work.circuits.breaker("gateway"), RateGuard(…), clock=work.clock)
match await may.admit(work.clock.now()):
    case Hold(until=until, reason=reason):
        return Snooze(until, reason)
    case Admit(ticket=ticket):
        …                                   # the effect
        await ticket.report(WORKED)         # or the error; ticket.give_back() if the effect was not tried
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias
from zoneinfo import ZoneInfo

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.reasons import define
from batuta.schedule.window import Window

# 4xx statuses that mean: retry later.
PASSING = frozenset({408, 425, 429})


class Effect(StrEnum):
    """The result of an admitted call, by the type of its error or its status, never by its text."""

    WORKED = "worked"
    BROKE = "broke"  # the other side failed or is overloaded
    TIMED_OUT = "timed_out"  # it may or may not have happened
    MISTAKE = "mistake"  # the other side works, and the request was wrong
    UNREACHED = "unreached"  # provably not sent: no effect, and the other side is unreachable


@dataclass(frozen=True, slots=True)
class EffectReport:
    """``error``: its class or status, for operators. ``retry_at``: the Retry-After of the other side."""

    effect: Effect
    error: str = ""
    retry_at: datetime | None = None


WORKED = EffectReport(Effect.WORKED)


class Ticket(Protocol):
    """Handed out with an Admit. Call exactly one of its methods, once; an unused ticket counts as used."""

    async def report(self, report: EffectReport) -> None: ...

    async def give_back(self) -> None:
        """Return the ticket unused: the effect was not tried."""
        ...


class FreeTicket:
    """Ticket of a guard that needs no report."""

    async def report(self, report: EffectReport) -> None:
        return None

    async def give_back(self) -> None:
        return None


FREE = FreeTicket()


@dataclass(frozen=True, slots=True)
class Admit:
    """Permission for one call; report its result on the ticket. ``by``: afterwards the permission is void, ask again."""

    ticket: Ticket = FREE
    by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Refusal until ``until``, with the reason."""

    until: datetime
    reason: str


Verdict: TypeAlias = Admit | Hold


class Guard(Protocol):
    """Admits a call or holds it until an instant."""

    async def admit(self, now: datetime) -> Verdict:
        """Admit or hold. Asked before a claim and at the instant of the effect. A guard that cannot decide holds."""
        ...


def effect_of_status(status: int) -> Effect:
    """The effect that an HTTP status means for the service."""
    if status in PASSING or status >= 500:
        return Effect.BROKE
    return Effect.MISTAKE if status >= 400 else Effect.WORKED


def effect_of_error(error: BaseException) -> Effect:
    """The effect that a standard error means. Clients with errors of their own map those themselves."""
    if isinstance(error, ConnectionRefusedError):
        return Effect.UNREACHED
    cut_off = (TimeoutError, DeadlineExceeded, asyncio.CancelledError)
    return Effect.TIMED_OUT if isinstance(error, cut_off) else Effect.BROKE


OUTSIDE_HOURS = define("outside_hours", "outside {hours}: opens {opens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursGuard:
    """Admit within a window. Its end is outside: at 20:00 sharp nothing leaves any more."""

    name: str
    window: Window
    zone: ZoneInfo

    async def admit(self, now: datetime) -> Verdict:
        opens = self.window.next_open(now, self.zone)
        if opens <= now:
            return Admit()
        return Hold(opens, OUTSIDE_HOURS(hours=self.name, opens=opens.astimezone(self.zone)))


# After a wait longer than this, ask the free guards again: the hours may be over, or a switch may have changed.
STALE = timedelta(milliseconds=500)


class AllOf:
    """Ask the guards in order; the first Hold wins, and the tickets of the guards before it are given back."""

    def __init__(self, *guards: Guard, clock: Clock) -> None:
        self._guards = guards
        self._clock = clock

    async def admit(self, now: datetime) -> Verdict:
        asked = self._clock.monotonic()
        admitted: list[tuple[Guard, Admit]] = []
        try:
            held = await self._ask(self._guards, now, admitted)
            waited = timedelta(seconds=self._clock.monotonic() - asked)
            free = [guard for guard, admit in admitted if admit.ticket is FREE]
            if held is None and waited >= STALE and len(free) < len(admitted):
                held = await self._ask(free, now + waited, [])
        except BaseException:
            await asyncio.shield(_all(admitted).give_back())
            raise
        if held is None:
            by = min((admit.by for _, admit in admitted if admit.by is not None), default=None)
            return Admit(_all(admitted), by)
        await _all(admitted).give_back()
        return held

    @staticmethod
    async def _ask(guards: Iterable[Guard], now: datetime, admitted: list[tuple[Guard, Admit]]) -> Hold | None:
        for guard in guards:
            verdict = await guard.admit(now)
            if isinstance(verdict, Hold):
                return verdict
            admitted.append((guard, verdict))
        return None


def _all(admitted: Iterable[tuple[Guard, Admit]]) -> Ticket:
    tickets = tuple(admit.ticket for _, admit in admitted if admit.ticket is not FREE)
    return _Tickets(tickets) if tickets else FREE


@dataclass(frozen=True, slots=True)
class _Tickets:
    tickets: tuple[Ticket, ...]

    async def report(self, report: EffectReport) -> None:
        for ticket in self.tickets:
            await ticket.report(report)

    async def give_back(self) -> None:
        for ticket in reversed(self.tickets):
            await ticket.give_back()
