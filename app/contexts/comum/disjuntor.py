"""Requests to the gateway that pass through its circuit breaker. Sends do not: the send protocol asks the breaker itself."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from app.contexts.comum.whatsapp import Unavailable
from batuta.guards import WORKED, Circuits, Effect, EffectReport, Hold
from batuta.kernel import Clock
from batuta.reasons import hold_reason

GATEWAY: Final = "evolution"
T = TypeVar("T")


class Disjuntor:
    """Passes a request on unless the gateway's circuit is open, and reports its result to the circuit."""

    def __init__(self, circuits: Circuits, clock: Clock) -> None:
        self._breaker = circuits.breaker(GATEWAY)
        self._clock = clock

    async def ask(self, call: str, ask: Callable[[], Awaitable[T | Unavailable]]) -> T | Unavailable:
        """Return the answer, or why the request was not made. ``call`` names the request for operators."""
        verdict = await self._breaker.admit(self._clock.now())
        if isinstance(verdict, Hold):
            return Unavailable(hold_reason(verdict.reason))
        try:
            answer = await ask()
        except BaseException:
            await verdict.ticket.give_back()
            raise
        await verdict.ticket.report(report_of(answer, call))
        return answer


def report_of(answer: object, call: str) -> EffectReport:
    """Return a request's result for the circuit. A gateway that does not know an instance or group works."""
    if not isinstance(answer, Unavailable):
        return WORKED
    return EffectReport(Effect.MISTAKE if answer.not_found else Effect.BROKE, call)
