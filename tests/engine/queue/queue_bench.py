"""A worker on a real store and a fake clock, without the rest of the engine, for the queue's contract tests."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease, NewItem
from batuta.queue.outcome import Done, after_seconds
from batuta.queue.worker.isolation import Isolation
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.sql.database import AsJson, Database
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.tables.controls import SqlSwitches
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Idle, Pace
from batuta.tasks.registry import TASKS
from batuta.testing import EventRecorder, FakeClock
from batuta.testing.clock import settle
from tests.stored import readable

LEASE = timedelta(seconds=30)
SECOND = timedelta(seconds=1)
Handler = Callable[[Lease], Awaitable[object]]


class Bench:
    def __init__(self, database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> None:
        self.clock, self.events, self.ids = clock, events, ids
        self.database = database
        self.store = self._queue("default")
        self.switches = SqlSwitches(database, ids, events)
        self.handlers: dict[str, ItemHandler] = {}

    def worker(self, queue: str = "default", *, isolation: Isolation | None = None, **policy: Any) -> Worker:
        lease_holder = LeaseHolder(owner=self.ids.new(), lease=LEASE)
        find = lambda lease: self.handlers.get(lease.row["name"])  # noqa: E731
        store = self.store if queue == "default" else self._queue(queue)
        made = WorkerPolicy(**policy)
        worker = Worker(queue, store, find, lease_holder, made, self.clock, self.events, isolation=isolation)
        self.keeper = LeaseKeeper(LEASE, self.clock)  # the lease keeper of the most recent worker
        self.keeper.add(worker)
        return worker

    def _queue(self, name: str) -> SqlQueue:
        return SqlQueue(self.database, TASKS, self.ids, self.clock, queue=name, own_time=True)

    def handles(self, name: str, handle: Handler, **options: Any) -> None:
        self.handlers[name] = ItemHandler(handle=handle, **{"retry": after_seconds([60]), **options})

    async def put(self, *names: str, queue: str = "default", **options: Any) -> list[str]:
        items = [NewItem(values={"name": name, "args": AsJson([])}, **options) for name in names]
        return [str(id) for id in await self._queue(queue).put(items)]

    async def row(self, id: str) -> dict[str, Any]:
        row = await self.store.item(id)
        assert row is not None
        return readable(row)

    async def works(self, worker: Worker) -> Pace:
        """Tick the worker until every item that it started has ended and been settled."""
        pace = await worker.tick()
        for _ in range(4):
            await settle()
            await asyncio.gather(*worker.tasks, return_exceptions=True)
            pace = await worker.tick()
        return pace

    async def crash(self, id: str, times: int) -> None:
        for _ in range(times):
            leases = (await self.store.settle_and_claim([], LeaseHolder(owner="x", lease=LEASE), 100)).leases
            assert id in [lease.id for lease in leases]
            self.clock.step(LEASE + SECOND)
            await self.store.rescue(100)


async def fine(lease: Lease) -> object:
    return Done()


async def for_ever(lease: Lease) -> object:
    return await asyncio.Event().wait()


def until(pace: Pace, clock: FakeClock) -> timedelta:
    assert isinstance(pace, Idle)
    assert pace.until is not None
    return pace.until - clock.now()
