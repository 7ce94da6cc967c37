"""The contender PgQueuer with an asyncpg pool. Tuned settings: batches of 250 jobs."""

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from bench.queue.contender import Assignment, Enqueuer, run

BATCH = 250


class Queue:
    def __init__(self, queries: Any) -> None:
        self._queries = queries

    async def one(self, number: int) -> None:
        await self._queries.enqueue("noop", str(number).encode())

    async def many(self, numbers: Sequence[int]) -> None:
        payloads = [str(number).encode() for number in numbers]
        await self._queries.enqueue(["noop"] * len(payloads), payloads, [0] * len(payloads))


class PgQueuerContender:
    def __init__(self, assignment: Assignment) -> None:
        import asyncpg
        import pgqueuer  # type: ignore[import-not-found]

        self._asyncpg, self._library, self._assignment = asyncpg, pgqueuer, assignment

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        async with self._asyncpg.create_pool(self._assignment.url) as pool:
            queries = self._library.Queries(self._library.AsyncpgPoolDriver(pool))
            if not await pool.fetchval("SELECT to_regclass('pgqueuer') IS NOT NULL"):
                await queries.install()
            yield Queue(queries)

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        raise NotImplementedError

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        async with self._asyncpg.create_pool(self._assignment.url) as pool:
            worker = self._library.PgQueuer.from_asyncpg_pool(pool)

            async def noop(job: Any) -> None:
                self._assignment.marks.set(int(job.payload))

            worker.entrypoint("noop")(noop)
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, worker.shutdown.set)
            await worker.run(**({"batch_size": BATCH} if self._assignment.tuned else {}))


if __name__ == "__main__":
    run(PgQueuerContender)
