"""A process tree, started in the same way as a user starts it, and observed from outside."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.faults.forks import ForkedCommand
from tests.faults.waiting import TIMEOUT
from tests.servers import free_port

ROOT = Path(__file__).parents[2]
JULIA = "app.main:work"


def until(what: str, true: Callable[[], Any], within: float = TIMEOUT) -> Any:
    ends = time.monotonic() + within
    while time.monotonic() < ends:
        if found := true():
            return found
        time.sleep(0.05)
    raise AssertionError(f"{what}: not within {within} s")


class Tree:
    def __init__(self, folder: Path, *words: str, app: str = JULIA, **env: str) -> None:
        self.port = int(env.get("PORT", 0)) or free_port()
        self.log = folder / "log"
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("BATUTA_")},
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "PORT": str(self.port),
            "SIMULADOR_PORT": str(free_port()),
            "TELEGRAM_SIMULADOR_PORT": str(free_port()),
            "DATABASE_URL": f"sqlite:///{folder}/julia.db",
            "LOG_FORMAT": "json",
            **env,
        }
        self.process = self._begin(folder, "--app", app, *words)

    def _begin(self, folder: Path, *words: str) -> "subprocess.Popen[bytes] | ForkedCommand":
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "batuta", *words],
                cwd=folder, env=self.environment, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip

    def get(self, path: str) -> dict[str, Any] | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=2) as answer:
                found: dict[str, Any] = json.loads(answer.read())
                return found
        except (OSError, urllib.error.URLError):
            return None

    def is_up(self) -> bool:
        return self.get("/health") is not None

    def children(self) -> dict[str, int]:
        """Return the process id of each role, read from /proc. If a role has several processes, return the last one."""
        return {role: pids[-1] for role, pids in self.families().items()}

    def families(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            try:
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            except OSError:  # the process has just ended
                continue
            if "--child-of" in words:
                found.setdefault(words[words.index("--child-of") - 1], []).append(int(pid))
        return found

    def facts(self) -> list[dict[str, Any]]:
        """Parse every complete log line that is JSON."""
        finished, _, _ = self.log.read_text().rpartition("\n")
        return [json.loads(line) for line in finished.splitlines() if line.startswith("{")]

    def end(self, number: int = signal.SIGTERM) -> int | None:
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT)


class ForkedTree(Tree):
    """A process tree that is forked instead of started with a new interpreter. It is for tests that do not examine the
    start-up.
    """

    def _begin(self, folder: Path, *words: str) -> ForkedCommand:
        return ForkedCommand(folder, self.environment, *words)


@contextmanager
def tree(folder: Path, *words: str, app: str = JULIA, **env: str) -> Iterator[Tree]:
    with kept(Tree(folder, *words, app=app, **env)) as started:
        yield started


@contextmanager
def kept(started: Tree) -> Iterator[Tree]:
    """Yield the process, and kill it at the end of the block if it is still running."""
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait()


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
