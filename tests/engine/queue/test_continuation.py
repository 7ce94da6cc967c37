"""A large claim may continue in the queue after the last item of the previous claim. No item waits longer than a second
because of this, and urgent items still come first.
"""

from datetime import datetime, timedelta

import pytest

from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import ItemState, Lease, NewItem
from batuta.queue.outcome import Settlement
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queue import claim, store
from batuta.stores.sql.queue.continuation import Continuation
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import FakeClock

SECOND = timedelta(seconds=1)
HOLDER = LeaseHolder(owner="a", lease=timedelta(minutes=1))
MANY = 5
DONE = Settlement(ItemState.DONE)
RELEASED = Settlement(ItemState.READY, gives_back=True)


class Client:
    """A client of the queue that settles the items of its previous claim and claims the next ones in one step, like a
    worker under load.
    """

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.queue = SqlQueue(database, TASKS, Ids(clock), clock, queue="default", own_time=True)
        self._now = clock.now
        self._held: list[Lease] = []

    async def put(self, count: int = 1, *, at: datetime | None = None, priority: int = 0) -> list[str]:
        values = {"name": "f", "args": AsJson([])}
        item = NewItem(values=values, priority=priority, available_at=at or self._now())
        return [id for id in await self.queue.put([item] * count) if id is not None]

    async def claim(self, *, reversed: bool = False) -> list[str]:
        endings = [(lease, DONE) for lease in self._held]
        result = await self.queue.settle_and_claim(endings, HOLDER, MANY, reversed=reversed)
        assert not result.lost
        self._held = list(result.leases)
        return [lease.id for lease in self._held]

    async def release(self) -> list[str]:
        """Return the items of the last claim to the queue without running them."""
        released = [lease.id for lease in self._held]
        await self.queue.settle_and_claim([(lease, RELEASED) for lease in self._held], HOLDER, 0)
        self._held = []
        return released


@pytest.fixture(autouse=True)
def small_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the queue treat a claim of five items as large. Normally only a claim of at least 100 items is large and
    continues after the previous one.
    """
    monkeypatch.setattr(claim, "APART", MANY)
    monkeypatch.setattr(store, "APART", MANY)


@pytest.fixture
def client(database: Database, clock: FakeClock) -> Client:
    return Client(database, clock)


async def test_consecutive_claims_return_each_item_once_and_in_order(client: Client, clock: FakeClock) -> None:
    due = [clock.now() + timedelta(milliseconds=place // 3) for place in range(23)]
    ids = [id for at in due for id in await client.put(at=at)]
    await clock.advance(SECOND)
    claims = [set(await client.claim()) for _ in range(6)]
    assert claims == [{*ids[:5]}, {*ids[5:10]}, {*ids[10:15]}, {*ids[15:20]}, {*ids[20:]}, set()]


async def test_an_urgent_item_comes_before_the_rest_of_a_long_queue(client: Client) -> None:
    await client.put(6 * MANY, priority=5)
    for _ in range(3):
        await client.claim()
    (urgent,) = await client.put(priority=1)
    assert urgent in await client.claim()


async def test_the_least_urgent_item_gets_its_turn_beside_a_long_queue(client: Client) -> None:
    await client.put(6 * MANY, priority=5)
    for _ in range(3):
        await client.claim()
    (patient,) = await client.put(priority=9)
    assert patient in await client.claim(reversed=True)


async def test_an_item_that_became_due_earlier_waits_at_most_a_second(client: Client, clock: FakeClock) -> None:
    now = clock.now()
    await client.put(8 * MANY, at=now)
    for _ in range(3):
        await client.claim()
    (earlier,) = await client.put(at=now - SECOND)
    await clock.advance(SECOND)
    assert earlier in await client.claim()


async def test_an_earlier_item_is_claimed_at_the_latest_when_nothing_else_waits(
    client: Client, clock: FakeClock
) -> None:
    now = clock.now()
    await client.put(4 * MANY, at=now)
    for _ in range(3):
        await client.claim()
    (earlier,) = await client.put(at=now - SECOND)
    assert earlier in {*await client.claim(), *await client.claim()}
    assert await client.claim() == []


async def test_released_items_are_claimed_again_beside_a_long_queue(client: Client, clock: FakeClock) -> None:
    await client.put(8 * MANY)
    for _ in range(3):
        await client.claim()
    released = await client.release()
    await clock.advance(SECOND)
    claimed = [id for _ in range(5) for id in await client.claim()]
    assert {*released} <= {*claimed}


async def test_two_workers_share_a_long_queue_without_overlap(database: Database, clock: FakeClock) -> None:
    both = Client(database, clock), Client(database, clock)
    ids = await both[0].put(10 * MANY)
    claimed = [id for _ in range(6) for each in both for id in await each.claim()]
    assert sorted(claimed) == sorted(ids)


def test_two_concurrent_claims_may_both_find_too_few_items(clock: FakeClock) -> None:
    """Workers of one process share the place. Both claims have leased items, so neither may fail."""
    leases = [Lease("00000000-0000-7000-8000-000000000001", 1, 1, {}, due=1.0)] * MANY
    place = Continuation(TASKS, clock)
    place.begin([(0,)] * MANY, leases, place.now())
    assert place.parameters() == place.parameters() is not None
    place.move(leases[1:], MANY)
    place.move(leases[1:], MANY)
    place.move(leases, MANY)
    assert place.parameters() is None
