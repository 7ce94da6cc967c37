"""Circuit breakers: pure decisions, and the interface of their store.

              N failures in a row               the reset has passed: one probe
    ┌────────┐ ─────────────────▶ ┌──────┐ ──────────────────────────────▶ ┌───────────┐
    │ closed │                    │ open │ ◀────────────────────────────── │ half_open │
    └────────┘ ◀───────┐          └──────┘  failure: the reset doubles;    └───────────┘
                       │                    timeout: one more probe               │
                       └───────────────────────────────────────────────────────────┘ success

The database has one row per circuit, so all processes share one state. While a circuit is half open, one caller in the
whole cluster may pass (the probe). If the probe sends no report within its time limit, for example because its process
died, another caller becomes the probe.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol, TypeAlias

from batuta.guard.base import Effect, EffectReport, Hold
from batuta.kernel.errors import require
from batuta.kernel.reasons import Reason, define
from batuta.kernel.values import dataclass

CIRCUIT_OPEN = define("circuit_open", "circuit open: {circuit}, {why}")
CIRCUIT_OPEN_ELSEWHERE = define("circuit_open_elsewhere", "circuit open: {circuit}")
CIRCUIT_PROBED = define("circuit_probed", "circuit open: {circuit} is being tested by another call")
CIRCUIT_AWAY = define("circuit_away", "cannot read circuit {circuit}")
ASKED_TO_WAIT = define("asked_to_wait", "{circuit} requested a pause (Retry-After)")
FAILURES = define("failures_in_a_row", "{count} failures in a row; the last: {error}")
PROBE_DUE = define("probe_due", "the wait of {reset} has passed: one call may test the service")
PROBE_WORKED = define("probe_worked", "the probe succeeded")
PROBE_ANSWERED = define("probe_answered", "the service is working again: it answered the probe ({error})")
PROBE_LATE = define("probe_late", "the probe timed out")
PROBE_FAILED = define("probe_failed", "the probe failed ({error})")
RESET_BY = define("circuit_reset", "reset by {by}")
RESET_BECAUSE = define("circuit_reset_because", "reset by {by}: {reason}")
OPENED_BY = define("circuit_opened", "opened by {by}")
OPENED_BECAUSE = define("circuit_opened_because", "opened by {by}: {reason}")
SHORTEST_RESET = timedelta(seconds=1)
LONGEST_RESET = timedelta(days=1)
# Held callers retry at different instants, spread over this time or over the reset if it is shorter. So they do not
# overload a recovering service.
LONGEST_SPREAD = timedelta(minutes=1)
A_MOMENT = timedelta(seconds=1)
LONGEST_ERROR = 100
FAMILY = ":*"


class CircuitState(StrEnum):
    """The states of a circuit. A closed circuit lets calls pass, an open circuit holds calls back, and a half-open
    circuit lets one probe pass.
    """

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitRule:
    """Settings of a circuit. A rule whose ``name`` ends in ``:*`` applies to all circuits with that prefix:
    ``printer:*`` covers ``printer:1`` and ``printer:2``.
    """

    name: str
    failures: int = 5  # number of consecutive failures that open the circuit
    reset: timedelta = timedelta(minutes=1)  # wait between the opening and the first probe
    longest_reset: timedelta = timedelta(minutes=30)  # upper bound of the reset, which doubles after each failed probe
    count_timeouts: bool = False  # whether a timeout counts as a failure
    probe_within: timedelta = timedelta(minutes=5)  # a probe without a report is considered dead after this time

    def __post_init__(self) -> None:
        name, resets = self.name, SHORTEST_RESET <= self.reset <= self.longest_reset <= LONGEST_RESET
        probes = timedelta(0) < self.probe_within <= LONGEST_RESET
        require("circuit", name, name.split() == [name], Reason("circuit_name", "it needs a name without spaces"))
        require("circuit", name, self.failures >= 1, Reason("circuit_least", "it must open after at least one failure"))
        why = "its reset must be at least a second and at most its longest reset, which must be at most a day"
        require("circuit", name, resets, why)
        require("circuit", name, probes, Reason("circuit_probe", "its probe_within must be positive and at most a day"))

    @property
    def is_family(self) -> bool:
        return self.name.endswith(FAMILY)

    def covers(self, name: str) -> bool:
        return (not self.is_family and name == self.name) or (
            self.is_family and name.startswith(self.name.removesuffix("*"))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """The stored row of one circuit: its state, counters and times."""

    name: str
    state: CircuitState = CircuitState.CLOSED
    failures: int = 0  # number of consecutive failures
    half_open_attempts: int = 0  # number of probes since the circuit opened
    reset: timedelta  # current reset time
    last_failure: datetime | None = None
    last_success: datetime | None = None  # updated at most once a minute
    last_error: str | None = None  # class or status of the last error, never its message
    opened_at: datetime | None = None
    wait_until: datetime | None = None  # instant that the called service named in Retry-After
    probe_until: datetime | None = None  # instant at which the current probe is considered dead
    probe: int = 0  # number of the last probe; reports of older probes are ignored

    @property
    def tries_at(self) -> datetime | None:
        """Instant at which an open circuit lets a probe pass; None if the circuit is not open."""
        return None if self.state is not CircuitState.OPEN or self.opened_at is None else self.opened_at + self.reset


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    circuit: str
    before: CircuitState
    after: CircuitState
    reason: str
    failures: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Pass:
    """Permission to call the service. If the call is the probe of a half-open circuit, ``probe`` is its number."""

    probe: int | None = None


@dataclass(frozen=True, slots=True)
class MayProbe:
    """Decision for an open circuit whose reset time has passed: one call may test the service. The first caller that
    stores a probe makes this call.
    """


@dataclass(frozen=True, slots=True)
class CircuitChange:
    """The new values of a circuit. ``reason`` is set only if the circuit's state changes."""

    circuit: Circuit
    reason: str = ""


