"""A plain ARQ worker that runs Julia's tasks: for ``arq app.workers.config.WorkerSettings`` and for the role ``arq``.

Beside ARQ's own loop it claims tasks and sends them, releases the leases of dead processes, continues interrupted imports and
prunes results: beside the api, one such process is enough. Several share the work.

A stop has one deadline, BATUTA_DRAIN_SECONDS: calls in progress may end until CALLS_END of it; the calls that remain are cancelled,
which leaves them in ARQ's queue for another worker, and the tasks are handed back.
"""

import asyncio
import signal
import sys
from datetime import timedelta
from typing import Any

from arq.connections import ArqRedis, create_pool
from arq.worker import create_worker

from app.composition.julia import Julia
from app.integrations.redis.arq import HEARING, RedisAway, redis_of, require_redis, where_of
from batuta.engine.queues import Served, queue_loops
from batuta.kernel.errors import ConfigError
from batuta.kernel.identity import make_owner
from batuta.logs import begin_logging
from batuta.processes.heartbeat import BEATING
from batuta.queue.item import LeaseHolder
from batuta.stores.arq.calls import GONE
from batuta.stores.arq.runner import LATER, ArqRunner, Here, functions
from batuta.stores.sql.queue.tasks import SqlTasks
from batuta.supervise.pruner import PRUNING, Pruner
from batuta.supervise.supervisor import Supervisor
from batuta.tasks.maintenance import COUNTING_THREADS, REHOMING, TaskRehomer, ThreadWatch

NAME = "arq"
# The share of the grace in which calls in progress may end; in the rest the tasks are handed back.
CALLS_END = 0.8


async def run_role(julia: Julia, stop: asyncio.Event) -> None:
    """``batuta arq``: the same worker as a role, for ``batuta up``."""
    settings = julia.settings
    await require_redis(settings)
    made: Any = worker_settings(julia, speaks=False)
    pool = await create_pool(redis_of(settings))
    worker = create_worker(made, redis_pool=pool, handle_signals=False)
    running, asked = asyncio.create_task(worker.async_run()), asyncio.create_task(stop.wait())
    grace = timedelta(seconds=settings.batuta_drain_seconds)
    try:
        await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
        worker.allow_pick_jobs = False
        if worker.tasks and not running.done():
            await asyncio.wait(list(worker.tasks.values()), timeout=(grace * CALLS_END).total_seconds())
    finally:
        asked.cancel()
        worker.handle_sig(signal.SIGTERM)
        (ended, *_) = await asyncio.gather(running, *worker.tasks.values(), return_exceptions=True)
        await made.on_shutdown(worker.ctx)
        await pool.aclose(close_connection_pool=True)
    if isinstance(ended, GONE):
        raise RedisAway(where=where_of(settings), why=type(ended).__name__)
    if isinstance(ended, Exception):
        raise ended


def worker_settings(julia: Julia, *, speaks: bool = True) -> type:
    """``speaks``: the worker begins the log of this process."""
    settings, work = julia.settings, julia.work
    if settings.tasks_backend != "arq":
        raise ConfigError(
            problem="an ARQ worker would have nothing to do: TASKS_BACKEND is not arq",
            next_step="set TASKS_BACKEND=arq and REDIS_URL for it and for every other role",
        )
    store = SqlTasks(work.database, work.ids, work.clock, work.wakeups.ring)
    keep = timedelta(seconds=settings.arq_keep_result)
    here = Here(store.report_of_call, store.wanted, work.clock, work.events, max_result=work.worker_policy.max_result)
    serving = Serving(julia, store, here, speaks=speaks)
    return type(
        "WorkerSettings",
        (),
        {
            "functions": functions(work.task_registry, here, keep_result=keep),
            "redis_settings": redis_of(settings),
            "max_jobs": settings.arq_max_jobs,
            "job_timeout": settings.arq_job_timeout + LATER.total_seconds(),
            "keep_result": settings.arq_keep_result,
            "max_tries": settings.arq_max_tries,
            "poll_delay": 0.1,
            "allow_abort_jobs": True,
            "job_completion_wait": settings.batuta_drain_seconds * CALLS_END,
            "on_startup": serving.begin,
            "on_shutdown": serving.end,
        },
    )


class Serving:
    """The loops beside ARQ's own: they send tasks and recover what dead processes left; a worker's other queues run elsewhere."""

    def __init__(self, julia: Julia, store: SqlTasks, here: Here, *, speaks: bool) -> None:
        self._speaks = speaks
        self._work = julia.work
        self._here = here
        self._settings = julia.settings
        self._store = store
        self._relay = julia.relay
        self._recovery = julia.appointments.recovery
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def begin(self, ctx: dict[Any, Any]) -> None:
        if self._speaks:
            begin_logging(
                self._work.events,
                self._settings,
                service=NAME,
                stream=sys.stdout,
                zone=self._work.zone,
                wording=self._work.extension.wording,
            )
        await self._work.open()
        self._here.look_past(ctx["redis"])
        # Called when the calls of this process have ended or were cancelled: the rest of the grace is left.
        grace = timedelta(seconds=self._settings.batuta_drain_seconds) * (1 - CALLS_END)
        self._running = asyncio.create_task(self._supervisor(ctx["redis"]).run(self._stop, grace))

    async def end(self, ctx: dict[Any, Any]) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running
        await self._work.close()

    def _supervisor(self, redis: ArqRedis) -> Supervisor:
        work, supervisor = self._work, Supervisor(self._work.clock, self._work.events)
        # Health knows by its heartbeat that calls are run.
        supervisor.add(work.observability.heartbeat(NAME, lambda: supervisor.running), BEATING)
        supervisor.add(ArqRunner(redis), HEARING)
        supervisor.add(ThreadWatch(work.task_registry, work.events), COUNTING_THREADS)
        handlers = work.task_registry.handlers(self._store.report)
        served = [
            Served(work.queues[name], lambda lease: handlers.get(lease.row["name"]), work.worker_policy)
            for name in work.task_registry.queues
        ]
        lease_holder = LeaseHolder(owner=make_owner(work.ids), lease=work.queue_lease)
        looks = work.worker_policy.look_every
        for loop, policy in queue_loops(
            served, lease_holder, looks, work.wakeups, work.clock, work.events, presence=work.presence
        ):
            supervisor.add(loop, policy)
        if self._relay is not None:
            supervisor.add(self._relay, HEARING)
        supervisor.add(TaskRehomer(self._store, work.task_registry), REHOMING)
        supervisor.add(Pruner(work.retentions()), PRUNING)
        for loop, policy in self._recovery:
            supervisor.add(loop, policy)
        return supervisor
