"""Celery with Redis as its broker, and the default pool of processes.

By default a worker acknowledges a task when it starts it. With ``recovers``, the worker acknowledges the task when it
has ended, and Redis delivers an unacknowledged task again after 30 s (by default after an hour).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import celery  # type: ignore[import-untyped]

from bench.crashes.program import Enqueue, Task, run

RECOVERING = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "worker_prefetch_multiplier": 1,
    "broker_transport_options": {"visibility_timeout": 30},
}


class CeleryLibrary:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._app = celery.Celery("crashes", broker=task.url)
        self._app.conf.update(RECOVERING if task.recovers else {})
        self._app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True)

        def job(number: int) -> None:
            task.run_in_thread(number)

        self._job = self._app.task(name="job")(job)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Enqueue]:
        async def enqueue(number: int) -> None:
            await asyncio.to_thread(self._job.delay, number)

        yield enqueue

    def work(self) -> None:
        self._app.worker_main(["worker", "--concurrency", str(self._task.concurrency), "--loglevel", "ERROR"])


if __name__ == "__main__":
    run(CeleryLibrary)
