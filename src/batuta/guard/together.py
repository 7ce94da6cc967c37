"""Several guards as one: may this happen now?

may = Together(SwitchGuard(…), HoursGuard(…), work.circuits.breaker("evolution"), RateGuard(…), clock=work.clock)
match await may.admit(work.clock.now()):
    case Hold(until=until, reason=reason):
        return Snooze(until, reason)
    case Admit(ticket=ticket):
        …                                   # the effect
        await ticket.used(WORKED)           # or what became of it; ticket.unused() if it was not even tried
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from batuta.guard.base import FREE, Admit, Guard, Hold, Ticket, Told, Verdict
from batuta.kernel.clock import Clock

# Whoever was kept waiting longer than this asks the free guards again: the hours may be over, a switch may be turned.
STALE = timedelta(milliseconds=500)


class Together:
    """In order; the first Hold wins, and what the ones before it gave out is given back."""

    def __init__(self, *guards: Guard, clock: Clock) -> None:
        self._guards = guards
        self._clock = clock

    async def admit(self, now: datetime) -> Verdict:
        asked = self._clock.monotonic()
        tickets: list[Ticket] = []
        free: list[Guard] = []
        try:
            held = await self._ask(self._guards, now, tickets, free)
            waited = timedelta(seconds=self._clock.monotonic() - asked)
            if held is None and tickets and waited >= STALE:
                held = await self._ask(free, now + waited, [], [])
        except BaseException:
            await asyncio.shield(_Tickets(tuple(tickets)).unused())
            raise
        if held is None:
            return Admit(_Tickets(tuple(tickets)) if tickets else FREE)
        await _Tickets(tuple(tickets)).unused()
        return held

    @staticmethod
    async def _ask(
        guards: "tuple[Guard, ...] | list[Guard]", now: datetime, tickets: list[Ticket], free: list[Guard]
    ) -> Hold | None:
        for guard in guards:
            verdict = await guard.admit(now)
            if isinstance(verdict, Hold):
                return verdict
            if verdict.ticket is FREE:
                free.append(guard)
            else:
                tickets.append(verdict.ticket)
        return None


@dataclass(frozen=True, slots=True)
class _Tickets:
    tickets: tuple[Ticket, ...]

    async def used(self, told: Told) -> None:
        for ticket in self.tickets:
            await ticket.used(told)

    async def unused(self) -> None:
        for ticket in reversed(self.tickets):
            await ticket.unused()
