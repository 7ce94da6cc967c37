"""Runs that call a hostile endpoint end in time, and other jobs are not affected."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.harness import ORIGIN, SECOND, Plant, Spec, plant, rss
from tests.faults.sink import HOSTILE

MEGABYTE = 1 << 20
# Every other kind is an error and fails fast. The status of an answer decides, so the rest of a flood is not read.
ENDS = {"silent": "timeout", "drip": "timeout", "flood": "success"}


async def test_endpoint_that_never_finishes_its_answer_delays_no_other_job(places: Mapping[str, Path]) -> None:
    chosen = list(places.items()) if LONG else list(places.items())[:1]
    await together(*(_hostile(url, folder) for url, folder in chosen))


async def _hostile(url: str, folder: Path) -> None:
    # The short form must pass on a busy machine; only the long form measures.
    rate, count, timeout, margin, rounds = (1.0, 200, 10.0, 1, 1) if LONG else (1.0, 30, 4.0, 60, 1)
    figures = Figures(
        "T38",
        kind(url),
        f"{count} HTTP jobs call servers that never answer, answer slowly, send endless headers or a gigabyte, reset the"
        " connection, or redirect endlessly",
    )
    kinds = list(HOSTILE)
    hostile = [
        Spec(name=f"{kinds[n % 6]}_{n}", path=f"hostile/{kinds[n % 6]}/{n}", category=f"lane_{n // 4}", timeout=timeout)
        for n in range(count)
    ]
    healthy = [Spec(name=f"healthy_{n}", category="critico") for n in range(10)]
    origin = ORIGIN + 15 * SECOND
    async with plant(folder, url, [*hostile, *healthy], rate=rate, lease=30, origin=origin) as running:
        await running.begin_first()
        before = rss(running.schedulers[0].pid)
        await running.until("all have ended", lambda: _all_ended(running, (count + len(healthy)) * rounds))
        grown = (rss(running.schedulers[0].pid) - before) / MEGABYTE
        verdict = await running.verdict((2 if LONG else 3600) * SECOND)
        rows = await running.ask(
            "SELECT job_name, status, started_at, finished_at FROM job_executions WHERE job_name NOT LIKE 'healthy%'"
        )
        longest = max(row["finished_at"] - row["started_at"] for row in rows)
        figures.record(
            verdict,
            f"runs: {len(rows)}; longest run: {longest.total_seconds():.1f} s (limit: {timeout:.0f} s); "
            f"additional memory: {grown:.0f} MB; "
            f"{running.lateness(await running.log()).replace('lateness', 'lateness of the other jobs')}",
        )
        assert {(row["job_name"].split("_")[0], row["status"]) for row in rows} == {
            (each, ENDS.get(each, "error")) for each in HOSTILE
        }
        assert longest <= timedelta(seconds=timeout + margin)
        assert grown <= 50


async def _all_ended(running: Plant, count: int) -> bool:
    (rows,) = await running.ask("SELECT count(*) AS ended FROM job_executions WHERE finished_at IS NOT NULL")
    return bool(rows["ended"] >= count)
