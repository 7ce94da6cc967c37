"""Three workers run batches, and are killed and replaced continuously. Each batch ends once, and its final task takes
effect once.
"""

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import queue_workers


async def test_each_batch_ends_once_although_workers_are_killed(places: Mapping[str, Path]) -> None:
    await together(*(_storm(url, folder) for url, folder in places.items()))


async def _storm(url: str, folder: Path) -> None:
    batches, kills = (100, 40) if LONG else (6, 3)
    figures = Figures(
        "T49", kind(url), f"three workers run {batches} batches of eight tasks and are killed {kills} times"
    )
    chance = random.Random(20260105)
    async with queue_workers(folder, url, looks_every=1.0) as running:
        tasks, made = running.work.task_registry, []
        for n in range(batches):
            async with running.work.batch(f"batch {n}", on_end=tasks.get("encerra")) as batch:
                await batch.add(tasks.get("conta"), [chance.uniform(0.01, 0.15) for _ in range(8)])
            made.append(batch)
        after = await tasks.get("encerra").options(after=made, after_failure="run").enqueue()
        async with running.kept(3):
            for _ in range(kills):
                await asyncio.sleep(chance.uniform(0.3, 0.7))
                if living := [each for each in running.workers if each.is_alive()]:
                    chance.choice(living).kill()
            await running.until_over()
        ended = [await batch.progress() for batch in made]
        assert {(each.state, each.total, each.done) for each in ended} == {("ended", 8, 8)}
        rows = await running.ask("SELECT id, status FROM tasks WHERE name = 'encerra'")
        assert [row["status"] for row in rows] == ["complete"] * (batches + 1)
        effects = await running.effects()
        assert {effects[row["id"]] for row in rows} == {1}
        assert effects[after.id] == 1
        figures.record_bare(
            batches, f"final tasks: {len(rows)}, each with one effect; missed or repeated ends of batches: 0"
        )
