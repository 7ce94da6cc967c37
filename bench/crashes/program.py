"""The commands of every library's program (`python -m bench.crashes.libraries.NAME WORD`).

    enqueue   enqueue jobs one after the other, and record each accepted job in the journal
    work      run jobs until the process is killed

The environment contains the parameters (``Task``). The module uses only the standard library, because it runs in every
library's environment.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

RETRY = 0.2  # seconds before the next attempt after a refused job
PATIENCE = 5.0  # seconds after which an attempt to enqueue a job is given up
ACCEPTED, STARTED, FINISHED = "A", "S", "F"


class Journal:
    """A file to which all processes append one line per event. A line stays in the file even if the process that wrote
    it is killed.
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, event: str, number: int) -> None:
        os.write(self._file, f"{event} {number} {time.monotonic_ns()}\n".encode())


@dataclass(frozen=True, slots=True)
class Task:
    """The parameters of a process that enqueues or runs jobs. ``recovers`` selects the settings with which the library
    runs the jobs of a crashed worker again within half a minute; otherwise the library's default settings apply.
    """

    url: str
    journal: Journal
    recovers: bool
    concurrency: int
    duration: float  # of a job, in seconds
    jobs: int
    seconds: float

    @classmethod
    def by_environment(cls) -> "Task":
        return cls(
            url=os.environ["CRASH_URL"],
            journal=Journal(Path(os.environ["CRASH_JOURNAL"])),
            recovers=os.environ["CRASH_RECOVERS"] == "1",
            concurrency=int(os.environ["CRASH_CONCURRENCY"]),
            duration=float(os.environ["CRASH_DURATION"]),
            jobs=int(os.environ.get("CRASH_JOBS", "0")),
            seconds=float(os.environ.get("CRASH_SECONDS", "0")),
        )

    async def run(self, number: int) -> None:
        """Execute one job."""
        self.journal.write(STARTED, number)
        await asyncio.sleep(self.duration)
        self.journal.write(FINISHED, number)

    def run_in_thread(self, number: int) -> None:
        """Execute one job of a library whose jobs are ordinary functions."""
        self.journal.write(STARTED, number)
        time.sleep(self.duration)
        self.journal.write(FINISHED, number)


Enqueue = Callable[[int], Awaitable[None]]


class Library(Protocol):
    def opened(self) -> AbstractAsyncContextManager[Enqueue]:
        """Open the queue, create it if it is missing, and return the function that enqueues one job."""
        ...

    def work(self) -> None: ...


def run(make: Callable[[Task], Library]) -> None:
    task = Task.by_environment()
    library = make(task)
    match sys.argv[1]:
        case "enqueue":
            asyncio.run(_enqueue(library, task))
        case "work":
            library.work()
        case word:
            sys.exit(f"unknown command: {word}")


async def _enqueue(library: Library, task: Task) -> None:
    """Enqueue ``jobs`` jobs, or as many as possible in ``seconds``. A job is accepted if the call returned. After an
    error, open the queue again and continue with the next job, because the failed one may have been stored.
    """
    ends, number = time.monotonic() + task.seconds, 0

    def is_over() -> bool:
        return number >= task.jobs if task.jobs else time.monotonic() > ends

    while not is_over():
        try:
            async with library.opened() as enqueue:
                while not is_over():
                    number += 1
                    await asyncio.wait_for(enqueue(number), PATIENCE)
                    task.journal.write(ACCEPTED, number)
        except Exception as error:  # noqa: BLE001 - each library has its own errors
            print(f"job {number}: {type(error).__name__}: {error}", file=sys.stderr)
            await asyncio.sleep(RETRY)
