"""A real worker process monitored by the watchdog. Its tasks and loops hang in every known way.

Each step is recorded as a line in a file: the name of the step, the process id, and the time on the machine's monotonic
clock.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from batuta import Batuta, note_progress
from batuta.config import EngineSettings
from batuta.engine.process import ProcessLimits, guard_process
from batuta.kernel.errors import StartAgain
from batuta.logs import begin_logging
from batuta.processes.exit import stop_on_signals
from batuta.processes.loop_monitor import exit_now
from batuta.processes.restarts import EXIT_AGAIN
from batuta.tasks.task import TaskContext
from batuta.testing import FastClock

# Matching twenty letters holds the interpreter for about a second, forty letters for longer than any timeout.
CATASTROPHE = "a" * 40 + "!"
CURE = "cured"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Settings for the worker. Times are in seconds of ``clock``, which may run faster than the machine's clock."""

    url: str
    folder: str
    clock: str | None = None  # a FastClock as text; None means the machine's clock
    blocked: float = 15.0
    lease: float = 3.0
    drain: float = 5.0
    stuck_after: float = 5.0
    recycle_after: float | None = None
    looks_every: float = 10.0  # poll interval of the worker if no wake-up arrives
    ways: tuple[str, ...] = ()  # names of additional loops

    def encode(self) -> dict[str, Any]:
        return asdict(self)


