"""Workers start and stop normally, and many processes compete for one item."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.kernel.leases import LeaseHolder
from batuta.stores import connect
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.forks import ForkedCommand
from tests.faults.harness import environment
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.queue_plant import VARIABLE
from tests.faults.waiting import TIMEOUT, slowness


async def test_rolling_deploy_neither_loses_nor_repeats_an_item(places: Mapping[str, Path]) -> None:
    await together(*(_deploys(url, folder) for url, folder in places.items()))


async def _deploys(url: str, folder: Path) -> None:
    workers, rounds, tasks = (20, 10, 20_000) if LONG else (3, 2, 400)
    figures = Figures(
        "T05",
        kind(url),
        f"{workers} workers run {tasks} tasks; {rounds} times, each worker gets SIGTERM and is replaced",
    )
    # A worker releases an item only if its drain ends, and loses an item only if its lease ends. Both are as long as in
    # production, because many writers on one SQLite file wait for each other.
    async with queue_workers(folder, url, lease=30.0, drain=30.0) as running:
        ids = await running.work.enqueue_many("conta", [(0.15,) for _ in range(tasks)])
        slowest = 0.0
        await running.begin_until_up(workers)
        for _ in range(rounds):
            for old in list(running.workers):
                await running.begin_until_up()
                asked_at = time.monotonic()
                assert await running.stop(old) == 0
                slowest = max(slowest, time.monotonic() - asked_at)
        await running.until_over()
        tally = await running.judge(ids)
        assert tally.in_vain == 0
        assert await running.ask("SELECT id FROM tasks WHERE attempts <> 1 OR crashes <> 0") == []
        figures.record_items(tally, f"no task started twice; the slowest worker ended {slowest:.2f} s after SIGTERM")


async def test_first_signal_drains_a_worker_and_the_second_ends_it_at_once(places: Mapping[str, Path]) -> None:
    await together(*(_signals(url, folder) for url, folder in places.items()))


async def _signals(url: str, folder: Path) -> None:
    """Stop `batuta worker` with one SIGTERM, which lets it drain. Then start a worker that may drain for only three
    seconds, and check that it releases an unfinished item. Finally stop a worker with two SIGTERMs, which end it
    immediately.
    """
    figures = Figures("T05", kind(url), "`batuta worker` gets SIGTERM twice")
    async with queue_workers(folder, url, limit=1, lease=2 * slowness()) as running:
        short, waiting = await running.work.enqueue_many("conta", [(0.5,), (60.0,)])
        with _role(running, drain=60) as worker:
            await running.until("it runs", lambda: running.runs()[short] == 1)
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, TIMEOUT) == 0
        assert (await running.row(short))["status"] == "complete"
        assert running.runs()[waiting] == 0  # the worker claims nothing new
        (hasty,) = await running.begin_until_up(drain=3.0)
        await running.until("the other runs", lambda: running.runs()[waiting] == 1)
        assert await running.stop(hasty) == 0
        row = await running.row(waiting)
        assert (row["status"], row["attempts"], row["crashes"], row["error"]) == ("queued", 0, 0, "its worker stopped")
        with _role(running, drain=60) as worker:
            await running.until("it runs again", lambda: running.runs()[waiting] == 2)
            worker.send_signal(signal.SIGTERM)
            await asyncio.sleep(0.3)
            assert worker.poll() is None
            asked_at = time.monotonic()
            worker.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(worker.wait, TIMEOUT) == 128 + signal.SIGTERM
            took = time.monotonic() - asked_at
        assert not LONG or took < 1
        assert (await running.row(waiting))["status"] == "in_progress"
        await running.begin_until_up()
        await running.until("the next worker takes it up", lambda: running.runs()[waiting] == 3)
        figures.record_bare(
            2, f"the process ended {took:.2f} s after the second signal; the next worker took over its tasks"
        )


@contextmanager
def _role(running: QueueWorkers, drain: float) -> Iterator[ForkedCommand]:
    env = {**environment(), VARIABLE: json.dumps(running.plan.encode()), "BATUTA_DRAIN_SECONDS": str(drain)}
    words = ("--app", "tests.faults.queue_plant:work", "worker")
    worker = ForkedCommand(Path(running.plan.folder), env, *words)
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


async def test_one_of_fifty_competing_claims_wins(places: Mapping[str, Path]) -> None:
    await together(*(_fifty(url, folder) for url, folder in places.items()))


async def _fifty(url: str, folder: Path) -> None:
    """Let fifty claimers compete for one item. They share ten database connections, as if they ran in ten processes."""
    rounds = 500 if LONG else 10
    figures = Figures(
        "T08", kind(url), f"{rounds} times, 50 workers claim one row and 50 callers enqueue one key at the same time"
    )
    async with queue_workers(folder, url) as running:
        databases = [connect(url, SystemClock()) for _ in range(10)]
        for each in databases:
            await each.open()
        ids = Ids(SystemClock())
        queues = [SqlQueue(each, TASKS, ids, SystemClock(), queue="default") for each in databases for _ in range(5)]
        lease_holders = [LeaseHolder(owner=f"o{n}", lease=running.work.queue_lease * 60) for n in range(len(queues))]
        try:
            for n in range(rounds):
                works = [running.work] * 50
                made = await asyncio.gather(*(each.enqueue("conta", key=f"k{n}") for each in works))
                assert len(set(made)) == 1
                turns = zip(queues, lease_holders, strict=True)
                claims = await asyncio.gather(
                    *(queue.settle_and_claim([], lease_holder, 5) for queue, lease_holder in turns)
                )
                assert [lease.id for claim in claims for lease in claim.leases] == made[:1]
        finally:
            for each in databases:
                await each.close()
        assert await running.counts() == {"in_progress": rounds}
        figures.record_bare(2 * rounds, "each time, exactly one claim and one enqueue succeeded")


async def test_enqueue_in_another_process_wakes_a_worker_that_polls_hourly(places: Mapping[str, Path]) -> None:
    await together(*(_wakes(url, folder) for url, folder in places.items()))


async def _wakes(url: str, folder: Path) -> None:
    figures = Figures(
        "wake", kind(url), "a worker that polls only once an hour is woken by enqueues of another process"
    )
    async with queue_workers(folder, url, looks_every=3600) as running:
        await running.begin_until_up()
        first = await running.work.enqueue("conta")  # the worker polls once when it begins
        await running.until("it is done", lambda: running.runs()[first])
        later = await running.work.enqueue("conta", delay=3000)  # a distant item must not hide a near one
        took = []
        for _ in range(5):
            asked_at = time.monotonic()
            id = await running.work.enqueue("conta")
            await running.until("it began", lambda id=id: running.runs()[id])  # type: ignore[misc]
            took.append(time.monotonic() - asked_at)
        assert (await running.row(later))["status"] == "queued"
        figures.record_bare(len(took), f"each task started within {max(took):.2f} s")
