"""Stacks of stuck code as text: files, lines and names, never values.

Running threads and waiting tasks can be inspected. Of a process whose interpreter is held, only the C part of Python
can still write: into a file that was opened before, which the parent or the next process on this machine reads.
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
    """Every coroutine the task is inside of, the innermost last. A task's own list ends at the first one that waits."""
    lines = [f"task {task.get_name()}:\n"]
    for frame in _frames(task.get_coro()):
        lines += traceback.format_stack(frame, limit=1)
    return "".join(lines)


def _frames(waiting: Any) -> Iterator[FrameType]:
    for _ in range(100):  # no real stack is that deep, and a cycle of coroutines has no end
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
    """Current stack of a thread."""
    frame = sys._current_frames().get(ident)
    return "the thread has ended\n" if frame is None else "".join(traceback.format_stack(frame))


NOT_WORTH_KEEPING = "Extension modules: "


def main_thread_first(dump: str) -> str:
    """Move the main thread to the top: Python's fault handler writes it last, and a cut must not lose it."""
    reason, _, rest = dump.partition("\n")
    parts = [part.strip("\n") for part in rest.split("\n\n")]
    threads = [part for part in parts if part.strip() and not part.startswith(NOT_WORTH_KEEPING)]
    return "\n\n".join(["\n".join([reason, *threads[-1:]]), *threads[:-1]])


def main_thread_alone(dump: str) -> str:
    """Return the reason and the main thread's stack: the first paragraph of a dump that ``main_thread_first``
    reordered.
    """
    return dump.partition("\n\n")[0]


class Left(NamedTuple):
    """Stack and reason left behind by an ended process."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class StackFolder:
    """One file for each process, readable by its owner alone."""

    folder: Path

    @classmethod
    def for_database(cls, where: str) -> "StackFolder":
        """``where``: the address of the database. Processes on another database use another folder."""
        return cls(temporary_folder() / f"batuta-{os.getuid()}-{hashlib.sha256(where.encode()).hexdigest()[:12]}")

    def open(self, role: str, pid: int) -> TextIO:
        """Open the file that this process dumps into. OSError: it cannot be created."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        if self.folder.lstat().st_uid != os.getuid():
            raise PermissionError(f"{self.folder} belongs to another user")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.fdopen(os.open(self._file(role, pid), flags, 0o600), "w", encoding="utf-8")

    def take(self, role: str, pid: int) -> str | None:
        """Take the stack of a process, once. None: there is none, or another process took it."""
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
        """Remove the folder if it is empty."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def list_orphaned(self, role: str) -> list[Left]:
        """Stacks of ended processes of this role that no process has taken."""
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
    """Folder for stacks. If nothing can be written (full disks, a read-only container) there are no stacks, and
    everything else works.
    """
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path("/tmp")  # noqa: S108 - nothing is written there: it cannot be
