"""Limits on a task and on a stage, with three workers that are killed. The handlers' notes show whether the limits
held.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from batuta.kernel.storage.json import Json
from batuta.queues import NewItem
from batuta.sql import AsJson
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers

SECOND = timedelta(seconds=1)


class Ran(NamedTuple):
    key: str
    claimed_at: datetime
    begins: float
    ends: float


async def test_limits_hold_over_three_workers_and_kills(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    items, kills, pause = (1_500, 60, (0.5, 2.0)) if LONG else (45, 4, (0.3, 0.8))
    figures = Figures(
        "T48", kind(url), f"three workers run {items} tasks with limits and five keys, and are killed {kills} times"
    )
    chance, killed_at = random.Random(20260105), dict[str, float]()
    async with queue_workers(folder, url, has_limits=True, looks_every=1.0) as running:
        calls = [(f"k{n % 5}", chance.uniform(0.05, 0.2)) for n in range(items)]
        ids = await running.work.enqueue_many("limitada", calls)
        visits: list[Json] = [{"quem": key, "seconds": seconds} for key, seconds in calls[: items // 2]]
        new = [NewItem(values={"pipeline": "visitas", "item": AsJson(each)}) for each in visits]
        await running.work.queues["visitas.arrive"].put(new)
        async with running.kept(3):
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(*pause))
                if living := [each for each in running.workers if each.is_alive()]:
                    victim = chance.choice(living)
                    killed_at[str(victim.pid)] = time.monotonic()
                    victim.kill()
            await running.until_over()
            await running.until("every visit is over", lambda: _visits_are_over(running))
        runs = _runs(running, killed_at)
        assert {"complete": len(ids)} == {**await running.counts()} or await _died_often(running)
        at_once = {key: _most_at_once(some) for key, some in _by_key(runs).items()}
        assert max(at_once.values()) == 1, at_once
        assert _most_at_once(runs) <= 4
        assert _most_in_a_second(run.claimed_at for run in runs) <= 10
        in_a_second = {key: _most_in_a_second(run.claimed_at for run in some) for key, some in _by_key(runs).items()}
        assert max(in_a_second.values()) <= 3, in_a_second
        entered = _visits(running, killed_at)
        assert {each.key for each in entered} == {f"k{n}" for n in range(5)}
        assert _most_at_once(entered) <= 2
        assert max(_most_at_once(some) for some in _by_key(entered).values()) == 1
        figures.record_bare(
            len(ids),
            f"starts: {len(runs)}; most tasks at the same time: {_most_at_once(runs)} (limit: 4); exceeded limits: 0",
        )


async def _visits_are_over(running: QueueWorkers) -> bool:
    """Return whether every item in the pipeline has ended: it is done, or it is dead because three workers died while
    processing it.
    """
    rows = await running.ask("SELECT stage FROM pipeline_items")
    return {row["stage"] for row in rows} <= {"done", "dead"}


def _visits(running: QueueWorkers, killed_at: Mapping[str, float]) -> list[Ran]:
    """Return the runs of the limited stage. A run whose end was not recorded is treated as lasting until its process
    was killed.
    """
    notes = running.notes()
    ends = {words[1]: float(words[2]) for words in notes if words[0] == "leave"}
    found = []
    for word, *words in notes:
        if word == "enter":
            key, pid, call, begins = words
            end = ends.get(call, killed_at.get(pid, float(begins)))
            found.append(Ran(key, datetime.min, float(begins), end))
    return found


async def _died_often(running: QueueWorkers) -> bool:
    """Return whether some items are not complete, and each of them is dead because three workers died while processing
    it.
    """
    rows = await running.ask("SELECT error FROM tasks WHERE status <> 'complete'")
    return {row["error"] for row in rows} == {"its worker died 3 times while running it"}


def _runs(running: QueueWorkers, killed_at: Mapping[str, float]) -> list[Ran]:
    """Return the runs of the limited task. A run whose end was not recorded is treated as lasting until its process was
    killed.
    """
    notes = running.notes()
    ends = {(words[1], words[2], words[3]): float(words[4]) for words in notes if words[0] == "end"}
    found = []
    for word, *words in notes:
        if word == "begin":
            key, pid, id, attempt, claimed_at, begins = words
            end = ends.get((id, attempt, pid), killed_at.get(pid, float(begins)))
            found.append(Ran(key, datetime.fromisoformat(claimed_at), float(begins), end))
    return found


def _by_key(runs: Sequence[Ran]) -> dict[str, list[Ran]]:
    return {key: [run for run in runs if run.key == key] for key in Counter(run.key for run in runs)}


def _most_at_once(runs: Sequence[Ran]) -> int:
    steps = sorted([(run.begins, 1) for run in runs] + [(run.ends, -1) for run in runs])
    count = most = 0
    for _, step in steps:
        count += step
        most = max(most, count)
    return most


def _most_in_a_second(instants: Iterable[datetime]) -> int:
    ordered = sorted(instants)
    return max(sum(start <= each < start + SECOND for each in ordered) for start in ordered)
