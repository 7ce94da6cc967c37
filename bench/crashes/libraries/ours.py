"""Batuta with its default settings and the worker of `batuta worker`."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from batuta import Batuta
from bench.crashes.program import Enqueue, Task, run


class Ours:
    def __init__(self, task: Task) -> None:
        self._app = Batuta(task.url, concurrency=task.concurrency)
        self._job = self._app.task(name="job")(task.run)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Enqueue]:
        async def enqueue(number: int) -> None:
            await self._job.enqueue(number)

        async with self._app:
            yield enqueue

    def work(self) -> None:
        from batuta.cli import main

        sys.modules["crash_app"] = sys.modules[__name__]  # `--app` needs an importable module
        globals()["work"] = self._app
        sys.exit(main(["--app", "crash_app:work", "worker"]))


if __name__ == "__main__":
    run(Ours)
