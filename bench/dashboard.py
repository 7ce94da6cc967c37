"""`python -m bench.dashboard`: the dashboard on PostgreSQL with a million executions and a million items.

It measures every page, the claims of a busy queue without and with twenty live viewers, and a bulk retry of 100,000
items while that queue is busy. Wall times include other load on the machine; processor times are those of the API
process and of all processes of the PostgreSQL server. ``--rows`` makes the tables smaller, for a quick first
impression. The last table compares each figure with its target, and the exit code is 1 if a target is missed.
"""

import argparse
import asyncio
import gzip
import os
import signal
import subprocess
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import httpx2

from batuta import Batuta
from batuta.kernel.leases import LeaseHolder
from batuta.queue.inspection import BulkChange, ItemFilter
from batuta.queue.item import ItemState, NewItem
from batuta.stores.sql.database import AsJson
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from bench.report import machine, markdown
from tests.servers import free_port, postgres_server

JOBS = 40
DEAD, READY, CAUSES = 0.12, 0.1, 25  # shares of the items, and the number of different errors of the dead items
BULK = 100_000
VIEWERS = 20
SETTLED = 3.0  # seconds after the viewers have opened their pages
ROUND = 6.0  # seconds of each round of claims, without and with viewers
MOST_PAGE_MS, MOST_SLOWER, MOST_BULK_SECONDS, MOST_KB = 300, 1.1, 60, 30  # the targets
PAGES = {
    "now": "",
    "jobs": "/tarefas",
    "job": "/tarefas/job_7",
    "executions": "/execucoes",
    "executions that failed": "/execucoes?situacao=error",
    "executions of a job": "/execucoes?tarefa=job_7&situacao=success",
    "execution": "/execucoes/{execution}",
    "schedules": "/programacoes",
    "queues": "/filas",
    "dead items of a queue": "/filas/default?estado=dead",
    "waiting items of a queue": "/filas/default?estado=ready",
    "running items of a queue": "/filas/default?estado=running",
    "finished items of a queue": "/filas/default?estado=done",
    "cancelled items of a queue": "/filas/default?estado=cancelled",
    "dead items with a given name and age": "/filas/default?estado=dead&nome=send&idade=1h",
    "finished item with a given key": "/filas/default?estado=done&chave=key-777",
    "item": "/filas/default/{item}",
    "processes": "/processos",
    "holds and limits": "/freios",
    "incidents": "/incidentes",
    "audit": "/auditoria",
}
_EXECUTIONS = """
INSERT INTO job_executions (id, job_name, categoria, scheduled_for, trigger, started_at, finished_at, status, duration_ms,
                            response_code, error, items_processed)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
        || substr(md5(n::text), 4, 15))::uuid, 'job_' || n % $2, 'group_' || n % 6, at, 'schedule', at, at + INTERVAL '1 second',
       CASE WHEN n % 97 = 0 THEN 'error' WHEN n % 211 = 0 THEN 'timeout' ELSE 'success' END, 100 + n % 900, 200,
       CASE WHEN n % 97 = 0 THEN 'HTTP 500: try again' END, n % 50
FROM (SELECT n, now() - n * INTERVAL '30 days' / $1 AS at FROM generate_series(1, $1) AS n) AS runs"""
_ITEMS = """
INSERT INTO tasks (id, queue, name, args, status, unique_key, attempts, available_at, created_at, started_at, finished_at, error)
SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8'
        || substr(md5(n::text), 4, 15))::uuid, 'default', CASE WHEN n % 3 = 0 THEN 'report' ELSE 'send' END, '[[], {}]', state,
       CASE WHEN n % 10 = 0 THEN 'key-' || n END, CASE WHEN state = 'queued' THEN 0 ELSE 1 END, at, at, at,
       CASE WHEN state <> 'queued' THEN at + INTERVAL '1 second' END,
       CASE WHEN state = 'failed' THEN 'Error ' || chr(65 + (n % $4)::int) || ': no answer after ' || n || ' s' END
FROM (SELECT n, now() - n * INTERVAL '7 days' / $1 AS at,
             CASE WHEN n % 1000 < 1000 * $2::float THEN 'failed' WHEN n % 1000 < 1000 * ($2 + $3::float) THEN 'queued'
                  WHEN n % 5003 = 1 THEN 'cancelled' ELSE 'complete' END AS state
      FROM generate_series(1, $1) AS n) AS items"""


async def _nothing() -> None: ...


def program() -> Batuta:
    """Return the program whose dashboard is measured: jobs in six categories, and two tasks."""
    made = Batuta(timezone="UTC")
    for n in range(JOBS):
        made.job("*/15 * * * *", name=f"job_{n}", category=f"group_{n % 6}")(_nothing)
    for name in ("send", "report"):
        made.task(name=name)(_nothing)
    return made


