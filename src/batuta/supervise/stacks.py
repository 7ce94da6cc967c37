"""Stacks of stuck code as text. They contain file names, line numbers and function names, but no values.

Python code can inspect running threads and waiting tasks. If a thread holds the interpreter lock, only Python's fault
handler (written in C) can write a stack. The fault handler writes into a file that the process opened when it started.
The process's parent, or the next process on this machine, reads that file.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import stat
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TextIO

from batuta.kernel.identity import has_process
from batuta.kernel.values import dataclass

_NAME = re.compile(r"^(?P<role>[\w.-]+)-(?P<pid>\d+)\.stack$")


def task_stack(task: "asyncio.Task[Any]") -> str:
    """Return the stacks of a task's nested coroutines, innermost last. (``Task.get_stack`` returns only the outermost
    coroutine.)
    """
    lines = [f"task {task.get_name()}:\n"]
    for frame in _frames(task.get_coro()):
        lines += traceback.format_stack(frame, limit=1)
    return "".join(lines)


def _frames(waiting: Any) -> Iterator[FrameType]:
    for _ in range(100):  # bounded, because a cycle of coroutines would never end and no real stack is this deep
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
    """Return the current stack of a thread."""
    frame = sys._current_frames().get(ident)
    return "the thread has ended\n" if frame is None else "".join(traceback.format_stack(frame))


def process_stacks(home: asyncio.AbstractEventLoop, main: int) -> str:
    """Return a process's stacks: the stack of its main thread, of the tasks on its event loop, and of its other
    threads.
    """
    tasks = sorted(asyncio.all_tasks(home), key=lambda task: task.get_name())
    others = [(ident, name) for ident, name in _threads() if ident != main]
    parts = [f"main thread:\n{thread_stack(main)}", *map(task_stack, tasks)]
    return "\n".join([*parts, *(f"thread {name}:\n{thread_stack(ident)}" for ident, name in others)])


def stack_of_task(dump: str, name: str) -> str | None:
    """Return the section of a stack dump that shows the asyncio task with this name, or None if there is no such
    section.
    """
    found = re.search(rf"^task {re.escape(name)}:\n(?:[ ]+.*\n?)*", dump, re.MULTILINE)
    return None if found is None else found[0]


def _threads() -> list[tuple[int, str]]:
    return [(each.ident, each.name) for each in threading.enumerate() if each.ident is not None]


NOT_WORTH_KEEPING = "Extension modules: "


def main_thread_first(dump: str) -> str:
    """Return the stack dump with the main thread's stack moved to the top. Python's fault handler writes this stack
    last, so it might be lost if the dump is truncated.
    """
    reason, _, rest = dump.partition("\n")
    parts = [part.strip("\n") for part in rest.split("\n\n")]
    threads = [part for part in parts if part.strip() and not part.startswith(NOT_WORTH_KEEPING)]
    return "\n\n".join(["\n".join([reason, *threads[-1:]]), *threads[:-1]])


class Left(NamedTuple):
    """An ended process's stack, read from its file."""

    role: str
    pid: int
    stack: str


@dataclass(frozen=True, slots=True)
class StackFolder:
    """A folder with one stack file per process, readable only by its owner."""

    folder: Path

    @classmethod
    def for_database(cls, where: str) -> "StackFolder":
        """Return the folder for the database at the address ``where``. Processes that use a different database have a
        different folder.
        """
        return cls(temporary_folder() / f"batuta-{os.getuid()}-{hashlib.sha256(where.encode()).hexdigest()[:12]}")

    def open(self, role: str, pid: int) -> TextIO:
        """Open the file into which this process dumps its stacks. Raise OSError if the file cannot be created."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._require_own()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        return os.fdopen(os.open(self._file(role, pid), flags, 0o600), "w", encoding="utf-8")

    def take(self, role: str, pid: int) -> str | None:
        """Read a process's stack file and delete it. Return None if there is no such file, or if another process read
        it first.
        """
        file = self._file(role, pid)
        taken = file.with_suffix(f".taken-by-{os.getpid()}")
        try:
            self._require_own()
            file.rename(taken)
            try:
                with os.fdopen(os.open(taken, os.O_RDONLY | os.O_NOFOLLOW), encoding="utf-8", errors="replace") as dump:
                    stack = dump.read()
            finally:
                taken.unlink()
        except OSError:
            return None
        return main_thread_first(stack) or None

    def tidy(self) -> None:
        """Remove the folder of stack files if it is empty."""
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def list_orphaned(self, role: str) -> list[Left]:
        """Return the stacks of ended processes with this role that no other process has read yet. Delete the files of
        these stacks.
        """
        found = []
        for file in sorted(self.folder.glob("*.stack")):
            if (match := _NAME.match(file.name)) is None or match["role"] != role:
                continue
            pid = int(match["pid"])
            if pid != os.getpid() and not has_process(pid) and (stack := self.take(role, pid)) is not None:
                found.append(Left(role, pid, stack))
        return found

    def _require_own(self) -> None:
        """Raise PermissionError unless the folder of stack files belongs to this user and no other user may write to
        it.
        """
        seen = self.folder.lstat()
        if not stat.S_ISDIR(seen.st_mode) or seen.st_uid != os.getuid() or seen.st_mode & 0o022:
            raise PermissionError(f"{self.folder} belongs to another user")

    def _file(self, role: str, pid: int) -> Path:
        return self.folder / f"{role}-{pid}.stack"


def temporary_folder() -> Path:
    """Return the folder for temporary files. If there is no writable folder, return a path anyway; opening a file in it
    then fails.
    """
    try:
        return Path(tempfile.gettempdir())
    except OSError:
        return Path("/tmp")  # noqa: S108 - no folder is writable, so nothing is written there
