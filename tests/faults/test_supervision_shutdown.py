"""Processes receive a stop signal at an inconvenient moment. Nothing that they hold is lost, repeated or counted as a
crash.
"""

import asyncio
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from batuta import Batuta
from batuta.config import EngineSettings, load_settings
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.supervise.shutdown import EXIT_MARGIN
from tests.faults import shutdown_plant
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.forks import processes_are_ready
from tests.faults.processes import ForkedTree, Tree, kept
from tests.faults.proxy import proxy
from tests.faults.shutdown_plant import VARIABLE, Plan
from tests.faults.tally import Tally
from tests.faults.waiting import TIMEOUT, slowness, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

APP = "tests.faults.shutdown_plant:work"


@dataclass
class Place:
    """A database, the processes that use it, and the notes that their handlers write."""

    url: str
    folder: Path
    plan: Plan
    work: Batuta
    stack: ExitStack

    def begin(self, *words: str, **env: str) -> Tree:
        own = self.folder / f"process-{len(list(self.folder.glob('process-*')))}"
        own.mkdir()
        settings = {"DATABASE_URL": self.url, VARIABLE: json.dumps(asdict(self.plan)), **env}
        begin = Tree if words[0] == "up" else ForkedTree
        return self.stack.enter_context(kept(begin(own, *words, app=APP, **settings)))

    def notes(self, word: str) -> Counter[str]:
        file = Path(self.plan.notes)
        lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
        return Counter(words[1] for words in lines if words[0] == word)

    def runners(self) -> set[str]:
        """Return the ids of the processes in which a handler has begun to run."""
        file = Path(self.plan.notes)
        lines = file.read_text().splitlines() if file.exists() else []
        return {line.split()[2] for line in lines if line.startswith("begin ")}

    async def until(self, what: str, true: Callable[[], Any]) -> None:
        await until(what, true, explain=self._said)

    def _said(self) -> str:
        return "\n".join(log.read_text()[-1500:] for log in self.folder.glob("process-*/log"))

    async def ask(self, text: str) -> list[dict[str, Any]]:
        query = in_dialect(query_of("ask", text, writes=False), self.work.database.dialect)
        return [dict(row) for row in await self.work.database.all(query)]

    async def run(self, text: str, **values: Any) -> None:
        query = in_dialect(query_of("run", text, writes=True), self.work.database.dialect)
        await self.work.database.run(query, **values)

    async def tally(self) -> Tally:
        rows = await self.ask("SELECT id, status FROM tasks")
        effects = self.notes("effect")
        return Tally(
            items=len(rows),
            lost=sum(row["status"] != "complete" for row in rows),
            doubled=sum(count > 1 for count in effects.values()),
            effects=effects.total(),
            in_vain=self.notes("begin").total() - len(rows),
        )


@asynccontextmanager
async def place(folder: Path, url: str, **plan: Any) -> AsyncIterator[Place]:
    await processes_are_ready()
    made = Plan(notes=str(folder / "notes"), **plan)
    work = shutdown_plant.build(made, load_settings(EngineSettings, {"DATABASE_URL": url}))
    async with work:
        with ExitStack() as stack:
            yield Place(url, folder, made, work, stack)


async def end(process: Tree) -> float:
    """Send SIGTERM, assert that the process exits in an orderly manner, and return how many seconds that took."""
    began = time.monotonic()
    process.process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(process.process.wait, TIMEOUT)
    assert code == 0, process.log.read_text()[-3000:]
    return time.monotonic() - began


async def test_long_poll_and_second_queue_cost_no_item_its_lease(places: Mapping[str, Path]) -> None:
    await together(*(_polls(url, folder) for url, folder in places.items()))


