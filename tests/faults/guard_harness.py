"""An endpoint protected by guards. It answers as the test specifies, and records the caller and the time of each
call.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, TypeAlias

from batuta import Batuta
from tests.faults import guard_plant
from tests.faults.forks import processes, processes_are_ready
from tests.faults.guard_plant import Plan
from tests.faults.waiting import TIMEOUT, until


@dataclass(frozen=True)
class Receipt:
    at: datetime
    account: str
    process: str
    asked: int  # number of times that the sender asked its guard before it was admitted
    status: int


Behaviour: TypeAlias = Callable[[datetime], tuple[int, int | None]]  # returns the status and Retry-After


def well(at: datetime) -> tuple[int, int | None]:
    return 200, None


def broken(at: datetime) -> tuple[int, int | None]:
    return 503, None


@dataclass
class Endpoint:
    """An HTTP endpoint in the test's process. It records each call before it answers."""

    behaves: Behaviour = well
    receipts: list[Receipt] = field(default_factory=list)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                at = datetime.now(UTC)
                status, retry = self.behaves(at)
                self.receipts.append(
                    Receipt(at, headers["x-account"], headers["x-process"], int(headers["x-asked"]), status)
                )
                later = "" if retry is None else f"retry-after: {retry}\r\n"
                writer.write(f"HTTP/1.1 {status} X\r\n{later}content-length: 2\r\n\r\n{{}}".encode())
                await writer.drain()
        writer.close()


@dataclass
class Senders:
    plan: Plan
    work: Batuta  # the engine of the test's own process; it only reads
    endpoint: Endpoint
    living: list[ForkServerProcess] = field(default_factory=list)
    killed: int = 0

    def begin(self, count: int = 1) -> None:
        for _ in range(count):
            process = processes().Process(target=guard_plant.run, args=(self.plan.encode(),))
            process.start()
            self.living.append(process)

    async def storm(self, seconds: float, every: float, chance: random.Random) -> None:
        """Repeatedly kill a random process and start another in its place."""
        ends = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(every)
            self.kill(chance.choice(self.living))
            self.begin()

    def kill(self, process: ForkServerProcess) -> None:
        process.kill()
        process.join()
        self.living.remove(process)
        self.killed += 1

    async def until(self, what: str, true: Callable[[], bool], within: float = TIMEOUT) -> None:
        await until(what, true, within, self._said)

    def _said(self) -> str:
        log = Path(self.plan.folder) / "log"
        return log.read_text()[-2000:] if log.exists() else ""


@asynccontextmanager
async def senders(folder: Path, url: str, **options: Any) -> AsyncIterator[Senders]:
    await processes_are_ready()
    endpoint = Endpoint()
    server = await asyncio.start_server(endpoint.connection, "127.0.0.1", 0, backlog=1000)
    port = server.sockets[0].getsockname()[1]
    plan = Plan(url=url, folder=str(folder), port=port, **options)
    made = Senders(plan, guard_plant.build(plan), endpoint)
    async with made.work:
        try:
            yield made
        finally:
            for process in list(made.living):
                made.kill(process)
            server.close()


def over(instants: Sequence[datetime], most: int, per: float) -> int:
    """Count the time windows of length ``per`` that start at a receipt and contain more than ``most`` receipts."""
    ordered = sorted(instants)
    return sum((ordered[n + most] - ordered[n]).total_seconds() < per for n in range(len(ordered) - most))


def gaps(instants: Sequence[datetime]) -> list[float]:
    return [(later - sooner).total_seconds() for sooner, later in pairwise(sorted(instants))]
