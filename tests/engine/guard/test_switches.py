"""Durable switches on both databases: other processes see a change immediately, and the audit log records it."""

import asyncio
from datetime import timedelta

import pytest

from batuta.guard.base import Hold
from batuta.guard.switches import SwitchGuard, SwitchRule, judge_switch
from batuta.kernel.clock import SystemClock
from batuta.kernel.events import SwitchChanged
from batuta.kernel.ids import Ids
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.testing import EventRecorder, FakeClock


@pytest.fixture
def switches(database: Database, ids: Ids, events: EventRecorder) -> SqlSwitches:
    return SqlSwitches(database, ids, events)


async def test_switch_reads_back_as_it_was_set(switches: SqlSwitches, clock: FakeClock) -> None:
    until = clock.now() + timedelta(hours=5)
    switch = await switches.set("pausa", True, by="ana", reason="feriado", now=clock.now(), until=until)
    assert await switches.read("pausa") == switch
    assert await switches.read("another") is None


async def test_last_change_counts(switches: SqlSwitches, clock: FakeClock) -> None:
    for on in (True, False, True, False):
        await switches.set("pausa", on, by="ana", reason="teste", now=clock.now())
    switch = await switches.read("pausa")
    assert switch is not None
    assert switch.on is False


async def test_every_change_is_in_the_audit_log_and_emits_one_event(
    switches: SqlSwitches, database: Database, clock: FakeClock, events: EventRecorder
) -> None:
    await switches.set("pausa", True, by="ana", reason="feriado", now=clock.now())
    await switches.set("pausa", False, by="rui", reason="acabou", now=clock.now())
    notes = query_of("notes", "SELECT actor, action, subject, before, after FROM audit_log ORDER BY id", writes=False)
    rows = await database.all(in_dialect(notes, database.dialect))
    assert [tuple(row[key] for key in ("actor", "action", "subject", "before", "after")) for row in rows] == [
        ("ana", "switch.set", "pausa", None, {"on": True, "reason": "feriado", "until": None}),
        ("rui", "switch.set", "pausa", True, {"on": False, "reason": "acabou", "until": None}),
    ]
    assert [(event.on, event.by) for event in events.of(SwitchChanged)] == [(True, "ana"), (False, "rui")]


async def test_other_process_sees_a_change_at_once(
    switches: SqlSwitches, database_url: str, clock: FakeClock, ids: Ids, events: EventRecorder
) -> None:
    other = connect(database_url, SystemClock())
    await other.open()
    try:
        guard = SwitchGuard(switches=SqlSwitches(other, ids, events), key="pausa")
        await switches.set("pausa", True, by="ana", reason="feriado", now=clock.now())
        assert isinstance(await guard.admit(clock.now()), Hold)
    finally:
        await other.close()


async def test_switch_is_read_inside_the_given_transaction(
    switches: SqlSwitches, database: Database, clock: FakeClock
) -> None:
    await switches.set("pausa", True, by="ana", reason="feriado", now=clock.now())
    async with database.transaction() as transaction:
        switch = await switches.read("pausa", within=transaction)
    assert switch is not None
    assert switch.on


async def test_value_written_by_sql_is_understood(switches: SqlSwitches, database: Database) -> None:
    by_hand = (
        "INSERT INTO feature_flags (key, value, reason, updated_by, updated_at)"
        " VALUES ('campaigns.enabled', 'false', 'sql', 'dba', now())"
    )
    await database.script(by_hand)
    switch = await switches.read("campaigns.enabled")
    assert switch is not None
    assert switch.on is False


async def test_concurrent_changes_leave_one_switch_and_an_audit_row_each(
    switches: SqlSwitches, database: Database, clock: FakeClock
) -> None:
    changes = (switches.set("pausa", bool(n % 2), by=f"p{n}", reason="x", now=clock.now()) for n in range(20))
    await asyncio.gather(*changes)
    count = "SELECT (SELECT count(*) FROM feature_flags) AS flags, (SELECT count(*) FROM audit_log) AS notes"
    row = await database.one(in_dialect(query_of("count", count, writes=False), database.dialect))
    assert row is not None
    assert (row["flags"], row["notes"]) == (1, 20)


@pytest.mark.parametrize("hours", [1, -1])
async def test_pause_lasts_as_long_as_requested_with_any_clock_of_the_caller(
    database: Database, ids: Ids, events: EventRecorder, hours: int
) -> None:
    if database.dialect == "sqlite":
        pytest.skip("on SQLite the machine's clock is the only one")
    switches = SqlSwitches(database, ids, events, own_time=False)
    there = SystemClock().now() + timedelta(hours=hours)
    switch = await switches.set("pausa", True, by="ana", reason="-", now=there, until=there + timedelta(minutes=30))
    now = SystemClock().now()
    assert switch.until is not None
    assert timedelta(minutes=29) < switch.until - now <= timedelta(minutes=30)
    assert isinstance(judge_switch(SwitchRule(key="pausa"), await switches.read("pausa"), now), Hold)
    assert await switches.read("pausa") == switch
