"""The states of a circuit breaker: the conditions under which it opens, blocks calls, admits a probe and closes."""

from dataclasses import replace
from datetime import timedelta

import pytest

from batuta.guard.base import WORKED, Effect, EffectReport, Hold, effect_of_error, effect_of_status
from batuta.guard.breaker import (
    Circuit,
    CircuitRule,
    CircuitState,
    MayProbe,
    Pass,
    answer,
    apply_report,
    cancel_probe,
    close,
    fresh,
    start_probe,
    trip,
)
from batuta.kernel.errors import DeadlineExceeded, InvalidName
from batuta.testing import FakeClock

SECOND = timedelta(seconds=1)
RULE = CircuitRule(name="evolution", failures=3, reset=300 * SECOND, longest_reset=1000 * SECOND)
BROKE = EffectReport(Effect.BROKE, "HTTP 503")
TIMED_OUT = EffectReport(Effect.TIMED_OUT, "ReadTimeout")
CLOSED, OPEN, HALF_OPEN = CircuitState.CLOSED, CircuitState.OPEN, CircuitState.HALF_OPEN


def after(
    circuit: Circuit, clock: FakeClock, *reports: EffectReport, rule: CircuitRule = RULE, permit: Pass | None = None
) -> Circuit:
    for report in reports:
        change = apply_report(circuit, rule, permit or Pass(), report, clock.now())
        circuit = circuit if change is None else change.circuit
    return circuit


def opened(clock: FakeClock, rule: CircuitRule = RULE) -> Circuit:
    return after(fresh(rule, rule.name), clock, *[BROKE] * rule.failures, rule=rule)


def half_open(clock: FakeClock, rule: CircuitRule = RULE) -> Circuit:
    change = start_probe(opened(clock, rule), rule, clock.now() + rule.reset)
    assert change is not None
    return change.circuit


def test_circuit_opens_after_consecutive_failures_with_the_reason(clock: FakeClock) -> None:
    assert after(fresh(RULE, "evolution"), clock, BROKE, BROKE).state is CLOSED
    circuit = opened(clock)
    assert (circuit.state, circuit.failures, circuit.last_error) == (OPEN, 3, "HTTP 503")
    held = answer(circuit, clock.now(), 0.0)
    assert held == Hold(clock.now() + RULE.reset, "circuit open: evolution, 3 failures in a row; the last: HTTP 503")


def test_success_between_failures_resets_the_count(clock: FakeClock) -> None:
    assert after(fresh(RULE, "evolution"), clock, BROKE, BROKE, WORKED, BROKE, BROKE).state is CLOSED


def test_client_error_never_opens_the_circuit(clock: FakeClock) -> None:
    for status in (400, 401, 403, 404, 409, 422, 499):
        assert after(fresh(RULE, "evolution"), clock, *[EffectReport(effect_of_status(status))] * 50) == fresh(
            RULE, "evolution"
        )


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_retryable_status_opens_the_circuit(status: int, clock: FakeClock) -> None:
    assert after(fresh(RULE, "evolution"), clock, *[EffectReport(effect_of_status(status))] * 3).state is OPEN


def test_error_class_counts_and_its_message_does_not() -> None:
    assert effect_of_error(ValueError("Timeout: 404 Bad Request, connection refused")) is Effect.BROKE
    assert effect_of_error(TimeoutError("HTTP 500")) is Effect.TIMED_OUT
    assert effect_of_error(DeadlineExceeded(what="it", deadline="now")) is Effect.TIMED_OUT
    assert effect_of_error(ConnectionRefusedError()) is Effect.UNREACHED


def test_timeout_counts_only_when_configured(clock: FakeClock) -> None:
    assert after(fresh(RULE, "evolution"), clock, *[TIMED_OUT] * 50).state is CLOSED
    counting = replace(RULE, count_timeouts=True)
    assert after(fresh(counting, "evolution"), clock, *[TIMED_OUT] * 3, rule=counting).state is OPEN


def test_second_probe_waits_for_the_report_of_the_first(clock: FakeClock) -> None:
    circuit, later = opened(clock), clock.now() + RULE.reset
    assert isinstance(answer(circuit, later - SECOND, 0.0), Hold)
    assert answer(circuit, later, 0.0) == MayProbe()
    trying = half_open(clock)
    assert (trying.state, trying.half_open_attempts, trying.probe) == (HALF_OPEN, 1, 1)
    assert start_probe(trying, RULE, later) is None
    assert isinstance(answer(trying, later, 0.0), Hold)


