"""All guards of an effect, in the order in which they are checked: switches, sending hours, pilot mode, circuit breaker
and rate limit. The tests run on both databases.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import time, timedelta

import pytest

from batuta import Batuta
from batuta.guard.base import WORKED
from batuta.guard.breaker import CircuitState
from batuta.guards import Admit, AllOf, Effect, EffectReport, Hold, HoursGuard, Limit, RateGuard, SwitchGuard
from batuta.kernel.reasons import Reason
from batuta.schedule.window import Window
from batuta.testing import FakeClock

HOUR = Limit(name="hora", key="envios", most=5, per=timedelta(hours=1))


@dataclass
class GuardedEffect:
    work: Batuta
    clock: FakeClock
    may: AllOf

    async def ask_guards(self) -> Admit | Hold:
        return await self.may.admit(self.clock.now())

    async def reason(self) -> tuple[str, object]:
        """Return why the effect was held back: the code of the reason and the first of the reason's facts."""
        verdict = await self.ask_guards()
        assert isinstance(verdict, Hold), verdict
        assert isinstance(verdict.reason, Reason)
        return verdict.reason.code, next(iter(verdict.reason.facts.values()))

    async def do(self, report: EffectReport = WORKED) -> None:
        verdict = await self.ask_guards()
        assert isinstance(verdict, Admit), verdict
        await verdict.ticket.report(report)

    async def used(self) -> int:
        return (await self.work.rates.count_used([HOUR]))["hora"]

    async def set_switch(self, key: str, on: bool) -> None:
        await self.work.switches.set(key, on, by="ana", reason="x", now=self.clock.now())


@pytest.fixture
async def guarded(database_url: str, clock: FakeClock) -> AsyncIterator[GuardedEffect]:
    work = Batuta(database_url, clock=clock)
    work.circuit("gateway", failures=3, reset=60)
    work.limit(HOUR)
    hours = Window(opens=time(8), lasts=timedelta(hours=12))
    may = AllOf(
        SwitchGuard(switches=work.switches, key="pausa"),
        HoursGuard(name="horário", window=hours, zone=work.zone),
        SwitchGuard(switches=work.switches, key="pilot_mode"),
        work.circuits.breaker("gateway"),
        RateGuard(rates=work.rates, limits=(HOUR,)),
        clock=clock,
    )
    async with work:
        yield GuardedEffect(work, clock, may)


async def test_each_guard_holds_in_its_turn_and_a_held_call_takes_no_token(
    guarded: GuardedEffect, clock: FakeClock
) -> None:
    await guarded.do()
    await guarded.set_switch("pilot_mode", True)
    assert await guarded.reason() == ("switch_on", "pilot_mode")
    await guarded.set_switch("pausa", True)
    assert await guarded.reason() == ("switch_on", "pausa")
    await guarded.set_switch("pausa", False)
    await clock.advance(11 * 3600)  # from 09:00 to 20:00 in São Paulo
    assert await guarded.reason() == ("outside_hours", "horário")
    await guarded.set_switch("pilot_mode", False)
    await clock.advance(12 * 3600)
    for _ in range(3):
        await guarded.do(EffectReport(Effect.BROKE, "HTTP 503"))
    assert await guarded.reason() == ("circuit_open", "gateway")
    assert await guarded.used() == 3


async def test_probe_held_by_a_rate_limit_is_available_to_the_next_caller(
    guarded: GuardedEffect, clock: FakeClock
) -> None:
    for report in (WORKED, WORKED, *[EffectReport(Effect.BROKE, "HTTP 503")] * 3):
        await guarded.do(report)
    await clock.advance(60)
    assert await guarded.reason() == ("rate_limit", "hora")
    (circuit,) = await guarded.work.circuits.look()
    assert circuit.state is CircuitState.HALF_OPEN
    await clock.advance(3540)
    await guarded.do()
    (circuit,) = await guarded.work.circuits.look()
    assert circuit.state is CircuitState.CLOSED


async def test_unreached_service_counts_for_the_circuit_and_not_for_the_limit(guarded: GuardedEffect) -> None:
    for _ in range(3):
        await guarded.do(EffectReport(Effect.UNREACHED, "ConnectError"))
    assert await guarded.used() == 0
    assert await guarded.reason() == ("circuit_open", "gateway")