async def _polls(url: str, folder: Path) -> None:
    slow = slowness()
    lease, drain, poll, short, long = (
        (30.0, 60.0, 28.0, 40.0, 45.0) if LONG else (3 * slow, 300.0, 300.0, 4 * slow, 5 * slow)
    )
    done = (
        f"a worker gets SIGTERM while a poll takes {poll:g} s and handlers take {short:.0f} and {long:.0f} s;"
        f" a lease lasts {lease:.0f} s"
    )
    figures = Figures("stop", kind(url), done)
    async with place(folder, url, lease=lease, poll=poll) as running:
        for number in range(10):
            await running.work.enqueue("first", number, short)
            await running.work.enqueue("second", 10 + number, long)
        stopping = running.begin("worker", BATUTA_DRAIN_SECONDS=f"{drain:g}")
        await running.until("all handlers run", lambda: len(running.notes("begin")) == 20 and running.notes("poll"))
        running.begin("worker")  # the second worker would take over items that the first worker loses
        took = await end(stopping)
        tally = await running.tally()
        figures.record_items(
            tally, f"the process ended {took:.1f} s after the signal; crashes: {await _crashes(running)}"
        )
        assert (tally.lost, tally.doubled, tally.in_vain) == (0, 0, 0)
        assert await _crashes(running) == 0
        # The process waited neither for the rest of the poll nor for the whole drain.
        assert took <= long + EXIT_MARGIN.total_seconds() / 2 * slow


async def _crashes(running: Place) -> int:
    return sum(row["crashes"] for row in await running.ask("SELECT crashes FROM tasks"))


async def test_hanging_ping_costs_no_run_its_lease(places: Mapping[str, Path]) -> None:
    await together(*(_hangs(url, folder) for url, folder in places.items()))


async def _hangs(url: str, folder: Path) -> None:
    """Stop a scheduler during a run, while its ping to the dead man's switch hangs. The limits are realistic for
    production: the ping hangs for 10 s, the run's lease is 6 s, and the drain may take 30 s.
    """
    seconds = 25.0 if LONG else 12.0
    figures = Figures("stop", kind(url), f"a scheduler gets SIGTERM while a ping hangs and a run takes {seconds:g} s")
    async with place(folder, url, run=seconds) as running, _silence() as one, _silence() as another:
        await running.work.scheduler().dispatcher.tick()
        # A fire is due, so the first scheduler that is up starts it at once.
        owed_since = datetime.now(UTC) - timedelta(hours=2)
        await running.run("UPDATE job_schedules SET accounted_until = :at", at=owed_since)
        begun_by = {running.begin("scheduler", DEADMAN_URL=f"http://{each.host}/"): each for each in (one, another)}
        await running.until("the run is under way", lambda: running.runners())
        ((stopping, silence),) = [each for each in begun_by.items() if str(each[0].process.pid) in running.runners()]
        await running.until("its ping is under way", lambda: silence.open)
        took = await end(stopping)
        # The older of the two fires is recorded as missed.
        rows = await running.ask("SELECT status, attempt FROM job_executions WHERE status <> 'missed'")
        begun, effects = running.notes("begin")["report"], running.notes("effect")["report"]
        lost = sum(row["status"] != "success" for row in rows)
        tally = Tally(items=1, lost=lost, doubled=max(0, effects - 1), effects=effects, in_vain=begun - 1)
        figures.record_items(tally, f"the process ended {took:.1f} s after the signal")
        assert rows == [{"status": "success", "attempt": 1}]
        assert (begun, effects) == (1, 1)
        assert took <= seconds + EXIT_MARGIN.total_seconds() / 2 * slowness()


class Silence:
    """A server that accepts connections and never answers."""

    def __init__(self) -> None:
        self.host = ""
        self.open = 0  # number of open connections

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await reader.read(4096):
                pass
        finally:
            self.open -= 1
            writer.close()


@asynccontextmanager
async def _silence() -> AsyncIterator[Silence]:
    silence = Silence()
    async with await asyncio.start_server(silence.serve, "127.0.0.1", 0) as server:
        silence.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield silence


