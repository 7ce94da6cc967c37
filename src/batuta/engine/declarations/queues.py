"""The methods of ``Batuta`` that declare queues and pipelines, and the loops that serve them.

Each queue has a worker, and each table a rescuer. All queues share one lease keeper and one LISTEN connection.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import NamedTuple

from batuta.access import Scope
from batuta.kernel.calls.middleware import Around
from batuta.kernel.clock import Clock
from batuta.kernel.errors import InvalidName
from batuta.kernel.events import Events
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.reasons import Reason
from batuta.kernel.suggestions import check_options
from batuta.processes.presence import PresenceFolder, Recover, crash_loops
from batuta.queue.handler import ItemHandler
from batuta.queue.item import Lease, QueueTable
from batuta.queue.limits import TaskLimits
from batuta.queue.pipeline import Pipeline
from batuta.queue.steps import Step, StepFunction, pipeline_of
from batuta.queue.worker.isolation import Isolation
from batuta.queue.worker.rescuer import Rescuer, recover_items
from batuta.queue.worker.worker import Worker, WorkerPolicy
from batuta.stores.connections import ObservedDatabase, Wakeups
from batuta.stores.sql.queue.items import ItemPipeline, SqlItems
from batuta.stores.sql.queue.store import SqlQueue
from batuta.supervise.lease_keeper import LeaseKeeper
from batuta.supervise.loop import Loop, LoopPolicy

# Retention of the items of a pipeline of functions.
KEEP_ITEMS, KEEP_DEAD_ITEMS = timedelta(days=1), timedelta(days=30)
WORKING = LoopPolicy(every=timedelta(seconds=10), stuck_after=timedelta(minutes=1), max_failures=20)


class Served(NamedTuple):
    store: SqlQueue
    handler_of: Callable[[Lease], ItemHandler | None]
    policy: WorkerPolicy
    role: str = "worker"  # the role whose processes serve the queue
    loop: str | None = None  # the name of the loop that serves the queue; None means ``worker:<queue>``
    scope: Scope = Scope.OPERATE  # the scope that an operator needs to repeat an item

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


class QueueDeclarations:
    """Base class of ``Batuta`` with the methods that declare queues and pipelines. ``Batuta`` sets the attributes."""

    database: ObservedDatabase
    liveness: ObservedDatabase
    ids: Ids
    clock: Clock
    wakeups: Wakeups
    worker_policy: WorkerPolicy
    around: Around
    _own_time: bool
    _items: SqlItems

    def __init__(self) -> None:
        super().__init__()
        self._app_queues: dict[str, Served] = {}
        self.stage_limits: list[TaskLimits] = []

    @property
    def queues(self) -> Mapping[str, SqlQueue]:
        """All queues by name, including the stages of pipelines."""
        raise NotImplementedError

    @check_options
    def add_queue(
        self,
        table: QueueTable,
        handler_of: Callable[[Lease], ItemHandler | None],
        *,
        concurrency: int | None = None,
        queue: str | None = None,
        role: str = "worker",
        loop: str | None = None,
        scope: Scope = Scope.OPERATE,
    ) -> SqlQueue:
        """Register a table as a queue that processes of ``role`` serve. If the table contains several queues, ``queue``
        is the name of this queue in the table. ``loop`` is the name of the loop that serves the queue; the default
        is ``worker:<queue>``. Operators need ``scope`` to repeat an item in the dashboard. Use ``Scope.SEND`` if the
        handler sends messages.
        """
        name = queue or table.name
        if name in self.queues:
            raise InvalidName(name=name, kind="queue", why=Reason("queue_taken", "another queue has this name"))
        store = SqlQueue(
            self.database, table, self.ids, self.clock, queue=queue, own_time=self._own_time, liveness=self.liveness
        )
        policy = self.worker_policy if concurrency is None else replace(self.worker_policy, limit=concurrency)
        self._app_queues[name] = Served(store, handler_of, policy, role=role, loop=loop, scope=scope)
        return store

    def scope_of_queue(self, name: str) -> Scope:
        """Return the scope that an operator needs to repeat an item of the queue."""
        return self._app_queues[name].scope if name in self._app_queues else Scope.OPERATE

    @check_options
    def add_pipeline(self, pipeline: Pipeline, *, look_every: timedelta | None = None) -> None:
        """Register one of the application's tables as a pipeline. The worker serves each stage as a queue with the
        stage's name. For a pipeline without a table of its own, use ``pipeline``.
        """
        store = partial(
            SqlQueue,
            self.database,
            pipeline.table,
            self.ids,
            self.clock,
            own_time=self._own_time,
            liveness=self.liveness,
        )
        limits = {name: {name: each} for name, each in pipeline.limits.items()}
        made = stages(
            pipeline,
            lambda name: store(queue=name, limits=limits.get(name)),
            self.worker_policy,
            look_every,
            self.queues,
        )
        self._app_queues |= {served.store.name: served for served in made}
        self.stage_limits += pipeline.limits.values()

    @check_options
    def pipeline(
        self,
        name: str,
        stages: Sequence[StepFunction | Step],
        *,
        keep: float = KEEP_ITEMS.total_seconds(),
        keep_dead: float = KEEP_DEAD_ITEMS.total_seconds(),
    ) -> ItemPipeline:
        """Register functions as the stages of a pipeline. Each function takes a JSON item and returns the item for the
        next stage.

        A function may also return an outcome, such as ``Skipped`` or ``Jump``; None leaves the item unchanged.
        ``batuta.pipelines.step`` gives a stage options. The worker serves the stage ``parse`` of ``orders`` as the
        queue ``orders.parse``. ``keep`` and ``keep_dead`` are the retention of finished and of dead items, in seconds.
        """
        spans = timedelta(seconds=keep), timedelta(seconds=keep_dead)
        pipeline = pipeline_of(name, stages, self._items.rows, *spans, self.around)
        self.add_pipeline(pipeline)
        self._items.unlimited |= {stage.name for stage in pipeline.stages if stage.limits is None}
        rows = self._items.rows(name, pipeline.limits)
        return ItemPipeline(rows, [self.queues[stage.name] for stage in pipeline.stages], self.wakeups.wake_here)


def stages(
    pipeline: Pipeline,
    store_of: Callable[[str], SqlQueue],
    policy: WorkerPolicy,
    looks: timedelta | None,
    taken: Container[str],
) -> Iterator[Served]:
    """Yield each stage of a pipeline as a queue. ``taken`` contains the names of existing queues. Raises InvalidName if
    a stage has one of these names.
    """
    for stage in pipeline.stages:
        if stage.name in taken:
            raise InvalidName(name=stage.name, kind="stage", why=Reason("queue_taken", "another queue has this name"))
        handler, own = (
            pipeline.handler(stage),
            replace(policy, limit=stage.budget, look_every=looks or policy.look_every),
        )
        yield Served(store_of(stage.name), lambda lease, handler=handler: handler, own)  # type: ignore[misc]


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
    """Return the loops that serve the queues. ``looks`` is the polling interval, which applies if no wake-up arrives.
    ``only`` lists the queues to serve; if it is empty, all queues are served.

    ``presence`` detects dead workers on this host; with None, a dead worker is detected when its leases expire.
    ``isolation`` makes an item run alone in the process if one more crash would make the item dead. So all code that
    runs items in this process must use the same object.
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
    tables: set[str] = set()
    for served in served_here:
        worker = served.worker(lease_holder, isolation, clock, events)
        keeper.add(worker)
        wakeups.add(served.store.name, worker.wakeup)
        yield worker, often
        # The rescuer of one queue releases the items of all queues in its table.
        if served.store.table.name not in tables:
            tables.add(served.store.table.name)
            yield Rescuer(served.store.name, served.store, lease, clock, events, wakeups.wake_here), rescuing


def _recoveries(queues: Iterable[Served], wakeups: Wakeups, events: Events) -> Iterator[Recover]:
    tables = {served.store.table.name: served.store for served in queues}
    for store in tables.values():
        yield partial(recover_items, store, events, wakeups.wake_here)
