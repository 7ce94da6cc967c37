"""``arq app.workers.config.WorkerSettings``: a plain ARQ worker that runs Julia's tasks.

It hands over what waits in the database, too, so that one such process is enough; three share the work.
"""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.integrations.redis.arq import HEARING, add_arq, redis_of
from app.settings import Settings
from app.wiring import build
from batuta.config import environment, load
from batuta.dispatch.scheduler import owner
from batuta.engine import Batuta
from batuta.kernel.errors import ConfigError
from batuta.logs import begin_logging
from batuta.queue.lease import Tenure
from batuta.serving import Served, queue_loops
from batuta.stores.arq.relay import LATER, Here, functions
from batuta.stores.sql.tasks import SqlTasks
from batuta.supervise.supervisor import Supervisor

if TYPE_CHECKING:
    WorkerSettings: type


def __getattr__(name: str) -> object:
    if name == "WorkerSettings":
        return worker_settings(load(Settings, environment(), Path(".env")))
    raise AttributeError(name)


def worker_settings(settings: Settings, work: Batuta | None = None) -> type:
    """``work``: put together already, by whoever rehearses."""
    if settings.tasks_backend != "arq":
        raise ConfigError(
            problem="an ARQ worker would have nothing to do: TASKS_BACKEND is not arq",
            next_step="set TASKS_BACKEND=arq and REDIS_URL for it and for every other role",
        )
    work = work or build(settings)
    store = SqlTasks(work.database, work.ids, work.clock, work.ears.ring)
    keep = timedelta(seconds=settings.arq_keep_result)
    here = Here(store.report, work.clock, work.events)
    serving = Serving(work, settings, store)
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
            "on_startup": serving.begin,
            "on_shutdown": serving.end,
        },
    )


class Serving:
    """What stands beside ARQ's own loop: the one that hands tasks over, and nothing else of a worker's."""

    def __init__(self, work: Batuta, settings: Settings, store: SqlTasks) -> None:
        self._work = work
        self._settings = settings
        self._store = store
        self._relay = add_arq(work, settings)
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def begin(self, ctx: dict[Any, Any]) -> None:
        begin_logging(self._work.events, self._settings, service="arq", stream=sys.stdout, zone=self._work.zone)
        await self._work.open()
        grace = timedelta(seconds=self._settings.batuta_drain_seconds)
        self._running = asyncio.create_task(self._supervisor().run(self._stop, grace))

    async def end(self, ctx: dict[Any, Any]) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running
        await self._work.close()

    def _supervisor(self) -> Supervisor:
        work, supervisor = self._work, Supervisor(self._work.clock, self._work.events)
        recipes = work.task_registry.recipes(self._store.report)
        served = [
            Served(work.queues[name], lambda lease: recipes.get(lease.row["name"]), work.worker_policy)
            for name in work.task_registry.queues
        ]
        tenure = Tenure(owner=owner(work.ids), lease=work.queue_lease)
        looks = work.worker_policy.look_every
        for loop, policy in queue_loops(served, tenure, looks, work.ears, work.clock, work.events):
            supervisor.add(loop, policy)
        supervisor.add(self._relay, HEARING)
        return supervisor
