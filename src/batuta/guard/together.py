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
from collections.abc import Iterable
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
        admitted: list[tuple[Guard, Admit]] = []
        try:
            held = await self._ask(self._guards, now, admitted)
            waited = timedelta(seconds=self._clock.monotonic() - asked)
            free = [guard for guard, admit in admitted if admit.ticket is FREE]
            if held is None and waited >= STALE and len(free) < len(admitted):
                held = await self._ask(free, now + waited, [])
        except BaseException:
            await asyncio.shield(_all(admitted).unused())
            raise
        if held is None:
            by = min((admit.by for _, admit in admitted if admit.by is not None), default=None)
            return Admit(_all(admitted), by)
        await _all(admitted).unused()
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

    async def used(self, told: Told) -> None:
        for ticket in self.tickets:
            await ticket.used(told)

    async def unused(self) -> None:
        for ticket in reversed(self.tickets):
            await ticket.unused()
