"""Acceptance tests for the resilient worker: a network outage, a loop that hangs forever, and heartbeats that continue.

The soak test proves that restarts leak no resources.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from batuta.processes.heartbeat import HEARTBEAT_EVERY
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.ladder_harness import GuardedWorker, guarded_worker, require_flat
from tests.faults.ladder_plant import Plan
from tests.faults.proxy import Proxy, proxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

RATE = 1.0 if LONG else 10.0
MAX_SILENCE = 60.0  # seconds of the worker's clock
AWAY = 20.0 if LONG else 3.0
SOAK = 20 * 60.0 if LONG else 6.0
MARGIN = 10.0


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[Proxy]:
    """A server that echoes one line, and a proxy in front of it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, proxy(server.sockets[0].getsockname()[1]) as way:
        (folder / "port").write_text(str(way.port))
        yield way


async def test_worker_reports_a_timeout_and_continues_without_a_network(tmp_path: Path) -> None:
    figures = Figures("S3.1", "SQLite", f"a worker has no network for {AWAY:g} s")
    planned = Plan(url=f"sqlite:///{tmp_path}/test.db", folder=str(tmp_path), ways=("calls",), stuck_after=30)
    async with network(tmp_path) as way, guarded_worker(planned) as running:
        await running.until("it calls", lambda: running.notes("tick", "outbound"))
        way.freeze()
        frozen = len(running.notes("tick", "outbound"))
        await running.until("it says so", lambda: "[TIMEOUT] loop failed" in running.log())
        await asyncio.sleep(AWAY - 1)
        way.heal()
        await running.until("it goes on", lambda: len(running.notes("tick", "outbound")) > frozen + 1)
        assert running.exits == []
        assert await running.restarts("stuck") == []
        timeouts = running.log().count("[TIMEOUT]")
    figures.record_bare(1, f"the log has {timeouts} timeouts, and the process continued")


async def test_loop_that_hangs_is_restarted_ten_seconds_after_its_allowed_silence(
    places: dict[str, Path],
) -> None:
    await together(*(_sleeps(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _sleeps(url: str, folder: Path) -> None:
    figures = Figures("S3.2", kind(url), f"a loop whose `stuck_after` is {MAX_SILENCE:g} s hangs")
    planned = Plan(url=url, folder=str(folder), ways=("hangs",), stuck_after=MAX_SILENCE)
    async with guarded_worker(planned, rate=RATE) as running:
        await running.until("it hangs", lambda: running.notes("ill", "sync"))
        await running.until("it ticks again", lambda: running.notes("tick", "sync"))
        took = (running.at("tick", "sync") - running.at("ill", "sync")) * RATE
        (row,) = await running.until("the row", lambda: running.restarts("stuck"))
        assert (row["loop"], row["restarts_in_window"]) == ("sync", 1)
        assert "in sync" in row["stack"]
        assert "[WATCHDOG] loop restarted" in running.log()
        assert running.exits == []
        if LONG:
            assert took <= MAX_SILENCE + MARGIN
    figures.record_bare(1, f"the loop was restarted after {took:.1f} s")


async def test_heartbeats_continue_and_report_while_every_loop_is_stuck(places: dict[str, Path]) -> None:
    await together(*(_beats_on(url, folder) for url, folder in one_of(places, "postgresql").items()))


async def _beats_on(url: str, folder: Path) -> None:
    figures = Figures("S3.3", kind(url), "a worker sends heartbeats while a loop hangs")
    planned = Plan(url=url, folder=str(folder), ways=("hangs",), stuck_after=4 * HEARTBEAT_EVERY.total_seconds())
    async with guarded_worker(planned, rate=RATE) as running:
        await running.until("it hangs", lambda: running.notes("ill", "sync"))
        beats = await _beats(running, 4)
        gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(beats)]
        if LONG:  # on a fast clock the machine's own delays would be multiplied
            assert max(gaps) <= HEARTBEAT_EVERY.total_seconds() + 5
    figures.record_bare(len(gaps), f"longest time between two heartbeats: {max(gaps):.1f} s")


async def _beats(running: GuardedWorker, count: int) -> list[datetime]:
    seen: list[datetime] = []

    async def another() -> bool:
        for row in await running.ask("SELECT last_heartbeat_at, status, loops_status FROM worker_heartbeats"):
            if row["last_heartbeat_at"] not in seen:
                is_known = row["loops_status"]["sync"]["last_ping_ago"] is not None
                assert is_known or not seen  # the first heartbeat may precede the loop's first ping
                seen.extend([row["last_heartbeat_at"]] if is_known else [])
        return len(seen) >= count

    await running.until("it beats", another)
    return seen


async def _have_ended(running: GuardedWorker, count: int) -> bool:
    (row,) = await running.ask("SELECT count(*) AS ended FROM tasks WHERE status = 'complete'")
    return bool(row["ended"] >= count)


async def test_nothing_grows_over_a_long_run(tmp_path: Path) -> None:
    """Tasks run next to a loop that fails on every seventh tick and hangs on every fortieth. The loop's restarts leak
    no memory, descriptors, tasks or threads.
    """
    figures = Figures("soak", "SQLite", f"tasks run for {SOAK / 60:.1f} min while a loop fails and hangs")
    planned = Plan(
        url=f"sqlite:///{tmp_path}/test.db", folder=str(tmp_path), ways=("soaks",), stuck_after=0.5, blocked=15.0
    )
    async with guarded_worker(planned) as running:
        ends = running.work.clock.now() + timedelta(seconds=SOAK)
        enqueued: list[str] = []
        while running.work.clock.now() < ends:
            enqueued += await running.work.enqueue_many("conta", [(0.0,)] * 20)
            await asyncio.sleep(0.25)
        await running.until("all are done", lambda: _have_ended(running, len(enqueued)))
        restarts = await running.until("a restart", lambda: running.restarts("stuck"))
        assert running.exits == []
        flat = require_flat(running.notes("census"))
    figures.record_bare(len(enqueued), f"{flat}; restarts of the loop: {len(restarts)}")