work = program() if "DATABASE_URL" in os.environ else None


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.dashboard", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=20, help="requests of each page")
    parser.add_argument("--rounds", type=int, default=4, help="rounds of claims without and with viewers")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    options = parser.parse_args(arguments)
    with postgres_server(durable=True, within=options.folder) as server:
        if server is None:
            print("NOT MEASURED: no PostgreSQL on this machine. Set BATUTA_PG_BIN to the folder that contains initdb.")
            return 1
        print("\n".join(machine(options.folder)), flush=True)
        os.environ["DATABASE_URL"] = server.url(server.create())
        targets = asyncio.run(measure(options.rows, options.repeats, options.rounds))
    print(f"\n{markdown([['target', 'limit', 'measured', ''], *(each.line for each in targets)])}")
    return 0 if all(each.is_met for each in targets) else 1


@dataclass(frozen=True, slots=True)
class Target:
    what: str
    limit: float
    measured: float
    unit: str

    @property
    def is_met(self) -> bool:
        return self.measured <= self.limit

    @property
    def line(self) -> list[str]:
        said = "met" if self.is_met else "MISSED"
        return [self.what, f"≤ {self.limit:g} {self.unit}", f"{self.measured:.1f} {self.unit}", said]


async def measure(rows: int, repeats: int, rounds: int) -> list[Target]:
    made = program()
    async with made:
        known = await fill(rows)
        port = free_port()
        api = subprocess.Popen(
            [sys.executable, "-m", "batuta", "--app", "bench.dashboard:work", "api"],
            env={**os.environ, "PORT": str(port), "APP_ENV": "development"},
            stdout=subprocess.DEVNULL,
        )
        try:
            base = f"http://127.0.0.1:{port}/painel"
            await wait_for(base)
            spent = await processor_of(api.pid)
            return [
                *await pages(base, known, repeats, spent),
                *await claims(made, base, rounds, spent),
                await bulk(made),
            ]
        finally:
            api.send_signal(signal.SIGINT)
            api.wait(60)


async def fill(rows: int) -> dict[str, str]:
    """Fill the executions table and the items table. Return the ids of a failed execution and a failed item."""
    began, connection = time.monotonic(), await asyncpg.connect(os.environ["DATABASE_URL"])
    await connection.execute(_EXECUTIONS, rows, JOBS)
    await connection.execute(_ITEMS, rows, DEAD, READY, CAUSES)
    await connection.execute("VACUUM ANALYZE")
    ids = {
        "execution": str(await connection.fetchval("SELECT id FROM job_executions WHERE status = 'error' LIMIT 1")),
        "item": str(await connection.fetchval("SELECT id FROM tasks WHERE status = 'failed' LIMIT 1")),
    }
    states = await connection.fetch("SELECT status, count(*) FROM tasks GROUP BY 1 ORDER BY 2 DESC")
    counts = ", ".join(f"{count:,} {state}" for state, count in states)
    print(f"\n{rows:,} executions; items: {counts}; filled in {time.monotonic() - began:.0f} s", flush=True)
    await connection.close()
    return ids


async def wait_for(base: str) -> None:
    async with httpx2.AsyncClient() as client:
        for _ in range(600):
            with suppress(httpx2.HTTPError):
                if (await client.get(f"{base}/filas")).status_code == 200:
                    return
            await asyncio.sleep(0.2)
    raise SystemExit("bench: the API does not answer: start it by hand and read its log")


async def processor_of(pid: int) -> Callable[[], float]:
    """Return a function that returns the processor time in ms of a process and of the whole PostgreSQL server."""
    connection = await asyncpg.connect(os.environ["DATABASE_URL"])
    backend: int = await connection.fetchval("SELECT pg_backend_pid()")
    await connection.close()
    parent = int(Path(f"/proc/{backend}/stat").read_text().rpartition(")")[2].split()[1]) if _lives(backend) else 0

    def spent() -> float:
        ticks = 0
        for each in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (each / "stat").read_text().rpartition(")")[2].split()
                if int(each.name) in (pid, parent) or int(fields[1]) == parent:
                    ticks += int(fields[11]) + int(fields[12])
        return 1000 * ticks / os.sysconf("SC_CLK_TCK")

    return spent


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").exists()


async def pages(base: str, known: dict[str, str], repeats: int, spent: Callable[[], float]) -> list[Target]:
    slowest = largest = 0.0
    lines = [["page", "p50, ms", "p95, ms", "processor, ms", "gzipped, KB"]]
    async with httpx2.AsyncClient(headers={"Accept": "text/html"}, timeout=60) as client:
        for title, path in PAGES.items():
            address = base + path.format(**known)
            for _ in range(2):  # the first requests compile the template and load the rows
                (await client.get(address)).raise_for_status()
            took, before = [], spent()
            for _ in range(repeats):
                began = time.perf_counter()
                answer = await client.get(address)
                took.append(1000 * (time.perf_counter() - began))
                answer.raise_for_status()
            each = (spent() - before) / repeats
            size = len(gzip.compress(answer.content)) / 1000
            slowest, largest = max(slowest, share_of(took, 0.95)), max(largest, size)
            lines.append([title, *_of(took, 0.5, 0.95), f"{each:.0f}", f"{size:.1f}"])
    print(f"\n{markdown(lines)}", flush=True)
    return [
        Target("slowest page, p95", MOST_PAGE_MS, slowest, "ms"),
        Target("largest page, gzipped", MOST_KB, largest, "KB"),
    ]


