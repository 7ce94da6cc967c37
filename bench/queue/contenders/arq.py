"""The contender ARQ. Tuned settings: 100 concurrent jobs, 500 jobs read at a time, polling every 10 ms, no stored
results.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from bench.queue.contender import Assignment, Enqueuer, run

TUNED: dict[str, Any] = {"max_jobs": 100, "queue_read_limit": 500, "poll_delay": 0.01, "keep_result": 0}


class Queue:
    def __init__(self, pool: Any) -> None:
        self._pool = pool

    async def one(self, number: int) -> None:
        await self._pool.enqueue_job("noop", number)

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:  # ARQ has no call for many jobs
            await self._pool.enqueue_job("noop", number)


class ArqContender:
    def __init__(self, assignment: Assignment) -> None:
        import arq
        import arq.connections
        import arq.worker

        self._arq: Any = arq
        self._assignment = assignment
        self._where = arq.connections.RedisSettings.from_dsn(assignment.url)

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        pool = await self._arq.create_pool(self._where)
        yield Queue(pool)
        await pool.aclose()

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        raise NotImplementedError

    def work(self) -> None:
        async def noop(ctx: dict[Any, Any], *args: int, **_: Any) -> None:
            self._assignment.marks.set(*args)

        settings = TUNED if self._assignment.tuned else {}
        self._arq.worker.Worker(
            [self._arq.worker.func(noop, name="noop")], redis_settings=self._where, **settings
        ).run()


if __name__ == "__main__":
    run(ArqContender)
