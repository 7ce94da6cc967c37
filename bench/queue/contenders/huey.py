"""The contender Huey on SQLite, which syncs each commit. Tuned settings: four threads, no stored results. The job is a
plain function, as usual with Huey.
"""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from bench.queue.contender import Assignment, Enqueuer, run

THREADS = 4


class HueyContender:
    def __init__(self, assignment: Assignment) -> None:
        import huey  # type: ignore[import-not-found]
        import huey.consumer  # type: ignore[import-not-found]

        self._library, self._assignment = huey, assignment
        self._huey = huey.SqliteHuey(filename=assignment.file, fsync=True, results=False)

        def noop(number: int) -> None:
            assignment.marks.set(number)

        self._noop = self._huey.task(name="noop")(noop)

    async def one(self, number: int) -> None:
        self._noop(number)

    async def many(self, numbers: Sequence[int]) -> None:
        for number in numbers:  # Huey has no call for many jobs
            self._noop(number)

    @asynccontextmanager
    async def enqueuing(self) -> AsyncIterator[Enqueuer]:
        yield self

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        raise NotImplementedError

    def work(self) -> None:
        self._library.consumer.Consumer(self._huey, workers=THREADS if self._assignment.tuned else 1).run()
        sys.exit(0)


if __name__ == "__main__":
    run(HueyContender)