async def test_handler_longer_than_the_drain_is_released_and_no_process_killed(
    places: dict[str, Path],
) -> None:
    await together(*(_hands_back(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _hands_back(url: str, folder: Path) -> None:
    drain, tick = (30.0, 50.0) if LONG else (6 * slowness(), 300.0)
    done = f"`batuta up` gets SIGTERM while a handler takes 200 s and ticks take {tick:g} s; `BATUTA_DRAIN_SECONDS` is {drain:.0f}"
    figures = Figures("stop", kind(url), done)
    async with place(folder, url, poll=tick, tick=tick, request=drain / 2) as running, httpx2.AsyncClient() as client:
        for number in range(5):
            await running.work.enqueue("first", number, 200.0)
        up = running.begin("up", BATUTA_DRAIN_SECONDS=f"{drain:g}")
        await running.until("all is under way", lambda: len(running.notes("begin")) == 5 and running.notes("tick"))
        await running.until("it serves", up.is_up)
        request = asyncio.create_task(client.post(f"http://127.0.0.1:{up.port}/jobs/wait", timeout=TIMEOUT))
        await running.until("a request is under way", lambda: running.notes("request"))
        took = await end(up)
        assert (await request).json() == {"status": "ok", "items_processed": 1}
        rows = await running.ask("SELECT status, attempts, crashes, lease_until FROM tasks")
        handed_back = sum(row == {"status": "queued", "attempts": 0, "crashes": 0, "lease_until": None} for row in rows)
        killed = [fact["event"] for fact in up.facts() if "killed" in fact["event"]]
        tally = Tally(items=5, lost=5 - handed_back, doubled=0, effects=0, in_vain=running.notes("begin").total() - 5)
        seen = (
            f"all tasks were handed back {took:.1f} s after the signal"
            if handed_back == 5
            else f"tasks handed back: {handed_back}"
        )
        figures.record_items(tally, f"{seen}; processes killed: {len(killed)}; crashes: {await _crashes(running)}")
        assert handed_back == 5, rows
        assert killed == []
        assert running.notes("drain").total() == 1  # the slow tick was cancelled, and its loop was drained
        assert took <= drain + EXIT_MARGIN.total_seconds() * slowness()


async def test_hanging_database_holds_no_process_beyond_its_margin(places: Mapping[str, Path]) -> None:
    """While the database hangs, a process that stops cannot release its items, so the leases expire. The process still
    exits before its parent would kill it.
    """
    for url, folder in places.items():
        if not url.startswith("sqlite"):  # a disk that hangs cannot be simulated here
            await _hangs_up(url, folder)


async def test_hanging_database_and_deaf_handlers_hold_no_process_beyond_its_margin(
    places: Mapping[str, Path],
) -> None:
    """The database hangs and the handlers ignore their cancellation, so every step after the shutdown's deadline takes
    its full time limit. Even then the process exits before its parent would kill it.
    """
    for url, folder in places.items():
        if not url.startswith("sqlite"):
            await _hangs_up(url, folder, is_uncancellable=True)


async def _hangs_up(url: str, folder: Path, *, is_uncancellable: bool = False) -> None:
    drain = 30.0 if LONG else 3.0
    beside = ", and whose handler and drain ignore their cancellation," if is_uncancellable else ""
    figures = Figures(
        "stop", kind(url), f"a worker whose database hangs{beside} gets SIGTERM; `BATUTA_DRAIN_SECONDS` is {drain:.0f}"
    )
    at = urlsplit(url)
    assert at.port is not None
    async with (
        proxy(at.port) as between,
        place(
            folder, url, lease=5, is_uncancellable=is_uncancellable, tick=0.1 if is_uncancellable else 0.0
        ) as running,
    ):
        there = at._replace(netloc=at.netloc.replace(f":{at.port}", f":{between.port}")).geturl()
        await running.work.enqueue("first", 1, 120.0)
        worker = running.begin("worker", BATUTA_DRAIN_SECONDS=f"{drain:g}", DATABASE_URL=there)
        await running.until("the handler runs", lambda: running.notes("begin"))
        between.freeze()
        took = await end(worker)
        figures.record_bare(1, f"the process ended {took:.1f} s after the signal")
        assert took <= drain + EXIT_MARGIN.total_seconds() * slowness()
