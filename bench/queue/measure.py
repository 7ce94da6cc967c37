"""Measure one contender: start its processes, read the start times of its jobs, and stop all processes."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.queue.entries import ROOT, Entry
from bench.queue.figures import Drain, Idle, drain_rate
from bench.queue.homes import Home
from bench.queue.marks import Marks
from bench.queue.processes import ContenderFailed, Processes, cpu_seconds, megabytes

CAPACITY = 2_000_000  # number of slots; the file is sparse


@dataclass(slots=True)
class Stand:
    """The setup for measuring one contender: its storage, the start times of its jobs, and its processes."""

    entry: Entry
    home: Home
    marks: Marks
    processes: Processes
    env: dict[str, str]
    enqueued: int = 0

    def command(self, word: str) -> list[str | Path]:
        return [self.entry.python, "-m", f"bench.queue.contenders.{self.entry.module}", word]

    def ask(self, word: str, **values: object) -> Any:
        env = {f"BENCH_{name.upper()}": str(value) for name, value in values.items()}
        return json.loads(self.processes.answer(self.command(word), self.env | env, ROOT))

    def enqueue(self, bulk: int, seconds: float = 0.0) -> dict[str, tuple[int, float]]:
        said: dict[str, tuple[int, float]] = self.ask("enqueue", first=self.enqueued, bulk=bulk, seconds=seconds)
        self.enqueued += sum(said[name][0] for name in ("single", "concurrent", "bulk"))
        return said

    def start(self, workers: int = 1, *, tuned: bool = True, traced: bool = False) -> list[int]:
        """Start the worker processes. Wait until all of them have finished their imports and are waiting for the signal
        to begin.
        """
        self.marks.close_gate()
        pids = []
        for worker in range(workers):
            env = {"BENCH_WORKER": str(worker), "BENCH_TUNED": str(int(tuned)), "BENCH_TRACE": str(int(traced))}
            pids.append(self.processes.start(self.command("work"), self.env | env, ROOT).pid)
        self.processes.wait_for(lambda: self.marks.are_ready(workers), "a worker waits at the gate", 30)
        return pids


@contextmanager
def standing(entry: Entry, home: Home, folder: Path) -> Iterator[Stand]:
    file = folder / f"{entry.key}.marks"
    with Marks.make(file, CAPACITY) as marks, Processes(folder) as processes:
        env = {"BENCH_URL": home.url, "BENCH_MARKS": str(file), **entry.env}
        yield Stand(entry, home, marks, processes, env)


@dataclass(frozen=True, slots=True)
class Spent:
    """The processor time and the number of statements that were used until a given number of jobs had started."""

    begun: int
    worker: float
    server: float | None
    statements: int | None

    @classmethod
    def by(cls, stand: Stand, pid: int, begun: int) -> "Spent":
        return cls(begun, cpu_seconds(pid), stand.home.cpu_seconds(), stand.home.statements())


def drain(stand: Stand, first: int, end: int, *, to_the_last: bool = True) -> Drain:
    """Measure one worker while it runs the jobs from ``first`` to ``end``. With ``to_the_last``, wait until all of
    these jobs are settled.
    """
    (pid,) = stand.start()
    reached = _following(stand, first, end)
    stand.marks.open_gate()
    stand.processes.wait_for(lambda: reached() > first, "the first job begins")
    before = Spent.by(stand, pid, reached())
    stand.processes.wait_for(lambda: reached() == end, "the last job begins")
    after = Spent.by(stand, pid, end)
    size = megabytes(pid)
    if to_the_last:
        question = stand.entry.unsettled
        stand.processes.wait_for(lambda: not stand.home.unsettled(question), "the last job is settled", every=0.02)
    settled_at = time.monotonic_ns()
    stand.processes.stop()
    marks = list(stand.marks.between(first, end))
    rate, jobs = drain_rate(marks), after.begun - before.begun
    if rate is None or not jobs:
        raise ContenderFailed("too few jobs to compute a rate")
    took = settled_at - min(at for at, _ in marks)
    return Drain(
        jobs=len(marks),
        rate=rate,
        committed=len(marks) * 1e9 / took if to_the_last else None,
        worker_micros=(after.worker - before.worker) * 1e6 / jobs,
        server_micros=_per(before.server, after.server, jobs / 1e6),
        statements=_per(before.statements, after.statements, jobs),
        megabytes=size,
    )


def drain_together(stand: Stand, first: int, end: int, workers: int = 2) -> float | None:
    stand.start(workers)
    reached = _following(stand, first, end)
    stand.marks.open_gate()
    stand.processes.wait_for(lambda: reached() == end, "the last job begins")
    stand.processes.stop()
    return drain_rate(list(stand.marks.between(first, end)), workers)


def traced_statements(stand: Stand, first: int, end: int) -> float:
    """Return how many statements a worker executes per job, counted by the worker itself. This is a separate run,
    because counting takes time.
    """
    stand.start(traced=True)
    reached = _following(stand, first, end)
    before = stand.marks.statements
    stand.marks.open_gate()
    stand.processes.wait_for(lambda: reached() == end, "the last job begins")
    counted = stand.marks.statements - before
    stand.processes.stop()
    return counted / (end - first)


def latency(stand: Stand, samples: int) -> list[float]:
    """Return how many milliseconds passed between enqueueing and start, for each of ``samples`` jobs. The first jobs
    are not included, because the worker was still starting.
    """
    stand.start()
    found: list[float] = stand.ask("latency", first=0, samples=samples, pause=stand.entry.pause)
    stand.processes.stop()
    return found


def latency_inside(stand: Stand, samples: int) -> list[float]:
    found: list[float] = stand.ask("inside", first=0, samples=samples)
    return found


def idle(stand: Stand, pid: int, seconds: float) -> Callable[[], Idle]:
    """Begin to observe an idle contender. Return a function that ends the observation and returns its figures. Several
    contenders can be observed at the same time.
    """
    cpu, statements, looks = cpu_seconds(pid), _statements(stand), stand.marks.looks

    def ended() -> Idle:
        is_file = stand.home.statements() is None
        return Idle(
            cpu=(cpu_seconds(pid) - cpu) * 100 / seconds,
            statements=(_statements(stand) - statements) / seconds,
            looks=(stand.marks.looks - looks) / seconds if is_file else None,
            megabytes=megabytes(pid),
        )

    return ended


def _statements(stand: Stand) -> int:
    counted = stand.home.statements()
    return stand.marks.statements if counted is None else counted


def _following(stand: Stand, first: int, end: int) -> Callable[[], int]:
    """Return a function that follows the progress of a worker: each call returns the number of the first job that has
    not started. A call is cheap, because it begins where the previous call ended.
    """
    cursor = first

    def reached() -> int:
        nonlocal cursor
        cursor = stand.marks.reach(cursor, end)
        return cursor

    return reached


def _per(before: float | None, after: float | None, many: float) -> float | None:
    return None if before is None or after is None else (after - before) / many