def share_of(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _of(values: Sequence[float], *shares: float) -> list[str]:
    return [f"{share_of(values, share):.1f}" for share in shares]


async def claims(made: Any, base: str, rounds: int, spent: Callable[[], float]) -> list[Target]:
    """Measure how long a claim of a busy queue takes, alternately without and with viewers of the dashboard, and how
    much processor time the viewers cost. Return the ratio of the two 99th percentiles with its target.
    """
    busy, cost = BusyQueue(made), 0.0
    took: dict[str, list[float]] = {"alone": [], "beside viewers": []}
    for n in range(rounds):
        for title in sorted(took, reverse=bool(n % 2)):
            async with viewers(base) if title != "alone" else nullcontext():
                took[title] += await busy.claim_for(ROUND)
    async with viewers(base):  # without claims, so that the processor time is the viewers'
        before = spent()
        await asyncio.sleep(ROUND)
        cost = (spent() - before) / ROUND
    lines = [["claim of a busy queue", "claims", "p50, ms", "p99, ms"]]
    lines += [[title, str(len(each)), *_of(each, 0.5, 0.99)] for title, each in took.items()]
    print(f"\n{VIEWERS} live viewers, {rounds} rounds of {ROUND:.0f} s each\n\n{markdown(lines)}")
    print(f"\nprocessor per second for {VIEWERS} viewers: {cost:.0f} ms ({cost / VIEWERS:.1f} ms each)", flush=True)
    slower = share_of(took["beside viewers"], 0.99) / share_of(took["alone"], 0.99)
    return [
        Target(
            f"p99 of a claim with {VIEWERS} dashboard viewers, as a multiple of the p99 without viewers",
            MOST_SLOWER,
            slower,
            "×",
        )
    ]


@asynccontextmanager
async def viewers(base: str) -> AsyncIterator[None]:
    """Keep pages of the dashboard open, with all viewers in one separate process. The block begins when every viewer is
    receiving updates for its page.
    """
    command = [sys.executable, "-m", "bench.viewers", base, str(VIEWERS)]
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        if await process.stdout.readline() != b"open\n":
            raise SystemExit("bench: the viewers could not open their pages")
        await asyncio.sleep(SETTLED)
        yield
    finally:
        process.stdin.close()
        await process.wait()


class BusyQueue:
    """A queue that is continuously in use. Before each claim, ten new items are enqueued. Each claim leases ten items,
    which are never settled.
    """

    def __init__(self, made: Any) -> None:
        self._queue = SqlQueue(made.database, TASKS, made.ids, made.clock, queue="busy")
        self._holder = LeaseHolder(owner="bench", lease=timedelta(minutes=5))

    async def claim_for(self, seconds: float) -> list[float]:
        """Enqueue and claim items for this many seconds. Return how many milliseconds each claim took."""
        took, ends = [], time.monotonic() + seconds
        while time.monotonic() < ends:
            new = NewItem(values={"name": "send", "args": AsJson([[], {}])})
            await self._queue.put([new] * 10)
            began = time.perf_counter()
            await self._queue.settle_and_claim([], self._holder, 10)
            took.append(1000 * (time.perf_counter() - began))
        return took


async def bulk(made: Any) -> Target:
    """Measure how long a bulk retry of 100,000 dead items takes while another queue is in use."""
    queue = made.queues["default"]
    before = (await queue.depth()).dead
    await made.bulk.add("default", BulkChange.RETRY, ItemFilter(state=ItemState.DEAD), before, by="bench")
    live = asyncio.create_task(BusyQueue(made).claim_for(600))
    began, spent = time.monotonic(), time.process_time()
    seconds = 0.0
    while (operation := await made.bulk.next()) is not None:
        await made.bulk.advance(operation)
        if not seconds and before - operation.changed <= before - BULK:
            seconds = time.monotonic() - began
    seconds = seconds or time.monotonic() - began
    live.cancel()
    await asyncio.gather(live, return_exceptions=True)
    after = (await queue.depth()).dead
    took = time.monotonic() - began
    print(
        f"\nbulk retry beside live work: {before - after:,} items in {took:.1f} s, the first {BULK:,} in {seconds:.1f} s "
        f"({time.process_time() - spent:.1f} s of processor in this process, the live work included)"
    )
    return Target(f"bulk retry of {min(BULK, before):,} items", MOST_BULK_SECONDS, seconds, "s")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
