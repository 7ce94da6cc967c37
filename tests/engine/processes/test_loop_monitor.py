"""The watchdog thread acts if the event loop does not respond. The tests use a fake clock."""

import asyncio
import faulthandler
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from batuta.kernel.errors import StoreTimeout
from batuta.kernel.events import EventLoopBlocked, EventLoopResponds
from batuta.processes import loop_monitor as lag_module
from batuta.processes.exit import MEGABYTE, Recycler
from batuta.processes.heartbeat import ProcessStatus, describe_loop, status_of
from batuta.processes.loop_monitor import LoopMonitor, WatchdogThread, monitor_policy
from batuta.processes.notify import Notifier
from batuta.processes.restarts import EXIT_AGAIN, RestartReason, reason_of_dump
from batuta.supervise.loop import FunctionLoop, LoopPolicy
from batuta.supervise.running import LoopState
from batuta.supervise.stacks import StackFolder, main_thread_first, task_stack
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock

SECOND = timedelta(seconds=1)
LIMIT = 15 * SECOND


class ManualLoop:
    """Event loop that responds only when the test calls ``answer``."""

    def __init__(self) -> None:
        self.asked: list[Callable[[], None]] = []

    def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
        self.asked.append(callback)

    def answer(self) -> None:
        for callback in self.asked:
            callback()
        self.asked.clear()


class Parent(Notifier):
    signs = 0

    def alive(self) -> bool:
        Parent.signs += 1
        return True


@pytest.fixture
def home() -> ManualLoop:
    return ManualLoop()


@pytest.fixture
def monitor(home: ManualLoop, clock: FakeClock, events: EventRecorder, monkeypatch: pytest.MonkeyPatch) -> LoopMonitor:
    Parent.signs = 0
    monkeypatch.setattr(lag_module, "cpu_seconds", clock.monotonic)  # as if the process used the processor all the time
    words: list[str] = []

    async def report_block(stack: str, silent: timedelta) -> None:
        words.append(stack)

    made = LoopMonitor(
        home=home,  # type: ignore[arg-type]
        thread=threading.get_ident(),
        limit=LIMIT,
        clock=clock,
        events=events,
        notifier=Parent(),
        report_block=report_block,
        state_changed=lambda: None,
        dump=None,
        exit=lambda code: words.append(f"exit {code}"),
    )
    made_words[id(made)] = words
    return made


made_words: dict[int, list[str]] = {}


async def advance_clock(monitor: LoopMonitor, clock: FakeClock, seconds: int) -> None:
    for _ in range(seconds):
        await clock.advance(1)
        await monitor.tick()


async def test_parent_gets_a_keep_alive_while_the_loop_answers(
    monitor: LoopMonitor, home: ManualLoop, clock: FakeClock
) -> None:
    for _ in range(30):
        await monitor.tick()
        home.answer()
        await clock.advance(1)
    assert Parent.signs == 30
    assert not monitor.is_blocked


async def test_parent_with_a_limit_gets_ten_heartbeats_within_it(
    monitor: LoopMonitor, home: ManualLoop, clock: FakeClock
) -> None:
    monitor.notifier = Parent(watchdog_limit=20 * SECOND)
    for _ in range(40):
        await monitor.tick()
        home.answer()
        await clock.advance(1)
    assert Parent.signs == 20


async def test_timer_is_set_again_before_it_fires_and_never_fires_before_the_limit(
    monitor: LoopMonitor, home: ManualLoop, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fires: list[float] = []
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda left, **_: fires.append(clock.monotonic() + left))
    with (tmp_path / "worker.stack").open("w", encoding="utf-8") as monitor.dump:
        for _ in range(10):
            await monitor.tick()
            home.answer()
            assert LIMIT <= timedelta(seconds=fires[-1] - clock.monotonic()) <= LIMIT + 3 * SECOND
            await clock.advance(1)
        assert len(fires) == 5
        asked = clock.monotonic()
        await monitor.tick()
        await advance_clock(monitor, clock, 5)
        # a second after the monitor thread's own limit, because usually that thread ends the process
        assert timedelta(seconds=fires[-1] - asked) == LIMIT + SECOND


