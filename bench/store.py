"""Measure small transactions, one at a time and concurrent, and reads during writes.

In each repeat, every workload runs with all contenders of a contest, one directly after another, so that disturbances
on the machine affect all of them. Each repeat starts with a different contender.
"""

import asyncio
import itertools
import os
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from batuta.stores.sql.database import ConnectionLimits
from bench.contenders import (
    Contender,
    ExecutorThread,
    Opening,
    SameThread,
    bare_asyncpg_connection,
    bare_asyncpg_pool,
    bare_sqlite,
    count_until,
    ours,
)

OURS = "batuta"
LOADED = 1_000  # number of rows that are loaded before the measurement, for readers
TOGETHER = 50
READERS = ConnectionLimits().readers
WARM_UP = 0.15  # share of the measured time that precedes the measurement, to open connections and prepare statements
PAGE = 4096
LOG_PAGES = 1_000  # number of pages to which SQLite lets its log grow
A_PAGE = b"x" * PAGE

Rates: TypeAlias = dict[str, float]  # maps a row title to operations per second
Figures: TypeAlias = dict[str, dict[str, list[float]]]  # maps row title and contender to one rate per repeat


@dataclass(frozen=True, slots=True)
class Contest:
    """A comparison of several contenders, of which Batuta is the first. Only figures from the same comparison may be
    compared.
    """

    title: str
    contenders: Mapping[str, Opening]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    repeats: int
    seconds: float  # duration of one measurement


@dataclass(frozen=True, slots=True)
class Rows:
    """Row numbers of a workload. ``fresh`` yields unused numbers; ``loaded`` cycles through the rows that exist from
    the start.
    """

    fresh: Iterator[int]
    loaded: Iterator[int]


Workload: TypeAlias = Callable[[Contender, Rows, float], Awaitable[Rates]]


class RowsLost(Exception):
    """Raised if a contender reported success for rows that are missing, which makes its figures worthless."""


def sqlite_contest(title: str, folder: Path) -> Contest:
    file = folder / "bench.db"
    return Contest(
        title,
        {
            OURS: lambda: ours(f"sqlite:///{without(file)}"),
            "sqlite3, same thread": lambda: bare_sqlite(without(file), SameThread),
            "sqlite3, executor thread": lambda: bare_sqlite(without(file), ExecutorThread),
        },
    )


def without(file: Path) -> Path:
    """Delete the file and return its path. Every measurement starts with a new file, because writing to a file that has
    already grown is faster.
    """
    for left in file.parent.glob(f"{file.name}*"):
        left.unlink()
    return file


def postgres_contest(title: str, url: str) -> Contest:
    return Contest(
        title,
        {
            OURS: lambda: ours(url),
            "asyncpg, one connection": lambda: bare_asyncpg_connection(url),
            "asyncpg, pool": lambda: bare_asyncpg_pool(url),
        },
    )


async def figures_of(contest: Contest, effort: Effort) -> Figures:
    figures: Figures = {}
    names = list(contest.contenders)
    for repeat, workload in itertools.product(range(effort.repeats), WORKLOADS):
        for name in rotated(names, repeat):
            rates = await measure(contest.contenders[name], workload, effort.seconds)
            for title, rate in rates.items():
                figures.setdefault(title, {each: [] for each in names})[name].append(rate)
    return figures


def rotated(names: Sequence[str], by: int) -> list[str]:
    start = by % len(names)
    return [*names[start:], *names[:start]]


async def measure(opening: Opening, workload: Workload, seconds: float) -> Rates:
    async with opening() as contender:
        await contender.insert_together(range(LOADED))
        rows = Rows(itertools.count(LOADED), itertools.cycle(range(LOADED)))
        await workload(contender, rows, seconds * WARM_UP)
        rates = await workload(contender, rows, seconds)
        acknowledged, found = next(rows.fresh), await contender.count()
    if found != acknowledged:
        raise RowsLost(f"{acknowledged} rows were acknowledged and {found} exist")
    return rates


def singles(title: str, tasks: int) -> Workload:
    async def workload(contender: Contender, rows: Rows, seconds: float) -> Rates:
        return {title: await rate(lambda: contender.insert(next(rows.fresh)), tasks, seconds)}

    return workload


def interactive(title: str, tasks: int) -> Workload:
    async def workload(contender: Contender, rows: Rows, seconds: float) -> Rates:
        def act() -> Awaitable[None]:
            return contender.read_then_insert(next(rows.loaded), next(rows.fresh))

        return {title: await rate(act, tasks, seconds)}

    return workload


async def together(contender: Contender, rows: Rows, seconds: float) -> Rates:
    def act() -> Awaitable[None]:
        return contender.insert_together([next(rows.fresh) for _ in range(TOGETHER)])

    return {f"rows in transactions of {TOGETHER} rows": TOGETHER * await rate(act, 1, seconds)}


async def reads_beside_a_writer(contender: Contender, rows: Rows, seconds: float) -> Rates:
    started = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(contender.insert_until(started + seconds, rows.fresh))
        reads = await rate(lambda: contender.read(next(rows.loaded)), READERS, seconds)
    writes = writing.result() / (time.perf_counter() - started)
    return {f"reads by {READERS} tasks during continuous writes": reads, "writes during these reads": writes}


WORKLOADS: tuple[Workload, ...] = (
    singles("sequential INSERTs", 1),
    singles("INSERTs by 50 tasks", 50),
    singles("INSERTs by 200 tasks", 200),
    together,
    interactive("SELECT, then INSERT, sequential", 1),
    interactive("SELECT, then INSERT, by 50 tasks", 50),
    reads_beside_a_writer,
)


async def rate(act: Callable[[], Awaitable[object]], tasks: int, seconds: float) -> float:
    """Return the operations per second. Operations that are in progress when the time ends are awaited, and the rate
    includes them and the additional time.
    """
    started = time.perf_counter()
    done = await asyncio.gather(*(count_until(started + seconds, act) for _ in range(tasks)))
    return sum(done) / (time.perf_counter() - started)


def syncs_per_second(folder: Path, seconds: float) -> float:
    """Return how many times per second the disk can currently sync. As in a commit, each sync follows the write of one
    page into an existing file.
    """
    with tempfile.NamedTemporaryFile(dir=folder, buffering=0) as log:
        log.write(bytes(LOG_PAGES * PAGE))
        os.fsync(log.fileno())
        places = itertools.cycle(range(0, LOG_PAGES * PAGE, PAGE))
        started, done = time.perf_counter(), 0
        while time.perf_counter() < started + seconds:
            os.pwrite(log.fileno(), A_PAGE, next(places))
            os.fdatasync(log.fileno())
            done += 1
        return done / (time.perf_counter() - started)
