"""ARQ. A job of a crashed worker runs again after ``job_timeout`` and ten more seconds; by default this takes 310 s."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import arq
import arq.connections
import arq.worker

from bench.crashes.program import Enqueue, Task, run

RECOVERING: dict[str, Any] = {"job_timeout": 20}


class ArqLibrary:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._where = arq.connections.RedisSettings.from_dsn(task.url)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Enqueue]:
        pool = await arq.create_pool(self._where)

        async def enqueue(number: int) -> None:
            await pool.enqueue_job("job", number)

        yield enqueue
        await pool.aclose()

    def work(self) -> None:
        async def job(ctx: dict[Any, Any], number: int) -> None:
            await self._task.run(number)

        arq.worker.Worker(
            [arq.worker.func(job, name="job")],
            redis_settings=self._where,
            max_jobs=self._task.concurrency,
            **(RECOVERING if self._task.recovers else {}),
        ).run()


if __name__ == "__main__":
    run(ArqLibrary)
