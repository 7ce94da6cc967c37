"""Clocks are wrong, or are changed while workers run. No item is delayed, lost or done twice because of this."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.conftest import together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.waiting import slowness

HOUR = 3600
TASKS = 2_000 if LONG else 200


@pytest.mark.calm
async def test_clocks_one_hour_off_hold_nothing_back(places: Mapping[str, Path]) -> None:
    await together(*(_clocks_off(url, folder) for url, folder in places.items()))


async def _clocks_off(url: str, folder: Path) -> None:
    """On PostgreSQL, two workers' clocks differ. On SQLite there is only one machine, so its clock is changed while the
    workers run.
    """
    is_file = kind(url) == "SQLite"
    what = (
        f"two workers run {TASKS} tasks while their clock is set back by 1 h and later forward by 1 h"
        if is_file
        else f"two workers run {TASKS} tasks; the clock of one is 1 h ahead, and the clock of the other is 1 h behind"
    )
    figures = Figures("T18", kind(url), what)
    async with queue_workers(folder, url, limit=10, lease=2 * slowness()) as running:
        clocks = [folder / "clock"] * 2 if is_file else [folder / "ahead", folder / "behind"]
        for clock, off in zip(clocks, (0, 0) if is_file else (HOUR, -HOUR), strict=True):
            _write(clock, off)
        ids = await running.work.enqueue_many("conta", [(0.05,) for _ in range(TASKS)])
        delayed = await running.work.enqueue_many("conta", [(0.05,) for _ in range(5)], delay=2)
        began = time.monotonic()
        for clock in clocks:
            running.begin(clock=str(clock))
        if is_file:
            await _steps(running, clocks[0])
        await running.until_over()
        took = time.monotonic() - began
        tally = await running.judge([*ids, *delayed])
        assert took < (300 if LONG else HOUR / 2)  # a clock that is wrong by an hour delays nothing by an hour
        assert not tally.in_vain
        figures.record_items(tally, f"all tasks were done {took:.1f} s after the workers started")


async def _steps(running: QueueWorkers, clock: Path) -> None:
    """Set the clock back when half of the tasks are still waiting, and set it right again when a quarter are."""
    for off, share in ((-HOUR, 0.5), (0, 0.25)):
        await running.until("some are done", lambda share=share: running.runs().total() >= TASKS * (1 - share))  # type: ignore[misc]
        _write(clock, off)
        await asyncio.sleep(0.5)


def _write(clock: Path, seconds: int) -> None:
    """Write a clock offset to the file that workers read continuously. Replace the file atomically, so that a worker
    never reads a partial value.
    """
    new = clock.with_suffix(".new")
    new.write_text(str(seconds))
    new.replace(clock)