def run(encoded: Mapping[str, Any]) -> None:
    plan = Plan(**encoded)
    out = os.open(Path(plan.folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
    asyncio.run(_work(plan))


async def _work(plan: Plan) -> None:
    stop = asyncio.Event()
    work = build(plan)
    begin_logging(
        work.events, EngineSettings(log_format="json"), service="worker", stream=sys.stdout, zone=ZoneInfo("UTC")
    )
    longest = None if plan.recycle_after is None else timedelta(seconds=plan.recycle_after)
    limits = ProcessLimits(blocked=timedelta(seconds=plan.blocked), longest=longest)
    try:
        with stop_on_signals(stop):
            async with work, guard_process(work, "worker", stop, limits=limits) as supervisor:
                note(plan, "up")
                await supervisor.run(stop, timedelta(seconds=plan.drain))
    except StartAgain:
        exit_now(EXIT_AGAIN)


def build(plan: Plan) -> Batuta:
    clock = None if plan.clock is None else FastClock.from_text(plan.clock)
    work = Batuta(plan.url, timezone="UTC", clock=clock)
    work.queue_lease = timedelta(seconds=plan.lease)
    work.worker_policy = replace(work.worker_policy, look_every=timedelta(seconds=plan.looks_every))
    add_tasks(work, plan)
    add_loops(work, plan)
    return work


def note(plan: Plan, *words: str) -> None:
    """Append a line with a single write, so that lines of several processes do not mix and a killed process leaves only
    complete lines.
    """
    file = os.open(Path(plan.folder) / "notes", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, f"{' '.join(words)} {os.getpid()} {time.monotonic():.3f}\n".encode())
    finally:
        os.close(file)


def is_cured(plan: Plan, *words: str) -> bool:
    """Return whether this fault has already occurred. Each fault occurs only once, so that a retry succeeds."""
    mark = Path(plan.folder) / f"{CURE}-{'-'.join(words)}"
    if mark.exists():
        return True
    mark.touch()
    note(plan, "ill", *words)
    return False


def add_tasks(work: Batuta, plan: Plan) -> None:
    @work.task(retry=[0.1, 0.1, 0.1], timeout=60)
    async def conta(ctx: TaskContext, seconds: float = 0.0) -> None:
        await asyncio.sleep(seconds)
        note(plan, "done", ctx.id)

    @work.task(retry=[0.1, 0.1, 0.1])
    async def bloqueia(ctx: TaskContext) -> None:
        if not is_cured(plan, "bloqueia"):
            time.sleep(600)

    @work.task(retry=[0.1, 0.1, 0.1])
    async def expressao(ctx: TaskContext) -> None:
        if not is_cured(plan, "expressao"):
            re.match(r"(a+)+$", CATASTROPHE)

    @work.task(retry=[0.1, 0.1, 0.1], timeout=1, retry_timeout=True)
    async def surda(ctx: TaskContext) -> None:
        """A task that ignores its cancellation and occupies a thread that cannot be stopped."""
        if is_cured(plan, "surda"):
            return
        holding = asyncio.create_task(asyncio.to_thread(time.sleep, 600))
        while not holding.done():
            try:
                await asyncio.shield(holding)
            except asyncio.CancelledError:
                note(plan, "refused", ctx.id)


def add_loops(work: Batuta, plan: Plan) -> None:
    if "listens" in plan.ways:
        work.loop(every=0.2, stuck_after=plan.stuck_after, name="listener")(_listener(plan))
    if "hangs" in plan.ways:

        @work.loop(every=0.5, stuck_after=plan.stuck_after)
        async def sync() -> None:
            if not is_cured(plan, "sync"):
                await asyncio.Event().wait()
            note(plan, "tick", "sync")

    if "calls" in plan.ways:

        @work.loop(every=0.5, stuck_after=plan.stuck_after, max_failures=1_000)
        async def outbound() -> None:
            await work.clock.sleep(0)
            port = int((Path(plan.folder) / "port").read_text())
            async with asyncio.timeout(1):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"ping\n")
                await reader.readline()
            writer.close()
            note(plan, "tick", "outbound")

    if "soaks" in plan.ways:
        _soak(work, plan)


def _listener(plan: Plan) -> type:
    """Return a loop with a separate listening task. If that task dies silently, the loop receives nothing although the
    process is still running.
    """

    class Listener:
        async def tick(self) -> None:
            heard: asyncio.Queue[str] = asyncio.Queue()
            listening = asyncio.create_task(self._listen(heard))
            try:
                for _ in range(1_000_000):
                    await self._tell(await heard.get())
            finally:
                listening.cancel()

        async def _tell(self, line: str) -> None:
            note(plan, "heard", line)
            with (Path(plan.folder) / "handled").open("a") as file:
                file.write(f"{line}\n")
            note_progress()

        async def _listen(self, heard: "asyncio.Queue[str]") -> None:
            """Listen for new lines, beginning after the last line that was handled. A consumer of a durable queue
            resumes in the same way.
            """
            handled = Path(plan.folder) / "handled"
            handled.touch()
            seen = len(handled.read_text().splitlines())
            for _ in range(1_000_000):
                lines = (Path(plan.folder) / "outside").read_text().splitlines()
                for line in lines[seen:]:
                    if line.startswith("dies") and not is_cured(plan, "listener"):
                        return
                    heard.put_nowait(line)
                seen = len(lines)
                await asyncio.sleep(0.05)

    return Listener


def _soak(work: Batuta, plan: Plan) -> None:
    ticks = 0

    @work.loop(every=0.05, stuck_after=plan.stuck_after, max_failures=1_000, max_restarts=1_000)
    async def faulty() -> None:
        """Fail on every seventh tick and hang on every fortieth. The resulting restarts must not leak resources."""
        nonlocal ticks
        ticks += 1
        if ticks % 7 == 0:
            raise ValueError("now and then")
        if ticks % 40 == 0:
            await asyncio.Event().wait()

    @work.loop(every=0.5, stuck_after=60)
    async def census() -> None:
        take_census(plan)


def take_census(plan: Plan) -> None:
    """Record this process's memory use and its numbers of descriptors, tasks and threads."""
    fds = len(list(Path("/proc/self/fd").iterdir()))
    rss = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
    threads = len(list(Path("/proc/self/task").iterdir()))
    note(plan, "census", str(rss), str(fds), str(len(asyncio.all_tasks())), str(threads))
