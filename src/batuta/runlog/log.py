"""The execution log as the scheduler needs it, and the timetables of the versions that share a database.

Decisions inside ``open_due`` happen under a lock on the jobs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum
from typing import Protocol

from batuta.guard.switches import Switch
from batuta.queue.item import LeaseHolder
from batuta.runlog.execution import Ending, Execution, Opening, Registration
from batuta.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnTimetable:
    """The jobs of this process, in all profiles. ``release``: the deployment, if the operator names it."""

    fingerprint: str
    jobs: int
    release: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timetable:
    fingerprint: str
    position: int  # the order of deployment: the highest is the most recent
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
    """What people set at run time. None: nobody has, the declared value counts."""

    profile: str | None = None
    windows: Mapping[str, Window] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the database knows at ``now``, about the jobs that were asked for."""

    now: datetime
    controls: Controls
    accounted: Mapping[str, datetime]  # every fire up to here is decided; a job that is not registered is not in it
    running: frozenset[str]
    silenced: frozenset[str] = frozenset()  # registered as jobs that are not scheduled
    timetable: str | None = None  # the fingerprint of the active one
    switches: Mapping[str, Switch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a scheduler saw before it registers its jobs. If it is no longer so, nothing is registered.

    ``timetable``: its own. ``active``: the one that was active; None: there was none.
    """

    timetable: str
    active: str | None
    controls: Controls


@dataclass(frozen=True, slots=True)
class Decisions:
    """``waits``: more is owed, and has to wait for its turn."""

    openings: Sequence[Opening] = ()
    accounted: Mapping[str, datetime] = field(default_factory=dict)
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """``started`` are ours to run; ``explained`` is what was written instead of a run."""

    now: datetime
    ahead: timedelta = timedelta(0)  # of this machine's clock, by the one that decides
    started: Sequence[Execution]
    explained: Sequence[Opening]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsRenewed:
    """``lost``: another scheduler has taken them over. ``unchecked``: another transaction has locked the row; try again."""

    lost: frozenset[str] = frozenset()
    unchecked: frozenset[str] = frozenset()


class Closing(Enum):
    WRITTEN = "written"
    LOST = "lost"  # another scheduler has taken the run over, and nothing was written
    UNCHECKED = "unchecked"  # another transaction has locked the row: try again


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRun:
    """A run that is overdue for a renewal. ``left``: until its lease ends, by the clock that decides; negative: it has ended."""

    id: str
    job: str
    attempt: int
    owner: str | None  # None: its scheduler stopped and handed it back
    lease_until: datetime
    left: timedelta


class ExecutionLog(Protocol):
    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """A timetable that is seen for the first time takes the last place in the order of deployment."""
        ...

    async def renew_timetable(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """A scheduler of this timetable is alive."""
        ...

    async def timetables(self, fingerprint: str) -> Sequence[Timetable]:
        """This timetable, the more recent ones and the active one."""
        ...

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, expected: Expected
    ) -> frozenset[str] | None:
        """Activate the timetable of ``expected`` and record its jobs. None: things are not as expected, and nothing was done.

        A job that is new or whose schedule changed owes nothing from before this moment (a chosen profile: from before the
        choice); those are returned. What they still owed becomes missed rows. The most recent timetable also silences the
        jobs it does not name. An older one, which stands in, leaves them to the more recent one.
        """
        ...

    async def controls(self) -> Controls: ...

    async def open_due(
        self, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Ask and take in one transaction: no other scheduler decides about these jobs meanwhile.

        A fire that somebody has is left out in silence: the unique key (job, instant) has the last word.
        """
        ...

    async def look(self) -> Ledger:
        """How things stand now: the switches and the controls, of no job in particular."""
        ...

    async def open_manual(
        self, job: Registration, lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Like ``open_due``, for a job that perhaps no scheduler has seen."""
        ...

    async def renew(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> RunsRenewed: ...

    async def close(self, execution: Execution, ending: Ending) -> Closing: ...

    async def hand_back(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> None:
        """End their lease now, so that another scheduler need not wait for it."""
        ...

    async def silent(
        self, lease_holder: LeaseHolder, known: Collection[str], limit: int, owners: Collection[str] = ()
    ) -> Sequence[SilentRun]:
        """Runs that are overdue for a renewal, whose lease cannot be true, or that belong to ``owners``; none that is locked.

        ``known``: the jobs of this code. A run of another job is included after a long silence only.
        """
        ...

    async def take_over(self, runs: Collection[SilentRun], lease_holder: LeaseHolder) -> Sequence[Execution]:
        """Give the runs that have not changed since they were read to ``lease_holder``, each with its next attempt."""
        ...
