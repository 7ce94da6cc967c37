"""On PostgreSQL, a row locked by another transaction blocks neither the renewal nor the settlement of other rows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import RowLocked, StatementRefused, StoreUnavailable
from batuta.kernel.ids import Ids
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import Settlement
from batuta.stores import connect
from batuta.stores.sql.database import AsJson, ConnectionLimits, Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock
from tests.engine.queue.contract import ANN, DONE, ITEM_LEASE, SECOND

LOCK = in_dialect(query_of("lock", "SELECT id FROM tasks WHERE id = :id FOR UPDATE", writes=True), "postgres")
ITEM = NewItem(values={"name": "f", "args": AsJson([[], {}])})


@pytest.fixture
async def queue(database: Database, database_url: str, clock: FakeClock, ids: Ids) -> AsyncIterator[SqlQueue]:
    """A queue whose renewals and settlements use separate connections with a short lock timeout."""
    if database.dialect != "postgres":
        pytest.skip("SQLite has one writer and no row locks")
    liveness = connect(database_url, SystemClock(), ConnectionLimits(lock=timedelta(seconds=1), readers=1))
    await liveness.open()
    yield SqlQueue(database, TASKS, ids, clock, queue="default", own_time=True, liveness=liveness)
    await liveness.close()


@asynccontextmanager
async def locked(database: Database, lease: Lease) -> AsyncIterator[None]:
    async with database.transaction() as transaction:
        await transaction.all(LOCK, id=lease.id)
        yield


async def claimed(queue: SqlQueue, count: int = 10) -> list[Lease]:
    await queue.put([ITEM] * count)
    leases = list((await queue.settle_and_claim([], ANN, count)).leases)
    assert len(leases) == count
    return leases


async def test_locked_row_does_not_block_the_renewal_of_other_rows(
    queue: SqlQueue, database: Database, clock: FakeClock
) -> None:
    first, *others = await claimed(queue)
    clock.step(ITEM_LEASE - SECOND)
    async with locked(database, first):
        renewed = await queue.renew([first, *others], ANN)
        assert not renewed.lost
        clock.step(2 * SECOND)
        # The lease of the locked row has expired, and other workers cannot claim the row either.
        assert await queue.rescue(100) == []
    assert [rescued.id for rescued in await queue.rescue(100)] == [first.id]
    assert set((await queue.renew([first, *others], ANN)).lost) == {first.id}


async def test_cancellation_of_a_locked_row_is_reported_with_the_renewal(queue: SqlQueue, database: Database) -> None:
    first, *_ = leases = await claimed(queue, 2)
    await queue.cancel(first.id, "no longer wanted")
    async with locked(database, first):
        assert set((await queue.renew(leases, ANN)).cancelled) == {first.id}


@pytest.mark.parametrize("limit", [0, 5])
async def test_locked_row_stays_unchecked_while_other_rows_are_settled(
    queue: SqlQueue, database: Database, limit: int
) -> None:
    first, *others = await claimed(queue)
    (waiting,) = await queue.put([ITEM])
    endings = [(lease, DONE) for lease in (first, *others)]
    async with locked(database, first):
        result = await queue.settle_and_claim(endings, ANN, limit)
        assert [lease.id for lease in result.unchecked] == [first.id]
        assert not result.lost
        assert [lease.id for lease in result.leases] == ([waiting] if limit else [])
        again = await queue.settle_and_claim([(first, DONE)], ANN, limit)
        assert [lease.id for lease in again.unchecked] == [first.id]
    settled = await queue.settle_and_claim([(first, DONE)], ANN, 0)
    assert not settled.lost
    assert not settled.unchecked
    assert (await queue.counts())["complete"] == 10


async def test_locked_row_keeps_many_settlements_unchecked_and_does_not_delay_the_claim(
    queue: SqlQueue, database: Database
) -> None:
    first, *others = await claimed(queue, 150)
    await queue.put([ITEM] * 120)
    endings = [(lease, DONE) for lease in (first, *others)]
    async with locked(database, first):
        result = await queue.settle_and_claim(endings, ANN, 120)
        assert len(result.unchecked) == 150
        assert len(result.leases) == 120
        assert not result.lost
        again = await queue.settle_and_claim(endings, ANN, 0)
        assert [lease.id for lease in again.unchecked] == [first.id]
    await queue.settle_and_claim([(first, DONE)], ANN, 0)
    assert (await queue.counts())["complete"] == 150


async def test_failed_claim_does_not_undo_the_settlements_beside_it(
    queue: SqlQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases = await claimed(queue, 150)
    await queue.put([ITEM] * 120)

    async def fails(*_: object, **__: object) -> list[Lease]:
        raise StoreUnavailable(where="here", why="the connection was lost")

    monkeypatch.setattr(queue._claims, "claim", fails)
    result = await queue.settle_and_claim([(lease, DONE) for lease in leases], ANN, 120)
    assert isinstance(result.claim_error, StoreUnavailable)
    assert not result.lost
    assert (await queue.counts())["complete"] == 150


async def test_refused_settlements_end_the_claim_beside_them(queue: SqlQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = await claimed(queue, 150)
    claiming: list[str] = []

    async def waits(*_: object, **__: object) -> list[Lease]:
        claiming.append("began")
        try:
            await asyncio.Event().wait()
        finally:
            claiming.append("ended")
        return []

    monkeypatch.setattr(queue._claims, "claim", waits)
    refused = [(lease._replace(id="no id"), DONE) for lease in leases]
    with pytest.raises(StatementRefused):
        await queue.settle_and_claim(refused, ANN, 120)
    assert claiming == ["began", "ended"]


async def test_lost_lease_beside_a_locked_row_is_proven_lost(
    queue: SqlQueue, database: Database, clock: FakeClock
) -> None:
    locked_one, taken = await claimed(queue, 2)
    clock.step(ITEM_LEASE - SECOND)
    await queue.renew([locked_one], ANN)
    clock.step(2 * SECOND)
    assert [rescued.id for rescued in await queue.rescue(10)] == [taken.id]
    async with locked(database, locked_one):
        result = await queue.settle_and_claim([(locked_one, DONE), (taken, DONE)], ANN, 0)
    assert [lease.id for lease in result.lost] == [taken.id]
    assert [lease.id for lease in result.unchecked] == [locked_one.id]


async def test_item_with_an_effect_is_not_settled_while_its_row_is_locked(queue: SqlQueue, database: Database) -> None:
    (lease,) = await claimed(queue, 1)
    ran = []

    async def effect(transaction: object) -> None:
        ran.append(transaction)

    settlement = Settlement(state=ItemState.DONE, effect=effect)
    async with locked(database, lease):
        with pytest.raises(RowLocked, match="end that transaction"):
            await asyncio.create_task(queue.conclude(lease, settlement))
    assert not ran
    assert await queue.conclude(lease, settlement)
    assert len(ran) == 1
