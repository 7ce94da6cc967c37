"""All handlers run a long statement at once and occupy every connection that is available to handlers. No lease is
lost.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from batuta.stores.sql.queries import in_dialect, query_of
from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import slowness

# The fire of the next minute may exist too, skipped because the run before it is still in progress.
ENDED = "finished_at IS NOT NULL AND status NOT IN ('missed', 'skipped')"


@pytest.mark.calm
async def test_long_statements_in_every_task_cost_no_lease(places: Mapping[str, Path]) -> None:
    await together(*(_tasks(url, folder) for url, folder in places.items()))


async def _tasks(url: str, folder: Path) -> None:
    is_file = url.startswith("sqlite")
    lease, tasks, seconds = (30.0, 30, 9.0) if LONG else (3 * slowness(), 8 if is_file else 15, 0.5 if is_file else 2.5)
    figures = Figures(
        "busy",
        kind(url),
        f"{tasks} tasks run at the same time, each with a statement of {seconds} s; a lease lasts {lease:.1f} s",
    )
    async with queue_workers(folder, url, lease=lease, limit=60, statement=seconds) as running:
        await running.begin_until_up(1)
        ids = await running.work.enqueue_many("consulta", [()] * tasks)
        await running.until("all of them run", lambda: len(running.runs()) == tasks)
        await running.begin_until_up(1)  # the second worker would take over items that the first worker loses
        await running.until_over()
        tally = await running.judge(ids)
        lost = [words for words in running.notes() if words[0] == "lost"]
        crashed = await running.ask("SELECT id FROM tasks WHERE crashes > 0")
        assert (lost, crashed) == ([], [])
        # A task that gets no connection in time runs again, without losing a lease.
        figures.record_items(
            tally, f"lost leases: 0; crashes: 0; runs repeated because no connection was free: {tally.in_vain}"
        )


async def test_long_statements_in_every_function_job_cost_no_lease(postgres_url: str, tmp_path: Path) -> None:
    """A run's lease is 6 s, shorter than the statements, so the test would see a lease expire if it were not
    renewed.
    """
    seconds = 12.0 if LONG else 9.0
    names = tuple(f"resumo_{n}" for n in range(5))
    figures = Figures(
        "busy",
        "PostgreSQL",
        f"{len(names)} jobs that call functions run at the same time, each with a statement of {seconds:g} s",
    )
    async with queue_workers(tmp_path, postgres_url, jobs=names, statement=seconds, role="scheduler") as running:
        (first,) = await running.begin_until_up(1)
        await running.until("they are registered", lambda: _are_registered(running, len(names)))
        await running.stop(first)
        await _make_due(running)
        await running.begin_until_up(1)
        watching = asyncio.create_task(_shortest_left(running))
        await running.until("all have ended", lambda: _have_ended(running, len(names)))
        watching.cancel()
        shortest = await watching
        ended = await running.ask(f"SELECT status, attempt FROM job_executions WHERE {ENDED}")
    assert {(row["status"], row["attempt"]) for row in ended} == {("success", 1)}
    assert not LONG or shortest > 1.0
    figures.record_bare(len(names), f"abandoned runs: 0; shortest remaining time of a lease: {shortest:.1f} of 6 s")


async def _shortest_left(running: QueueWorkers) -> float:
    """Measure the remaining lease time of the running jobs until this task is cancelled. Return the shortest value in
    seconds.
    """
    text = "SELECT extract(epoch FROM min(lease_until) - clock_timestamp())::float8 AS left FROM job_executions"
    shortest = float("inf")
    try:
        while True:
            (row,) = await running.ask(f"{text} WHERE status = 'running'")
            shortest = min(shortest, shortest if row["left"] is None else row["left"])
            await asyncio.sleep(0.1)
    except asyncio.CancelledError:
        return shortest


async def _are_registered(running: QueueWorkers, count: int) -> bool:
    return len(await running.ask("SELECT job_name FROM job_schedules WHERE active")) == count


async def _make_due(running: QueueWorkers) -> None:
    """Make the fire of the previous minute due, so that the test need not wait for the next one."""
    text = "UPDATE job_schedules SET accounted_until = accounted_until - INTERVAL '59 seconds'"
    await running.work.database.run(in_dialect(query_of("due", text, writes=True), running.work.database.dialect))


async def _have_ended(running: QueueWorkers, count: int) -> bool:
    rows = await running.ask(f"SELECT job_name FROM job_executions WHERE {ENDED}")
    return len({row["job_name"] for row in rows}) == count