Answer: TypeAlias = Pass | MayProbe | Hold
Decide: TypeAlias = Callable[[Circuit, datetime], CircuitChange | None]


class CircuitStore(Protocol):
    """Interface of the circuit store. A circuit without a row has its rule's initial values."""

    async def read(self, rule: CircuitRule, name: str) -> Circuit: ...

    async def all(self, rules: Sequence[CircuitRule]) -> list[Circuit]:
        """Return the circuits that the rules cover. For a single-circuit rule, return its circuit even if it is not
        stored; for a prefix rule such as ``printer:*``, return the stored circuits with that prefix.
        """

    async def change(
        self, rule: CircuitRule, name: str, decide: Decide, *, by: str | None = None, now: datetime | None = None
    ) -> Circuit:
        """Call ``decide`` while the circuit is locked, and write the change that it returns. ``by`` names the operator
        for the audit log.
        """

    async def history(self, name: str | None, since: datetime, limit: int) -> list[Transition]:
        """Return the state changes (transitions) of the circuit ``name`` since a given time, newest first. If ``name``
        is None, return the transitions of all circuits.
        """


def fresh(rule: CircuitRule, name: str) -> Circuit:
    return Circuit(name=name, reset=rule.reset)


def answer(circuit: Circuit, now: datetime, chance: float) -> Answer:
    """Decide whether a call may pass. ``chance``, a random number in [0, 1), spreads over time the retries of callers
    that are held back.
    """
    spread = min(circuit.reset, LONGEST_SPREAD) * chance
    if circuit.wait_until is not None and _is_ahead(circuit.wait_until, now):
        return Hold(circuit.wait_until + spread, ASKED_TO_WAIT(circuit=circuit.name))
    if circuit.state is CircuitState.CLOSED:
        return Pass()
    if circuit.tries_at is not None and _is_ahead(circuit.tries_at, now):
        return Hold(circuit.tries_at + spread, CIRCUIT_OPEN(circuit=circuit.name, why=_failures(circuit)))
    if circuit.state is CircuitState.HALF_OPEN and circuit.probe_until and _is_ahead(circuit.probe_until, now):
        return Hold(now + max(A_MOMENT, spread), CIRCUIT_PROBED(circuit=circuit.name))
    return MayProbe()


def start_probe(circuit: Circuit, rule: CircuitRule, now: datetime) -> CircuitChange | None:
    """Make the caller's call the probe of the circuit. Return None if another caller has already started a probe."""
    if not isinstance(answer(circuit, now, 0.0), MayProbe):
        return None
    after = replace(
        circuit,
        state=CircuitState.HALF_OPEN,
        half_open_attempts=circuit.half_open_attempts + 1,
        probe=circuit.probe + 1,
        probe_until=now + rule.probe_within,
    )
    return CircuitChange(after, PROBE_DUE(reset=circuit.reset))


def cancel_probe(circuit: Circuit, probe: int, now: datetime) -> CircuitChange | None:
    """Cancel a probe whose call was not attempted, so that the next caller may probe immediately."""
    return CircuitChange(replace(circuit, probe_until=now)) if _is_probe(circuit, probe) else None


def apply_report(
    circuit: Circuit, rule: CircuitRule, permit: Pass, what: EffectReport, now: datetime
) -> CircuitChange | None:
    """Return the change that a report causes, or None if it causes no change. A report about a call that began before
    the circuit opened neither closes nor reopens the circuit.
    """
    waiting = circuit if what.retry_at is None else replace(circuit, wait_until=_wait(circuit, what.retry_at, now))
    if permit.probe is None:
        change = _apply_to_closed(waiting, rule, what, now) if circuit.state is CircuitState.CLOSED else None
    else:
        change = _apply_to_probe(waiting, rule, what, now) if _is_probe(circuit, permit.probe) else None
    return change or (CircuitChange(waiting) if waiting != circuit else None)


