"""A circuit breaker that receives random reports from random callers in random order."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from batuta.guard.base import Effect, EffectReport, Hold
from batuta.guard.breaker import (
    CircuitRule,
    CircuitState,
    MayProbe,
    Pass,
    answer,
    apply_report,
    cancel_probe,
    fresh,
    start_probe,
)
from batuta.testing import FakeClock
from tests.faults.figures import LONG

SECOND = timedelta(seconds=1)
effects = st.sampled_from(list(Effect))
spans = st.sampled_from([0, 1, 9, 10, 19, 20, 21, 40, 80]).map(lambda seconds: seconds * SECOND)


class BreakerMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.rule = CircuitRule(
            name="x", failures=3, reset=10 * SECOND, longest_reset=40 * SECOND, probe_within=20 * SECOND
        )
        self.clock = FakeClock()
        self.circuit = fresh(self.rule, "x")
        self.out: list[Pass] = []  # admitted, without a report yet
        self.failed_in_a_row = 0

    @rule()
    def ask(self) -> None:
        now = self.clock.now()
        found = answer(self.circuit, now, 0.5)
        if isinstance(found, MayProbe):
            change = start_probe(self.circuit, self.rule, now)
            assert change is not None
            self.circuit = change.circuit
            self.out.append(Pass(self.circuit.probe))
        elif isinstance(found, Pass):
            assert self.circuit.state is CircuitState.CLOSED
            self.out.append(found)
        else:
            assert found.until > now

    @precondition(lambda self: self.out)
    @rule(data=st.data(), effect=effects, retry=st.sampled_from([None, None, None, 5]))
    def report(self, data: st.DataObject, effect: Effect, retry: int | None) -> None:
        permit = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        at = None if retry is None else self.clock.now() + retry * SECOND
        before = self.circuit
        change = apply_report(before, self.rule, permit, EffectReport(effect, "x", at), self.clock.now())
        self.circuit = before if change is None else change.circuit
        if permit.probe is None:
            assert self.circuit.state is not CircuitState.HALF_OPEN or before.state is CircuitState.HALF_OPEN
            if (
                before.state is not CircuitState.CLOSED
            ):  # the report of a call that was admitted before the opening changes nothing
                assert self.circuit.state is before.state
        if before.state is CircuitState.CLOSED and self.circuit.state is CircuitState.OPEN:
            assert effect in (Effect.BROKE, Effect.UNREACHED)
            assert self.circuit.failures == self.rule.failures

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        permit = self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))
        if (
            permit.probe is not None
            and (change := cancel_probe(self.circuit, permit.probe, self.clock.now())) is not None
        ):
            self.circuit = change.circuit

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """Simulate the death of a calling process: forget one of the calls in progress, so that its result is never
        reported.
        """
        self.out.pop(data.draw(st.integers(0, len(self.out) - 1)))

    @rule(span=spans)
    def wait(self, span: timedelta) -> None:
        self.clock.step(span)

    @invariant()
    def one_probe_at_most_is_listened_to(self) -> None:
        live = [each for each in self.out if each.probe is not None and each.probe == self.circuit.probe]
        assert len(live) <= 1

    @invariant()
    def its_reset_stays_within_its_bounds(self) -> None:
        assert self.rule.reset <= self.circuit.reset <= self.rule.longest_reset

    @invariant()
    def nothing_holds_for_ever(self) -> None:
        later = self.clock.now() + self.rule.longest_reset + self.rule.probe_within
        assert not isinstance(answer(self.circuit, later, 0.0), Hold)


TestBreaker = BreakerMachine.TestCase
TestBreaker.settings = settings(max_examples=200 if LONG else 60, stateful_step_count=40, deadline=None)
