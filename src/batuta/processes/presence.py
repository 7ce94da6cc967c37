"""Presence files show which lease owners are running on this host, so that other processes can find out without a
database statement.

Each lease owner has one empty file, named after the owner, in a folder for this user and this database. The file name
identifies the process, and the kernel reports whether that process has ended (``kernel.identity``). If the folder
cannot be used, the work of a dead process is recovered when its leases expire.

    presence file of a dead process ──▶ recover its leases, now and after 0.5, 1.5, 3.5 and 7.5 s ──▶ delete it at 60 s

``CrashWatch`` recovers several times, because the database may execute a statement from the process after the process
has ended, and recovery skips locked rows. The file stays for a minute, because each role recovers its own kind of
leases.
"""

import asyncio
import contextlib
import hashlib
import math
import os
import select
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias

from batuta.kernel.clock import Clock
from batuta.kernel.identity import ProcessIdentity, ProcFiles, Verdict, identity, verdict
from batuta.kernel.values import dataclass
from batuta.supervise.loop import FOR_EVER, Idle, Loop, LoopPolicy, Pace, Wakeup
from batuta.supervise.stacks import temporary_folder

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder below it must belong to this user, which is checked
PRESENCE_POLICY = LoopPolicy(
    every=timedelta(seconds=30),
    stuck_after=timedelta(minutes=1),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    outlives=True,  # leases are held until the other loops have drained, so this loop must end after them
)
Judge = Callable[[ProcessIdentity], Verdict]


class LocalJudge:
    """Judges whether processes on this host are alive. It keeps a process descriptor (pidfd) for each living process,
    so that the next check is a single system call.
    """

    def __init__(self) -> None:
        self._living: dict[ProcessIdentity, int] = {}

    def __call__(self, process: ProcessIdentity) -> Verdict:
        if (descriptor := self._living.get(process)) is not None:
            if not _has_ended(descriptor):
                return Verdict.ALIVE
            os.close(self._living.pop(process))
        # Open the descriptor first: if the pid is reused before the check, the start time reveals it.
        descriptor = _descriptor(process.pid)
        found = verdict(process, identity(), ProcFiles())
        if descriptor is not None:
            self._keep(process, descriptor) if found is Verdict.ALIVE else os.close(descriptor)
        return found

    def _keep(self, process: ProcessIdentity, descriptor: int) -> None:
        for ended in [each for each, known in self._living.items() if _has_ended(known)]:
            os.close(self._living.pop(ended))
        self._living[process] = descriptor

    def __del__(self) -> None:
        while self._living:
            os.close(self._living.popitem()[1])


