"""The watchdog detects code that hangs, reports its stack, and restarts it. Other tasks are completed."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from batuta.processes.restarts import EXIT_AGAIN
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.ladder_harness import GuardedWorker, guarded_worker
from tests.faults.ladder_plant import Plan
from tests.faults.proxy import proxy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

NEIGHBOURS = 200 if LONG else 20
# Promises of docs/supervision.md, in seconds.
FOUND, SERVING, STUCK, REPLACED = 20.0, 30.0, 10.0, 60.0
RATE = 1.0 if LONG else 6.0


def plan(url: str, folder: Path, **other: object) -> Plan:
    usual: dict[str, object] = {"blocked": 15.0 if LONG else 4.0}
    return Plan(url=url, folder=str(folder), **{**usual, **other})  # type: ignore[arg-type]


async def enqueue_with_neighbours(running: GuardedWorker, ill: str) -> tuple[list[str], str]:
    half = NEIGHBOURS // 2
    before = await running.work.enqueue_many("conta", [(0.05,)] * half)
    poison = await running.work.enqueue(ill)
    after = await running.work.enqueue_many("conta", [(0.05,)] * half)
    return [*before, *after], poison


@pytest.mark.parametrize(("test", "ill", "code"), [("T24", "bloqueia", EXIT_AGAIN), ("T25", "expressao", 1)])
async def test_blocking_task_is_found_with_its_stack_and_other_tasks_run_again(
    places: dict[str, Path], test: str, ill: str, code: int
) -> None:
    await together(*(_blocks(test, ill, code, url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _blocks(test: str, ill: str, code: int, url: str, folder: Path) -> None:
    what = {"bloqueia": "`time.sleep(600)`", "expressao": "an endless regular expression"}[ill]
    figures = Figures(test, kind(url), f"a task blocks its process with {what}")
    async with guarded_worker(plan(url, folder)) as running:
        ids, poison = await enqueue_with_neighbours(running, ill)
        await running.until("it strikes", lambda: running.notes("ill", ill))
        struck = running.at("ill", ill)
        await running.until("it is ended", lambda: running.exits)
        assert running.exits[0].code == code
        (row,) = await running.until("the row", lambda: running.restarts("blocked"))
        assert f"in {ill}" in row["stack"]
        assert row["loop"] is None
        await running.until("served again", lambda: running.is_done([*ids, poison]))
        found = running.exits[0].at - struck
        served = min(float(note[-1]) for note in running.notes("up") if float(note[-1]) > running.exits[0].at) - struck
        lines = [line for line in running.log().splitlines() if "[WATCHDOG]" in line]
        assert any(f"in {ill}" in line for line in lines)
        if LONG:
            assert found <= FOUND
            assert served <= SERVING
    note = f"the block was found after {found:.1f} s; the next process worked after {served:.1f} s"
    figures.record_bare(len(ids) + 1, note)


async def test_task_that_swallows_its_cancellation_is_fenced_and_process_replaced(
    places: dict[str, Path],
) -> None:
    await together(*(_swallows(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _swallows(url: str, folder: Path) -> None:
    figures = Figures("T26", kind(url), "a task ignores its cancellation")
    async with guarded_worker(plan(url, folder, lease=10.0), rate=RATE) as running:
        ids, poison = await enqueue_with_neighbours(running, "surda")
        await running.until("it is cancelled", lambda: running.notes("refused"))
        began = running.at("ill", "surda")
        await running.until("its process ends", lambda: running.exits)
        assert running.exits[0].code == EXIT_AGAIN
        assert len(running.notes("refused", poison)) == 2
        (row,) = await running.restarts("uncancellable")
        assert (row["loop"], "in surda" in row["stack"]) == ("worker:default", True)
        await running.until("everything is done", lambda: running.is_done([*ids, poison]))
        served = float(running.notes("up")[1][-1]) - began
        assert len({note[1] for note in running.notes("done")}) == len(ids)
        assert len(running.notes("done")) == len(ids)  # no task began twice
        if LONG:
            assert served <= REPLACED
    figures.record_bare(len(ids) + 1, f"the process was replaced after {served:.1f} s")


async def test_listener_that_dies_silently_is_found_while_heartbeats_continue(
    places: dict[str, Path],
) -> None:
    await together(*(_listener_dies(url, folder) for url, folder in one_of(places, "sqlite").items()))


async def _listener_dies(url: str, folder: Path) -> None:
    figures = Figures(
        "T27",
        kind(url),
        "the listener of a process is dead, but the process still sends heartbeats; `stuck_after` is 30 s",
    )
    outside = folder / "outside"
    outside.write_text("first\n")
    stuck_after = 30.0
    planned = plan(url, folder, ways=("listens",), stuck_after=stuck_after)
    async with guarded_worker(planned, rate=RATE) as running:
        await running.until("it hears", lambda: running.notes("heard", "first"))
        with outside.open("a") as line:
            line.write("dies\n")
        await running.until("it is deaf", lambda: running.notes("ill", "listener"))
        began = running.at("ill", "listener")
        with outside.open("a") as line:
            line.write("".join(f"line{n}\n" for n in range(10)))
        await running.until("all is heard", lambda: len(running.notes("heard")) >= 12)
        took = (running.at("heard", "line0") - began) * RATE
        (row,) = await running.until("the row", lambda: running.restarts("stuck"))
        assert row["loop"] == "listener"
        assert "in tick" in row["stack"]
        heard = [note[1] for note in running.notes("heard")]
        assert heard == ["first", "dies", *(f"line{n}" for n in range(10))]
        assert running.exits == []  # the process did not need a restart
        (beat,) = await running.ask("SELECT status, loops_status FROM worker_heartbeats")
        assert beat["loops_status"]["listener"]["restarts"] == 1
        if LONG:
            assert took <= stuck_after + STUCK
    figures.record_bare(12, f"the process received wake-ups again after {took:.1f} s")


@pytest.mark.skipif(not LONG, reason="a connection is only missed after the time that a slow one may take")
async def test_half_open_listening_connection_is_found_and_replaced(postgres_url: str, tmp_path: Path) -> None:
    figures = Figures("T27", "PostgreSQL", "a half-open LISTEN connection delivers nothing, and no worker polls")
    parts = urlsplit(postgres_url)
    async with proxy(parts.port or 5432) as way:
        url = postgres_url.replace(f":{parts.port}", f":{way.port}")
        async with guarded_worker(plan(url, tmp_path, looks_every=3600.0)) as running:
            (first,) = await running.work.enqueue_many("conta", [(0.0,)])
            await running.until("it is heard", lambda: running.is_done([first]))
            await asyncio.sleep(3)  # the worker is idle
            # The test's own process does not listen, so this connection is the worker's.
            assert way.freeze(b"batuta-listener") == 1
            began = time.monotonic()
            ids = list(await running.work.enqueue_many("conta", [(0.0,)] * NEIGHBOURS))
            await running.until("all is done", lambda: running.is_done(ids))
            took = time.monotonic() - began
            assert took <= REPLACED
            assert running.exits == []
    figures.record_bare(len(ids), f"the process received wake-ups again after {took:.1f} s")


async def test_process_of_recycle_age_drains_and_asks_for_a_restart(tmp_path: Path) -> None:
    async with guarded_worker(plan(f"sqlite:///{tmp_path}/test.db", tmp_path, recycle_after=1.0)) as running:
        ids = list(await running.work.enqueue_many("conta", [(0.5,)] * NEIGHBOURS))
        await running.until("it has ended", lambda: running.exits)
        assert running.exits[0].code == EXIT_AGAIN
        (row, *_) = await running.restarts("recycled")
        assert "longer than" in row["detail"]
        await running.until("all is done", lambda: running.is_done(ids))
        assert len(running.notes("done")) == len(ids)
        await running.until(
            "it was offline", lambda: running.ask("SELECT 1 FROM worker_heartbeats WHERE status = 'offline'")
        )


async def test_stopped_process_that_continues_is_not_mistaken_for_a_blocked_one(tmp_path: Path) -> None:
    planned = plan(f"sqlite:///{tmp_path}/test.db", tmp_path, blocked=60.0)
    async with guarded_worker(planned) as running:
        assert running.worker is not None
        assert running.worker.pid is not None
        os.kill(running.worker.pid, signal.SIGSTOP)
        await running.work.clock.sleep(2.5)
        os.kill(running.worker.pid, signal.SIGCONT)
        ids = list(await running.work.enqueue_many("conta", [(0.0,)] * 3))
        await running.until("it works on", lambda: running.is_done(ids))
        assert running.exits == []
        assert "event loop blocked" not in running.log()
