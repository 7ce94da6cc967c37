"""Tasks that run in child processes: their results, progress, log lines and limits, and what happens when a child
ends.
"""

import asyncio
import logging
import os
from pathlib import Path

import pytest

from batuta import Batuta, TaskStatus
from batuta.errors import InvalidTask
from batuta.testing import FakeClock
from tests.engine.tasks import heavy


def program(url: str, clock: FakeClock | None = None) -> Batuta:
    work = Batuta(url, timezone="UTC", clock=clock)
    for function in (heavy.square, heavy.greet):
        work.task(process=True)(function)
    work.task(process=True, memory="256MB", retry={ValueError: [60], Exception: []})(heavy.need)
    work.task(process=True, retry={ValueError: [60], Exception: []})(heavy.fail)
    work.task(process=True, timeout=30, retry=[])(heavy.hang)
    return work


async def statuses(work: Batuta, *ids: str) -> list[TaskStatus]:
    return [status for id in ids if (status := await work.status(id)) is not None]


async def test_child_returns_values_progress_and_log_records_and_its_end_is_a_failed_attempt(
    work_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with program(work_url) as work:
        ids = [await work.enqueue("square", 7), await work.enqueue("greet", "Ana")]
        ids += [await work.enqueue("need", megabytes) for megabytes in (1, 1000)]
        ids += [await work.enqueue("fail", kind) for kind in ("value", "exit", "gone", "kill")]
        with caplog.at_level(logging.WARNING):
            assert await work.work_once("default", 10) == 8
        square, greet, small, large, value, exit, gone, kill = await statuses(work, *ids)
        assert isinstance(square.result, list)
        assert (square.result[0], square.result[1] != os.getpid()) == (49, True)
        assert "squaring 7" in caplog.text
        assert (greet.result, greet.progress) == ("hi Ana", {"to": "Ana"})
        assert small.result == 1024 * 1024
        assert str(large.error) == "its process needed more than 256 MB: raise memory=, or do less in one call"
        assert (value.status, exit.status, gone.status, kill.status) == ("queued", "failed", "failed", "failed")
        assert str(value.error).startswith("ValueError in the handler")
        assert str(exit.error).startswith("SystemExit in the handler")
        assert "exit code 4" in str(gone.error)
        assert "killed by SIGKILL" in str(kill.error)


async def test_cancellation_kills_the_child(work_url: str, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with program(work_url) as work, work.running("worker"):
        id = await work.enqueue("hang", str(file))
        async with asyncio.timeout(60):
            while not (file.exists() and file.read_text()):
                await asyncio.sleep(0)
            pid = int(file.read_text())
            await work.handle(id).cancel()
            while Path(f"/proc/{pid}").exists():
                await asyncio.sleep(0)
            (status,) = await statuses(work, id)
            assert status.status in ("in_progress", "cancelled")


def test_unusable_options_are_rejected_at_registration(work_url: str) -> None:
    work = Batuta(work_url, timezone="UTC")

    def inner() -> None: ...

    with pytest.raises(InvalidTask, match="define it at the top of a module"):
        work.task(process=True)(inner)
    with pytest.raises(InvalidTask, match="memory needs process=True"):
        work.task(memory="512MB")(inner)
    for memory in ("512", "1MB", "lots"):
        with pytest.raises(InvalidTask, match='such as "512MB" or "2GB", at least 64 MB'):
            work.task(process=True, memory=memory)(heavy.need)
