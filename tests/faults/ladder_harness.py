"""Keep one monitored worker running, as its parent would, and record its exits and the notes that it writes."""

import asyncio
import os
import signal
import statistics
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from batuta import Batuta
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.testing import FastClock
from tests.faults import ladder_plant
from tests.faults.forks import processes, processes_are_ready
from tests.faults.harness import ORIGIN
from tests.faults.ladder_plant import Plan
from tests.faults.waiting import TIMEOUT, until


@dataclass(frozen=True)
class Exit:
    pid: int
    code: int | None
    at: float


def notes_in(folder: Path, *words: str) -> list[list[str]]:
    """Return the lines of the process's ``notes`` file that begin with these words."""
    file = folder / "notes"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [line for line in lines if line[: len(words)] == list(words)]


@dataclass
class GuardedWorker:
    plan: Plan
    work: Batuta  # the engine of the test's own process; it only enqueues and queries
    exits: list[Exit] = field(default_factory=list)
    worker: ForkServerProcess | None = None

    def begin(self) -> None:
        self.worker = processes().Process(target=ladder_plant.run, args=(self.plan.encode(),))
        self.worker.start()

    async def keep(self) -> None:
        """Whenever the worker ends, start another one."""
        while True:
            assert self.worker is not None
            if not self.worker.is_alive():
                self.exits.append(Exit(self.worker.pid or 0, self.worker.exitcode, time.monotonic()))
                self.begin()
            await asyncio.sleep(0.02)

    def notes(self, *words: str) -> list[list[str]]:
        return notes_in(Path(self.plan.folder), *words)

    def at(self, *words: str) -> float:
        """Return the time of the first line in the process's ``notes`` file that begins with these words."""
        return float(self.notes(*words)[0][-1])

    def log(self) -> str:
        return (Path(self.plan.folder) / "log").read_text()

    async def until(self, what: str, true: Callable[[], Any], within: float = TIMEOUT) -> Any:
        return await until(what, true, within, lambda: self.log()[-4000:])

    async def ask(self, text: str) -> list[dict[str, Any]]:
        query = in_dialect(query_of("ask", text, writes=False), self.work.database.dialect)
        return [dict(row) for row in await self.work.database.all(query)]

    async def restarts(self, reason: str) -> list[dict[str, Any]]:
        return await self.ask(f"SELECT * FROM worker_restarts WHERE reason = '{reason}' ORDER BY at")

    async def is_done(self, ids: list[str]) -> bool:
        done = {row["id"] for row in await self.ask("SELECT id FROM tasks WHERE status = 'complete'")}
        return set(ids) <= done


@asynccontextmanager
async def guarded_worker(plan: Plan, *, rate: float = 1.0, kept: bool = True) -> AsyncIterator[GuardedWorker]:
    """Run a monitored worker whose clock runs ``rate`` times as fast as the machine's. Its watchdog thread uses the
    machine's clock.
    """
    await processes_are_ready()
    if rate != 1.0:
        plan = replace(plan, clock=FastClock.start(ORIGIN, rate).text())
    work = ladder_plant.build(plan)
    async with work:
        made = GuardedWorker(plan, work)
        made.begin()
        keeping = asyncio.create_task(made.keep()) if kept else None
        try:
            await made.until("it is up", lambda: made.notes("up"))
            yield made
        finally:
            if keeping is not None:
                keeping.cancel()
                await asyncio.gather(keeping, return_exceptions=True)
            if made.worker is not None and made.worker.is_alive():
                assert made.worker.pid is not None
                os.kill(made.worker.pid, signal.SIGKILL)
                made.worker.join()


def require_flat(notes: Sequence[Sequence[str]], most: int = 5) -> str:
    """Compare the last third of a process's measurements with the third before it, and return both as text. Memory use
    may grow by a tenth plus 8 MB; the numbers of descriptors, tasks and threads may each grow by at most ``most``.
    """
    censuses = [[int(word) for word in each[1:5]] for each in notes]
    third = len(censuses) // 3
    early, late = censuses[third : 2 * third] or censuses, censuses[2 * third :]
    before, after = ([statistics.median(column) for column in zip(*rows, strict=True)] for rows in (early, late))
    names = ("rss", "fds", "tasks", "threads")
    was, became = dict(zip(names, before, strict=True)), dict(zip(names, after, strict=True))
    assert became["rss"] <= was["rss"] * 1.1 + 8 * 1024 * 1024
    for each in ("fds", "tasks", "threads"):
        assert became[each] <= was[each] + most, each
    return (
        f"memory (RSS): {was['rss'] / 1e6:.0f} → {became['rss'] / 1e6:.0f} MB; "
        f"file descriptors: {was['fds']:.0f} → {became['fds']:.0f}; "
        f"asyncio tasks: {was['tasks']:.0f} → {became['tasks']:.0f}"
    )
