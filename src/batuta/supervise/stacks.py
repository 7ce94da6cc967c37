"""Where somebody is stuck, as text: files, lines and names, never values.

A thread that runs and a task that waits can be asked. Of a process that holds its interpreter only the C part of Python can
still tell: it writes into a file that was opened before, and whoever comes next (the parent, or the next process on this
machine) finds it there.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import sys
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TextIO

from batuta.kernel.identity import has_process

_NAME = re.compile(r"^(?P<role>[\w.-]+)-(?P<pid>\d+)\.stack$")


def task_stack(task: "asyncio.Task[Any]") -> str:
    """Every coroutine it is inside of, the innermost last. A task's own list ends at the first one that waits."""
    lines = [f"task {task.get_name()}:\n"]
    for frame in _frames(task.get_coro()):
        lines += traceback.format_stack(frame, limit=1)
    return "".join(lines)


def _frames(waiting: Any) -> Iterator[FrameType]:
    for _ in range(100):  # nobody waits that deep; and a ring of coroutines has no end
        frame = (
            getattr(waiting, "cr_frame", None)
            or getattr(waiting, "gi_frame", None)
            or getattr(waiting, "ag_frame", None)
        )
        if frame is None:
            return
        yield frame
        waiting = (
            getattr(waiting, "cr_await", None)
            or getattr(waiting, "gi_yieldfrom", None)
            or getattr(waiting, "ag_await", None)
        )


def thread_stack(ident: int) -> str:
    """What a thread does at this moment."""
    frame = sys._current_frames().get(ident)
    return "the thread has ended\n" if frame is None else "".join(traceback.format_stack(frame))


NOT_WORTH_KEEPING = "Extension modules: "


def main_thread_first(dump: str) -> str:
    """Python's fault handler tells the main thread last; whoever cuts a long text should not lose it."""
    reason, _, rest = dump.partition("\n")
    parts = [part.strip("\n") for part in rest.split("\n\n")]
    threads = [part for part in parts if part.strip() and not part.startswith(NOT_WORTH_KEEPING)]
    return "\n\n".join(["\n".join([reason, *threads[-1:]]), *threads[:-1]])


def main_thread_alone(dump: str) -> str:
    """Of one that was put in order: the reason, and where the main thread was."""
    return dump.partition("\n\n")[0]


class Left(NamedTuple):
    """What a process that ended left behind."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class StackFolder:
    """One file for each process, readable by its owner alone."""

    folder: Path

    @classmethod
    def for_database(cls, where: str) -> "StackFolder":
        """``where``: the database's address. Processes on another one have nothing to do with ours."""
        return cls(temporary_folder() / f"batuta-{os.getuid()}-{hashlib.sha256(where.encode()).hexdigest()[:12]}")

    def open(self, role: str, pid: int) -> TextIO:
        """For this process to dump into. OSError: there is no place for it."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.folder.lstat().st_uid != os.getuid():
            raise PermissionError(f"{self.folder} belongs to somebody else")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.fdopen(os.open(self._file(role, pid), flags, 0o600), "w", encoding="utf-8")

    def take(self, role: str, pid: int) -> str | None:
        """What it left, once: the first who asks has it. None: nothing, or somebody else has it."""
        file = self._file(role, pid)
        taken = file.with_suffix(f".taken-by-{os.getpid()}")
        try:
            file.rename(taken)
            stack = taken.read_text(encoding="utf-8", errors="replace")
            taken.unlink()
        except OSError:
            return None
        return main_thread_first(stack) or None

    def tidy(self) -> None:
        """The folder goes with the last who had something in it."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def list_orphaned(self, role: str) -> list[Left]:
        """What processes of this role that are no more left, and nobody has taken."""
        found = []
        for file in sorted(self.folder.glob("*.stack")):
            if (match := _NAME.match(file.name)) is None or match["role"] != role:
                continue
            pid = int(match["pid"])
            if pid != os.getpid() and not has_process(pid) and (stack := self.take(role, pid)) is not None:
                found.append(Left(role, pid, stack))
        return found

    def _file(self, role: str, pid: int) -> Path:
        return self.folder / f"{role}-{pid}.stack"


def temporary_folder() -> Path:
    """Where nothing can be written (all disks full, a container that only reads) there are no stacks, and everything else."""
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path("/tmp")  # noqa: S108 - nothing is written there: it cannot be
