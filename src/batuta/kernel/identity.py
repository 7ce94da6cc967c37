"""The identity of a process, and the proof that a process has ended.

A lease owner is ``host:pid:started:place:random``. ``started`` is the process's start time according to the kernel
(clock ticks since boot). ``place`` is a digest of the boot id, the pid namespace and the time namespace. If the kernel
does not provide these values (as on macOS, or with a ``/proc`` from another pid namespace), ``started`` and ``place``
are ``-``.

A process can prove that another process is dead only if both have the same host and place. The proof comes from the
kernel's process table and is one of three facts: no process has the pid, the process with the pid has another start
time, or the process with the pid is a zombie without other threads. In every other case the verdict is unknown, and the
process's work is recovered after its lease expires. The proof needs no wall clock.
"""

import hashlib
import os
import socket
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Protocol, Self

from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass

PROC = Path("/proc")
UNKNOWN = "-"
_ENDED = frozenset("ZXx")  # zombie and dead, as in proc(5)
# Fields 3, 20 and 22 of /proc/PID/stat, counted from the first field after the program's name.
_STATE, _THREADS, _STARTED = 0, 17, 19


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
        """Parse the text of a process identity or a lease owner. Return None if the text is neither."""
        parts = text.split(":")
        if len(parts) not in (4, 5) or not parts[1].isdecimal():
            return None
        host, pid, started, place, *_ = parts
        return cls(host, int(pid), started, place)

    @property
    def is_provable(self) -> bool:
        """Whether other processes can prove that this process has ended. False if the kernel did not provide the start
        time and the namespaces.
        """
        return UNKNOWN not in (self.started, self.place)

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}:{self.started}:{self.place}"


@dataclass(frozen=True, slots=True)
class OsProcess:
    pid: int
    state: str
    threads: int
    started: str

    @classmethod
    def parse(cls, stat: str) -> Self:
        """Parse the content of ``/proc/PID/stat``. The program's name in it may contain spaces and parentheses."""
        fields = stat.rpartition(")")[2].split()
        return cls(int(stat.split(" ", 1)[0]), fields[_STATE], int(fields[_THREADS]), fields[_STARTED])


class Processes(Protocol):
    """Access to this kernel's process table, as far as this process's permissions allow."""

    def status(self, pid: int) -> OsProcess | None:
        """Return the status of a process, or None if it is not visible. Raises OSError if the status cannot be read."""

    def has(self, pid: int) -> bool:
        """Return whether any process has this pid, including processes that this process may not inspect."""


class ProcFiles:
    def status(self, pid: int) -> OsProcess | None:
        try:
            return OsProcess.parse((PROC / str(pid) / "stat").read_text(errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            return None

    def has(self, pid: int) -> bool:
        return has_process(pid)


def has_process(pid: int) -> bool:
    """Return whether any process on this host has this pid."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # The process belongs to another user, so the hidepid option of /proc may hide it from ``status``.
    return True


def verdict(process: ProcessIdentity, here: ProcessIdentity, processes: Processes) -> Verdict:
    """Return whether ``process`` is alive or dead, or UNKNOWN if neither can be proven. ``here`` is the identity of the
    calling process.
    """
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
        # The main thread can end before the other threads, and then the process still works.
        return Verdict.DEAD if status.threads <= 1 else Verdict.UNKNOWN
    return Verdict.ALIVE


def identity() -> ProcessIdentity:
    return _identity(os.getpid())


def make_owner(ids: Ids) -> str:
    """Create the text that names this process as the owner of leases. The text is unique, even if a later process has
    the same host and pid.
    """
    return f"{identity()}:{ids.new()}"


def has_ended(owner: str) -> bool:
    """Return whether a lease owner's process has provably ended. False means that the process is alive or that its
    state is unknown.
    """
    process = ProcessIdentity.parse(owner)
    return process is not None and verdict(process, identity(), ProcFiles()) is Verdict.DEAD


def short(owner: str) -> str:
    """Return the host and pid of a lease owner, for display."""
    return ":".join(owner.split(":")[:2])


@cache
def _identity(pid: int) -> ProcessIdentity:
    host = socket.gethostname().replace(":", UNKNOWN).replace("/", UNKNOWN) or "localhost"
    try:
        status = OsProcess.parse((PROC / "self" / "stat").read_text(errors="replace"))
        kernel = (PROC / "sys/kernel/random/boot_id").read_text().strip(), _namespace("pid"), _time_namespace()
    except (OSError, ValueError, IndexError):
        return ProcessIdentity(host, pid, UNKNOWN, UNKNOWN)
    if status.pid != pid:  # This /proc belongs to another pid namespace, in which the pid denotes a different process.
        return ProcessIdentity(host, pid, UNKNOWN, UNKNOWN)
    return ProcessIdentity(host, pid, status.started, hashlib.sha256(repr(kernel).encode()).hexdigest()[:16])


def _namespace(kind: str) -> str:
    return str((PROC / "self" / "ns" / kind).readlink())


def _time_namespace() -> str:
    """Return the id of the time namespace to which the kernel's start times refer, or ``-`` if the kernel has no time
    namespaces.
    """
    try:
        return _namespace("time")
    except FileNotFoundError:
        return UNKNOWN