def trip(circuit: Circuit, rule: CircuitRule, reason: str, now: datetime) -> CircuitChange | None:
    """Open the circuit immediately, regardless of the number of failures."""
    return None if circuit.state is CircuitState.OPEN else CircuitChange(_open(circuit, rule.reset, now), reason)


def force_open(circuit: Circuit, lasts: timedelta, reason: str, now: datetime) -> CircuitChange:
    """Open the circuit by hand for the duration ``lasts`` (at most LONGEST_RESET). After that, a probe decides whether
    the circuit closes.
    """
    return CircuitChange(_open(circuit, min(lasts, LONGEST_RESET), now), reason)


def allow_probe(circuit: Circuit, now: datetime) -> CircuitChange | None:
    """Let the next call pass an open circuit, as the probe that tests whether the service works again. Return None if
    the circuit is not open.
    """
    if circuit.state is not CircuitState.OPEN:
        return None
    return CircuitChange(replace(circuit, opened_at=now - circuit.reset, wait_until=None))


def close(circuit: Circuit, rule: CircuitRule, reason: str) -> CircuitChange:
    after = fresh(rule, circuit.name)
    seen = {
        "last_failure": circuit.last_failure,
        "last_success": circuit.last_success,
        "last_error": circuit.last_error,
    }
    return CircuitChange(replace(after, probe=circuit.probe, **seen), reason)  # type: ignore[arg-type]


def _apply_to_closed(circuit: Circuit, rule: CircuitRule, what: EffectReport, now: datetime) -> CircuitChange | None:
    if what.effect is Effect.WORKED:
        return CircuitChange(replace(circuit, failures=0, last_success=now))
    if not _is_failure(what.effect, rule):
        return None
    failed = _count_failure(circuit, what, now)
    if failed.failures < rule.failures:
        return CircuitChange(failed)
    return CircuitChange(_open(failed, rule.reset, now), _failures(failed))


def _apply_to_probe(circuit: Circuit, rule: CircuitRule, what: EffectReport, now: datetime) -> CircuitChange:
    if what.effect is Effect.WORKED:
        return _close_recovered(replace(circuit, last_success=now), rule, PROBE_WORKED())
    if what.effect is Effect.MISTAKE:
        return _close_recovered(circuit, rule, PROBE_ANSWERED(error=what.error or what.effect.value))
    failed = _count_failure(circuit, what, now)
    if not _is_failure(what.effect, rule):  # the probe was inconclusive, and the circuit must not stay half open
        return CircuitChange(_open(replace(failed, failures=circuit.failures), circuit.reset, now), PROBE_LATE())
    longer = min(circuit.reset * 2, rule.longest_reset)
    return CircuitChange(_open(failed, longer, now), PROBE_FAILED(error=failed.last_error))


def _close_recovered(circuit: Circuit, rule: CircuitRule, reason: str) -> CircuitChange:
    """Close the circuit after a successful probe. If the service requested a wait (Retry-After), calls are still held
    back until that wait ends.
    """
    change = close(circuit, rule, reason)
    return replace(change, circuit=replace(change.circuit, wait_until=circuit.wait_until))


def _is_ahead(until: datetime, now: datetime) -> bool:
    """Return whether ``until`` is in the future. An instant that is further away than the longest wait was written
    before the clock was set back, and is ignored.
    """
    return now < until <= now + 2 * LONGEST_RESET


def _wait(circuit: Circuit, retry_at: datetime, now: datetime) -> datetime:
    """Return the end of the wait that the service requested, at most LONGEST_RESET from now. A shorter wait does not
    replace a longer one.
    """
    asked = min(retry_at, now + LONGEST_RESET)
    known = circuit.wait_until
    return max(asked, known) if known is not None and _is_ahead(known, now) else asked


def _is_failure(effect: Effect, rule: CircuitRule) -> bool:
    return effect in (Effect.BROKE, Effect.UNREACHED) or (effect is Effect.TIMED_OUT and rule.count_timeouts)


def _is_probe(circuit: Circuit, probe: int) -> bool:
    return circuit.state is CircuitState.HALF_OPEN and circuit.probe == probe


def _count_failure(circuit: Circuit, what: EffectReport, now: datetime) -> Circuit:
    error = (what.error or what.effect.value)[:LONGEST_ERROR]
    return replace(circuit, failures=circuit.failures + 1, last_failure=now, last_error=error)


def _open(circuit: Circuit, reset: timedelta, now: datetime) -> Circuit:
    attempts = circuit.half_open_attempts if circuit.state is not CircuitState.CLOSED else 0
    return replace(
        circuit, state=CircuitState.OPEN, opened_at=now, reset=reset, probe_until=None, half_open_attempts=attempts
    )


def _failures(circuit: Circuit) -> Reason:
    return FAILURES(count=circuit.failures, error=circuit.last_error)
