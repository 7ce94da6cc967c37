"""The composition root: stores everything that an application registers, and builds everything that a process runs.

``async with work`` opens the database; ``batuta --app module:work up`` starts all processes.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from batuta import __version__
from batuta.config import EngineSettings, find_zone, load_settings
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Lanes
from batuta.dispatch.scheduler import RUN_LEASE, Scheduler
from batuta.dispatch.task_schedules import SCHEDULES_POLICY, ScheduleLoop
from batuta.engine.declarations.hooks import HookDeclarations
from batuta.engine.declarations.jobs import DEFAULT_SECONDS, JobDeclarations
from batuta.engine.declarations.queues import QueueDeclarations, Served, queue_loops
from batuta.engine.declarations.schedules import Schedules
from batuta.engine.declarations.tasks import TaskDeclarations
from batuta.engine.extension import Extension
from batuta.engine.observability import Observability, connections_of
from batuta.engine.running import DEFAULT_ROLES, OnFailure, logged, run_roles
from batuta.environment import ENV_FILE, environment
from batuta.guard.breaker import CircuitRule
from batuta.guard.circuits import Circuits
from batuta.guard.rate import Limit
from batuta.health.aggregator import Part, Probe, State
from batuta.health.batches import batches_check
from batuta.health.jobs import JobHealthQuery
from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.errors import InvalidName
from batuta.kernel.events import Fanout
from batuta.kernel.identity import make_owner
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.masking.messages import show_messages
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.encryption import Encryption
from batuta.kernel.suggestions import check_options, unknown
from batuta.processes.heartbeat import Heartbeat
from batuta.processes.presence import PresenceFolder, crash_loops
from batuta.queue.handler import ItemHandler
from batuta.queue.inspection import BULK_POLICY, BulkOperator
from batuta.queue.item import Lease
from batuta.queue.store import Rescued
from batuta.queue.worker.isolation import Isolation
from batuta.queue.worker.rescuer import Rescuer
from batuta.queue.worker.worker import WorkerPolicy
from batuta.receive.endpoints import JobEndpoints
from batuta.receive.receiver import JobReceiver
from batuta.runlog.history import Recorded
from batuta.stores.connections import Wakeups
from batuta.stores.sql.database import Database
from batuta.stores.sql.encrypted import COLUMNS, EncryptedColumns
from batuta.stores.sql.migrations import Marker, Migration, Migrator, engine_migrations
from batuta.stores.sql.queue.indexes import require_indexes
from batuta.stores.sql.queue.inspection import SqlBulk
from batuta.stores.sql.queue.items import SqlItems
from batuta.stores.sql.queue.store import SqlQueue
from batuta.stores.sql.queue.tasks import SqlTasks, UnservedItems
from batuta.stores.sql.tables.audit import AccessLog
from batuta.stores.sql.tables.calls import SqlJobCalls
from batuta.stores.sql.tables.circuits import SqlCircuits
from batuta.stores.sql.tables.controls import SqlControls, SqlSwitches
from batuta.stores.sql.tables.executions import SqlExecutionLog
from batuta.stores.sql.tables.history import SqlReports
from batuta.stores.sql.tables.log_lines import SqlLogLines
from batuta.stores.sql.tables.processes import SqlProcessRequests
from batuta.stores.sql.tables.rates import SqlRates
from batuta.stores.sql.tables.schedules import SqlSchedules
from batuta.stores.sql.tables.tokens import SqlTokens
from batuta.supervise.loop import Loop, LoopFunction, LoopPolicy, loop_of, policy_in_seconds, runs_in_thread
from batuta.supervise.retention import PRUNER_POLICY, Pruner, Retention, keep_for
from batuta.supervise.supervisor import Supervisor
from batuta.tasks.ends import TASK_ENDS_POLICY
from batuta.tasks.service import REHOMER_POLICY, THREAD_WATCH_POLICY, TaskRehomer, ThreadWatch

if TYPE_CHECKING:
    from batuta.logs.kept import LineCollector

SomeLoop = TypeVar("SomeLoop", bound=LoopFunction)
# A worker that does not renew its leases for this long loses its items.
QUEUE_LEASE = timedelta(seconds=30)
DAY = timedelta(days=1)


class Batuta(HookDeclarations, JobDeclarations, QueueDeclarations, TaskDeclarations):
    """A Batuta application: registers jobs, tasks, queues and loops, and builds the loops that each process runs."""

    only: Collection[str] = ()  # queues that the worker serves; if empty, BATUTA_QUEUES applies
    is_open = False
    _more_users = 0  # how many times the application was opened while it was already open
    _lines: "LineCollector | None" = None

    @check_options
    def __init__(
        self,
        database_url: str | None = None,
        *,
        timezone: str | None = None,
        settings: EngineSettings | None = None,
        extension: Extension | None = None,
        clock: Clock | None = None,
        migrate: bool | None = None,
        lease: timedelta = RUN_LEASE,
        concurrency: int | None = None,
    ) -> None:
        """Create an application. ``settings`` defaults to the environment and ``.env``; ``database_url`` and
        ``timezone`` default to the settings. Arguments override the environment.

        If ``migrate`` is true, opening the application applies missing migrations; if it is False, an old schema raises
        an error. The default is True, except in production. ``clock`` is the source of all times; the default is the
        machine's clock, but leases on PostgreSQL use the server's clock. ``lease`` is the length of a run's lease: if a
        scheduler does not renew the lease within this time, another scheduler may take over the run. ``concurrency`` is
        how many tasks of each queue a worker runs at the same time; the default is BATUTA_CONCURRENCY.
        """
        super().__init__()
        self.settings = settings = settings or load_settings(EngineSettings, environment(), ENV_FILE)
        self.extension = extension or Extension()
        self.zone = find_zone(settings.timezone if timezone is None else timezone)
        self._migrates = not settings.in_production if migrate is None else migrate
        self._own_time = clock is not None
        self.clock = clock or SystemClock()
        self.ids = Ids(self.clock)
        self._use_events(Fanout())
        self.connections = connections_of(database_url, settings, lambda: self.queue_lease, lease)
        self.database, self.liveness = self.connections.database, self.connections.liveness
        self.switches = SqlSwitches(self.database, self.ids, self.events, own_time=clock is not None)
        self.controls = SqlControls(self.database, self.ids, self.events, own_time=clock is not None)
        self.circuit_store = SqlCircuits(self.database, self.ids, self.clock, self.events, own_time=clock is not None)
        self.circuits = Circuits(self.circuit_store, self.clock)
        self.rates = SqlRates(self.database, self.ids, self.clock, own_time=clock is not None)
        self.limits: dict[str, Limit] = {}
        self.executions = self._execution_log()
        self.registry = JobRegistry(self.extension.profiles, self.extension.first_profile, self.extension.windows)
        self.reports = SqlReports(self.database)
        self.opened_at = self.clock.now()
        self.job_health = JobHealthQuery(self.registry, self.executions, self.reports, lambda: self.opened_at)
        limit = settings.batuta_concurrency if concurrency is None else concurrency
        self.worker_policy = WorkerPolicy(limit=limit, max_result=settings.batuta_max_payload_bytes)
        self._lease, self.encryption = lease, Encryption(settings.encryption_keys)
        self.queue_lease, self._isolation = QUEUE_LEASE, Isolation(self.clock)
        self.tokens, self.access = SqlTokens(self.database, self.ids), AccessLog(self.database, self.ids, self.clock)
        self.wakeups = Wakeups(self.database, self.clock)
        self._items = SqlItems(self.database, self.worker_policy.max_result, self.now)
        self._use_task_store(self._tasks_in_sql(), self.worker_policy.max_result)
        self.endpoints = JobEndpoints()
        self._calls = SqlJobCalls(self.database, self.now, liveness=self.connections.run_liveness)
        self.receiver = JobReceiver(self._calls, self.clock, self.ids, self.events)
        self._schedules = self._schedules_in_sql()
        self.probes: dict[str, Probe] = {"database": Probe(self._database_answers, needed=True)}
        self.observability = self._observability()
        self.health, self.beats = self.observability.aggregator, self.observability.beats
        self._loops: list[tuple[str, Loop, LoopPolicy]] = []

    @check_options
    def circuit(
        self,
        name: str,
        *,
        failures: int = 5,
        reset: float = 60,
        longest_reset: float = 1800,
        count_timeouts: bool = False,
        probe_within: float = DEFAULT_SECONDS,
    ) -> None:
        """Register a circuit breaker that all processes share.

        Times are in seconds. If the name ends in ``:*``, as in ``printer:*``, the settings apply to every circuit whose
        name begins with ``printer:``.
        """
        self.circuits.add(
            CircuitRule(
                name=name,
                failures=failures,
                reset=timedelta(seconds=reset),
                longest_reset=timedelta(seconds=longest_reset),
                count_timeouts=count_timeouts,
                probe_within=timedelta(seconds=probe_within),
            )
        )

    def limit(self, limit: Limit) -> Limit:
        """Register a rate limit, so that `batuta limits` shows it. ``work.rates`` enforces the limit."""
        if limit.name in self.limits:
            raise InvalidName(name=limit.name, kind="limit", why=Reason("limit_taken", "another limit has this name"))
        self.limits[limit.name] = limit
        return limit

    def scheduler(self) -> Scheduler:
        return Scheduler(
            self.registry,
            self.executions,
            self.clock,
            self.ids,
            self.events,
            lanes=Lanes(reserved=self.extension.reserved),
            lease=self._lease,
            release=self.settings.batuta_release,
        )

    @check_options
    def loop(
        self,
        *,
        every: float,
        stuck_after: float = 60,
        name: str | None = None,
        longest_call: float = 0,
        max_failures: int = 5,
        max_restarts: int = 5,
        finishes_tick: bool = False,
    ) -> Callable[[SomeLoop], SomeLoop]:
        """Register a function, or a class with the method ``tick``, as a supervised loop. The decorator returns its
        argument unchanged. A plain ``def`` runs in a thread.

        Times are in seconds. The watchdog cancels and restarts a tick after ``stuck_after`` without progress
        (``batuta.note_progress``); ``longest_call`` is the longest wait inside a tick. The process restarts after
        ``max_failures`` failed ticks in a row, or after ``max_restarts`` restarts of a stuck tick. With
        ``finishes_tick`` a shutdown lets a running tick finish; otherwise it cancels the tick, unless the loop is a
        class with a ``drain``.
        """

        def register(function: SomeLoop) -> SomeLoop:
            called = name or str(getattr(function, "__name__", "loop"))
            policy = policy_in_seconds(
                called,
                every,
                stuck_after,
                longest_call=longest_call,
                max_failures=max_failures,
                max_restarts=max_restarts,
                finishes_tick=finishes_tick,
            )
            loop = loop_of(called, function)
            # A tick in a thread cannot be interrupted, so a shutdown waits until it ends.
            self.add_loop(loop, replace(policy, finishes_tick=True) if runs_in_thread(loop) else policy)
            return function

        return register

    @property
    def queues(self) -> Mapping[str, SqlQueue]:
        """All queues by name, including the stages of pipelines."""
        return {served.store.name: served.store for served in self._worker_queues()}

    def _execution_log(self) -> SqlExecutionLog:
        return SqlExecutionLog(
            self.database,
            self.switches,
            self.controls,
            self.ids,
            self.clock,
            own_time=self._own_time,
            liveness=self.connections.run_liveness,
        )

    def _tasks_in_sql(self) -> SqlTasks:
        return SqlTasks(
            self.database,
            self.ids,
            self.clock,
            self.wakeups.wake_here,
            own_time=self._own_time,
            liveness=self.liveness,
            encryption=self.encryption,
        )

    def _schedules_in_sql(self) -> SqlSchedules:
        return SqlSchedules(
            self.database,
            self.switches,
            self.tasks,
            self.task_registry,
            self.ids,
            self.clock,
            self.events,
            self.wakeups.wake_here,
            own_time=self._own_time,
            encryption=self.encryption,
        )

    @property
    def encrypted_columns(self) -> EncryptedColumns:
        """The encrypted columns of the engine and the application. BATUTA_KEYS contains the encryption keys."""
        return EncryptedColumns(self.database, self.encryption, [*COLUMNS, *self.extension.encrypted])

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules in the database, which can be created and changed while the program runs."""
        return Schedules(self._schedules, self.task_registry, self.zone, self.registry)

    @property
    def unserved(self) -> UnservedItems:
        """The waiting items whose queue or stage does not exist in this release."""
        return UnservedItems(self._task_store, self.queues)

    def _observability(self) -> Observability:
        made = Observability(
            connections=self.connections,
            clock=self.clock,
            ids=self.ids,
            events=self.events,
            now=self.now,
            probes=self.probes,
            jobs=self.job_health,
            circuits=self.circuits,
            unserved=lambda: self.unserved,
            settings=self.settings,
            zone=self.zone,
            version=__version__,
            service=self.extension.service,
            sections=self.extension.sections,
            texts=self.extension.texts,
            caller=self._caller,
        )
        made.aggregator.add(batches_check(self.batch_store.find_abandoned, self.clock.now))
        return made

    @cached_property
    def log_lines(self) -> SqlLogLines:
        """The stored log lines of tasks, items and runs."""
        return SqlLogLines(self.database, self.encryption)

    @cached_property
    def bulk(self) -> SqlBulk:
        """The bulk operations: each operation changes all items of a queue that match an operator's filter."""
        return SqlBulk(self.database, lambda: self.queues, self.ids, self.clock, self.now)

    @cached_property
    def process_requests(self) -> SqlProcessRequests:
        """The requests that operators send to processes: drain, restart, dump the stacks."""
        return SqlProcessRequests(self.database, self.ids, self.wakeups.wake_here)

    @cached_property
    def presence(self) -> PresenceFolder:
        """The folder in which the processes on this host register, so that each process can detect when another process
        has died.
        """
        return PresenceFolder.for_database(self.database.where)

    def now(self) -> datetime | None:
        """Return the time of the application's own clock, or None if SQL statements must use the database's clock."""
        return self.clock.now() if self._own_time else None

    def add_loop(self, loop: Loop, policy: LoopPolicy, *, role: str = "worker") -> None:
        """Add a loop object to every process that runs the given role. The decorator ``loop`` creates such an object
        from a function or a class.
        """
        self._loops.append((role, loop, policy))

    def replace_loop(self, loop: Loop, policy: LoopPolicy, *, role: str) -> None:
        """Add a loop object and remove any earlier loop with the same name. This is needed because a server may load
        its application twice, and would otherwise have each loop twice.
        """
        self._loops = [each for each in self._loops if (each[0], each[1].name) != (role, loop.name)]
        self.add_loop(loop, policy, role=role)

    def supervisor(
        self,
        role: str = "worker",
        *,
        heartbeat: Heartbeat | None = None,
        worker_name: str | None = None,
        shows: Collection[str] | None = None,
    ) -> Supervisor:
        """Build the supervisor for a role's loops, including a heartbeat.

        ``heartbeat`` is a heartbeat that runs in another thread (see ``engine.process``). If it is None, the supervisor
        runs a heartbeat itself. ``worker_name`` is the name that the heartbeat reports (default: the role); ``shows``
        lists the loops that it reports (default: all).
        """
        observability = self.observability
        return observability.supervisor(role, self._loops_of(role), heartbeat, worker_name=worker_name, shows=shows)

    @check_options
    def running(self, *roles: str, on_failure: OnFailure = "raise") -> AbstractAsyncContextManager[Self]:
        """Run roles inside this program while the ``async with`` block runs. The default roles are ``worker`` and
        ``scheduler``.

        During the block, the database is open and log lines go to the program's handlers. When the block ends, running
        work may finish within BATUTA_DRAIN_SECONDS. If a loop gives up, the block raises that loop's error. With
        ``on_failure="terminate"`` the process gets SIGTERM instead. Choose this value if a server runs the block, for
        example in a FastAPI lifespan.
        """
        return run_roles(self, roles or DEFAULT_ROLES, on_failure, __version__)

    async def run_job(
        self, name: str, params: Mapping[str, str] = MappingProxyType({}), *, even_if_held: bool = False
    ) -> Recorded:
        """Run a job now in this process, wait until it ends, and return its row in the execution log, as ``batuta run``
        does. If the job is a function, it receives ``params`` in its run. Raises JobRefused if the job is running and
        its overlap rule forbids a second run, or if a pause holds it back and ``even_if_held`` is false.
        """
        job = self.registry.find(name, await self.controls.read())
        execution = await self.scheduler().run_by_hand(job, params, even_if_held=even_if_held)
        recorded = await self.reports.execution(execution.id)
        assert recorded is not None
        return recorded

    def retentions(self) -> list[Retention]:
        """Return the retention rules for the engine's tables. The tables of executions and circuit transitions are
        excluded: each application decides how long it keeps these rows, and deletes them itself.
        """
        return [
            Retention("tasks", self._task_store.prune),  # each row contains its own expiry instant
            Retention("batches", self.batch_store.prune),
            Retention("pipeline_items", self._items.prune),
            Retention("rate_tokens", self._prune_rates),
            Retention("job_calls", lambda limit: self._calls.prune(keep=DAY, limit=limit)),
            # deletes only schedules with a single instant that has passed
            keep_for(7 * DAY, "schedules", self._schedules, self.clock),
            keep_for(30 * DAY, "bulk_operations", self.bulk, self.clock),
            Retention("log_lines", self._prune_lines),
            keep_for(7 * DAY, "worker_heartbeats", self.observability.beats, self.clock),
            keep_for(30 * DAY, "process_requests", self.process_requests, self.clock),
            keep_for(30 * DAY, "worker_restarts", self.observability.restarts, self.clock),
            keep_for(90 * DAY, "alertas_enviados", self.observability.alerts, self.clock),
            keep_for(timedelta(0), "ended_sessions", self.tokens, self.clock),
            keep_for(self.settings.batuta_keep_access_days * DAY, "audit_log", self.access, self.clock),
        ]

    async def _prune_lines(self, limit: int) -> int:
        longest = self.settings.batuta_keep_executions_days * DAY
        return await self.log_lines.prune(limit, now=self.clock.now(), longest=longest)

    async def _prune_rates(self, limit: int) -> int:
        """Delete the rate-limit tokens that are older than the longest window of any limit. Return the number of
        deleted tokens. The longest window applies, because limits with the same key share tokens.
        """
        longest = max((each.per for each in self.limits.values()), default=timedelta(0))
        return await self.rates.prune(spare=longest, limit=limit)

    def line_loops(self) -> Iterator[tuple[Loop, LoopPolicy]]:
        """Yield the loop that stores log lines. If BATUTA_KEEP_LOGS is off, yield no loop."""
        if self.settings.batuta_keep_logs:
            # imported here, because the logging library is slow to load
            from batuta.logs.kept import KEEPER_POLICY, LineCollector, LineKeeper

            self._lines = self._lines or LineCollector(self.clock, self.ids)
            yield LineKeeper(self._lines, self.log_lines), KEEPER_POLICY

    def _loops_of(self, role: str) -> Iterator[tuple[Loop, LoopPolicy]]:
        yield Pruner(self.retentions()), PRUNER_POLICY
        yield from self.line_loops()
        own = [(loop, policy) for its_role, loop, policy in self._loops if its_role == role]
        if role == "scheduler":
            scheduler = self.scheduler()
            yield from scheduler.loops()
            yield ScheduleLoop(self._schedules, self.clock, self._schedules.wakeup), SCHEDULES_POLICY
            owner, recover = scheduler.lease_holder.owner, [scheduler.reaper.recover]
            yield from crash_loops(self.presence, owner, recover, self.clock, starts_work=True)
            yield from own
        elif role == "api":
            yield BulkOperator(lambda: self.bulk), BULK_POLICY
            yield from own
        else:
            yield from () if self._select_queues(role) else own
            yield from self._queue_loops(role)

    def _select_queues(self, role: str) -> Collection[str]:
        """Return the queues that this process is restricted to. An empty result means no restriction: the process
        serves all queues and runs the application's loops.
        """
        only = self.only or (self.settings.batuta_queues if role == "worker" else ())
        known = [each.store.name for each in self._worker_queues() if each.role == role]
        for name in only:
            if name not in known:
                raise unknown("queue", name, known)
        return only

    def _queue_loops(self, role: str) -> Iterator[tuple[Loop, LoopPolicy]]:
        if served := [each for each in self._worker_queues() if each.role == role]:
            if role == "worker":
                yield TaskRehomer(self._task_store, self.task_registry, self._items), REHOMER_POLICY
                yield ThreadWatch(self.task_registry, self.events), THREAD_WATCH_POLICY
                yield self.task_ends, TASK_ENDS_POLICY
            yield from queue_loops(
                served,
                self._lease_holder(),
                self.worker_policy.look_every,
                self.wakeups,
                self.clock,
                self.events,
                self._select_queues(role),
                self.presence,
                self._isolation,
            )

    async def work_once(self, queue: str, most: int, at_a_time: int | None = None) -> int:
        """Run at most ``most`` due items of a queue, log their failures, and return the number of items that ran. Other
        workers may serve the queue at the same time.
        """
        queues = {each.store.name: each for each in self._worker_queues()}
        if (served := queues.get(queue)) is None:
            raise unknown("queue", queue, queues)
        if await served.store.next_at() is None:
            return 0  # this read costs much less than a claim, and a caller that polls mostly finds nothing
        lease_holder = self._lease_holder()
        with logged(self), self.presence.present(lease_holder.owner):
            return await served.worker(lease_holder, self._isolation, self.clock, self.events, at_a_time).once(most)

    async def rescue(self, queue: str, waits: Callable[[timedelta], None] = lambda wait: None) -> Sequence[Rescued]:
        """In the table of the given queue, release the items whose worker no longer renews their leases. These may
        include items of other queues that use the same table.

        An item whose lease seems expired is checked a second time after a pause. Before the pause, ``waits`` is called
        with the length of the pause.
        """
        rescuer = Rescuer(queue, self.queues[queue], self.queue_lease, self.clock, self.events)
        return await rescuer.look_twice(waits)

    def _lease_holder(self) -> LeaseHolder:
        return LeaseHolder(owner=make_owner(self.ids), lease=self.queue_lease)

    def _worker_queues(self) -> Iterator[Served]:
        handlers = self.task_registry.handlers(self._task_store.report)

        def handler_of(lease: Lease) -> ItemHandler | None:
            return handlers.get(lease.row["name"])

        for name in self.task_registry.queues:
            yield Served(self._task_store.queue(name), handler_of, self.worker_policy)
        yield from self._app_queues.values()

    async def open(self) -> None:
        """Open the database, apply missing migrations if configured, and check that the schema is current and that the
        database belongs to this project.

        If the application is already open, this method only counts the call: ``close`` has no effect until it has been
        called as often as ``open``.
        """
        if self.is_open:
            self._more_users += 1
            return
        show_messages(is_visible=self.settings.shows_errors)
        await self.connections.open()
        self.opened_at = self.clock.now()
        try:
            if self._migrates:
                await self.migrate()
            await self.check()
        except BaseException:
            await self.connections.close()
            raise
        self.is_open = True

    async def check(self) -> None:
        """Raise an error unless the schema is current, the queue tables have their indexes, and the database belongs to
        this project.
        """
        await self.migrator().require_current()
        await require_indexes(self.database, [each.store.table for each in self._app_queues.values()])
        if self.extension.mark is not None:
            await Marker(self.database, self.extension.mark).require()

    async def migrate(self) -> list[Migration]:
        """Apply the missing migrations of the engine and the application. Return the applied migrations."""
        applied = await self.migrator().migrate()
        if self.extension.mark is not None:
            marker = Marker(self.database, self.extension.mark)
            await marker.set_once(now=self.clock.now())
            await marker.require()
        return applied

    def migrator(self, database: Database | None = None) -> Migrator:
        migrations = [*engine_migrations(), *self.extension.migrations]
        return Migrator(database or self.database, migrations, self.clock, self.events)

    async def close(self) -> None:
        """Close the database, and call every function in ``closers``. If ``open`` was called several times, only the
        last call of ``close`` has this effect.
        """
        if self._more_users:
            self._more_users -= 1
            return
        self.is_open = False
        for close in (*self.closers, self.connections.close):
            await close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _database_answers(self) -> Part:
        await self.migrator().require_current()
        await self.connections.check_liveness()
        return Part(State.OK)
