"""Huey on SQLite, which syncs each commit."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import huey  # type: ignore[import-not-found]
import huey.consumer  # type: ignore[import-not-found]

from bench.crashes.program import Enqueue, Task, run


class HueyLibrary:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._huey = huey.SqliteHuey(filename=task.url.removeprefix("sqlite:///"), fsync=True, results=False)

        def job(number: int) -> None:
            task.run_in_thread(number)

        self._job = self._huey.task(name="job")(job)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Enqueue]:
        async def enqueue(number: int) -> None:
            self._job(number)

        yield enqueue

    def work(self) -> None:
        huey.consumer.Consumer(self._huey, workers=self._task.concurrency).run()


if __name__ == "__main__":
    run(HueyLibrary)