async def test_blocked_loop_is_reported_with_its_stack_and_ended_at_the_limit(
    monitor: LoopMonitor, clock: FakeClock, events: EventRecorder
) -> None:
    await monitor.tick()
    await advance_clock(monitor, clock, 14)
    warned, stacked = events.of(EventLoopBlocked)
    assert (warned.silent_for, warned.stack) == (2 * SECOND, None)
    assert stacked.stack is not None
    assert "in passes" in stacked.stack or "in tick" in stacked.stack  # the stack of this thread
    assert (Parent.signs, made_words[id(monitor)]) == (15, [])
    await advance_clock(monitor, clock, 1)
    stack, exit = made_words[id(monitor)]
    assert stack
    assert exit == f"exit {EXIT_AGAIN}"
    assert Parent.signs == 15  # the parent gets no further keep-alive


async def test_stack_that_the_database_refuses_is_left_for_the_next_process(
    monitor: LoopMonitor, clock: FakeClock, tmp_path: Path
) -> None:
    async def refused(stack: str, silent: timedelta) -> None:
        raise StoreTimeout(where="test.db", why="we hold it ourselves")

    await monitor.tick()
    await advance_clock(monitor, clock, 14)
    monitor.report_block = refused
    with (tmp_path / "worker.stack").open("w", encoding="utf-8") as dump:
        monitor.dump = dump
        await advance_clock(monitor, clock, 1)
        faulthandler.cancel_dump_traceback_later()
    left = main_thread_first((tmp_path / "worker.stack").read_text())
    assert reason_of_dump(left) is RestartReason.BLOCKED
    assert "in passes" in left or "in tick" in left
    assert made_words[id(monitor)] == [f"exit {EXIT_AGAIN}"]


async def test_recovered_loop_is_reported_once(
    monitor: LoopMonitor, home: ManualLoop, clock: FakeClock, events: EventRecorder
) -> None:
    await monitor.tick()
    await advance_clock(monitor, clock, 5)
    assert monitor.is_blocked
    home.answer()
    await advance_clock(monitor, clock, 1)
    home.answer()
    await advance_clock(monitor, clock, 1)
    assert not monitor.is_blocked
    assert events.of(EventLoopResponds) == [EventLoopResponds(5 * SECOND)]


