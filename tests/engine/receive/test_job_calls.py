"""The store for calls to job endpoints, on both databases: each idempotency key has one answer, and each job has at
most one running call.
"""

import asyncio
from datetime import timedelta

import pytest

from batuta.kernel.clock import SystemClock
from batuta.receive.receiver import Answered, Busy, CallOpened, KeyReused, NewCall
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.calls import SqlJobCalls
from batuta.testing import FakeClock

DAY = timedelta(days=1)
LEASE = timedelta(minutes=5)


@pytest.fixture
def calls(database: Database, clock: FakeClock) -> SqlJobCalls:
    return SqlJobCalls(database, clock.now)


def call(key: str = "k1", subject: str = "heartbeat", fingerprint: str = "f") -> NewCall:
    return NewCall(key=key, endpoint=subject, subject=subject, fingerprint=fingerprint, lease=LEASE)


async def test_repeated_key_gets_the_first_answer(calls: SqlJobCalls, clock: FakeClock) -> None:
    assert await calls.open(call()) == CallOpened(clock.now())
    await calls.close("k1", 200, {"status": "ok", "items_processed": 3}, opened_at=clock.now())
    assert await calls.open(call()) == Answered(200, {"status": "ok", "items_processed": 3})


async def test_running_call_blocks_its_key_and_its_subject(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    assert await calls.open(call()) == Busy(same_key=True)
    assert await calls.open(call(key="k2")) == Busy()
    assert await calls.open(call(key="k3", subject="other")) == CallOpened(clock.now())


async def test_exactly_one_of_many_concurrent_calls_opens(calls: SqlJobCalls, clock: FakeClock) -> None:
    openings = await asyncio.gather(*(calls.open(call(key=f"k{n}")) for n in range(20)))
    assert sorted(type(opening).__name__ for opening in openings) == ["Busy"] * 19 + ["CallOpened"]


async def test_call_of_a_dead_process_stops_blocking_when_its_lease_ends(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    clock.step(LEASE + timedelta(seconds=1))
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_key_reused_for_another_request_is_refused(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.close("k1", 200, {}, opened_at=clock.now())
    assert await calls.open(call(fingerprint="other")) == KeyReused()


async def test_interrupted_call_can_be_repeated_at_once(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.forget("k1", opened_at=clock.now())
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_answers_are_pruned_after_a_day(calls: SqlJobCalls, clock: FakeClock) -> None:
    await calls.open(call())
    await calls.close("k1", 200, {}, opened_at=clock.now())
    await clock.advance(timedelta(hours=23))
    assert await calls.prune(keep=DAY, limit=10) == 0
    assert isinstance(await calls.open(call()), Answered)
    await clock.advance(timedelta(hours=2))
    assert await calls.prune(keep=DAY, limit=10) == 1
    assert await calls.open(call()) == CallOpened(clock.now())


async def test_process_that_lost_a_call_writes_nothing(calls: SqlJobCalls, clock: FakeClock) -> None:
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


async def test_clock_of_the_database_decides_about_leases_and_pruning(database: Database) -> None:
    """The store uses only the database's clock, so a machine with a wrong clock neither releases a running call nor
    deletes an answer too early.
    """
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
