"""Start, stop, kill and freeze workers, and count the results of all enqueued items."""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from batuta import Batuta
from batuta.kernel.errors import StoreUnavailable
from batuta.stores.sql.queries import in_dialect, query_of
from tests.faults import queue_plant
from tests.faults.figures import LONG
from tests.faults.forks import processes, processes_are_ready
from tests.faults.queue_plant import Plan
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, until
from tests.stored import readable


@dataclass
class QueueWorkers:
    plan: Plan
    work: Batuta  # the engine of the test's own process; it only enqueues and queries
    workers: list[ForkServerProcess] = field(default_factory=list)

    def begin(self, **other: Any) -> ForkServerProcess:
        """Start one more worker. ``other`` replaces some of the settings in ``plan`` for this worker."""
        worker = processes().Process(target=queue_plant.run, args=(replace(self.plan, **other).encode(),))
        worker.start()
        self.workers.append(worker)
        return worker

    async def begin_until_up(self, count: int = 1, **other: Any) -> list[ForkServerProcess]:
        begun = [self.begin(**other) for _ in range(count)]
        pids = {str(each.pid) for each in begun}
        await self.until("they are up", lambda: pids <= {pid for word, pid, *_ in self.notes() if word == "up"})
        return begun

    def kill(self, worker: ForkServerProcess) -> None:
        worker.kill()
        worker.join()
        self.workers.remove(worker)

    def signal(self, worker: ForkServerProcess, number: int) -> None:
        assert worker.pid is not None
        os.kill(worker.pid, number)

    async def stop(self, worker: ForkServerProcess, within: float = TIMEOUT) -> int | None:
        self.signal(worker, signal.SIGTERM)
        await asyncio.to_thread(worker.join, within)
        self.workers.remove(worker)
        return worker.exitcode

    @asynccontextmanager
    async def kept(self, count: int) -> AsyncIterator[None]:
        """Keep ``count`` workers running: replace each worker that dies, as a supervisor does."""
        wanted = [self.begin() for _ in range(count)]

        async def keep() -> None:
            while True:
                for dead in [each for each in wanted if not each.is_alive()]:
                    wanted.remove(dead)
                    self.workers.remove(dead)
                    wanted.append(self.begin())
                await asyncio.sleep(0.05)

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    @asynccontextmanager
    async def enqueuing(self, *arguments: Any) -> AsyncIterator["Enqueuer"]:
        """Enqueue items continuously. If an enqueue is rejected, continue with the next item."""
        enqueuer = Enqueuer()

        async def enqueue() -> None:
            while True:
                try:
                    enqueuer.accepted.append(await self.work.enqueue("conta", *arguments))
                except StoreUnavailable:
                    enqueuer.refused += 1
                await asyncio.sleep(0.02)

        coming = asyncio.create_task(enqueue())
        try:
            yield enqueuer
        finally:
            coming.cancel()
            (ending,) = await asyncio.gather(coming, return_exceptions=True)
        assert isinstance(ending, asyncio.CancelledError), ending

    async def serves(self, within: float = 10.0 if LONG else TIMEOUT) -> float:
        """Enqueue a new item, and return the seconds until it is done."""
        began = time.monotonic()

        async def is_accepted() -> str | None:
            try:
                return await self.work.enqueue("conta", priority=-1)
            except StoreUnavailable:
                return None

        id = await self.until("it is accepted", is_accepted, within)
        await self.until("it is done", lambda: self._is_done(id), within)
        took = time.monotonic() - began
        assert took <= within
        return took

    async def _is_done(self, id: str) -> bool:
        return bool((await self.row(id))["status"] == "complete")

    def notes(self) -> list[list[str]]:
        file = Path(self.plan.folder) / "runs"
        return [line.split() for line in file.read_text().splitlines()] if file.exists() else []

    def runs(self) -> Counter[str]:
        """Return, for each item, how many times its handler was started."""
        return Counter(words[1] for words in self.notes() if words[0] == "run")

    async def effects(self) -> Counter[str]:
        return Counter(row["item"] for row in await self.ask("SELECT item FROM effects"))

    async def ask(self, text: str) -> list[dict[str, Any]]:
        database = self.work.database
        rows = await database.all(in_dialect(query_of("ask", text, writes=False), database.dialect))
        return [readable(row) for row in rows]

    async def counts(self) -> dict[str, int]:
        rows = await self.ask("SELECT status, count(*) AS items FROM tasks GROUP BY status")
        return {row["status"]: row["items"] for row in rows}

    async def row(self, id: str) -> dict[str, Any]:
        (row,) = await self.ask(f"SELECT * FROM tasks WHERE id = '{id}'")
        return row

    async def until(self, what: str, true: Callable[[], Any], within: float = TIMEOUT) -> Any:
        return await until(what, true, within, self.state_of_things)

    async def state_of_things(self) -> str:
        log = Path(self.plan.folder) / "log"
        said = log.read_text()[-3000:] if log.exists() else ""
        return f"{await self.counts()}\n{said}"

    async def until_over(self, within: float = TIMEOUT) -> None:
        """Wait until every enqueued item has ended."""

        async def is_over() -> bool:
            return not {"queued", "in_progress"} & (await self.counts()).keys()

        await self.until("everything is over", is_over, within)

    async def judge(self, ids: Sequence[str], *, or_more: bool = False) -> Tally:
        """Assert that every item is complete and took effect once.

        ``or_more`` allows items that the test does not know, because an interrupted enqueue may have been written.
        """
        everything = [row["id"] for row in await self.ask("SELECT id FROM tasks")]
        tally = await self.tally({*ids, *everything} if or_more else ids)
        assert (tally.lost, tally.doubled) == (0, 0), f"{tally} {await self.state_of_things()}"
        assert len(everything) == tally.items
        assert tally.effects == tally.items
        return tally

    async def tally(self, ids: Collection[str]) -> Tally:
        """Count the results of the items with these ids, and the effects of all items."""
        complete = {row["id"] for row in await self.ask("SELECT id FROM tasks WHERE status = 'complete'")}
        effects, runs = await self.effects(), self.runs()
        return Tally(
            items=len(ids),
            lost=sum(id not in complete or effects[id] == 0 for id in ids),
            doubled=sum(effects[id] > 1 for id in ids),
            effects=effects.total(),
            in_vain=sum(runs[id] for id in ids) - len(ids),
        )


@dataclass
class Enqueuer:
    accepted: list[str] = field(default_factory=list)  # acknowledged items
    refused: int = 0


@asynccontextmanager
async def queue_workers(folder: Path, url: str, **options: Any) -> AsyncIterator[QueueWorkers]:
    """Open a database without starting a worker. Kill every remaining process at the end."""
    await processes_are_ready()
    plan = Plan(url=url, folder=str(folder), **options)
    made = QueueWorkers(plan, queue_plant.build(plan))
    async with made.work:
        await made.work.database.script(f"{queue_plant.EFFECTS};{queue_plant.LINE_SQL if plan.has_line else ''}")
        try:
            yield made
        finally:
            for worker in made.workers:
                worker.kill()
                worker.join()
