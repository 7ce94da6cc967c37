"""Commands of every contender's script (`python -m bench.queue.contenders.NAME WORD`), and the format of their output.

    enqueue   create an empty queue if missing, enqueue jobs in three ways, print the counts and durations
    work      run jobs until a signal
    latency   start the worker, enqueue one job at a time, print the delay of each start in milliseconds
    inside    like latency, with the worker in the caller's process, where supported

The parameters (``Assignment``) come from environment variables. This module uses only the standard library, because it
runs in every contender's environment.
"""

import asyncio
import json
import os
import random
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bench.queue.marks import Marks

CALLERS = 50
PORTION = 1_000
WARM_UP = 10
# Shortest pause between two single jobs. It is long enough for the worker to become idle.
SHORTEST = 0.01
GIVE_UP = 30.0


@dataclass(frozen=True, slots=True)
class Assignment:
    url: str
    marks: Marks
    tuned: bool  # False means the library's default settings
    worker: int
    first: int
    bulk: int
    seconds: float  # duration of each way of enqueueing single jobs
    samples: int
    pause: float
    fenced: bool

    @classmethod
    def by_environment(cls) -> "Assignment":
        def number(name: str) -> int:
            return int(os.environ.get(f"BENCH_{name}", "0"))

        marks = Marks(Path(os.environ["BENCH_MARKS"]))
        if number("TRACE"):
            trace_sqlite(marks)
        return cls(
            url=os.environ["BENCH_URL"],
            marks=marks,
            tuned=os.environ.get("BENCH_TUNED", "1") == "1",
            worker=number("WORKER"),
            first=number("FIRST"),
            bulk=number("BULK"),
            seconds=float(os.environ.get("BENCH_SECONDS", "0")),
            samples=number("SAMPLES"),
            pause=float(os.environ.get("BENCH_PAUSE", "0.05")),
            fenced=os.environ.get("BENCH_FENCED", "1") == "1",
        )

    @property
    def file(self) -> str:
        return self.url.removeprefix("sqlite:///")


class Enqueuer(Protocol):
    async def one(self, number: int) -> None:
        """Enqueue one job, and return when it has been accepted."""
        ...

    async def many(self, numbers: Sequence[int]) -> None: ...


class Contender(Protocol):
    def enqueuing(self) -> AbstractAsyncContextManager[Enqueuer]:
        """Open the queue for enqueueing, and create it if missing."""
        ...

    def work(self) -> None:
        """Run jobs until the process receives a stop signal."""
        ...

    def working_inside(self) -> AbstractAsyncContextManager[Enqueuer]:
        """Run worker and caller in one process. Contenders that do not support this raise NotImplementedError."""
        ...


def run(make: Callable[[Assignment], Contender]) -> None:
    assignment = Assignment.by_environment()
    contender = make(assignment)
    match sys.argv[1]:
        case "work":
            assignment.marks.stand_at_gate(assignment.worker)
            contender.work()
        case "enqueue":
            print(json.dumps(asyncio.run(_enqueue(contender.enqueuing(), assignment))))
        case "latency":
            print(json.dumps(asyncio.run(_latency(contender.enqueuing(), assignment))))
        case "inside":
            print(json.dumps(asyncio.run(_latency(contender.working_inside(), assignment))))
        case word:
            sys.exit(f"unknown command: {word}")


async def _enqueue(
    enqueuing: AbstractAsyncContextManager[Enqueuer], assignment: Assignment
) -> dict[str, tuple[int, float]]:
    """Enqueue jobs in each of three ways. For each, return the number of jobs, and the wall and processor seconds."""
    async with enqueuing as queue:
        numbers = iter(range(assignment.first, assignment.marks.capacity))
        single = await _for(assignment.seconds, 1, lambda: queue.one(next(numbers)))
        concurrent = await _for(assignment.seconds, CALLERS, lambda: queue.one(next(numbers)))
        started, used = time.perf_counter(), time.process_time()
        for done in range(0, assignment.bulk, PORTION):
            await queue.many([next(numbers) for _ in range(min(PORTION, assignment.bulk - done))])
        bulk = assignment.bulk, time.perf_counter() - started, time.process_time() - used
    timed = {"single": single, "concurrent": concurrent, "bulk": bulk}
    by_cpu = {f"{name} cpu": (count, cpu) for name, (count, _, cpu) in timed.items()}
    return {name: (count, seconds) for name, (count, seconds, _) in timed.items()} | by_cpu


async def _for(seconds: float, callers: int, act: Callable[[], Awaitable[None]]) -> tuple[int, float, float]:
    """Repeat ``act`` with concurrent callers. Return the number of calls, and the wall and processor seconds of this
    process.
    """
    started, used = time.perf_counter(), time.process_time()

    async def caller() -> int:
        done = 0
        while time.perf_counter() < started + seconds:
            await act()
            done += 1
        return done

    done = await asyncio.gather(*(caller() for _ in range(callers)))
    return sum(done), time.perf_counter() - started, time.process_time() - used


async def _latency(enqueuing: AbstractAsyncContextManager[Enqueuer], assignment: Assignment) -> list[float]:
    chance, found = random.Random(7), []
    async with enqueuing as queue:
        assignment.marks.open_gate()  # open the gate now, because the queue did not exist before
        for number in range(assignment.first, assignment.first + WARM_UP + assignment.samples):
            await asyncio.sleep(chance.uniform(SHORTEST, assignment.pause))
            sent = time.monotonic_ns()
            await queue.one(number)
            while not assignment.marks.get(number)[0]:
                if time.monotonic_ns() - sent > GIVE_UP * 1e9:
                    sys.exit(f"job {number} did not begin within {GIVE_UP:.0f} s")
                await asyncio.sleep(0.0002)
            found.append((assignment.marks.get(number)[0] - sent) / 1e6)
    return found[WARM_UP:]


def trace_sqlite(marks: Marks) -> None:
    """Count the statements on every SQLite connection in this process."""
    plain = sqlite3.connect

    def traced(*arguments: Any, **named: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = plain(*arguments, **named)
        connection.set_trace_callback(marks.count_statement)
        return connection

    vars(sqlite3)["connect"] = traced
