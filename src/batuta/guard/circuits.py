"""The circuit breakers of an application: their rules, and one breaker per circuit that caches the stored state."""

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from batuta.guard import breaker as decisions
from batuta.guard.base import Admit, Effect, EffectReport, Hold, Verdict
from batuta.guard.breaker import (
    Circuit,
    CircuitChange,
    CircuitRule,
    CircuitState,
    CircuitStore,
    Decide,
    MayProbe,
    Pass,
    Transition,
)
from batuta.guard.switches import RECHECK_AFTER
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable, require
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import unknown
from batuta.kernel.values import dataclass

# How long the state of a circuit is cached. A change by another process is visible after this time.
LOOK_EVERY = timedelta(milliseconds=500)
# How often a healthy circuit stores the instant of its last success.
NOTE_EVERY = timedelta(minutes=1)
MOST_TRANSITIONS = 1000


class Circuits:
    """The circuit breakers of an application, which all its processes share."""

    def __init__(self, store: CircuitStore, clock: Clock, chance: Callable[[], float] = random.random) -> None:
        self._store = store
        self._clock = clock
        self._chance = chance
        self._rules: dict[str, CircuitRule] = {}
        self._breakers: dict[str, Breaker] = {}

    def add(self, rule: CircuitRule) -> None:
        is_new = rule.name not in self._rules
        require("circuit", rule.name, is_new, Reason("circuit_taken", "another circuit has this name"))
        self._rules[rule.name] = rule

    @property
    def rules(self) -> tuple[CircuitRule, ...]:
        return tuple(self._rules.values())

    def rule_of(self, name: str) -> CircuitRule:
        found = self._rules.get(name) or next((rule for rule in self._rules.values() if rule.covers(name)), None)
        if found is None:
            raise unknown("circuit", name, self._rules)
        return found

    def breaker(self, name: str) -> "Breaker":
        """Return the breaker of a circuit. Each process has one breaker per name, so all callers share its cached
        state.
        """
        if name not in self._breakers:
            self._breakers[name] = Breaker(name, self.rule_of(name), self._store, self._clock, self._chance)
        return self._breakers[name]

    async def look(self) -> list[Circuit]:
        """Return the circuits of all rules, sorted by name. For a prefix rule such as ``printer:*``, return the stored
        circuits with that prefix.
        """
        return await self._store.all(self.rules)

    async def history(self, name: str | None, since: datetime, limit: int = MOST_TRANSITIONS) -> list[Transition]:
        """Return the state changes (transitions) of one circuit, newest first. If ``name`` is None, return the
        transitions of all circuits.
        """
        return await self._store.history(name, since, limit)

    async def reset(self, name: str, *, by: str, reason: str = "") -> Circuit:
        """Close a circuit by hand, whatever its state. The reason is stored in the circuit's history."""
        rule = self.rule_of(name)
        why = decisions.RESET_BECAUSE(by=by, reason=reason) if reason else decisions.RESET_BY(by=by)
        after = await self._store.change(rule, name, lambda circuit, now: decisions.close(circuit, rule, why), by=by)
        self.breaker(name).learn(after)
        return after

    async def open(self, name: str, *, lasts: timedelta | None, by: str, reason: str = "") -> Circuit:
        """Open a circuit by hand for the duration ``lasts``. If ``lasts`` is None, the reset time in the circuit's rule
        applies. ``reason`` is stored in the circuit's history.
        """
        rule = self.rule_of(name)
        why = decisions.OPENED_BECAUSE(by=by, reason=reason) if reason else decisions.OPENED_BY(by=by)
        return await self._change(
            name, lambda circuit, now: decisions.force_open(circuit, lasts or rule.reset, why, now)
        )

    async def probe(self, name: str) -> Circuit:
        """Let the next call pass an open circuit without waiting for the reset time. This call is the probe that tests
        whether the service works again.
        """
        return await self._change(name, decisions.allow_probe)

    async def _change(self, name: str, decide: Decide) -> Circuit:
        after = await self._store.change(self.rule_of(name), name, decide)
        self.breaker(name).learn(after)
        return after


