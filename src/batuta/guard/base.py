"""The guard interface, a guard for opening hours, and a guard that combines several guards.

may = AllOf(SwitchGuard(…), HoursGuard(…), work.circuits.breaker("gateway"), RateGuard(…), clock=work.clock)
match await may.admit(work.clock.now()):
    case Hold(until=until, reason=reason):
        return Snooze(until, reason)
    case Admit(ticket=ticket):
        …                                   # the effect
        await ticket.report(WORKED)         # or the error; ticket.give_back() if the effect was not attempted
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias
from zoneinfo import ZoneInfo

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.schedule.window import Window

# 4xx statuses after which a retry may succeed.
PASSING = frozenset({408, 425, 429})


class Effect(StrEnum):
    """The possible results of an admitted call. A result is derived from the type or the status of an error, never from
    its message.
    """

    WORKED = "worked"
    BROKE = "broke"  # the service failed or is overloaded
    TIMED_OUT = "timed_out"  # it is unknown whether the effect happened
    MISTAKE = "mistake"  # the service works, but the request was wrong
    UNREACHED = "unreached"  # the request was provably not sent, so there was no effect; the service is unreachable


@dataclass(frozen=True, slots=True)
class EffectReport:
    """The reported result of an admitted call. ``error`` is the class or status of the error, for operators.
    ``retry_at`` is the instant that the called service named in Retry-After.
    """

    effect: Effect
    error: str = ""
    retry_at: datetime | None = None


WORKED = EffectReport(Effect.WORKED)


class Ticket(Protocol):
    """Permission for one effect, issued with an Admit. Call exactly one of its methods, once. If no method is called,
    the ticket is treated as used.
    """

    async def report(self, report: EffectReport) -> None: ...

    async def give_back(self) -> None:
        """Return the ticket unused, because the effect was not attempted."""


@dataclass(frozen=True, slots=True)
class Tickets:
    """A ticket that combines the tickets of several guards and forwards each call to all of them."""

    tickets: tuple[Ticket, ...] = ()

    async def report(self, report: EffectReport) -> None:
        for ticket in self.tickets:
            await ticket.report(report)

    async def give_back(self) -> None:
        for ticket in reversed(self.tickets):
            await ticket.give_back()


FREE = Tickets()  # shared ticket of all guards that need no report


@dataclass(frozen=True, slots=True)
class Admit:
    """Permission for one call. The caller reports the result of the call to ``ticket``. The permission ends at the
    instant ``by``; after that, ask the guard again.
    """

    ticket: Ticket = FREE
    by: datetime | None = None


@dataclass(frozen=True, slots=True)
class Hold:
    """Refusal of a call until the instant ``until``, with the reason for operators."""

    until: datetime
    reason: str


Verdict: TypeAlias = Admit | Hold


class Guard(Protocol):
    """Interface of a guard, which either admits a call or holds it back until an instant."""

    async def admit(self, now: datetime) -> Verdict:
        """Admit a call or hold it back. The engine calls this method before a claim, and again immediately before the
        effect that the guard protects. A guard that cannot decide must hold the call back.
        """


def effect_of_status(status: int) -> Effect:
    """Return the ``Effect`` (the result) of a call that ended with this HTTP status."""
    if status in PASSING or status >= 500:
        return Effect.BROKE
    return Effect.MISTAKE if status >= 400 else Effect.WORKED


def effect_of_error(error: BaseException) -> Effect:
    """Return the ``Effect`` (the result) of a call that raised this standard exception. A client library that has its
    own exceptions needs its own mapping.
    """
    if isinstance(error, ConnectionRefusedError):
        return Effect.UNREACHED
    cut_off = (TimeoutError, DeadlineExceeded, asyncio.CancelledError)
    return Effect.TIMED_OUT if isinstance(error, cut_off) else Effect.BROKE


OUTSIDE_HOURS = define("outside_hours", "outside {hours}: opens {opens}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursGuard:
    """Admits calls while a window is open. The end is exclusive: if the window ends at 20:00, the guard holds back a
    call at 20:00.
    """

    name: str
    window: Window
    zone: ZoneInfo

    async def admit(self, now: datetime) -> Verdict:
        opens = self.window.next_open(now, self.zone)
        if opens <= now:
            return Admit()
        return Hold(opens, OUTSIDE_HOURS(hours=self.name, opens=opens.astimezone(self.zone)))


# If asking all guards took longer than this, guards that issue no ticket are asked again, because the hours may have
# ended or a switch may have changed.
RECHECK_GUARDS_AFTER = timedelta(milliseconds=500)


class AllOf:
    """Asks several guards, one after the other. The first Hold is the result, and the tickets of the earlier guards are
    given back.
    """

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
            if held is None and waited >= RECHECK_GUARDS_AFTER and len(free) < len(admitted):
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
    return Tickets(tickets) if tickets else FREE
