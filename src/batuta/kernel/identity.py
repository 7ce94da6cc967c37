"""The identity of a process, and the proof that it has ended.

A lease owner is ``host:pid:started:place:random``. ``started`` is the start time that the kernel gives the process (clock ticks
since boot), ``place`` a digest of the boot id, the pid namespace and the time namespace. Where the kernel does not tell (macOS, a
``/proc`` of another pid namespace), both are ``-``.

A process is proven dead only by a process of the same host and place, and only if the kernel says so: no process has its pid, the
pid belongs to a process with another start time, or it is a zombie without other threads. Everything else is unknown, and then the
lease decides. No wall clock is involved.
"""

import hashlib
import os
import socket
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Protocol, Self

from batuta.kernel.ids import Ids

PROC = Path("/proc")
UNKNOWN = "-"
_ENDED = frozenset("ZXx")  # proc(5): zombie, dead
_STATE, _THREADS, _STARTED = 0, 17, 19  # fields 3, 20 and 22 of /proc/PID/stat, counted behind the name of the program


class Verdict(StrEnum):
    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    host: str
    pid: int
    started: str
    place: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse an identity from its text or from a lease owner. None: it is neither."""
        parts = text.split(":")
        if len(parts) not in (4, 5) or not parts[1].isdecimal():
            return None
        host, pid, started, place, *_ = parts
        return cls(host, int(pid), started, place)

    @property
    def is_provable(self) -> bool:
        """False: its end cannot be proven."""
        return UNKNOWN not in (self.started, self.place)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.started}:{self.place}"


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    pid: int
    state: str
    threads: int
    started: str

    @classmethod
    def parse(cls, stat: str) -> Self:
        """``/proc/PID/stat``; the program's name may hold spaces and parentheses."""
        fields = stat.rpartition(")")[2].split()
        return cls(int(stat.split(" ", 1)[0]), fields[_STATE], int(fields[_THREADS]), fields[_STARTED])


class Processes(Protocol):
    """The processes of this kernel, as this process may see them."""

    def status(self, pid: int) -> ProcessStatus | None:
        """Status of a process; None: not visible. OSError: it cannot be read."""
        ...

    def has(self, pid: int) -> bool:
        """Whether any process has this pid, visible or not."""
        ...


class ProcFiles:
    def status(self, pid: int) -> ProcessStatus | None:
        try:
            return ProcessStatus.parse((PROC / str(pid) / "stat").read_text(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            return None

    def has(self, pid: int) -> bool:
        return has_process(pid)


def has_process(pid: int) -> bool:
    """Whether any process of this host has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's process, which the hidepid option of /proc may hide
    return True


def verdict(process: ProcessIdentity, here: ProcessIdentity, processes: Processes) -> Verdict:
    """``here``: the process that asks."""
    if not process.is_provable or (process.host, process.place) != (here.host, here.place):
        return Verdict.UNKNOWN
    try:
        status = processes.status(process.pid)
    except (OSError, ValueError, IndexError):
        return Verdict.UNKNOWN
    if status is None:
        return Verdict.UNKNOWN if processes.has(process.pid) else Verdict.DEAD
    if status.started != process.started:
        return Verdict.DEAD
    if status.state in _ENDED:
        # The main thread may end before the others do: then the process still works.
        return Verdict.DEAD if status.threads <= 1 else Verdict.UNKNOWN
    return Verdict.ALIVE


def identity() -> ProcessIdentity:
    """Identity of this process."""
    return _identity(os.getpid())


def make_owner(ids: Ids) -> str:
    """Make a new lease owner of this process, unique even after a restart under the same name."""
    return f"{identity()}:{ids.new()}"


def short(owner: str) -> str:
    """Host and pid, for operators."""
    return ":".join(owner.split(":")[:2])


@cache
def _identity(pid: int) -> ProcessIdentity:
    host = socket.gethostname().replace(":", UNKNOWN).replace("/", UNKNOWN) or "localhost"
    try:
        status = ProcessStatus.parse((PROC / "self" / "stat").read_text(errors="replace"))
        kernel = (PROC / "sys/kernel/random/boot_id").read_text().strip(), _namespace("pid"), _time_namespace()
    except (OSError, ValueError, IndexError):
        return ProcessIdentity(host, pid, UNKNOWN, UNKNOWN)
    if status.pid != pid:  # this /proc belongs to another pid namespace: its numbers mean other processes
        return ProcessIdentity(host, pid, UNKNOWN, UNKNOWN)
    return ProcessIdentity(host, pid, status.started, hashlib.sha256(repr(kernel).encode()).hexdigest()[:16])


def _namespace(kind: str) -> str:
    return str((PROC / "self" / "ns" / kind).readlink())


def _time_namespace() -> str:
    """Start times are counted by the clock of the reader's time namespace. Older kernels have none."""
    try:
        return _namespace("time")
    except FileNotFoundError:
        return UNKNOWN
