"""A parent supervises small programs as its children. Each kind of failure of one child has the expected effect on all
children.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.events import ChildEnded, ChildLooping, ChildReady, ChildRecovered, ChildSilent, ChildStarted
from batuta.processes.child import ChildProcess, OrphanReaper
from batuta.processes.notify import NotifyMessage, NotifySocket
from batuta.processes.restarts import EXIT_AGAIN, EXIT_CONFIG, Budget, NewRestart, RestartReason
from batuta.processes.tree import ChildSpec, Entry, ProcessTree, Timeouts
from batuta.supervise.loop import LoopPolicy
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder
from tests.faults import waiting
from tests.faults.figures import Figures
from tests.faults.processes import is_gone, until
from tests.faults.waiting import slowness

pytestmark = [pytest.mark.calm, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

# A child program that imports nothing from Batuta. It reports once that it is ready. Then it sends ten heartbeats in
# each period in which the parent expects one.
LIVING = """
import os, signal, socket, subprocess, sys, threading, time
address = os.environ["NOTIFY_SOCKET"].replace("@", chr(0), 1)
line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def say(words): line.sendto(words.encode(), address)
def beat():
    while True:
        say("WATCHDOG=1")
        time.sleep(int(os.environ["WATCHDOG_USEC"]) / 1e7)
