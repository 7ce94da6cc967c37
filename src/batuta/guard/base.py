"""The guard interface, and guards made of it: opening hours and several guards as one.

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

# What the other side may say about itself although it is a 4xx: come back later.
PASSING = frozenset({408, 425, 429})


class Effect(StrEnum):
    """The result of an admitted call, by the type of its error or the number of its answer, never by words."""

    WORKED = "worked"
    BROKE = "broke"  # the other side failed, or is overrun
    TIMED_OUT = "timed_out"  # it may or may not have happened
    MISTAKE = "mistake"  # the other side lives, and what we asked for was wrong
    UNREACHED = "unreached"  # it provably never left: nothing happened, and the other side is not there


@dataclass(frozen=True, slots=True)
class EffectReport:
    """``error``: its class or number, for people. ``retry_at``: the other side said when to come back."""

    effect: Effect
    error: str = ""
    retry_at: datetime | None = None


WORKED = EffectReport(Effect.WORKED)


class Ticket(Protocol):
    """Handed out with an Admit: one of the two is called, once. A ticket that is never seen again is taken for used."""

    async def report(self, report: EffectReport) -> None: ...

    async def give_back(self) -> None:
        """Nothing was even tried; what was taken for it is given back."""
        ...


class FreeTicket:
    """Of a guard that learns nothing."""

    async def report(self, report: EffectReport) -> None:
        return None

    async def give_back(self) -> None:
        return None


FREE = FreeTicket()


@dataclass(frozen=True, slots=True)
class Admit:
    """Go ahead, and say afterwards on the ticket what became of it. ``by``: afterwards it is too late, and has to be asked anew."""

    ticket: Ticket = FREE
    by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Not before ``until``."""

    until: datetime
    reason: str


Verdict: TypeAlias = Admit | Hold


class Guard(Protocol):
    """Admits a call or holds it until an instant."""

    async def admit(self, now: datetime) -> Verdict:
        """Asked before anything is claimed, and at the instant of the effect. A guard that cannot know says Hold."""
        ...


def effect_of_status(status: int) -> Effect:
    """The effect that an HTTP status means for the service."""
    if status in PASSING or status >= 500:
        return Effect.BROKE
    return Effect.MISTAKE if status >= 400 else Effect.WORKED


def effect_of_error(error: BaseException) -> Effect:
    """For errors that are nobody's in particular; a client's own are known to whoever uses that client."""
    if isinstance(error, ConnectionRefusedError):
        return Effect.UNREACHED
    cut_off = (TimeoutError, DeadlineExceeded, asyncio.CancelledError)
    return Effect.TIMED_OUT if isinstance(error, cut_off) else Effect.BROKE


OUTSIDE_HOURS = define("outside_hours", "outside {hours}: opens {opens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursGuard:
    """The end of the window is outside: at 20:00 sharp nothing leaves any more."""

    name: str
    window: Window
    zone: ZoneInfo

    async def admit(self, now: datetime) -> Verdict:
        opens = self.window.next_open(now, self.zone)
        if opens <= now:
            return Admit()
        return Hold(opens, OUTSIDE_HOURS(hours=self.name, opens=opens.astimezone(self.zone)))


# Whoever was kept waiting longer than this asks the free guards again: the hours may be over, a switch may be turned.
STALE = timedelta(milliseconds=500)


class AllOf:
    """In order; the first Hold wins, and what the ones before it gave out is given back."""

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