def test_failed_probe_doubles_the_reset_up_to_its_cap(clock: FakeClock) -> None:
    circuit = half_open(clock)
    assert after(circuit, clock, WORKED, permit=Pass(1)).state is CLOSED
    resets = []
    for number in range(1, 5):
        circuit = after(circuit, clock, BROKE, permit=Pass(number))
        resets.append(circuit.reset // SECOND)
        change = start_probe(circuit, RULE, clock.now() + circuit.reset)
        assert change is not None
        circuit = change.circuit
    assert resets == [600, 1000, 1000, 1000]
    assert after(circuit, clock, WORKED, permit=Pass(5)).reset == RULE.reset


def test_probe_that_timed_out_opens_the_circuit_with_the_same_reset(clock: FakeClock) -> None:
    circuit = after(half_open(clock), clock, TIMED_OUT, permit=Pass(1))
    assert (circuit.state, circuit.reset, circuit.failures) == (OPEN, RULE.reset, 3)


def test_probe_that_never_reported_is_replaced_and_ignored(clock: FakeClock) -> None:
    trying = half_open(clock)
    assert trying.probe_until is not None
    change = start_probe(trying, RULE, trying.probe_until)
    assert change is not None
    assert (change.circuit.state, change.circuit.probe, change.circuit.half_open_attempts) == (HALF_OPEN, 2, 2)
    assert apply_report(change.circuit, RULE, Pass(1), BROKE, clock.now()) is None
    assert apply_report(change.circuit, RULE, Pass(1), WORKED, clock.now()) is None


def test_unused_probe_is_available_to_the_next_caller(clock: FakeClock) -> None:
    now = clock.now() + RULE.reset
    change = cancel_probe(half_open(clock), 1, now)
    assert change is not None
    assert answer(change.circuit, now, 0.0) == MayProbe()


def test_report_of_a_call_admitted_before_the_opening_is_ignored(clock: FakeClock) -> None:
    for circuit in (opened(clock), half_open(clock)):
        assert apply_report(circuit, RULE, Pass(), WORKED, clock.now()) is None
        assert apply_report(circuit, RULE, Pass(), BROKE, clock.now()) is None


def test_probe_answered_with_a_client_error_closes_the_circuit(clock: FakeClock) -> None:
    assert after(half_open(clock), clock, EffectReport(Effect.MISTAKE, "HTTP 404"), permit=Pass(1)).state is CLOSED


def test_every_caller_waits_until_the_retry_after_of_the_service(clock: FakeClock) -> None:
    retry_at = clock.now() + 20 * SECOND
    circuit = after(fresh(RULE, "evolution"), clock, EffectReport(Effect.BROKE, "HTTP 429", retry_at))
    assert circuit.state is CLOSED
    assert answer(circuit, clock.now(), 0.0) == Hold(retry_at, "evolution requested a pause (Retry-After)")
    assert answer(circuit, retry_at, 0.0) == Pass()
    sooner = after(circuit, clock, EffectReport(Effect.BROKE, "HTTP 429", clock.now() + SECOND))
    assert sooner.wait_until == retry_at
    never = after(circuit, clock, EffectReport(Effect.BROKE, "HTTP 429", clock.now() + timedelta(days=3000)))
    assert never.wait_until == clock.now() + timedelta(days=1)


@pytest.mark.parametrize("effect", [Effect.WORKED, Effect.MISTAKE])
def test_retry_after_holds_although_a_probe_succeeded(clock: FakeClock, effect: Effect) -> None:
    trying = half_open(clock)
    clock.step(RULE.reset)
    late = after(
        trying, clock, EffectReport(Effect.BROKE, "HTTP 429", clock.now() + 3600 * SECOND)
    )  # these calls were admitted before the circuit opened
    closed = after(late, clock, EffectReport(effect), permit=Pass(trying.probe))
    assert closed.state is CLOSED
    assert isinstance(answer(closed, clock.now() + 60 * SECOND, 0.0), Hold)
    assert answer(closed, clock.now() + 3600 * SECOND, 0.0) == Pass()


def test_clock_set_back_by_weeks_does_not_prolong_a_hold(clock: FakeClock) -> None:
    waiting = after(fresh(RULE, "evolution"), clock, EffectReport(Effect.WORKED, "", clock.now() + 60 * SECOND))
    before = opened(clock), half_open(clock)
    clock.step(timedelta(days=-30))
    for circuit in before:
        assert answer(circuit, clock.now(), 0.0) == MayProbe()
    assert answer(waiting, clock.now(), 0.0) == Pass()


def test_held_callers_return_spread_out(clock: FakeClock) -> None:
    circuit = opened(clock)
    untils = [answer(circuit, clock.now(), n / 100).until for n in range(100)]  # type: ignore[union-attr]
    assert min(untils) == clock.now() + RULE.reset
    assert max(untils) - min(untils) > 59 * SECOND


def test_trip_opens_the_circuit_at_once(clock: FakeClock) -> None:
    change = trip(fresh(RULE, "evolution"), RULE, "the number was restricted", clock.now())
    assert change is not None
    assert (change.circuit.state, change.circuit.tries_at) == (OPEN, clock.now() + RULE.reset)


def test_rule_with_a_wildcard_covers_its_family() -> None:
    rule = CircuitRule(name="chip:*")
    assert rule.covers("chip:7")
    assert not rule.covers("chips")
    assert not CircuitRule(name="chip").covers("chip:7")


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": ""},
        {"name": "a b"},
        {"name": "x", "failures": 0},
        {"name": "x", "reset": timedelta(0)},
        {"name": "x", "reset": timedelta(hours=2)},
        {"name": "x", "longest_reset": timedelta(days=2)},
        {"name": "x", "probe_within": timedelta(0)},
    ],
)
def test_invalid_rule_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidName):
        CircuitRule(**wrong)  # type: ignore[arg-type]


def test_probe_from_before_a_close_is_not_taken_for_a_later_one(clock: FakeClock) -> None:
    first = half_open(clock)
    by_hand = close(first, RULE, "reset by ana").circuit
    again = start_probe(after(by_hand, clock, *[BROKE] * RULE.failures), RULE, clock.now() + RULE.reset)
    assert again is not None
    assert again.circuit.probe != first.probe
    assert after(again.circuit, clock, WORKED, permit=Pass(first.probe)).state is HALF_OPEN
