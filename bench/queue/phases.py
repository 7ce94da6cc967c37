"""Measure in which phases a job spends its processor time, in one worker that drains a queue: `python -m
bench.queue.phases`.

The worker runs in this process. A timer of processor time (SIGPROF) takes samples, so other programs on the machine do
not count. Each sample counts for the innermost running function that ``PHASES`` names. The time of the database server
is that of all its processes.
"""

import argparse
import asyncio
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import FrameType

import asyncpg

from batuta.engine.batuta import Batuta
from bench.queue.processes import tree_cpu_seconds
from bench.report import markdown
from tests.servers import postgres_server

EVERY = 0.001  # seconds of processor time between two samples
PORTION = 1_000
PLACES = 12  # number of functions that are listed
PHASES = {
    "run: the function": ("noop",),
    "run: around the function": ("_work", "_run", "run", "handle", "execute", "_execute", "__next__", "bind_after"),
    "start": ("_start", "_start_waiting", "add"),
    "decide": ("decide", "settlement_of"),
    "describe the endings": ("split_endings", "ending", "dumps", "settle_and_claim", "_order_values"),
    "decode the items": ("leases_of", "loads", "_decode_documents", "_measure_waits"),
    "count and record the item": ("take", "forget", "report", "_record_result", "_forget", "_settle_and_claim", "emit"),
    "exchange with the database": ("attempt", "perform", "steps", "_commit", "_serve", "fetch", "_do_execute", "all"),
    "event loop": ("_run_once", "select", "_read_ready__data_received"),
}
_PHASE_OF = {name: phase for phase, names in PHASES.items() for name in names}


class Samples:
    """Counts the timer's samples of the running code, by phase and by function."""

    def __init__(self) -> None:
        self.phases: Counter[str] = Counter()
        self.places: Counter[str] = Counter()

    def take(self, number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_name == "select":
            frame = self._writer() or frame
        innermost = frame
        while frame is not None and frame.f_code.co_name not in _PHASE_OF:
            frame = frame.f_back
        self.phases["other" if frame is None else _PHASE_OF[frame.f_code.co_name]] += 1
        if innermost is not None:
            code = innermost.f_code
            self.places[f"{Path(code.co_filename).name}:{code.co_qualname}:{innermost.f_lineno}"] += 1

    def _writer(self) -> FrameType | None:
        """Return the frame of a database thread that is working while the event loop waits for it, or None."""
        for frame in sys._current_frames().values():
            if (
                Path(frame.f_code.co_filename).name in ("connection.py", "writer.py")
                and frame.f_code.co_name != "_work"
            ):
                return frame
        return None

    @contextmanager
    def taken(self) -> Iterator[None]:
        signal.signal(signal.SIGPROF, self.take)
        signal.setitimer(signal.ITIMER_PROF, EVERY, EVERY)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


@dataclass(frozen=True, slots=True)
class Found:
    """The microseconds of processor time per job, and the jobs per second. On PostgreSQL also the bytes of the
    write-ahead log and the dead rows per job.
    """

    rate: float
    worker: float
    server: float | None = None
    wal_bytes: float | None = None
    dead_rows: float | None = None


async def drain(url: str, jobs: int, server: int | None, samples: Samples | None) -> Found:
    app, done, finished = Batuta(url, concurrency=1000), 0, asyncio.Event()

    async def noop(number: int) -> None:
        nonlocal done
        done += 1
        if done == jobs:
            finished.set()

    app.task(name="noop")(noop)
    async with app:
        for first in range(0, jobs, PORTION):
            await app.enqueue_many("noop", [[number] for number in range(first, min(first + PORTION, jobs))])
        stop = asyncio.Event()
        before = 0 if server is None else await wal_position(url)
        spent, of_server, began = processor(), server and tree_cpu_seconds(server), time.monotonic()
        working = asyncio.create_task(app.supervisor().run(stop, timedelta(seconds=5)))
        if samples is None:
            await finished.wait()
        else:
            with samples.taken():
                await finished.wait()
        rate, worker = jobs / (time.monotonic() - began), (processor() - spent) * 1e6 / jobs
        serving = None if server is None else (tree_cpu_seconds(server) - (of_server or 0)) * 1e6 / jobs
        stop.set()
        await working
    if server is None:
        return Found(rate, worker)
    wal, dead = await writes(url, before)
    return Found(rate, worker, serving, wal / jobs, dead / jobs)


async def wal_position(url: str) -> int:
    connection = await asyncpg.connect(url)
    position: int = await connection.fetchval("SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint")
    await connection.close()
    return position


async def writes(url: str, before: int) -> tuple[int, int]:
    """Return how much the jobs wrote on PostgreSQL: bytes of the write-ahead log, and dead rows."""
    wal, connection = await wal_position(url) - before, await asyncpg.connect(url)
    await connection.execute("SELECT pg_stat_force_next_flush()")
    dead: int = await connection.fetchval("SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'tasks'")
    await connection.close()
    return wal, dead


def processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def show(title: str, found: Found, samples: Samples | None) -> None:
    of_server = "" if found.server is None else f" + {found.server:.1f}"
    left = f", {found.wal_bytes:,.0f} bytes of write-ahead log and {found.dead_rows:.1f} dead rows" if of_server else ""
    print(f"{title}: {found.worker:.1f}{of_server} µs of processor per job{left}; {found.rate:,.0f} jobs/s", flush=True)
    if samples is None:
        return
    micros = found.worker / max(1, samples.phases.total())
    rows = [[phase, f"{count * micros:.1f}"] for phase, count in samples.phases.most_common()]
    print(markdown([["phase", "µs/job"], *rows]))
    rows = [[place, f"{count * micros:.2f}"] for place, count in samples.places.most_common(PLACES)]
    print(markdown([["function", "µs/job"], *rows]) if rows else "")


def table(*, quick: bool) -> str:
    """Measure both databases and return one table. A cell lists the values of all repeats."""
    jobs, repeats = (4_000, 1) if quick else (20_000, 3)
    rows = [["", "jobs/s", "worker µs/job", "server µs/job", "bytes of write-ahead log", "dead rows"]]
    for name, found in measure(["postgres", "sqlite"], jobs, repeats, sampled=False).items():
        every = [(each.rate, each.worker, each.server, each.wal_bytes, each.dead_rows) for each in found]
        columns = zip(*every, strict=True)
        rows.append(
            [name, *(" · ".join("–" if value is None else f"{value:,.1f}" for value in each) for each in columns)]
        )
    return markdown(rows)


def measure(names: Sequence[str], jobs: int, repeats: int, *, sampled: bool) -> dict[str, list[Found]]:
    every: dict[str, list[Found]] = {}
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir="/var/tmp") as inside:
        for name in names:
            if name == "sqlite":
                for n in range(repeats):
                    samples = Samples() if sampled else None
                    found = asyncio.run(drain(f"sqlite:///{inside}/{n}.db", jobs, None, samples))
                    every.setdefault("SQLite", []).append(found)
                    show("SQLite", found, samples)
                continue
            with postgres_server(durable=True, within=Path("/var/tmp")) as server:
                assert server is not None
                for _ in range(repeats):
                    samples = Samples() if sampled else None
                    found = asyncio.run(drain(server.url(server.create()), jobs, server.pid, samples))
                    every.setdefault("PostgreSQL", []).append(found)
                    show("PostgreSQL", found, samples)
    return every


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=["postgres", "sqlite", []])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sampled", action="store_true")
    options = parser.parse_args()
    measure(options.names or ["postgres", "sqlite"], options.jobs, options.repeats, sampled=options.sampled)