class Breaker:
    """Guard for one circuit. While the circuit is closed, the guard reads the database at most every half second and
    rarely writes to it.
    """

    def __init__(
        self, name: str, rule: CircuitRule, store: CircuitStore, clock: Clock, chance: Callable[[], float]
    ) -> None:
        self.name = name
        self.rule = rule
        self._store = store
        self._clock = clock
        self._chance = chance
        self._known: Circuit | None = None
        self._looked_at = 0.0
        self._asking = asyncio.Lock()

    async def admit(self, now: datetime) -> Verdict:
        try:
            passed = await self._answer(now)
        except StoreUnavailable:
            return Hold(now + RECHECK_AFTER, decisions.CIRCUIT_AWAY(circuit=self.name))
        return passed if isinstance(passed, Hold) else Admit(BreakerTicket(self, passed))

    async def trip(self, reason: str) -> None:
        """Open the circuit immediately, regardless of the number of failures."""
        await self._change(lambda circuit, now: decisions.trip(circuit, self.rule, reason, now))

    def learn(self, circuit: Circuit) -> None:
        self._known, self._looked_at = circuit, self._clock.monotonic()

    async def report(self, permit: Pass, report: EffectReport) -> None:
        if permit.probe is None and self._changes_nothing(report):
            return
        await self._change(lambda circuit, now: decisions.apply_report(circuit, self.rule, permit, report, now))

    async def give_back(self, permit: Pass) -> None:
        probe = permit.probe
        if probe is not None:
            await self._change(lambda circuit, now: decisions.cancel_probe(circuit, probe, now))

    async def _change(self, decide: Decide) -> Circuit:
        circuit = await self._store.change(self.rule, self.name, decide)
        self.learn(circuit)
        return circuit

    async def _answer(self, now: datetime) -> Pass | Hold:
        answer = decisions.answer(await self._circuit(), now, self._chance())
        if not isinstance(answer, MayProbe):
            return answer
        # if many callers see that the reset time has passed, only one of them queries the database
        async with self._asking:
            answer = decisions.answer(await self._circuit(), now, self._chance())
            return answer if not isinstance(answer, MayProbe) else await self._probe(now)

    async def _probe(self, now: datetime) -> Pass | Hold:
        is_mine = False

        def decide(circuit: Circuit, at: datetime) -> CircuitChange | None:
            nonlocal is_mine
            change = decisions.start_probe(circuit, self.rule, at)
            is_mine = change is not None
            return change

        circuit = await self._change(decide)
        if is_mine:
            return Pass(circuit.probe)
        answer = decisions.answer(circuit, now, self._chance())
        # According to the database's clock, the reset time has not passed yet.
        return (
            Hold(now + RECHECK_AFTER, decisions.CIRCUIT_OPEN_ELSEWHERE(circuit=self.name))
            if isinstance(answer, MayProbe)
            else answer
        )

    async def _circuit(self) -> Circuit:
        if self._known is None or self._clock.monotonic() - self._looked_at >= LOOK_EVERY.total_seconds():
            self.learn(await self._store.read(self.rule, self.name))
        assert self._known is not None
        return self._known

    def _changes_nothing(self, report: EffectReport) -> bool:
        known = self._known
        if report.retry_at is not None or known is None or known.state is not CircuitState.CLOSED:
            return False
        if report.effect is Effect.WORKED:
            is_noted = known.last_success is not None and self._clock.now() - known.last_success < NOTE_EVERY
            return known.failures == 0 and is_noted
        return report.effect is Effect.MISTAKE or (report.effect is Effect.TIMED_OUT and not self.rule.count_timeouts)


@dataclass(frozen=True, slots=True)
class BreakerTicket:
    """Ticket for a call that a circuit breaker admitted. If the database is unavailable, the ticket's report is dropped
    without an error, because the reports of later calls also update the circuit.
    """

    breaker: Breaker
    permit: Pass

    async def report(self, report: EffectReport) -> None:
        with suppress(StoreUnavailable):
            await self.breaker.report(self.permit, report)

    async def give_back(self) -> None:
        with suppress(StoreUnavailable):
            await self.breaker.give_back(self.permit)
