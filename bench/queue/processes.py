"""Child processes that end together with this process, and the processor time that they use."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from batuta.processes.tree import die_with_parent

TICK = 1 / os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
LONGEST = 120.0
TO_END = 15.0


class ContenderFailed(Exception):
    """Raised if a contender exited, never started or took too long. The message ends with the contender's last
    output.
    """


class Processes:
    """Child processes of one ``with`` block. The end of the block stops all of them, even after an error."""

    def __init__(self, folder: Path) -> None:
        self._errors = folder / "stderr"
        self._running: list[subprocess.Popen[bytes]] = []

    def start(self, command: Sequence[str | Path], env: Mapping[str, str], cwd: Path) -> subprocess.Popen[bytes]:
        us = os.getpid()
        with self._errors.open("ab") as errors:
            process = subprocess.Popen(
                list(map(str, command)),
                env={**os.environ, **env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                preexec_fn=lambda: die_with_parent(us),
            )
        self._running.append(process)
        return process

    def answer(self, command: Sequence[str | Path], env: Mapping[str, str], cwd: Path) -> str:
        """Run a command until it exits, and return its output."""
        us = os.getpid()
        try:
            done = subprocess.run(
                list(map(str, command)),
                env={**os.environ, **env},
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=LONGEST,
                preexec_fn=lambda: die_with_parent(us),
            )
        except subprocess.TimeoutExpired:
            raise ContenderFailed(f"it did not end within {LONGEST:.0f} s") from None
        if done.returncode != 0:
            raise ContenderFailed(last_line(done.stderr))
        return done.stdout.decode()

    def wait_for(self, is_so: Callable[[], bool], what: str, longest: float = LONGEST, every: float = 0.004) -> None:
        ends = time.monotonic() + longest
        while not is_so():
            if any(process.poll() is not None for process in self._running):
                raise ContenderFailed(f"a worker ended: {last_line(self._errors.read_bytes())}")
            if time.monotonic() > ends:
                raise ContenderFailed(f"did not happen within {longest:.0f} s: {what}")
            time.sleep(every)

    def stop(self) -> None:
        for process in self._running:
            process.send_signal(signal.SIGTERM)
        for process in self._running:
            try:
                process.wait(TO_END)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:  # the remaining output is not needed
            for process in self._running:
                process.kill()
        self.stop()


def last_line(said: bytes) -> str:
    lines = said.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"


def cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process, including all its threads."""
    return sum(_times(pid)[:2]) * TICK


def tree_cpu_seconds(pid: int) -> float:
    """Return the processor seconds of a process, its children, and their finished children."""
    return sum(_times(pid)) * TICK + sum(cpu_seconds(child) for child in children(pid))


def children(pid: int) -> list[int]:
    return [int(child) for task in _tasks(pid) for child in (task / "children").read_text().split()]


def megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE / 1e6


def _tasks(pid: int) -> list[Path]:
    return list(Path(f"/proc/{pid}/task").iterdir())


def _times(pid: int) -> list[int]:
    """Return utime, stime, cutime and cstime of a process from ``/proc``. The process name, which precedes these
    values, may contain spaces and brackets.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return [0, 0, 0, 0]  # the process has ended, and the times of its parent include its times
    return [int(field) for field in stat.rpartition(")")[2].split()[11:15]]
