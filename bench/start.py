"""Measure starting and idling: the processor time of short commands, and the memory and idle processor time of ``batuta
up`` with Julia.

The durations of commands are processor time (user and system), because other programs use the machine too. Memory is
given twice: RSS counts shared pages in every process, PSS divides them by the number of processes.
"""

import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.report import markdown

ROOT = Path(__file__).parents[1]
REPEATS, QUICK_REPEATS = 5, 3
READY_WITHIN = 120.0
# Wait before the idle time is measured. Alerts are off for the first 45 s of a process.
SETTLES, QUICK_SETTLES = 60.0, 5.0
IDLE, QUICK_IDLE = 60.0, 10.0
MEGABYTE = 1024


@dataclass(frozen=True, slots=True)
class Row:
    """A figure, its limit and whether the limit is met. ``shown`` is the figure with its spread, as text."""

    name: str
    bound: float
    value: float
    shown: str
    unit: str

    def cells(self) -> list[str]:
        met = "met" if self.value <= self.bound else "MISSED"
        return [self.name, f"≤ {self.bound:g} {self.unit}", f"{self.shown} {self.unit}", met]


def figures(folder: Path, *, quick: bool) -> str:
    """Take all measurements and return them as a table."""
    with tempfile.TemporaryDirectory(prefix="batuta-bench-", dir=folder) as inside:
        env = environment(Path(inside))
        batuta(env, "migrate")
        rows = [
            command("import batuta", 0.15, ["-c", "import batuta"], env, quick=quick),
            command("`batuta --help` of Julia", 0.4, ["-m", "batuta", "--help"], env, quick=quick),
            command("`batuta jobs` of Julia", 0.8, ["-m", "batuta", "jobs"], env, quick=quick),
        ]
        notes: list[str] = []
        rows += together("batuta up", [], env, Path(inside), notes, (300, 1.5), quick=quick)
        rows += together(
            "batuta up --one-process", ["--one-process"], env, Path(inside), notes, (130, 1.5), quick=quick
        )
    table = markdown([["what", "target", "measured", ""], *(row.cells() for row in rows)])
    return "\n".join([table, "", *notes])


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a production installation on SQLite, without this shell's own settings."""
    port = free_port()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG", "TZ", "PYTHONPATH")}
    return {
        **kept,
        "APP_ENV": "production",
        "DATABASE_URL": f"sqlite:///{folder}/julia.db",
        "PORT": str(port),
        "JULIA_API_URL": f"http://127.0.0.1:{port}",
        "API_TOKEN": "t" * 32,
        "SECRET_KEY": "k" * 32,
        "SUPABASE_PROJECT_REF": "bench",
        "LOG_FORMAT": "json",
    }


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def batuta(env: Mapping[str, str], *words: str) -> None:
    subprocess.run([sys.executable, "-m", "batuta", *words], env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def command(name: str, bound: float, words: Sequence[str], env: Mapping[str, str], *, quick: bool) -> Row:
    took = [processor_time(words, env) for _ in range(QUICK_REPEATS if quick else REPEATS)]
    shown = f"{median(took):.2f} ({min(took):.2f}–{max(took):.2f})"
    return Row(f"{name}, processor time", bound, median(took), shown, "s")


def processor_time(words: Sequence[str], env: Mapping[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def together(
    name: str,
    words: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    notes: list[str],
    bounds: tuple[float, float],
    *,
    quick: bool,
) -> list[Row]:
    """Start Julia twice. Measure the second start, and the memory and processor time of the processes while they are
    idle.
    """
    with started(words, env, folder):
        pass
    with started(words, env, folder) as running:
        time.sleep(QUICK_SETTLES if quick else SETTLES)
        pids = running.pids()
        before, began = [cpu_seconds(pid) for pid in pids], time.monotonic()
        time.sleep(QUICK_IDLE if quick else IDLE)
        spent = sum(cpu_seconds(pid) for pid in pids) - sum(before)
        idle = 100 * spent / (time.monotonic() - began)
        memory = {pid: memory_of(pid) for pid in pids}
    rss, pss = (sum(each[kind] for each in memory.values()) for kind in ("Rss", "Pss"))
    memory_bound, idle_bound = bounds
    count = f"{len(pids)} processes" if len(pids) > 1 else "one process"
    notes.append(
        f"{name}: ready after {running.wall:.1f} s and {running.processor:.1f} s of processor time{running.parts}"
    )
    rows = [
        Row(f"{name}, second start: wall-clock time until ready", 2.5, running.wall, f"{running.wall:.1f}", "s"),
        Row(f"{name}, {count}, PSS", memory_bound, pss, f"{pss:.0f} (RSS {rss:.0f})", "MB"),
        Row(f"{name}, idle, of one core", idle_bound, idle, f"{idle:.1f}", "%"),
    ]
    if len(pids) > 1:
        parent = memory[pids[0]]
        rows.append(
            Row(f"{name}, the parent, PSS", 30, parent["Pss"], f"{parent['Pss']:.0f} (RSS {parent['Rss']:.0f})", "MB")
        )
    return rows


@dataclass(slots=True)
class Running:
    process: subprocess.Popen[bytes]
    wall: float = 0.0
    processor: float = 0.0
    parts: str = ""

    def pids(self) -> list[int]:
        """Return the ids of the process and of its children that run Python. The helper that kills orphans is a shell,
        so its id is not returned.
        """
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        python = [int(pid) for pid in children if b"batuta\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return [self.process.pid, *python]


@contextmanager
def started(words: Sequence[str], env: Mapping[str, str], folder: Path) -> Iterator[Running]:
    log, began = folder / "log", time.monotonic()
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "batuta", "up", *words],
            env=dict(env),
            cwd=ROOT,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    running = Running(process)
    is_ready = answers(env["PORT"]) if words else (lambda: bool(logged(log, r"up: http")))
    try:
        while not is_ready():
            if process.poll() is not None or time.monotonic() - began > READY_WITHIN:
                raise TimeoutError(f"batuta up did not become ready: {log.read_text()[-500:]}")
            time.sleep(0.02)
        running.wall = time.monotonic() - began
        running.processor = sum(cpu_seconds(pid) for pid in running.pids())
        ready = logged(log, r"child \S+ ready")
        parts = ", ".join(f"{each['role']} {each['took']}" for each in ready)
        running.parts = f"; each child from its start: {parts}" if parts else ""
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(READY_WITHIN)


def answers(port: str) -> Callable[[], bool]:
    def ask() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    return ask


def logged(log: Path, event: str) -> list[dict[str, str]]:
    """Return the complete log lines whose event begins with this pattern."""
    finished, _, _ = log.read_text().rpartition("\n")
    lines = [json.loads(line) for line in finished.splitlines() if line.startswith("{")]
    return [each for each in lines if re.match(event, each["event"])]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> dict[str, float]:
    lines = (line.split() for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])
    return {name.rstrip(":"): int(size) / MEGABYTE for name, size, *_ in lines}
