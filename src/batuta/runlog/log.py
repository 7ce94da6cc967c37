"""The scheduler's interface to the execution log, and the timetables (jobs and schedules) of all releases that share a
database.

``open_due`` locks the jobs while it decides which of their fires run, so only one scheduler at a time makes this
decision for a job.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from batuta.guard.switches import Switch
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.kernel.values import dataclass
from batuta.runlog.execution import Ending, Execution, Opening, Registration
from batuta.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimetable:
    """Identifies this process's timetable (its jobs and their schedules in all profiles). ``fingerprint`` is a hash of
    the timetable, ``jobs`` is the number of jobs, and ``release`` is the deployment's name, if it has one.
    """

    fingerprint: str
    jobs: int
    release: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    fingerprint: str
    position: int  # position in deployment order; the highest is the newest
    jobs: int
    release: str | None
    first_seen_at: datetime
    renewals: int
    renewed_at: datetime
    renewed_by: str
    has_been_active: bool
    is_active: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """The profile and the windows that operators have set at run time. If ``profile`` is None, the code's first profile
    is active. A window that is missing in ``windows`` has the hours that the code declares.
    """

    profile: str | None = None
    windows: Mapping[str, Window] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The state of the jobs that the caller asked for, as read from the database at the instant ``now``."""

    now: datetime
    controls: Controls
    # Maps a job to the instant up to which all its fires are decided. Unregistered jobs are absent.
    accounted: Mapping[str, datetime]
    running: frozenset[str]
    silenced: frozenset[str] = frozenset()  # registered jobs that are no longer scheduled
    timetable: str | None = None  # fingerprint of the active timetable
    switches: Mapping[str, Switch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The state that a scheduler read before registering its jobs. If the state has changed since then, nothing is
    registered.

    ``timetable`` is the scheduler's own timetable. ``active`` is the timetable that was active, or None.
    """

    timetable: str
    active: str | None
    controls: Controls


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions about which due fires run. ``waits`` is true if some due fires are still undecided; the next call
    decides them. ``replaced`` lists jobs whose current run must be cancelled because a new fire replaces it.
    """

    openings: Sequence[Opening] = ()
    accounted: Mapping[str, datetime] = field(default_factory=dict)
    waits: bool = False
    replaced: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The result of ``open_due`` or ``open_manual``. ``started`` lists the runs that this process must execute;
    ``explained`` lists the fires that do not run, with the reasons.
    """

    now: datetime
    ahead: timedelta = timedelta(0)  # how far this machine's clock is ahead of the clock used for decisions
    started: Sequence[Execution]
    explained: Sequence[Opening]
    replaced: frozenset[str] = frozenset()  # ids of the runs that this process or another process must cancel


class Closing(Enum):
    WRITTEN = "written"
    LOST = "lost"  # another scheduler took over the run, and nothing was written
    UNCHECKED = "unchecked"  # another transaction has locked the row, so the caller retries


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRun:
    """A run whose lease renewal is overdue. ``left`` is the time until its lease ends, and is negative after the lease
    has ended.
    """

    id: str
    job: str
    attempt: int
    owner: str | None  # None if its scheduler stopped and handed the run back
    lease_until: datetime
    left: timedelta


class ExecutionLog(Protocol):
    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record this process's timetable. A new timetable becomes the last one in deployment order."""

    async def renew_timetable(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record that a scheduler with this timetable is alive."""

    async def timetables(self, fingerprint: str) -> Sequence[Timetable]:
        """Return the timetable with this fingerprint, all newer timetables, and the active timetable."""

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, expected: Expected
    ) -> frozenset[str] | None:
        """Activate the timetable of ``expected`` and record its jobs. Return the jobs that are new or have a changed
        schedule. Return None, without writing, if the state was not as expected.

        The schedules of the returned jobs take effect now or, if an operator has changed the profile or a window, at
        the instant of that change. Older due fires of these jobs are recorded as missed. If this timetable is the
        newest, jobs that it does not contain are no longer scheduled. An older timetable leaves these jobs unchanged.
        """

    async def controls(self) -> Controls: ...

    async def open_due(
        self, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Decide which due fires run, and claim those fires in the same transaction. Until the transaction ends, no
        other scheduler can make decisions for these jobs.

        A fire for which another scheduler has already opened a run is skipped. It cannot get a second row, because
        (job, instant) is a unique key.
        """

    async def look(self) -> Ledger:
        """Return the current switches, the profile and windows that operators have set, and the time. The jobs are not
        locked.
        """

    async def open_manual(
        self, job: Registration, lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Open a run that an operator requested, even if no scheduler has registered the job."""

    async def renew(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> Renewed: ...

    async def close(self, execution: Execution, ending: Ending) -> Closing: ...

    async def hand_back(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> None:
        """End the leases of these runs now, so that another scheduler can take them over without waiting."""

    async def silent(
        self, lease_holder: LeaseHolder, known: Collection[str], limit: int, owners: Collection[str] = ()
    ) -> Sequence[SilentRun]:
        """Return the runs whose scheduler may be dead, except runs whose rows are locked.

        The result contains runs of the processes in ``owners``, runs whose lease renewal is overdue, and runs whose
        lease ends too far in the future because the clock was set back. ``known`` lists the jobs in this release. A run
        of any other job is included only after a much longer time without renewal.
        """

    async def take_over(self, runs: Collection[SilentRun], lease_holder: LeaseHolder) -> Sequence[Execution]:
        """Transfer the runs to ``lease_holder`` and increment their attempts. Skip runs that have changed since they
        were read.
        """