def _descriptor(pid: int) -> int | None:
    """Return a descriptor of the process. Return None if the process has ended, or if the operating system does not
    support process descriptors.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _has_ended(descriptor: int) -> bool:
    """Return whether the process behind a descriptor has ended, including all its threads."""
    asking = select.poll()
    asking.register(descriptor, select.POLLIN)
    return bool(asking.poll(0))


class PresenceFolder:
    def __init__(self, folder: Path, judge: Judge | None = None) -> None:
        self.folder = folder
        self._judge = judge or LocalJudge()
        self._announced: set[str] = set()

    @classmethod
    def for_database(cls, where: str) -> "PresenceFolder":
        """Return the folder for the database at ``where``. The folder is in /dev/shm if possible, because services with
        a private /tmp still share /dev/shm.
        """
        place = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else temporary_folder()
        return cls(place / f"batuta-{os.getuid()}-{hashlib.sha256(where.encode()).hexdigest()[:12]}-owners")

    def is_usable(self) -> bool:
        try:
            return self._is_ours(make=True) and os.access(self.folder, os.W_OK | os.X_OK)
        except OSError:
            return False
        finally:
            self._remove_if_empty()

    def announce(self, owner: str) -> None:
        """Write the presence file of ``owner``. Call this method repeatedly, because a program that cleans temporary
        folders may remove the file.
        """
        process = ProcessIdentity.parse(owner)
        if process is None or not process.is_provable:
            return
        self._announced.add(owner)
        file = self.folder / owner
        with contextlib.suppress(OSError):
            if not file.exists() and self._is_ours(make=True):
                file.touch(mode=0o600)

    def withdraw(self, owner: str) -> None:
        """Remove the file of an owner that no longer holds leases. If this was the last file in the folder, remove the
        folder too.
        """
        if owner in self._announced:
            self._announced.remove(owner)
            self.forget(owner)

    def forget(self, owner: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / owner).unlink(missing_ok=True)
        self._remove_if_empty()

    @contextmanager
    def present(self, owner: str) -> Iterator[None]:
        self.announce(owner)
        try:
            yield
        finally:
            self.withdraw(owner)

    def dead(self) -> list[str]:
        """Return the announced owners whose processes have ended, as confirmed by the operating system."""
        return [owner for owner, process in self._others() if self._judge(process) is Verdict.DEAD]

    def _others(self) -> Iterator[tuple[str, ProcessIdentity]]:
        try:
            names = os.listdir(self.folder) if self._is_ours() else []  # noqa: PTH208 - twice a second: Path is slower
        except OSError:
            return
        for name in sorted(names):
            process = ProcessIdentity.parse(name)
            if process is not None and name not in self._announced:
                yield name, process

    def _is_ours(self, *, make: bool = False) -> bool:
        if make:
            self.folder.mkdir(mode=0o700, exist_ok=True)
        return self.folder.lstat().st_uid == os.getuid()

    def _remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()


@dataclass(eq=False)
class Announcement:
    """Loop that maintains the presence file of a lease owner until the process has released its leases."""

    name = "presence"
    folder: PresenceFolder
    owner: str
    wakeup: Wakeup = field(default_factory=Wakeup)

    async def tick(self) -> Pace:
        self.folder.announce(self.owner)
        return Idle()

    async def drain(self, grace: timedelta) -> None:
        self.folder.withdraw(self.owner)


LOOK_EVERY = timedelta(milliseconds=500)
CRASH_WATCH_POLICY = LoopPolicy(
    every=LOOK_EVERY,
    stuck_after=timedelta(minutes=1),
    max_failures=FOR_EVER,
    max_restarts=FOR_EVER,
    backoff=LOOK_EVERY,
    backoff_cap=timedelta(seconds=2),
)
MOST_BATCHES = 200  # maximum calls of one recovery function in a row
RECOVERY_WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds between two recoveries of one owner
CRASH_FILE_RETENTION = 60.0  # seconds from the discovery of a crash to the removal of the file

# Function that recovers a limited number of the owners' items or runs and returns that number.
Recover: TypeAlias = Callable[[Collection[str]], Awaitable[int]]


@dataclass(slots=True)
class Crash:
    found_at: float
    due_at: float
    recoveries: int = 0

    def record_recovery(self, now: float) -> None:
        self.due_at = now + RECOVERY_WAITS[self.recoveries] if self.recoveries < len(RECOVERY_WAITS) else math.inf
        self.recoveries += 1


class CrashWatch:
    """Loop that finds ended processes on this host that held leases, and recovers their work."""

    name = "crash-watch"

    def __init__(self, presence: PresenceFolder, recover: Iterable[Recover], clock: Clock) -> None:
        self.wakeup = Wakeup()
        self._presence = presence
        self._recover = tuple(recover)
        self._clock = clock
        self._crashes: dict[str, Crash] = {}

    async def tick(self) -> Pace:
        now = self._clock.monotonic()
        self._crashes = {owner: self._crashes.get(owner) or Crash(now, now) for owner in self._presence.dead()}
        due = [owner for owner, crash in self._crashes.items() if crash.due_at <= now]
        if due:
            # Recover all tables concurrently, so that a locked table delays no other recovery.
            results = await asyncio.gather(
                *(_take_up(due, recover) for recover in self._recover), return_exceptions=True
            )
            for result in results:
                if isinstance(result, BaseException):
                    raise result
            for owner in due:
                self._crashes[owner].record_recovery(self._clock.monotonic())
        for owner, crash in self._crashes.items():
            if crash.recoveries > len(RECOVERY_WAITS) and now - crash.found_at >= CRASH_FILE_RETENTION:
                self._presence.forget(owner)
        return Idle()


async def _take_up(owners: Collection[str], recover: Recover) -> None:
    """Recover the work of lease owners whose processes are dead: call ``recover`` until no work is left, but at most
    MOST_BATCHES times.
    """
    for _ in range(MOST_BATCHES):
        if not await recover(owners):
            return


def crash_loops(
    presence: PresenceFolder, owner: str, recover: Iterable[Recover], clock: Clock, *, starts_work: bool = False
) -> Iterator[tuple[Loop, LoopPolicy]]:
    """Yield the loops of a process that holds leases as ``owner``: one announces the owner, the other recovers the work
    of crashed processes.

    Set ``starts_work`` if a recovery starts work in this process; a shutdown then waits until the current recovery has
    ended.
    """
    yield Announcement(presence, owner), PRESENCE_POLICY
    yield CrashWatch(presence, recover, clock), replace(CRASH_WATCH_POLICY, finishes_tick=starts_work)
