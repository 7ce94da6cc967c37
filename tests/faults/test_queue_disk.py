"""A disk is full or fails for a while. Every acknowledged item is stored, and no item begins before its claim is
stored.
"""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.figures import LONG, Figures
from tests.faults.queue_harness import queue_workers
from tests.faults.waiting import TIMEOUT, slowness

PIECE = b"x" * 4096


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen megabytes. Only root can mount it."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "batuta-faults", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a disk that can be filled needs the right to mount one")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.calm
async def test_full_disk_begins_nothing_and_loses_nothing_accepted(small_disk: Path, tmp_path: Path) -> None:
    slow = slowness()
    rounds, away = (2, 45.0) if LONG else (1, slow)
    figures = Figures(
        "T35", "SQLite", f"the disk of the database (16 MB) is full for {away:g} s; number of faults: {rounds}"
    )
    slowest = 0.0
    async with queue_workers(tmp_path, f"sqlite:///{small_disk}/test.db", lease=slow) as running:
        await running.begin_until_up(2)
        async with running.enqueuing(0.1, "x" * 500) as enqueuer:
            for _ in range(rounds):
                refused = enqueuer.refused
                await asyncio.sleep(1)
                with _full(small_disk):
                    await running.until("it is refused", lambda refused=refused: enqueuer.refused > refused)  # type: ignore[misc]
                    await asyncio.sleep(0.3 * slow)
                    begun, accepted = running.runs().total(), len(enqueuer.accepted)
                    await asyncio.sleep(away)
                    assert (running.runs().total(), len(enqueuer.accepted)) == (begun, accepted)
                slowest = max(slowest, await running.serves())
        await running.until_over()
        tally = await running.judge(enqueuer.accepted, or_more=True)
        assert all(each.is_alive() for each in running.workers)
        assert tally.in_vain == 0  # no worker died, so no item may have been rescued
        note = (
            f"refused enqueues: {enqueuer.refused}; no task started while the disk was full;"
            f" the workers worked again {slowest:.1f} s after the fault ended"
        )
        figures.record_items(tally, note)


@contextmanager
def _full(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(PIECE)
    yield
    ballast.unlink()


async def test_failed_syncs_of_the_disk_lose_no_accepted_item(tmp_path: Path) -> None:
    """For a while, the system calls that make a commit durable fail in the only worker."""
    if shutil.which("strace") is None:
        pytest.skip("system calls are made to fail by strace")
    away, faults = (20.0, ["fdatasync:error=EIO", "pwrite64:error=ENOSPC"]) if LONG else (1.0, ["fdatasync:error=EIO"])
    figures = Figures(
        "T35",
        "SQLite",
        f"a worker's system calls fail for {away:g} s: {', '.join(each.replace(':error=', ' with ') for each in faults)}",
    )
    async with queue_workers(tmp_path, f"sqlite:///{tmp_path}/test.db") as running:
        (failing,) = await running.begin_until_up()
        slowest = 0.0
        async with running.enqueuing(0.1) as enqueuer:
            for fault in faults:
                await asyncio.sleep(0.5)
                call = fault.partition(":")[0]
                strace = ["strace", "-f", "-q", "-o", str(tmp_path / call), "-p", str(failing.pid)]
                tracer = subprocess.Popen([*strace, "-e", f"trace={call}", "-e", f"inject={fault}"])
                await asyncio.sleep(away)
                assert tracer.poll() is None, "strace may not look at it"
                tracer.send_signal(signal.SIGINT)
                await asyncio.to_thread(tracer.wait, TIMEOUT)
                assert "INJECTED" in (tmp_path / call).read_text()
                slowest = max(slowest, await running.serves())
        await running.until_over()
        tally = await running.judge(enqueuer.accepted, or_more=True)
        assert all(each.is_alive() for each in running.workers)
        figures.record_items(
            tally, f"the worker worked again {slowest:.1f} s after the fault ended; repeated runs: {tally.in_vain}"
        )
