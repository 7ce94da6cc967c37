"""A task that knocks politely: in the right hours, not too often, and not at all while nobody opens."""

from datetime import time, timedelta

from batuta import Batuta, Failed, Snooze
from batuta.guards import Admit, AllOf, Effect, EffectReport, Hold, HoursGuard, Limit, RateGuard
from batuta.jobs import Window

work = Batuta("sqlite:///courier.db", timezone="America/Sao_Paulo")
work.circuit("gateway", failures=3, reset=60)
hourly = work.limit(Limit(name="letters/hour", key="letters", most=20, per=timedelta(hours=1)))
always = Window(opens=time(0), lasts=timedelta(days=1), days=frozenset(range(7)))

may = AllOf(
    HoursGuard(name="delivery hours", window=always, zone=work.zone),
    work.circuits.breaker("gateway"),
    RateGuard(rates=work.rates, limits=(hourly,)),
    clock=work.clock,
)


@work.task(retry=[60, 300])
async def deliver(ctx: object, letter: str, *, door: str = "open") -> Snooze | Failed | str:
    match await may.admit(work.clock.now()):
        case Hold(until=until, reason=reason):
            return Snooze(until, reason)
        case Admit(ticket=ticket):
            worked = door == "open"  # here something outside would be called
            await ticket.used(EffectReport(Effect.WORKED if worked else Effect.BROKE, "nobody opened"))
            return f"delivered {letter}" if worked else Failed("nobody opened")
