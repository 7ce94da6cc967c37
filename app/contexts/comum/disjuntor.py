"""Make requests to the WhatsApp gateway through its circuit breaker. Only messages are sent in another way: the send
protocol uses the circuit breaker itself.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from app.contexts.comum.whatsapp import Unavailable
from batuta.guards import WORKED, Circuits, Effect, EffectReport, Hold
from batuta.kernel import Clock
from batuta.reasons import hold_reason

GATEWAY: Final = "evolution"
T = TypeVar("T")


class Disjuntor:
    """Makes requests to the WhatsApp gateway and reports each result to the gateway's circuit breaker. While the
    circuit is open, no request is made.
    """

    def __init__(self, circuits: Circuits, clock: Clock) -> None:
        self._breaker = circuits.breaker(GATEWAY)
        self._clock = clock

    async def ask(self, call: str, ask: Callable[[], Awaitable[T | Unavailable]]) -> T | Unavailable:
        """Make a request to the WhatsApp gateway and return the answer. If the circuit breaker is open, make no request
        and return the reason. ``call`` is the name of the request that operators see.
        """
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
    """Convert the result of a request to a report for the circuit breaker. If the WhatsApp gateway answers that it does
    not know an instance or a group, the report is not a failure, because the gateway itself works.
    """
    if not isinstance(answer, Unavailable):
        return WORKED
    return EffectReport(Effect.MISTAKE if answer.not_found else Effect.BROKE, call)
