"""Stores circuit breakers in ``circuits``. Every transition is also recorded in ``circuit_transitions``, in the same
transaction.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from batuta.guard.breaker import Circuit, CircuitRule, CircuitState, Decide, Transition, fresh
from batuta.kernel.clock import Clock
from batuta.kernel.events import CircuitMoved, Events
from batuta.kernel.ids import Ids
from batuta.kernel.reasons import decode, encode
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import Database, Query, Row, Transaction, from_row, read_clock
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import load_queries
from batuta.stores.sql.tables.audit import AuditLog

_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class CircuitQueries:
    circuit: Query
    all: Query
    hold: Query
    save: Query
    note: Query
    history: Query
    history_of: Query
    prune: Query
    forget: Query


class SqlCircuits:
    """Stores the state of circuit breakers. With ``own_time`` the store uses this process's clock; otherwise it uses
    PostgreSQL's clock, which all machines share.
    """

    def __init__(self, database: Database, ids: Ids, clock: Clock, events: Events, *, own_time: bool = False) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._events = events
        self._own_time = own_time or database.dialect == "sqlite"
        self._queries = load_queries(CircuitQueries, STATEMENTS / "circuits.sql", database.dialect)
        self._audit = AuditLog(database.dialect, ids)

    async def read(self, rule: CircuitRule, name: str) -> Circuit:
        row = await self._database.one(self._queries.circuit, name=name)
        return fresh(rule, name) if row is None else _circuit(row, rule)

    async def all(self, rules: Sequence[CircuitRule]) -> list[Circuit]:
        rows = await self._database.all(self._queries.all)
        own = {rule.name: fresh(rule, rule.name) for rule in rules if not rule.is_family}
        ruled = [(row, next((rule for rule in rules if rule.covers(row["circuit_name"])), None)) for row in rows]
        written = {row["circuit_name"]: _circuit(row, rule) for row, rule in ruled if rule is not None}
        return [each for _, each in sorted({**own, **written}.items())]

    async def change(
        self, rule: CircuitRule, name: str, decide: Decide, *, by: str | None = None, now: datetime | None = None
    ) -> Circuit:
        async with self._database.transaction() as transaction:
            held = await transaction.one(
                self._queries.hold, name=name, reset_ms=_milliseconds(rule.reset), now=now or self._clock.now()
            )
            assert held is not None
            before = _circuit(held, rule)
            # Read the time after locking the row, so that a caller that had to wait for the lock does not decide with
            # an outdated time.
            at = now or await self._now(transaction)
            change = decide(before, at)
            if change is None:
                return before
            after = change.circuit
            await transaction.run(self._queries.save, **_values(after), now=at)
            if after.state is not before.state:
                await self._note(transaction, before, after, change.reason, at)
            if by is not None:
                await self._audit.note(
                    transaction,
                    actor=by,
                    action="circuit.reset",
                    subject=name,
                    before=before.state,
                    after={"state": after.state, "reason": encode(change.reason)},
                    now=at,
                )
        if after.state is not before.state:
            self._events.emit(CircuitMoved(name, before.state.value, after.state.value, change.reason, after.failures))
        return after

    async def history(self, name: str | None, since: datetime, limit: int) -> list[Transition]:
        if name is None:
            rows = await self._database.all(self._queries.history, since=since, limit=limit)
        else:
            rows = await self._database.all(self._queries.history_of, name=name, since=since, limit=limit)
        return [_transition(row) for row in rows]

    async def prune(self, *, before: datetime, limit: int) -> int:
        await self._database.run(self._queries.forget, before=before)
        return await self._database.run(self._queries.prune, before=before, limit=limit)

    async def _note(
        self, transaction: Transaction, before: Circuit, after: Circuit, reason: str, now: datetime
    ) -> None:
        await transaction.run(
            self._queries.note,
            id=self._ids.new(),
            name=after.name,
            before=before.state.value,
            after=after.state.value,
            reason=encode(reason),
            # Use the larger of the two counts, because closing a circuit resets its count.
            failures=max(before.failures, after.failures),
            half_open_attempts=max(before.half_open_attempts, after.half_open_attempts),
            now=now,
        )

    async def _now(self, within: Transaction) -> datetime:
        return self._clock.now() if self._own_time else await read_clock(within)


def _circuit(row: Row, rule: CircuitRule) -> Circuit:
    circuit = from_row(
        Circuit,
        row,
        name=row["circuit_name"],
        state=CircuitState(row["state"]),
        failures=row["falhas_consecutivas"],
        half_open_attempts=row["tentativas_half_open"],
        reset=row["reset_ms"] * _MILLISECOND,
        last_failure=row["last_failure_at"],
        last_success=row["last_success_at"],
    )
    # A closed circuit uses the reset time of its current rule instead of the one stored in its row.
    return replace(circuit, reset=rule.reset) if circuit.state is CircuitState.CLOSED else circuit


def _values(circuit: Circuit) -> dict[str, object]:
    values = {name: getattr(circuit, name) for name in Circuit.__dataclass_fields__ if name != "reset"}
    return {**values, "state": circuit.state.value, "reset_ms": _milliseconds(circuit.reset)}


def _transition(row: Row) -> Transition:
    return Transition(
        circuit=row["circuit_name"],
        before=CircuitState(row["from_state"]),
        after=CircuitState(row["to_state"]),
        reason=decode(row["reason"]) or "",
        failures=row["falhas_consecutivas"],
        at=row["created_at"],
    )


def _milliseconds(span: timedelta) -> int:
    return span // _MILLISECOND
