"""PgQueuer with an asyncpg pool. By default, the jobs of a crashed worker run again after 30 s without a heartbeat."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pgqueuer  # type: ignore[import-not-found]

from bench.crashes.program import Enqueue, Task, run


class PgQueuerLibrary:
    def __init__(self, task: Task) -> None:
        self._task = task

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Enqueue]:
        async with asyncpg.create_pool(self._task.url) as pool:
            queries = pgqueuer.Queries(pgqueuer.AsyncpgPoolDriver(pool))
            if not await pool.fetchval("SELECT to_regclass('pgqueuer') IS NOT NULL"):
                await queries.install()

            async def enqueue(number: int) -> None:
                await queries.enqueue("job", str(number).encode())

            yield enqueue

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        async with asyncpg.create_pool(self._task.url) as pool:
            worker = pgqueuer.PgQueuer.from_asyncpg_pool(pool)

            async def job(given: Any) -> None:
                await self._task.run(int(given.payload))

            # The limit applies to all workers together, and the measurement has two.
            worker.entrypoint("job", concurrency_limit=2 * self._task.concurrency)(job)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
            await worker.run(batch_size=self._task.concurrency)


if __name__ == "__main__":
    run(PgQueuerLibrary)
