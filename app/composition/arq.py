"""An ARQ worker that runs Julia's tasks, for ``arq app.workers.config.WorkerSettings`` and for the role ``arq``.

In addition to running ARQ's loop, the worker claims tasks and sends them to Redis, releases the leases of dead
processes, resumes interrupted imports and deletes old results. One worker is enough; several workers share the work.

The whole shutdown must finish within BATUTA_DRAIN_SECONDS. During the first part of that time (CALLS_END), calls in
progress may finish. Then the worker cancels the remaining calls and releases their tasks. A cancelled call stays in
ARQ's queue for another worker.
"""

import asyncio
import signal
import sys
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

from arq.connections import create_pool
from arq.worker import create_worker

from app.composition.julia import Julia
from app.integrations.redis.arq import RedisAway, redis_of, require_redis, where_of
from batuta.arq import CALL_MARGIN, REDIS_ERRORS, ArqWorker
from batuta.errors import ConfigError
from batuta.extension import begin_logging

NAME = "arq"
# Share of the shutdown time in which task calls in progress may finish. The rest of the time is for releasing the tasks
# of cancelled calls.
CALLS_END = 0.8


async def run_role(julia: Julia, stop: asyncio.Event) -> None:
    """Run the ARQ worker as a role, for ``batuta arq`` and ``batuta up``."""
    settings = julia.settings
    await require_redis(settings)
    made: Any = worker_settings(julia, speaks=False)
    pool = await create_pool(
        redis_of(settings), job_serializer=made.job_serializer, job_deserializer=made.job_deserializer
    )
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
    if isinstance(ended, REDIS_ERRORS):
        raise RedisAway(where=where_of(settings), why=type(ended).__name__)
    if isinstance(ended, Exception):
        raise ended


def worker_settings(julia: Julia, *, speaks: bool = True) -> type:
    """Build the settings class for ARQ. If ``speaks`` is true, the ARQ worker configures the process's logging."""
    settings, work = julia.settings, julia.work
    if settings.tasks_backend != "arq":
        raise ConfigError(
            problem="an ARQ worker would have nothing to do: TASKS_BACKEND is not arq",
            next_step="set TASKS_BACKEND=arq and REDIS_URL for it and for every other role",
        )
    worker = ArqWorker(NAME, work, julia.relay, keep_result=timedelta(seconds=settings.arq_keep_result))
    serving = Serving(julia, worker, speaks=speaks)
    return type(
        "WorkerSettings",
        (),
        {
            "functions": worker.functions,
            "job_serializer": worker.job_serializer,
            "job_deserializer": worker.job_deserializer,
            "redis_settings": redis_of(settings),
            "max_jobs": settings.arq_max_jobs,
            "job_timeout": settings.arq_job_timeout + CALL_MARGIN.total_seconds(),
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
    """Runs the engine's loops, and the loop that resumes interrupted imports, alongside ARQ's own loop."""

    def __init__(self, julia: Julia, worker: ArqWorker, *, speaks: bool) -> None:
        self._speaks = speaks
        self._work = julia.work
        self._worker = worker
        self._settings = julia.settings
        self._recovery = julia.appointments.recovery
        self._stop = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._resources = AsyncExitStack()

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
        await self._resources.enter_async_context(self._work.resources.started())
        # By the time ARQ calls this method, all task calls of this process have ended or were cancelled. The rest of
        # the shutdown time is left for this loop.
        grace = timedelta(seconds=self._settings.batuta_drain_seconds) * (1 - CALLS_END)
        supervisor = self._worker.supervisor(ctx["redis"])
        for loop, policy in self._recovery:
            supervisor.add(loop, policy)
        self._running = asyncio.create_task(supervisor.run(self._stop, grace))

    async def end(self, ctx: dict[Any, Any]) -> None:
        self._stop.set()
        if self._running is not None:
            await self._running
        await self._resources.aclose()
        await self._work.close()