async def test_suspended_process_is_not_blocked_and_a_busy_one_is(
    monitor: LoopMonitor, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await monitor.tick()
    monkeypatch.setattr(lag_module, "cpu_seconds", lambda: 1000.0)  # as if no processor time was used
    await clock.advance(100)
    await monitor.tick()
    assert (monitor.is_blocked, made_words[id(monitor)]) == (False, [])
    monkeypatch.setattr(lag_module, "cpu_seconds", lambda: clock.monotonic() * 2)  # as if a thread held the interpreter
    await monitor.tick()
    await clock.advance(100)
    await monitor.tick()
    assert made_words[id(monitor)][-1] == f"exit {EXIT_AGAIN}"


def test_monitor_checks_often_enough_for_the_limit_and_the_parent() -> None:
    assert monitor_policy(LIMIT, Notifier()).every == SECOND
    assert monitor_policy(SECOND, Notifier()).every == SECOND / 10
    assert monitor_policy(LIMIT, Notifier("/run/x", 2 * SECOND)).every == SECOND / 2


async def test_process_that_is_too_large_or_too_old_is_recycled_once(clock: FakeClock) -> None:
    reasons: list[str] = []
    size = 100 * MEGABYTE
    recycler = Recycler(
        most_megabytes=200, longest=timedelta(hours=2), clock=clock, recycle=reasons.append, rss=lambda: size
    )
    await recycler.tick()
    assert reasons == []
    size = 201 * MEGABYTE
    await recycler.tick()
    await recycler.tick()
    assert reasons == ["uses 201 MB, more than the limit of 200"]
    old = Recycler(most_megabytes=None, longest=timedelta(hours=2), clock=clock, recycle=reasons.append)
    await old.tick()
    await clock.advance(timedelta(hours=2, seconds=1))
    await old.tick()
    assert reasons[1:] == ["has run for 2 h, longer than the limit of 2 h"]


async def test_watchdog_thread_runs_while_the_event_loop_is_blocked(
    events: EventRecorder,
) -> None:
    from batuta.kernel.clock import SystemClock

    ticked = threading.Event()

    async def beat() -> None:
        ticked.set()

    supervisor = Supervisor(SystemClock(), events)
    supervisor.add(FunctionLoop("beat", beat), LoopPolicy(every=SECOND / 100, stuck_after=SECOND * 10))
    thread = WatchdogThread(supervisor, close=beat)
    thread.begin()
    for _ in range(3):  # blocks this event loop
        ticked.clear()
        assert ticked.wait(30)
    await thread.end()


def test_stack_of_a_dead_process_is_found_once_and_that_of_a_live_one_never(tmp_path: Path) -> None:
    folder = StackFolder(tmp_path / "stacks")
    for role, pid, text in (
        ("worker", 2**22 + 1, "Timeout (0:00:16)!\nThread 1"),
        ("worker", 1, "alive"),
        ("api", 2**22 + 2, "x"),
    ):
        with folder.open(role, pid) as file:
            file.write(text)
    assert [(left.pid, left.stack) for left in folder.list_orphaned("worker")] == [
        (2**22 + 1, "Timeout (0:00:16)!\nThread 1")
    ]
    assert folder.list_orphaned("worker") == []
    assert folder.take("api", 2**22 + 2) == "x"
    assert folder.take("api", 2**22 + 2) is None
    assert oct((tmp_path / "stacks").stat().st_mode)[-3:] == "700"


def test_missing_temporary_folder_disables_only_the_stacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    folder = StackFolder.for_database(f"sqlite:///{uuid4()}.db")
    assert (folder.take("worker", 2**22 + 1), folder.list_orphaned("worker")) == (None, [])


def test_main_thread_comes_first_and_the_first_line_gives_the_reason() -> None:
    dump = "Timeout (0:00:16)!\nThread 0x1 (most recent call first):\n  a\n\nThread 0x2 (most recent call first):\n  main\n"
    assert main_thread_first(dump).splitlines()[:3] == [
        "Timeout (0:00:16)!",
        "Thread 0x2 (most recent call first):",
        "  main",
    ]
    assert reason_of_dump(dump) is RestartReason.BLOCKED
    assert reason_of_dump("Fatal Python error: Aborted\n\nThread …") is RestartReason.STALLED
    assert reason_of_dump("Fatal Python error: Segmentation fault\n") is RestartReason.CRASHED


async def test_task_stack_reaches_the_innermost_await() -> None:
    async def outer() -> None:
        await inner()

    async def inner() -> None:
        await asyncio.Event().wait()

    task: asyncio.Task[Any] = asyncio.create_task(outer())
    await asyncio.sleep(0)
    stack = task_stack(task)
    task.cancel()
    assert stack.index("in outer") < stack.index("in inner") < stack.index("in wait")


def test_process_with_a_degraded_loop_is_degraded_and_names_it() -> None:
    async def tick() -> None: ...

    policy = LoopPolicy(every=SECOND, stuck_after=60 * SECOND)
    well, ill = (
        LoopState(FunctionLoop(name, tick), policy, last_beat=100.0, worked_at=90.0) for name in ("well", "ill")
    )
    assert status_of([well, ill], 130.0) is ProcessStatus.ONLINE
    ill.is_ticking = True
    assert status_of([well, ill], 159.0) is ProcessStatus.ONLINE
    assert status_of([well, ill], 160.0) is ProcessStatus.DEGRADED
    described = describe_loop(ill, 160.0)
    assert (described["alive"], described["last_ping_ago"], described["last_progress_ago"]) == (False, 60.0, 70.0)
    assert describe_loop(well, 160.0)["alive"] is True
    well.failures = 1
    assert status_of([well], 130.0) is ProcessStatus.DEGRADED
