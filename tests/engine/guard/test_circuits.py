"""Circuit breakers on both databases, shared by independent processes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from batuta.guard.base import WORKED, Admit, Effect, EffectReport, Hold
from batuta.guard.breaker import CircuitRule, CircuitState
from batuta.guard.circuits import LOOK_EVERY, NOTE_EVERY, Breaker, Circuits
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import UnknownWord
from batuta.kernel.events import CircuitMoved
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import code_of
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.circuits import SqlCircuits
from batuta.testing import EventRecorder, FakeClock

SECOND = timedelta(seconds=1)
RULE = CircuitRule(
    name="evolution", failures=3, reset=300 * SECOND, longest_reset=1800 * SECOND, probe_within=60 * SECOND
)
CHIP = CircuitRule(name="chip:*", failures=3, reset=300 * SECOND)
BROKE = EffectReport(Effect.BROKE, "HTTP 503")


def circuits_on(database: Database, ids: Ids, clock: FakeClock, events: EventRecorder) -> Circuits:
    """Return a second set of circuits on the database, as another process would open it."""
    circuits = Circuits(SqlCircuits(database, ids, clock, events, own_time=True), clock, lambda: 0.0)
    circuits.add(RULE)
    circuits.add(CHIP)
    return circuits


@pytest.fixture
def circuits(database: Database, ids: Ids, clock: FakeClock, events: EventRecorder) -> Circuits:
    return circuits_on(database, ids, clock, events)


@pytest.fixture
async def elsewhere(database_url: str, ids: Ids, clock: FakeClock, events: EventRecorder) -> AsyncIterator[Circuits]:
    other = connect(database_url, SystemClock())
    await other.open()
    yield circuits_on(other, ids, clock, events)
    await other.close()


async def admitted(breaker: Breaker, clock: FakeClock) -> Admit:
    verdict = await breaker.admit(clock.now())
    assert isinstance(verdict, Admit), verdict
    return verdict


async def fail(breaker: Breaker, clock: FakeClock, times: int, report: EffectReport = BROKE) -> None:
    for _ in range(times):
        await (await admitted(breaker, clock)).ticket.report(report)


async def count(database: Database, text: str) -> int:
    row = await database.one(
        in_dialect(query_of("count", f"SELECT count(*) AS n FROM {text}", writes=False), database.dialect)
    )
    assert row is not None
    return int(row["n"])


async def test_circuit_opened_by_one_process_is_open_in_every_other(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock
) -> None:
    other = elsewhere.breaker("evolution")
    await admitted(other, clock)
    await fail(circuits.breaker("evolution"), clock, 3)
    await clock.advance(LOOK_EVERY.total_seconds())
    held = await other.admit(clock.now())
    assert isinstance(held, Hold)
    assert code_of(held.reason) == "circuit_open"


async def test_failures_of_several_processes_count_together(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock
) -> None:
    await fail(circuits.breaker("evolution"), clock, 2)
    await fail(elsewhere.breaker("evolution"), clock, 1)
    (circuit,) = await circuits.look()
    assert (circuit.state, circuit.failures) == (CircuitState.OPEN, 3)


async def test_half_open_circuit_admits_one_caller_of_all_processes(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock
) -> None:
    here, there = circuits.breaker("evolution"), elsewhere.breaker("evolution")
    await fail(here, clock, 3)
    await clock.advance(300)
    verdicts = await asyncio.gather(*(each.admit(clock.now()) for _ in range(50) for each in (here, there)))
    assert sum(isinstance(verdict, Admit) for verdict in verdicts) == 1
    (probe,) = [verdict for verdict in verdicts if isinstance(verdict, Admit)]
    await probe.ticket.report(WORKED)
    await clock.advance(LOOK_EVERY.total_seconds())
    await admitted(here, clock)
    await admitted(there, clock)


async def test_probe_of_a_dead_process_is_replaced_when_its_lease_expires(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock
) -> None:
    here, there = circuits.breaker("evolution"), elsewhere.breaker("evolution")
    await fail(here, clock, 3)
    await clock.advance(300)
    dead = await admitted(here, clock)
    await clock.advance(59)
    assert isinstance(await there.admit(clock.now()), Hold)
    await clock.advance(1)
    living = await admitted(there, clock)
    await dead.ticket.report(BROKE)  # the process was only slow; its report is ignored now
    await living.ticket.report(WORKED)
    (circuit,) = await circuits.look()
    assert circuit.state is CircuitState.CLOSED


async def test_probe_that_times_out_does_not_leave_the_circuit_half_open(circuits: Circuits, clock: FakeClock) -> None:
    breaker = circuits.breaker("evolution")
    await fail(breaker, clock, 3)
    for _ in range(3):
        await clock.advance(300)
        await (await admitted(breaker, clock)).ticket.report(EffectReport(Effect.TIMED_OUT, "ReadTimeout"))
        (circuit,) = await circuits.look()
        assert circuit.state is CircuitState.OPEN


async def test_every_transition_is_a_row_and_one_event(
    circuits: Circuits, clock: FakeClock, events: EventRecorder
) -> None:
    began = clock.now()
    breaker = circuits.breaker("evolution")
    await fail(breaker, clock, 3)
    await clock.advance(300)
    await (await admitted(breaker, clock)).ticket.report(BROKE)
    await clock.advance(600)
    await (await admitted(breaker, clock)).ticket.report(WORKED)
    history = await circuits.history("evolution", began)
    assert [
        (each.before.value, each.after.value, each.failures, code_of(each.reason)) for each in reversed(history)
    ] == [
        ("closed", "open", 3, "failures_in_a_row"),
        ("open", "half_open", 3, "probe_due"),
        ("half_open", "open", 4, "probe_failed"),
        ("open", "half_open", 4, "probe_due"),
        ("half_open", "closed", 4, "probe_worked"),
    ]
    assert [(event.before, event.after) for event in events.of(CircuitMoved)] == [
        (each.before.value, each.after.value) for each in reversed(history)
    ]
    assert await circuits.history("chip:1", began) == []
    assert await circuits.history(None, clock.now() - SECOND) == history[:2]


async def test_success_of_a_closed_circuit_is_written_at_most_once_a_minute(
    circuits: Circuits, database: Database, clock: FakeClock
) -> None:
    breaker = circuits.breaker("evolution")
    await (await admitted(breaker, clock)).ticket.report(WORKED)
    noted = clock.now()
    for _ in range(59):
        await clock.advance(1)
        await (await admitted(breaker, clock)).ticket.report(WORKED)
    (circuit,) = await circuits.look()
    assert circuit.last_success == noted
    await clock.advance(1)
    await (await admitted(breaker, clock)).ticket.report(WORKED)
    (circuit,) = await circuits.look()
    assert circuit.last_success == noted + NOTE_EVERY


@pytest.mark.parametrize("effect", [Effect.WORKED, Effect.MISTAKE, Effect.TIMED_OUT])
async def test_retry_after_is_kept_for_every_effect(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock, effect: Effect
) -> None:
    breaker = circuits.breaker("evolution")
    await (await admitted(breaker, clock)).ticket.report(WORKED)
    await (await admitted(breaker, clock)).ticket.report(EffectReport(effect, "HTTP 403", clock.now() + 60 * SECOND))
    for each in (breaker, elsewhere.breaker("evolution")):
        held = await each.admit(clock.now())
        assert isinstance(held, Hold)
        assert held.until == clock.now() + 60 * SECOND


async def test_closed_circuit_is_read_once_in_half_a_second(
    circuits: Circuits, database: Database, clock: FakeClock
) -> None:
    breaker = circuits.breaker("evolution")
    await admitted(breaker, clock)
    await database.script("DROP TABLE circuits")
    for _ in range(100):
        await admitted(breaker, clock)


async def test_unavailable_database_holds(
    elsewhere: Circuits, database: Database, ids: Ids, clock: FakeClock, events: EventRecorder
) -> None:
    closed = connect("sqlite:///nowhere/none.db", SystemClock())
    circuits = circuits_on(closed, ids, clock, events)
    assert await circuits.breaker("evolution").admit(clock.now()) == Hold(
        clock.now() + SECOND, "cannot read circuit evolution"
    )


async def test_each_chip_has_its_own_circuit(circuits: Circuits, clock: FakeClock) -> None:
    await fail(circuits.breaker("chip:1"), clock, 3)
    assert isinstance(await circuits.breaker("chip:1").admit(clock.now()), Hold)
    await admitted(circuits.breaker("chip:2"), clock)
    assert [(each.name, each.state.value) for each in await circuits.look()] == [
        ("chip:1", "open"),
        ("evolution", "closed"),
    ]
    with pytest.raises(UnknownWord, match="did you mean evolution"):
        circuits.breaker("evolutoin")


async def test_unused_ticket_returns_the_probe(circuits: Circuits, elsewhere: Circuits, clock: FakeClock) -> None:
    here, there = circuits.breaker("evolution"), elsewhere.breaker("evolution")
    await fail(here, clock, 3)
    await clock.advance(300)
    await (await admitted(here, clock)).ticket.give_back()
    await admitted(there, clock)


async def test_operator_may_close_the_circuit_and_is_recorded(
    circuits: Circuits, database: Database, clock: FakeClock
) -> None:
    breaker = circuits.breaker("evolution")
    await fail(breaker, clock, 3)
    await circuits.reset("evolution", by="operador")
    await admitted(breaker, clock)
    (last, *_) = await circuits.history("evolution", clock.now())
    assert (last.after, last.reason) == (CircuitState.CLOSED, "reset by operador")
    assert await count(database, "audit_log WHERE actor = 'operador' AND action = 'circuit.reset'") == 1


async def test_hundred_concurrent_failures_open_the_circuit_once(
    circuits: Circuits, elsewhere: Circuits, clock: FakeClock, events: EventRecorder
) -> None:
    passes = [await admitted(each.breaker("evolution"), clock) for _ in range(25) for each in (circuits, elsewhere)]
    await asyncio.gather(*(each.ticket.report(BROKE) for each in passes))
    assert len(events.of(CircuitMoved)) == 1
    assert len(await circuits.history(None, clock.now())) == 1


async def test_pruner_deletes_old_transitions_and_unused_circuits(
    circuits: Circuits, database: Database, ids: Ids, clock: FakeClock, events: EventRecorder
) -> None:
    await fail(circuits.breaker("chip:1"), clock, 3)
    await clock.advance(3600)
    await fail(circuits.breaker("chip:2"), clock, 3)
    store = SqlCircuits(database, ids, clock, events, own_time=True)
    assert await store.prune(before=clock.now(), limit=100) == 1
    assert [each.circuit for each in await circuits.history(None, clock.now() - timedelta(days=1))] == ["chip:2"]
    assert [each.name for each in await circuits.look()] == ["chip:2", "evolution"]
