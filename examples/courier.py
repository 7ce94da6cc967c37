"""Example of a task with guards: it delivers only during opening hours and at a limited rate, and pauses while the
gateway is failing.
"""

from datetime import time, timedelta

from batuta import Batuta, Failed, Snooze
from batuta.guards import Admit, AllOf, Effect, EffectReport, Hold, HoursGuard, Limit, RateGuard
from batuta.jobs import Window

work = Batuta("sqlite:///courier.db", timezone="America/Sao_Paulo")
work.circuit("gateway", failures=3, reset=60)
hourly = work.limit(Limit(name="letters/hour", key="letters", most=20, per=timedelta(hours=1)))
always = Window(opens=time(0), lasts=timedelta(days=1), days=frozenset(range(7)))

may_deliver = AllOf(
    HoursGuard(name="delivery hours", window=always, zone=work.zone),
    work.circuits.breaker("gateway"),
    RateGuard(rates=work.rates, limits=(hourly,)),
    clock=work.clock,
)


@work.task(retry=[60, 300])
async def deliver(letter: str, *, door: str = "open") -> Snooze | Failed | str:
    match await may_deliver.admit(work.clock.now()):
        case Hold(until=until, reason=reason):
            return Snooze(until, reason)
        case Admit(ticket=ticket):
            worked = door == "open"  # a real program calls the gateway here
            await ticket.report(EffectReport(Effect.WORKED if worked else Effect.BROKE, "no answer"))
            return f"delivered {letter}" if worked else Failed("no answer")
