"""The interface of the execution log for the scheduler, and the timetables of the releases that share a database.

Decisions inside ``open_due`` are made under a lock on the jobs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from batuta.guard.switches import Switch
from batuta.kernel.leases import LeaseHolder, Renewed
from batuta.runlog.execution import Ending, Execution, Opening, Registration
from batuta.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimetable:
    """The timetable of this process: its jobs in all profiles. ``release`` is the deployment's name, if it has one."""

    fingerprint: str
    jobs: int
    release: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    fingerprint: str
    position: int  # place in the order of deployment; the highest is the most recent
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
    """Settings that operators changed at run time. None means that the declared value applies."""

    profile: str | None = None
    windows: Mapping[str, Window] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The state of the database at ``now``, as far as it concerns the requested jobs."""

    now: datetime
    controls: Controls
    # Instant up to which every fire of a job is decided; unregistered jobs are missing.
    accounted: Mapping[str, datetime]
    running: frozenset[str]
    silenced: frozenset[str] = frozenset()  # registered jobs that are no longer scheduled
    timetable: str | None = None  # fingerprint of the active timetable
    switches: Mapping[str, Switch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """The state that a scheduler read before it registers its jobs. If the state has changed since, nothing is
    registered.

    ``timetable`` is the scheduler's own timetable. ``active`` is the timetable that was active, or None.
    """

    timetable: str
    active: str | None
    controls: Controls


@dataclass(frozen=True, slots=True)
class Decisions:
    """The decisions about due fires. ``waits`` is true if more fires are due; the next call decides about them.
    ``replaced`` are jobs whose current run is ended, because a new fire replaces it.
    """

    openings: Sequence[Opening] = ()
    accounted: Mapping[str, datetime] = field(default_factory=dict)
    waits: bool = False
    replaced: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The result of opening fires: ``started`` are runs that this process owns; ``explained`` are fires that do not run."""

    now: datetime
    ahead: timedelta = timedelta(0)  # how far this machine's clock is ahead of the clock that decides
    started: Sequence[Execution]
    explained: Sequence[Opening]
    replaced: frozenset[str] = frozenset()  # ids of the runs that this process or another one must cancel


class Closing(Enum):
    WRITTEN = "written"
    LOST = "lost"  # another scheduler took the run over, and nothing was written
    UNCHECKED = "unchecked"  # the row is locked by another transaction: retry


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRun:
    """A run whose renewal is overdue. ``left`` is the time until its lease ends, negative after the end."""

    id: str
    job: str
    attempt: int
    owner: str | None  # None: its scheduler stopped and handed the run back
    lease_until: datetime
    left: timedelta


class ExecutionLog(Protocol):
    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record the timetable of this process. A new timetable becomes the last in the order of deployment."""

    async def renew_timetable(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record that a scheduler of this timetable is alive."""

    async def timetables(self, fingerprint: str) -> Sequence[Timetable]:
        """Return this timetable, all more recent timetables, and the active timetable."""

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, expected: Expected
    ) -> frozenset[str] | None:
        """Activate the timetable of ``expected`` and record its jobs. Return the jobs that are new or have a changed
        schedule. Return None if the state was not as expected; then nothing was written.

        The schedules of the returned jobs begin now or, after a change of profile, at that change. Their older due
        fires become missed rows. The most recent timetable also stops the scheduling of jobs that it lacks. An older
        timetable that is active in its place leaves such jobs unchanged.
        """

    async def controls(self) -> Controls: ...

    async def open_due(
        self, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Decide about due fires and claim them in one transaction, so that no other scheduler decides about these jobs
        at the same time.

        A fire that another scheduler already opened is skipped without a row, because (job, instant) is a unique
        key.
        """

    async def look(self) -> Ledger:
        """Return the current switches, controls and time, without locking jobs."""

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
        """Return the runs whose scheduler may be dead. Locked rows are omitted.

        These are the runs of ``owners``, runs whose renewal is overdue, and runs whose lease ends too far in the
        future, because the clock was set back. ``known`` are the jobs of this code. A run of another job is included
        only after a much longer time without renewal.
        """

    async def take_over(self, runs: Collection[SilentRun], lease_holder: LeaseHolder) -> Sequence[Execution]:
        """Transfer the runs to ``lease_holder``, each with its next attempt. Runs that changed since are omitted."""
