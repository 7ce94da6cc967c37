"""Tasks that ARQ runs: nothing is lost with Redis, and the command of the seed runs what an import left."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from arq.connections import ArqRedis, RedisSettings, create_pool
from arq.constants import default_queue_name

from app.integrations.redis.arq import add_arq
from app.settings import Settings
from app.wiring import build
from app.wiring_agendamentos import appointments_of
from app.workers.config import worker_settings
from batuta import Batuta
from batuta.kernel.errors import ConfigError
from batuta.tasks.registry import TaskContext
from batuta.testing import EventRecorder
from tests.contract.test_tasks import arq_working, ended
from tests.sheets import HEADER, patient, xlsx

ROOT = Path(__file__).parents[2]


@asynccontextmanager
async def redis_at(url: str) -> AsyncIterator[ArqRedis]:
    redis = await create_pool(RedisSettings.from_dsn(url))
    try:
        yield redis
    finally:
        await redis.aclose(close_connection_pool=True)


async def queued(redis: ArqRedis, unlike: set[bytes]) -> set[bytes]:
    """What lies in ARQ's queue, once it is something else than that."""
    while True:
        found = set(await redis.zrange(default_queue_name, 0, -1))
        if found and found != unlike:
            return found
        await asyncio.sleep(0)


async def test_a_call_that_redis_lost_is_sent_again_and_costs_no_attempt(
    tmp_path: Path, redis_url: str, events: EventRecorder
) -> None:
    work = Batuta(f"sqlite:///{tmp_path}/work.db", timezone="UTC")
    work.events.subscribe(events)
    add_arq(work, Settings.model_validate({"redis_url": redis_url}))

    @work.task()
    async def dobro(ctx: TaskContext, n: int) -> int:
        return 2 * n

    async with work, redis_at(redis_url) as redis:
        await redis.flushdb()
        stop = asyncio.Event()
        running = asyncio.create_task(work.supervisor().run(stop, timedelta(seconds=5)))
        id = await work.enqueue(dobro, 21)
        async with asyncio.timeout(120):
            first = await queued(redis, set())
            await redis.flushdb()
            assert await queued(redis, first) != first
            async with arq_working(work):
                status = await ended(work, events, id)
        stop.set()
        await running
    assert (status.status, status.result, status.attempts) == ("complete", 42, 1)


async def test_the_seeds_command_runs_what_an_import_left(tmp_path: Path, redis_url: str) -> None:
    url = f"sqlite:///{tmp_path}/julia.db"
    settings = Settings.model_validate({"database_url": url, "tasks_backend": "arq", "redis_url": redis_url})
    async with redis_at(redis_url) as redis:
        await redis.flushdb()
    async with build(settings) as work:
        agendamentos, importacao = appointments_of(work, settings)
        done = await importacao.importar(xlsx([HEADER, *(patient(n) for n in range(60))]), "a.xlsx", by="alguém")
        assert done["jobs_enqueued"] == 60
        env = {**os.environ, "DATABASE_URL": url, "TASKS_BACKEND": "arq", "REDIS_URL": redis_url, "ARQ_MAX_JOBS": "20"}
        command = [sys.executable, "-m", "arq", "app.workers.config.WorkerSettings"]
        with (tmp_path / "log").open("wb") as log:
            worker = subprocess.Popen(
                command, cwd=tmp_path, env={**env, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}, stdout=log, stderr=log
            )
        try:
            async with asyncio.timeout(300):
                while (await agendamentos.contagem())["completed"] < 60:
                    assert worker.poll() is None, (tmp_path / "log").read_text()[-2000:]
                    await work.clock.sleep(0.1)
        finally:
            worker.send_signal(signal.SIGTERM)
            worker.wait(120)
    log_lines = (tmp_path / "log").read_text()
    assert "Starting normalization for appointment" in log_lines
    assert "52998224725" not in log_lines
    assert "Pessoa Fictícia" not in log_lines


def test_the_worker_takes_its_limits_from_the_environment(tmp_path: Path) -> None:
    told = {"database_url": f"sqlite:///{tmp_path}/a.db", "redis_url": "redis://:segredo@127.0.0.1:6379"}
    limits = {"arq_max_jobs": 7, "arq_job_timeout": 30, "arq_keep_result": 60, "arq_max_tries": 2}
    made = worker_settings(Settings.model_validate({**told, **limits, "tasks_backend": "arq"}))
    assert (made.max_jobs, made.job_timeout, made.keep_result, made.max_tries) == (7, 40, 60, 2)  # type: ignore[attr-defined]
    assert [each.name for each in made.functions] == ["normalize_appointment"]  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="TASKS_BACKEND=arq"):
        worker_settings(Settings.model_validate(told))
