"""When a process crashes, another process on the same host recovers its work immediately, although the lease lasts half
a minute. The work of a process that is still alive is not taken over early.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from batuta.kernel.identity import ProcessIdentity, ProcFiles, Verdict, identity, verdict
from tests.faults.conftest import one_of, together
from tests.faults.figures import LONG, Figures, kind
from tests.faults.processes import ROOT, Tree, tree
from tests.faults.queue_harness import QueueWorkers, queue_workers
from tests.faults.queue_plant import VARIABLE
from tests.faults.test_queue_crashes import _freeze
from tests.faults.waiting import slowness

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel proves a crash through /proc")

# A take-over before the lease ends proves that no process waited for the lease, even on a slow machine.
LEASE = 30.0 if LONG else 600.0
TASKS = 20
ALLOWED = 2.0 if LONG else LEASE / 2


async def test_tasks_of_a_killed_worker_are_taken_over_at_once_by_another(places: Mapping[str, Path]) -> None:
    await together(*(_beside_another(url, folder) for url, folder in places.items()))


async def _beside_another(url: str, folder: Path) -> None:
    figures = Figures("T01", kind(url), f"one of two workers is killed while it runs {TASKS} tasks")
    takes = 3 * slowness()  # long enough that all tasks still run when their worker is killed
    async with queue_workers(folder, url, lease=LEASE, limit=TASKS) as running:
        (victim,) = await running.begin_until_up()
        ids = await running.work.enqueue_many("conta", [(takes,) for _ in range(TASKS)])
        await running.until("all of them run", lambda: running.runs().total() == TASKS)
        await running.begin_until_up()
        running.kill(victim)
        took = await _taken_up_within(running, time.monotonic())
        await running.until_over()
        tally = await running.judge(ids)
        assert tally.in_vain == TASKS
        assert {row["crashes"] for row in await running.ask("SELECT crashes FROM tasks")} <= {0, 1}
        figures.record_items(
            tally, f"the next worker took over all tasks within {took:.2f} s of the kill; a lease lasted {LEASE:.0f} s"
        )


async def _taken_up_within(running: QueueWorkers, killed_at: float) -> float:
    await running.until("all are taken up", lambda: running.runs().total() == 2 * TASKS, within=ALLOWED)
    return time.monotonic() - killed_at


async def test_sibling_under_up_takes_over_tasks_of_a_killed_worker_at_once(places: dict[str, Path]) -> None:
    await together(*(_under_up(url, folder) for url, folder in one_of(places, "postgresql").items()))


@pytest.mark.skipif(not LONG, reason="a child has to work for a minute before it is started again without a wait")
async def test_only_worker_under_up_takes_over_its_tasks_after_a_restart(places: Mapping[str, Path]) -> None:
    await together(*(_alone_under_up(url, folder) for url, folder in places.items()))


async def _alone_under_up(url: str, folder: Path) -> None:
    figures = Figures("T01", kind(url), f"the only worker of `batuta up` is killed while it runs {TASKS} tasks")
    async with queue_workers(folder, url, lease=LEASE, limit=TASKS) as running:
        with _up(running, workers=1) as up:
            await running.until("the worker is ready", lambda: _ready(up) >= 1)
            await asyncio.sleep(61)
            ids = await running.work.enqueue_many("conta", [(6.0,) for _ in range(TASKS)])
            await running.until("all of them run", lambda: running.runs().total() == TASKS)
            ((victim, _),) = _by_process(running).items()
            killed_at = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            await running.until("all are taken up", lambda: running.runs().total() == 2 * TASKS, within=LEASE / 2)
            took = time.monotonic() - killed_at
            await running.until_over()
            tally = await running.judge(ids)
            assert up.end() == 0
        figures.record_items(
            tally, f"the next worker took over all tasks within {took:.2f} s of the kill; a lease lasted {LEASE:.0f} s"
        )


async def _under_up(url: str, folder: Path) -> None:
    figures = Figures("T01", kind(url), f"a worker of `batuta up` is killed while it runs {TASKS} tasks or more")
    takes = 3 * slowness()
    async with queue_workers(folder, url, lease=LEASE, limit=2 * TASKS) as running:
        with _up(running, workers=2) as up:
            await running.until("both workers are ready", lambda: _ready(up) >= 2)
            ids = await running.work.enqueue_many("conta", [(takes,) for _ in range(2 * TASKS)])
            await running.until("all of them run", lambda: running.runs().total() == 2 * TASKS)
            before = _by_process(running)
            victim = before.most_common(1)[0][0]
            killed_at = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            held = before[victim]
            repeated = 2 * TASKS + held
            await running.until("all are taken up", lambda: running.runs().total() == repeated, within=ALLOWED)
            took = time.monotonic() - killed_at
            await running.until_over()
            tally = await running.judge(ids)
            assert tally.in_vain == held
            assert up.end() == 0
        figures.record_items(
            tally,
            f"another worker took over its {held} tasks within {took:.2f} s of the kill; a lease lasted {LEASE:.0f} s",
        )


def _up(running: QueueWorkers, workers: int) -> AbstractContextManager[Tree]:
    encoded = json.dumps(running.plan.encode())
    settings = {
        "DATABASE_URL": running.plan.url,
        VARIABLE: encoded,
        "BATUTA_WORKERS": str(workers),
        "HOST": "127.0.0.1",
    }
    return tree(Path(running.plan.folder), "up", app="tests.faults.queue_plant:work", **settings)


def _ready(up: Tree) -> int:
    return sum(fact["event"].startswith("child worker") and "ready" in fact["event"] for fact in up.facts())


def _by_process(running: QueueWorkers) -> Counter[int]:
    return Counter(int(words[2]) for words in running.notes() if words[0] == "run")


async def test_frozen_worker_keeps_its_tasks(places: Mapping[str, Path]) -> None:
    await together(*(_stopped(url, folder) for url, folder in places.items()))


async def _stopped(url: str, folder: Path) -> None:
    figures = Figures("T06", kind(url), "one of two workers is frozen for a shorter time than a lease lasts")
    async with queue_workers(folder, url, lease=LEASE, limit=TASKS) as running:
        (frozen,) = await running.begin_until_up()
        ids = await running.work.enqueue_many("conta", [(2.0,) for _ in range(TASKS)])
        await running.until("all of them run", lambda: running.runs().total() == TASKS)
        await running.begin_until_up()
        await _freeze(running, frozen)
        await asyncio.sleep(3.0)
        assert running.runs().total() == TASKS
        running.signal(frozen, signal.SIGCONT)
        await running.until_over()
        tally = await running.judge(ids)
        assert tally.in_vain == 0
        figures.record_items(tally, "no task started twice")


SAYS_WHO_IT_IS = """
import sys
from batuta.kernel.identity import ProcessIdentity, ProcFiles, identity, verdict
outside = ProcessIdentity.parse(sys.argv[1])
print(identity(), verdict(outside, identity(), ProcFiles()).value, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("mounted", ["--mount-proc", ""], ids=["its own /proc", "the /proc of the host"])
def test_no_process_is_proven_dead_across_pid_namespaces(mounted: str) -> None:
    unshare = [*filter(None, ["unshare", "--pid", "--fork", "--kill-child", mounted])]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("this user may not make a pid namespace")
    here = identity()
    command = [*unshare, sys.executable, "-c", SAYS_WHO_IT_IS, str(here)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as inside:
        assert inside.stdout is not None
        text, judged = inside.stdout.readline().split()
        owner = ProcessIdentity.parse(text)
        assert owner is not None
        assert owner.pid != inside.pid
        assert (judged, verdict(owner, here, ProcFiles())) == ("unknown", Verdict.UNKNOWN)
        inside.kill()
    assert verdict(owner, here, ProcFiles()) is Verdict.UNKNOWN
