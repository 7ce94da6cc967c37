"""The ledger of job calls on both databases."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from batuta.dispatch.calls import Answered, Busy, JobCallPruner, KeyReused, NewCall, Opened
from batuta.stores.sql.calls import SqlJobCalls
from batuta.stores.sql.database import Database
from batuta.supervise.loop import Idle
from batuta.testing import FakeClock

LEASE = timedelta(minutes=5)


@pytest.fixture
def calls(migrated: Database) -> SqlJobCalls:
    return SqlJobCalls(migrated)


def call(clock: FakeClock, key: str = "k1", subject: str = "heartbeat", fingerprint: str = "f") -> NewCall:
    return NewCall(key=key, endpoint=subject, subject=subject, fingerprint=fingerprint, lease_until=clock.now() + LEASE)


async def test_a_repeated_key_gets_the_first_answer(calls: SqlJobCalls, clock: FakeClock) -> None:
    assert await calls.open(call(clock), now=clock.now()) == Opened()
    await calls.close("k1", 200, {"status": "ok", "items_processed": 3}, opened_at=clock.now(), now=clock.now())
    assert await calls.open(call(clock), now=clock.now()) == Answered(200, {"status": "ok", "items_processed": 3})


async def test_while_it_runs_neither_its_key_nor_its_subject_can_be_opened(
    calls: SqlJobCalls, clock: FakeClock
) -> None:
    await calls.open(call(clock), now=clock.now())
    assert await calls.open(call(clock), now=clock.now()) == Busy(same_key=True)
    assert await calls.open(call(clock, key="k2"), now=clock.now()) == Busy()
    assert await calls.open(call(clock, key="k3", subject="other"), now=clock.now()) == Opened()


async def test_of_many_at_once_exactly_one_opens(calls: SqlJobCalls, clock: FakeClock) -> None:
    openings = await asyncio.gather(*(calls.open(call(clock, key=f"k{n}"), now=clock.now()) for n in range(20)))
    assert sorted(type(opening).__name__ for opening in openings) == ["Busy"] * 19 + ["Opened"]


async def test_a_call_whose_process_died_is_out_of_the_way_when_its_lease_ends(
    calls: SqlJobCalls, clock: FakeClock
) -> None:
    await calls.open(call(clock), now=clock.now())
    later = clock.now() + LEASE + timedelta(seconds=1)
    again = replace(call(clock), lease_until=later + LEASE)
    assert await calls.open(again, now=later) == Opened()


async def test_a_key_used_for_something_else_is_a_mistake(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call(clock), now=clock.now())
    await calls.close("k1", 200, {}, opened_at=clock.now(), now=clock.now())
    assert await calls.open(call(clock, fingerprint="other"), now=clock.now()) == KeyReused()


async def test_a_call_that_was_cut_off_can_be_repeated_at_once(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call(clock), now=clock.now())
    await calls.forget("k1", opened_at=clock.now())
    assert await calls.open(call(clock), now=clock.now()) == Opened()


async def test_answers_are_forgotten_after_a_day(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call(clock), now=clock.now())
    await calls.close("k1", 200, {}, opened_at=clock.now(), now=clock.now())
    pruner = JobCallPruner(calls, clock)
    await clock.advance(timedelta(hours=23))
    assert await pruner.tick() == Idle()
    assert isinstance(await calls.open(call(clock), now=clock.now()), Answered)
    await clock.advance(timedelta(hours=2))
    await pruner.tick()
    assert await calls.open(call(clock), now=clock.now()) == Opened()


async def test_whoever_lost_a_call_writes_nothing(calls: SqlJobCalls, clock: FakeClock) -> None:
    frozen = clock.now()
    await calls.open(call(clock), now=frozen)
    later = frozen + LEASE + timedelta(seconds=1)
    await calls.open(replace(call(clock), lease_until=later + LEASE), now=later)
    await calls.close("k1", 200, {"by": "the frozen one"}, opened_at=frozen, now=later)
    await calls.forget("k1", opened_at=frozen)
    assert await calls.open(call(clock, key="k2"), now=later) == Busy()
    await calls.close("k1", 200, {"by": "the other"}, opened_at=later, now=later)
    assert await calls.open(call(clock), now=later) == Answered(200, {"by": "the other"})
