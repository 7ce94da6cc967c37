"""Builds the loops that serve queues: a worker and a rescuer per queue, and one lease keeper and one LISTEN connection
for all queues.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidName
from batuta.kernel.events import Events
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import Reason
from batuta.processes.presence import PresenceFolder, Recover, crash_loops
from batuta.queue.handler import ItemHandler
from batuta.queue.isolation import Isolation
from batuta.queue.item import Lease
from batuta.queue.pipeline import Pipeline
from batuta.queue.rescuer import Rescuer, recover_items
from batuta.queue.worker import Worker, WorkerPolicy
from batuta.stores.connections import Wakeups
from batuta.stores.sql.queue.store import SqlQueue
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Loop, LoopPolicy

WORKING = LoopPolicy(every=timedelta(seconds=10), stuck_after=timedelta(minutes=1), max_failures=20)


class Served(NamedTuple):
    store: SqlQueue
    handler_of: Callable[[Lease], ItemHandler | None]
    policy: WorkerPolicy
    has_rescuer: bool = True  # False: the rescuer of another queue covers the whole table
    role: str = "worker"  # the role whose processes serve the queue
    loop: str | None = None  # the name of the loop that serves the queue; None: ``worker:<queue>``

    @property
    def loop_name(self) -> str:
        return self.loop or f"worker:{self.store.name}"

    def worker(
        self,
        lease_holder: LeaseHolder,
        isolation: Isolation,
        clock: Clock,
        events: Events,
        at_a_time: int | None = None,
    ) -> Worker:
        policy = self.policy if at_a_time is None else replace(self.policy, limit=at_a_time)
        name, claims = self.store.name, self.store.claims
        worker = Worker(name, self.store, self.handler_of, lease_holder, policy, clock, events, claims, isolation)
        worker.name = self.loop_name
        return worker


def stages(
    pipeline: Pipeline,
    store_of: Callable[[str], SqlQueue],
    policy: WorkerPolicy,
    looks: timedelta | None,
    taken: Container[str],
) -> Iterator[Served]:
    """Return each stage as a queue with the stage's name. Raises InvalidName if a name is in ``taken``, the names of
    existing queues.
    """
    for n, stage in enumerate(pipeline.stages):
        if stage.name in taken:
            raise InvalidName(name=stage.name, kind="stage", why=Reason("queue_taken", "another queue is called that"))
        handler, own = (
            pipeline.handler(stage),
            replace(policy, limit=stage.budget, look_every=looks or policy.look_every),
        )
        yield Served(store_of(stage.name), lambda lease, handler=handler: handler, own, has_rescuer=n == 0)  # type: ignore[misc]


def queue_loops(
    queues: Iterable[Served],
    lease_holder: LeaseHolder,
    looks: timedelta,
    wakeups: Wakeups,
    clock: Clock,
    events: Events,
    only: Container[str] = (),
    presence: PresenceFolder | None = None,
    isolation: Isolation | None = None,
) -> Iterator[tuple[Loop, LoopPolicy]]:
    """Return the loops that serve the queues. ``looks`` is the interval at which they poll if no wake-up arrives.
    ``only`` are the queues to serve; empty means all.

    ``presence`` detects dead workers of this host; with None, only expired leases reveal them. ``isolation`` is
    shared with other code of this process that runs items.
    """
    lease = lease_holder.lease
    # A short back-off, so that the worker settles and claims again soon after an outage of the database.
    often = replace(WORKING, every=looks, backoff_cap=lease / 6)
    # Several checks per lease, because the rescuer releases a lease only after two checks.
    rescuing = replace(often, every=min(WORKING.every, lease / 3))
    keeper, isolation = LeaseKeeper(lease, clock), isolation or Isolation(clock)
    yield keeper, keeper.policy
    yield wakeups, replace(often, outlives=True)
    served_here = [each for each in queues if not only or each.store.name in only]
    if presence is not None:
        yield from crash_loops(presence, lease_holder.owner, _recoveries(served_here, wakeups, events), clock)
    for served in served_here:
        worker = served.worker(lease_holder, isolation, clock, events)
        keeper.add(worker)
        wakeups.add(served.store.name, worker.wakeup)
        yield worker, often
        if served.has_rescuer:
            yield Rescuer(served.store.name, served.store, lease, clock, events, worker.wakeup), rescuing


def _recoveries(queues: Iterable[Served], wakeups: Wakeups, events: Events) -> Iterator[Recover]:
    """Return one recovery function per table. A function is named after its queue if only one queue of the table is
    served, otherwise after the table.
    """
    tables: dict[str, list[SqlQueue]] = {}
    for served in queues:
        tables.setdefault(served.store.table.name, []).append(served.store)
    for table, stores in tables.items():
        name = stores[0].name if len(stores) == 1 else table
        yield partial(recover_items, name, stores[0], events, wakeups.wake_here)
