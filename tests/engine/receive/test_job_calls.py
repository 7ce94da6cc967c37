"""The ledger of job calls on both databases."""

import asyncio
from datetime import timedelta

import pytest

from batuta.kernel.clock import SystemClock
from batuta.receive.receiver import Answered, Busy, CallOpened, KeyReused, NewCall
from batuta.stores.sql.calls import SqlJobCalls
from batuta.stores.sql.database import Database
from batuta.testing import FakeClock

DAY = timedelta(days=1)
LEASE = timedelta(minutes=5)


@pytest.fixture
def calls(database: Database, clock: FakeClock) -> SqlJobCalls:
    return SqlJobCalls(database, clock.now)


def call(key: str = "k1", subject: str = "heartbeat", fingerprint: str = "f") -> NewCall:
    return NewCall(key=key, endpoint=subject, subject=subject, fingerprint=fingerprint, lease=LEASE)


async def test_a_repeated_key_gets_the_first_answer(calls: SqlJobCalls, clock: FakeClock) -> None:
    assert await calls.open(call()) == CallOpened(clock.now())
    await calls.close("k1", 200, {"status": "ok", "items_processed": 3}, opened_at=clock.now())
    assert await calls.open(call()) == Answered(200, {"status": "ok", "items_processed": 3})


async def test_while_it_runs_neither_its_key_nor_its_subject_can_be_opened(
    calls: SqlJobCalls, clock: FakeClock
) -> None:
    await calls.open(call())
    assert await calls.open(call()) == Busy(same_key=True)
    assert await calls.open(call(key="k2")) == Busy()
    assert await calls.open(call(key="k3", subject="other")) == CallOpened(clock.now())


async def test_of_many_at_once_exactly_one_opens(calls: SqlJobCalls, clock: FakeClock) -> None:
    openings = await asyncio.gather(*(calls.open(call(key=f"k{n}")) for n in range(20)))
    assert sorted(type(opening).__name__ for opening in openings) == ["Busy"] * 19 + ["CallOpened"]


async def test_a_call_whose_process_died_is_out_of_the_way_when_its_lease_ends(
    calls: SqlJobCalls, clock: FakeClock
) -> None:
    await calls.open(call())
    clock.step(LEASE + timedelta(seconds=1))
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_a_key_used_for_something_else_is_a_mistake(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.close("k1", 200, {}, opened_at=clock.now())
    assert await calls.open(call(fingerprint="other")) == KeyReused()


async def test_a_call_that_was_cut_off_can_be_repeated_at_once(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.forget("k1", opened_at=clock.now())
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_answers_are_forgotten_after_a_day(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.close("k1", 200, {}, opened_at=clock.now())
    await clock.advance(timedelta(hours=23))
    assert await calls.prune(keep=DAY, limit=10) == 0
    assert isinstance(await calls.open(call()), Answered)
    await clock.advance(timedelta(hours=2))
    assert await calls.prune(keep=DAY, limit=10) == 1
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_whoever_lost_a_call_writes_nothing(calls: SqlJobCalls, clock: FakeClock) -> None:
    frozen = clock.now()
    await calls.open(call())
    clock.step(LEASE + timedelta(seconds=1))
    later = clock.now()
    await calls.open(call())
    await calls.close("k1", 200, {"by": "the frozen one"}, opened_at=frozen)
    await calls.forget("k1", opened_at=frozen)
    assert await calls.open(call(key="k2")) == Busy()
    await calls.close("k1", 200, {"by": "the other"}, opened_at=later)
    assert await calls.open(call()) == Answered(200, {"by": "the other"})


async def test_the_clock_of_the_database_decides_about_leases_and_pruning(database: Database) -> None:
    """The clocks of two machines play no part: neither frees the other's call, nor forgets its answer."""
    if database.dialect == "sqlite":
        pytest.skip("on SQLite the machine's clock is the only one")
    one, two = SqlJobCalls(database), SqlJobCalls(database)
    opened = await one.open(call())
    assert isinstance(opened, CallOpened)
    assert await two.open(call(key="k2")) == Busy()
    assert abs(opened.at - SystemClock().now()) < timedelta(minutes=1)
    await one.close("k1", 200, {}, opened_at=opened.at)
    assert await two.prune(keep=timedelta(hours=24), limit=10) == 0
    assert await two.open(call()) == Answered(200, {})
