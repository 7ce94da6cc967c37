"""A worker exits at every labelled point in its code, including before and after each commit. Other workers finish its
items, each of them once.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from batuta.kernel.leases import LeaseHolder
from batuta.queue.item import NewItem
from batuta.stores.sql.database import AsJson
from batuta.stores.sql.queue.store import SqlQueue
from batuta.tasks.registry import TASKS
from batuta.testing import FastClock
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import ORIGIN, endpoint
from tests.faults.points import GONE
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.queue_plant import WAYS
from tests.faults.tally import Tally

CONCURRENCY = 5  # processes
TIMES = 4 if LONG else 1  # how often the same point is tried
# Points that a complete test must pass. If one is missing, the test fails.
EVERYWHERE = {
    "start", "noted", "before renew", "after renew", "before lapsing", "after lapsing", "before rescue_seen",
    "after rescue_seen", "before next_due", "after next_due", "open settle", "open insert", "open put", "committed settle",
    "committed settle>insert", "committed settle>put",
}  # fmt: skip
OF = {
    "SQLite": EVERYWHERE | {"open take", "committed take", "committed settle>take"},
    "PostgreSQL": EVERYWHERE
    | {"before settle_and_claim", "after settle_and_claim", "open claim_reversed", "committed claim_reversed"},
}


@pytest.mark.calm
async def test_worker_that_exits_at_any_point_neither_loses_nor_repeats_an_item(
    places: Mapping[str, Path],
) -> None:
    await together(*(_sweep(url, folder) for url, folder in places.items()))


async def _sweep(url: str, folder: Path) -> None:
    figures = Figures(
        "T02",
        kind(url),
        "workers exit (`os._exit`) at every step of a claim, a start, a renewal, a settlement and a rescue",
    )
    async with _with_endpoint(folder, url) as running:
        ids: dict[str, list[str]] = {}
        seen = await _record_points(running, ids)
        points = [f"{label}#{n}" for label in seen for n in range(1, min(TIMES, seen[label]) + 1)]
        places_left = asyncio.Semaphore(CONCURRENCY)
        gone = await asyncio.gather(*(_die_at(running, point, ids, places_left) for point in points))
        reached = {point for point, is_gone in zip(points, gone, strict=True) if is_gone}
        assert {f"{label}#1" for label in OF[kind(url)]} <= reached
        running.begin(queues=tuple(ids))
        await running.until_over()
        attempts = await _attempts(running)
        tally = await _judge(running, ids, attempts)
        assert (tally.lost, tally.doubled) == (0, 0), tally
        labels = {point.partition("#")[0] for point in reached}
        note = f"exits: {len(reached)}, at {len(labels)} of {len(seen)} steps; repeated runs: {tally.in_vain}"
        figures.record_items(tally, note)


async def _record_points(running: QueueWorkers, ids: dict[str, list[str]]) -> Counter[str]:
    """Record the points that workers pass. On a busy machine one run may miss some of the points, so repeat the run
    until all wanted points are recorded.
    """
    wanted = OF[kind(running.plan.url)]
    for n in range(8):
        ids[f"recorded{n}"] = await _enqueue(running, f"recorded{n}")
        (recording,) = await running.begin_until_up(queues=(f"recorded{n}",), dies_at="")
        await asyncio.to_thread(recording.join, 60)
        assert recording.exitcode == 0, await running.state_of_things()
        seen = Counter(" ".join(words[1:]) for words in running.notes() if words[0] == "point")
        if wanted <= seen.keys():
            return seen
    raise AssertionError(f"{wanted - seen.keys()} did not come by")


@asynccontextmanager
async def _with_endpoint(folder: Path, url: str) -> AsyncIterator[QueueWorkers]:
    async with (
        endpoint(folder, FastClock.start(ORIGIN, 1)) as port,
        queue_workers(folder, url, lease=2.5, limit=3, drain=0.8, looks_every=0.2, sink=port) as running,
    ):
        yield running


async def _enqueue(running: QueueWorkers, name: str, *, rescues: bool = True) -> list[str]:
    """Enqueue one task for each code path. With ``rescues``, also enqueue a task whose worker is already dead."""
    work = running.work
    queue = SqlQueue(work.database, TASKS, work.ids, work.clock, queue=name)
    args = AsJson([[], {}])
    left = await queue.put([NewItem(values={"name": f"avisa_{name}", "args": args})] * rescues)
    if rescues:
        await queue.settle_and_claim([], LeaseHolder(owner="ghost", lease=timedelta(0)), 1)
    put = await queue.put([NewItem(values={"name": f"{way}_{name}", "args": args}) for way in WAYS])
    return [id for id in (*left, *put) if id is not None]


async def _die_at(running: QueueWorkers, point: str, ids: dict[str, list[str]], places_left: asyncio.Semaphore) -> bool:
    """Run a worker that exits at the given point, and return whether it did. Try up to five times, because a run may
    miss the point: for example, the point may be the second passage of a label that this run passes only once.
    """
    async with places_left:
        for n in range(5):
            queue = f"q{len(ids)}_{n}"
            ids[queue] = []
            ids[queue] += await _enqueue(running, queue, rescues="rescue" in point)
            doomed = running.begin(queues=(queue,), dies_at=point)
            await running.until("it is gone", lambda doomed=doomed: not doomed.is_alive())  # type: ignore[misc]
            running.workers.remove(doomed)
            if doomed.exitcode == GONE:
                return True
            assert doomed.exitcode == 0, f"{point}: {doomed.exitcode} {await running.state_of_things()}"
    return False


async def _attempts(running: QueueWorkers) -> dict[str, list[int]]:
    """Return the numbers of the attempts of each item, read from the endpoint's log."""
    attempts: dict[str, list[int]] = {}
    for line in (Path(running.plan.folder) / "receipts").read_text().splitlines():
        words = json.loads(line)
        if "job" in words:
            attempts.setdefault(words["key"], []).append(int(words["job"]))
    return attempts


async def _judge(
    running: QueueWorkers, ids: Mapping[str, Sequence[str]], attempts_by_item: Mapping[str, Sequence[int]]
) -> Tally:
    """Compare the results in the queue's table with the endpoint's log."""
    rows = {row["id"]: row for row in await running.ask("SELECT id, queue, name, status, crashes FROM tasks")}
    known = {id for some in ids.values() for id in some}
    assert Counter(rows[id]["queue"] for id in rows.keys() - known) == dict.fromkeys(
        ids, 1
    )  # each task that emits adds one item
    assert attempts_by_item.keys() == rows.keys() | known
    for id, attempts in attempts_by_item.items():
        # Each attempt belongs to a later claim. A repetition needs a dead worker, and each queue has one.
        assert list(attempts) == sorted(set(attempts)), (rows[id], attempts)
        deaths = 0 if rows[id]["queue"].startswith("recorded") else 1
        assert len(attempts) <= 1 + deaths, (rows[id], attempts)
    effects = await running.effects()
    assert effects.keys() == {id for id, row in rows.items() if row["name"].startswith("escreve")}
    return Tally(
        items=len(rows),
        lost=sum(id not in rows or rows[id]["status"] != "complete" for id in rows.keys() | known),
        doubled=sum(times > 1 for times in effects.values()),
        effects=effects.total(),
        in_vain=sum(len(attempts) - 1 for attempts in attempts_by_item.values()),
    )