say("WATCHDOG=1\\nREADY=1")
threading.Thread(target=beat, daemon=True).start()
"""
WAITS = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\ntime.sleep(600)\n"
# The child's SIGTERM handler, installed before the child reports ready.
ENDS_BY = "import signal, sys, time\ndef end(*_): {}\nsignal.signal(signal.SIGTERM, end)\n"
# One match holds the interpreter for longer than every timeout, so no thread of the child can report.
HOLDS = "import re\ntime.sleep(0.2)\nre.match('(a+)+$', 'a' * 40 + '!')\n"
BUDGET = Budget(base=timedelta(milliseconds=50), cap=timedelta(milliseconds=200))
OFTEN = LoopPolicy(every=timedelta(milliseconds=100), stuck_after=timedelta(minutes=1))
GRACE = timedelta(seconds=10)
LONG_GRACE = timedelta(seconds=120)
E = TypeVar("E")
FREEZER = Path("/sys/fs/cgroup/freezer")


def quick() -> Timeouts:
    """Return short time limits that a live child can still meet on a slow machine."""
    limit = timedelta(seconds=2 * slowness())
    return Timeouts(living=limit, stack=limit)


class Notes:
    def __init__(self) -> None:
        self.stalls: list[int] = []
        self.restarts: list[NewRestart] = []

    def record(self, entry: Entry) -> None:
        if isinstance(entry, NewRestart):
            self.restarts.append(entry)
        else:
            self.stalls.append(entry.pid)


class Watched:
    def __init__(self, programs: dict[str, str], timeouts: Timeouts, budget: Budget) -> None:
        self.events, self.notes, self.stop, self.lines = EventRecorder(), Notes(), asyncio.Event(), list[str]()
        specs = [ChildSpec(role, [sys.executable, "-c", text], dict(os.environ)) for role, text in programs.items()]
        self.socket = NotifySocket.open()
        self.family = ProcessTree(
            specs, SystemClock(), self.events, self.stop, lambda name, line: self.lines.append(f"{name}: {line}"),
            self.socket, self.notes.record, timeouts=timeouts, budget=budget, chance=lambda: 1.0,
        )  # fmt: skip

    def pid(self, role: str) -> int:
        return next(child.process.pid for child in self.family.children if child.spec.role == role and child.process)

    async def ready(self, role: str, times: int = 1) -> float:
        """Return the instant at which the role became ready for the ``times``-th time."""
        await self.until(lambda: len([each for each in self.events.of(ChildReady) if each.role == role]) >= times)
        return time.monotonic()

    async def until(self, true: Callable[[], bool]) -> None:
        await waiting.until("it happens", true, explain=lambda: self.lines)

    async def heard(self, kind: type[E]) -> E:
        """Wait for an event of this kind and return the first one."""
        await self.until(lambda: bool(self.events.of(kind)))
        return self.events.of(kind)[0]


@asynccontextmanager
async def watched(
    timeouts: Timeouts | None = None, budget: Budget = BUDGET, grace: timedelta = GRACE, **programs: str
) -> AsyncIterator[Watched]:
    watching = Watched(programs, timeouts or quick(), budget)
    supervisor = Supervisor(SystemClock(), watching.events)
    supervisor.add(watching.family, OFTEN)
    running = asyncio.create_task(supervisor.run(watching.stop, grace))
    try:
        yield watching
    finally:
        watching.stop.set()
        await running
        assert watching.socket is not None
        watching.socket.close()


async def test_stopped_child_is_found_killed_and_replaced_without_its_sibling() -> None:
    figures = Figures("T28", "–", "a small child process whose limit is two seconds is stopped (SIGSTOP)")
    async with watched(worker=LIVING + WAITS, api=LIVING + WAITS) as tree:
        await tree.ready("worker")
        await tree.ready("api")
        stopped, sibling = tree.pid("worker"), tree.pid("api")
        os.kill(stopped, signal.SIGSTOP)
        began = time.monotonic()
        silent = await tree.heard(ChildSilent)
        took = await tree.ready("worker", times=2) - began
        assert (silent.pid, silent.state) == (stopped, "stopped")
        assert tree.pid("worker") != stopped
        assert tree.pid("api") == sibling
        assert is_gone(stopped)
        assert tree.notes.stalls == [stopped]
        (restart,) = tree.notes.restarts
        assert (restart.worker_name, restart.reason, restart.pid, restart.exit_code) == (
            "worker",
            RestartReason.STALLED,
            stopped,
            -9,
        )
        assert "stopped" in restart.detail
        figures.record_bare(1, f"the process was replaced after {took:.1f} s")


async def test_child_that_holds_its_interpreter_is_found_with_its_stack() -> None:
    figures = Figures(
        "T25", "–", "an endless regular expression blocks a small child process whose limit is two seconds"
    )
    async with watched(worker=LIVING + HOLDS) as tree:
        await tree.ready("worker", times=2)
        first = tree.notes.restarts[0]
        assert first.reason is RestartReason.STALLED
        assert first.exit_code == -signal.SIGABRT
        assert first.stack is not None
        assert first.stack.startswith("Fatal Python error: Aborted")
        assert "re/__init__.py" in first.stack
        ended = tree.events.of(ChildEnded)[0]
        assert ended.stack is not None
        assert "re/__init__.py" in ended.stack
        assert first.stack.startswith(ended.stack)
        assert not [line for line in tree.lines if "File " in line]
        figures.record_bare(1, "the stack names the line that blocked the process")


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Freeze a process in the kernel, as a disk that does not respond would. Even SIGKILL takes effect only when the
    process is released.
    """
    group = FREEZER / f"batuta-test-{pid}"
    group.mkdir()
    try:
        (group / "cgroup.procs").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        yield
    finally:
        os.kill(pid, signal.SIGKILL)  # the process still runs, or is not reaped
        (group / "freezer.state").write_text("THAWED")
        until("it is gone", lambda: is_gone(pid))
        until("its group is empty", lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.mark.skipif(
    not os.access(FREEZER, os.W_OK), reason="only root can freeze a process, and only where cgroups are of version 1"
)
async def test_child_that_survives_sigkill_gets_a_replacement() -> None:
    hasty = replace(quick(), stack=timedelta(milliseconds=500), kill=timedelta(seconds=1))
    async with watched(hasty, worker=LIVING + WAITS, api=LIVING + WAITS) as tree:
        await tree.ready("worker")
        await tree.ready("api")
        held, sibling = tree.pid("worker"), tree.pid("api")
        with frozen(held):
            await tree.ready("worker", times=2)
            assert not is_gone(held)
            assert (tree.pid("worker") != held, tree.pid("api")) == (True, sibling)
            (restart,) = tree.notes.restarts
            assert (restart.reason, restart.pid) == (RestartReason.STALLED, held)


async def test_child_that_never_reports_is_replaced_after_its_start_limit() -> None:
    hasty = Timeouts(starting=timedelta(milliseconds=500), stack=timedelta(milliseconds=300))
    async with watched(hasty, mute="import time\ntime.sleep(600)\n") as tree:
        silent = await tree.heard(ChildSilent)
        assert silent.silent_for >= hasty.starting
        await tree.until(lambda: len(tree.events.of(ChildStarted)) >= 2)


async def test_ready_child_that_announced_no_watchdog_is_left_alone() -> None:
    speaks, _, _ = LIVING.partition('say("WATCHDOG=1\\nREADY=1")')
    quiet = speaks + 'say("READY=1")\ntime.sleep(4)\nsay("STATUS=well")\n'
    async with watched(quiet=quiet + WAITS, other=LIVING + WAITS) as tree:
        await tree.ready("quiet")
        await tree.until(lambda: tree.family.children[0].last_message_at - tree.family.children[0].started_at > 2.5)
        assert tree.events.of(ChildSilent) == []


async def test_only_the_child_itself_can_report_that_it_lives() -> None:
    """The parent ignores a heartbeat sent by a process that the child started."""
    other = "subprocess.Popen([sys.executable, '-c', os.environ['TEXT']], env={**os.environ, 'TEXT': ''})\n"
    os.environ["TEXT"] = LIVING + "time.sleep(600)"
    try:
        async with watched(worker=LIVING + other + WAITS) as tree:
            await tree.ready("worker")
            os.kill(tree.pid("worker"), signal.SIGSTOP)
            assert (await tree.heard(ChildSilent)).role == "worker"
    finally:
        del os.environ["TEXT"]


async def test_parent_that_was_itself_suspended_blames_no_child() -> None:
    """Children are not blamed for a silence during which their parent was itself blocked, because it was stopped or the
    machine was suspended.
    """
    strict = Timeouts(living=timedelta(seconds=6), absence=timedelta(seconds=1))
    async with watched(strict, worker=LIVING + WAITS) as tree:
        await tree.ready("worker")
        os.kill(tree.pid("worker"), signal.SIGSTOP)
        time.sleep(6.5)  # the event loop is blocked meanwhile
        os.kill(tree.pid("worker"), signal.SIGCONT)
        heard = tree.family.children[0].last_message_at
        await tree.until(lambda: tree.family.children[0].last_message_at > heard + 1)
        assert tree.events.of(ChildSilent) == []


async def test_crash_loop_raises_one_alarm_and_retries_forever_beside_the_others(
    tmp_path: Path,
) -> None:
    figures = Figures("T28", "–", "a small child process ends each time it is started")
    mended = tmp_path / "mended"
    broken = f"import os, sys\nif not os.path.exists({str(mended)!r}): sys.exit(3)\n"
    async with watched(broken=broken + LIVING + WAITS, fine=LIVING + WAITS) as tree:
        await tree.ready("fine")
        sibling = tree.pid("fine")
        await tree.heard(ChildLooping)
        await tree.until(lambda: len(tree.events.of(ChildEnded)) >= 8)
        assert len(tree.events.of(ChildLooping)) == 1
        waits = [each.again_in for each in tree.events.of(ChildEnded)]
        assert waits[:4] == [BUDGET.base, 2 * BUDGET.base, 4 * BUDGET.base, BUDGET.cap]
        assert set(waits[4:]) == {BUDGET.cap}
        reasons = [each.reason for each in tree.notes.restarts]
        assert reasons[:6] == [*[RestartReason.CRASHED] * 4, RestartReason.CRASH_LOOP, RestartReason.CRASHED]
        assert tree.pid("fine") == sibling
        mended.touch()
        await tree.ready("broken")
        tree.family.budget = replace(BUDGET, window=timedelta(milliseconds=200))  # as if ten minutes had passed
        await tree.heard(ChildRecovered)
        figures.record_bare(len(waits), "one alert was raised; after the repair, the process worked again")


async def test_child_that_asks_for_a_restart_gets_it_at_once_without_an_alarm(tmp_path: Path) -> None:
    figures = Figures("T26", "–", f"a small child process exits with code {EXIT_AGAIN}")
    worked = Budget(base=timedelta(hours=1), cap=timedelta(hours=1), too_young=timedelta(0))
    path = str(tmp_path / "once")
    again = f"if not os.path.exists({path!r}):\n    open({path!r}, 'w').close()\n    sys.exit({EXIT_AGAIN})\n"
    async with watched(budget=worked, worker=LIVING + again + WAITS) as tree:
        await tree.ready("worker", times=2)
        (ended,) = tree.events.of(ChildEnded)
        assert (ended.exit_code, ended.again_in) == (EXIT_AGAIN, timedelta(0))
        assert tree.notes.restarts == []
        figures.record_bare(1, "the process was restarted immediately")


async def test_configuration_that_never_worked_ends_the_family_with_its_code() -> None:
    async with watched(wrong=f"import sys\nsys.exit({EXIT_CONFIG})\n", fine=LIVING + WAITS) as tree:
        await asyncio.wait_for(tree.stop.wait(), waiting.TIMEOUT)
        assert tree.family.exit_code == EXIT_CONFIG


async def test_configuration_error_after_a_good_start_stops_no_other_child() -> None:
    async with watched(worker=LIVING + f"time.sleep(0.2)\nos._exit({EXIT_CONFIG})\n", fine=LIVING + WAITS) as tree:
        await tree.ready("worker", times=2)
        assert not tree.stop.is_set()
        assert tree.family.exit_code == 0


async def test_grandchild_ends_with_its_child_and_its_open_pipe_delays_nothing() -> None:
    forks = "subprocess.Popen(['sleep', '600'])\ntime.sleep(0.2)\nprint('last words', flush=True)\nos._exit(3)\n"
    tells = "started = subprocess.Popen(['sleep', '600'])\nprint(started.pid, flush=True)\n"
    async with watched(worker=LIVING + tells + forks) as tree:
        ended = await tree.heard(ChildEnded)
        assert ended.exit_code == 3
        assert "worker: last words" in tree.lines
        grandchild = int(tree.lines[0].partition(": ")[2])
        until("what it started is gone", lambda: is_gone(grandchild))


async def test_endless_line_and_invalid_text_are_passed_on() -> None:
    shouts = "sys.stdout.buffer.write(b'x' * 300_000 + b'\\n' + b'\\xff\\n'); sys.stdout.flush()\nprint('after', flush=True)\n"
    async with watched(worker=LIVING + shouts + WAITS) as tree:
        await tree.until(lambda: "worker: after" in tree.lines)
        assert sum(line.count("x") for line in tree.lines) == 300_000


async def test_program_that_cannot_be_started_is_retried_beside_the_others() -> None:
    async with watched(fine=LIVING + WAITS) as tree:
        tree.family.specs = [*tree.family.specs, ChildSpec("gone", ["/nowhere/python"], {})]
        ended = await tree.heard(ChildEnded)
        assert ended.role == "gone"
        assert "No such file" in ended.how
        await tree.ready("fine")


async def test_message_that_arrives_while_its_sender_is_being_started_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A quick child reports ready before the coroutine that starts it continues. The parent does not know the child's
    process yet, but the event loop has already read the message.
    """
    senders: list[int] = []
    receive, start = NotifySocket.receive, ChildProcess.start

    def receive_and_note(inbox: NotifySocket) -> Iterator[NotifyMessage]:
        for message in receive(inbox):
            senders.append(message.pid)
            yield message

    async def start_slowly(*arguments: Any) -> ChildProcess:
        process = await start(*arguments)
        await waiting.until("the message was read", lambda: process.pid in senders)
        return process

    monkeypatch.setattr(NotifySocket, "receive", receive_and_note)
    monkeypatch.setattr(ChildProcess, "start", start_slowly)
    only_ready, _, _ = LIVING.partition("threading.Thread")
    async with watched(worker=only_ready + WAITS) as tree:
        await waiting.until("a tick after the start", lambda: bool(tree.events.of(ChildStarted)))
        assert tree.family.children[0].is_ready


async def test_stop_signals_all_children_at_once_and_each_has_the_whole_grace() -> None:
    """Each of four children takes most of the grace period to stop. If they were stopped one after another, or shared
    the grace period, they would be killed.
    """
    takes = 2.5 * slowness()
    slow = ENDS_BY.format(f"time.sleep({takes}); sys.exit(0)") + LIVING + "time.sleep(600)\n"
    async with watched(
        grace=timedelta(seconds=3.2 * takes), api=slow, scheduler=slow, worker=slow, simulator=slow
    ) as tree:
        for role in ("api", "scheduler", "worker", "simulator"):
            await tree.ready(role)
        began = time.monotonic()
    took = time.monotonic() - began
    assert tree.events.of(ChildEnded) == []  # an orderly end with code 0 emits no event
    assert takes <= took < 3.2 * takes


async def test_child_that_does_not_end_is_killed_after_the_grace_not_before() -> None:
    clinging = ENDS_BY.format("pass") + LIVING + "while True: time.sleep(1)\n"
    quick = ENDS_BY.format("sys.exit(0)") + LIVING + "time.sleep(600)\n"
    grace = 6 * slowness()
    async with watched(grace=timedelta(seconds=grace), clinging=clinging, quick=quick) as tree:
        await tree.ready("clinging")
        await tree.ready("quick")
        began = time.monotonic()
    took = time.monotonic() - began
    assert [(each.role, each.exit_code) for each in tree.events.of(ChildEnded)] == [("clinging", -signal.SIGKILL)]
    assert grace / 2 <= took < grace * 1.1


async def test_stopped_child_does_not_delay_a_shutdown() -> None:
    async with watched(grace=2 * LONG_GRACE, first=LIVING + WAITS, second=LIVING + WAITS) as tree:
        await tree.ready("first")
        await tree.ready("second")
        os.kill(tree.pid("second"), signal.SIGSTOP)
        began = time.monotonic()
        pids = [tree.pid("first"), tree.pid("second")]
        tree.stop.set()
        await tree.until(lambda: all(is_gone(pid) for pid in pids))
        assert time.monotonic() - began < LONG_GRACE.total_seconds()


@contextmanager
def sleeping(count: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    started = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(count)]
    try:
        yield started
    finally:
        for each in started:
            each.kill()
            each.wait()


def test_orphan_reaper_ends_every_group_of_its_last_list_despite_a_gone_one() -> None:
    reaper = OrphanReaper()
    with sleeping(4) as (spared, first, gone, last):
        reaper.watch([spared.pid])
        reaper.watch([first.pid, gone.pid, last.pid])
        gone.kill()
        gone.wait()
        assert reaper._process is not None
        assert reaper._process.stdin is not None
        reaper._process.stdin.close()  # as the kernel does when the parent is killed
        assert (first.wait(waiting.TIMEOUT), last.wait(waiting.TIMEOUT)) == (-signal.SIGKILL, -signal.SIGKILL)
        reaper._process.wait(waiting.TIMEOUT)
        assert spared.poll() is None


def test_dismissed_orphan_reaper_ends_no_process_and_a_killed_one_is_replaced() -> None:
    reaper = OrphanReaper()
    with sleeping(1) as (spared,):
        reaper.watch([spared.pid])
        assert reaper._process is not None
        first = reaper._process
        first.kill()
        first.wait()
        reaper.watch([spared.pid])
        assert reaper._process.pid != first.pid
        reaper.dismiss()
        assert reaper._process.poll() == 0
        assert spared.poll() is None
