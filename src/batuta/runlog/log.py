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
    """The jobs of this process, in all profiles. ``release``: the name of the deployment, if the operator sets one."""

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
    """Settings made at run time. None: the declared value counts."""

    profile: str | None = None
    windows: Mapping[str, Window] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """State of the database at ``now`` about the requested jobs."""

    now: datetime
    controls: Controls
    accounted: Mapping[str, datetime]  # every fire up to here is decided; jobs that are not registered are missing
    running: frozenset[str]
    silenced: frozenset[str] = frozenset()  # registered jobs that are not scheduled
    timetable: str | None = None  # the fingerprint of the active one
    switches: Mapping[str, Switch]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """State that a scheduler saw before it registers its jobs. If it has changed, nothing is registered.

    ``timetable``: its own. ``active``: the one that was active; None: there was none.
    """

    timetable: str
    active: str | None
    controls: Controls


@dataclass(frozen=True, slots=True)
class Decisions:
    """``waits``: more fires are due and wait for their turn."""

    openings: Sequence[Opening] = ()
    accounted: Mapping[str, datetime] = field(default_factory=dict)
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """``started``: runs of this process; ``explained``: rows written instead of a run."""

    now: datetime
    ahead: timedelta = timedelta(0)  # offset of this machine's clock from the deciding one
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
    """A run that is overdue for a renewal. ``left``: time until its lease ends, by the deciding clock; negative: it has
    expired.
    """

    id: str
    job: str
    attempt: int
    owner: str | None  # None: its scheduler stopped and handed it back
    lease_until: datetime
    left: timedelta


class ExecutionLog(Protocol):
    async def announce(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record a timetable. A new one takes the last place in the order of deployment."""
        ...

    async def renew_timetable(self, own: OwnTimetable, lease_holder: LeaseHolder) -> None:
        """Record that a scheduler of this timetable is alive."""
        ...

    async def timetables(self, fingerprint: str) -> Sequence[Timetable]:
        """This timetable, the more recent ones and the active one."""
        ...

    async def register(
        self, jobs: Collection[Registration], lease_holder: LeaseHolder, expected: Expected
    ) -> frozenset[str] | None:
        """Activate the timetable of ``expected`` and record its jobs. None: the state is not as expected, and nothing
        was done.

        A job that is new or whose schedule changed has no due fires from before this moment (for a chosen profile:
        from before the choice); those jobs are returned. Their older due fires become missed rows. The most recent
        timetable also silences the jobs that it lacks. An older one, which stands in, leaves them to the more recent
        one.
        """
        ...

    async def controls(self) -> Controls: ...

    async def open_due(
        self, jobs: Collection[str], lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Decide and claim in one transaction: no other scheduler decides about these jobs meanwhile.

        A fire that another scheduler has is skipped silently: the unique key (job, instant) decides.
        """
        ...

    async def look(self) -> Ledger:
        """Read the switches and the controls."""
        ...

    async def open_manual(
        self, job: Registration, lease_holder: LeaseHolder, decide: Callable[[Ledger], Decisions]
    ) -> Opened:
        """Like ``open_due``, for a job that no scheduler may have seen yet."""
        ...

    async def renew(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> RunsRenewed: ...

    async def close(self, execution: Execution, ending: Ending) -> Closing: ...

    async def hand_back(self, executions: Collection[Execution], lease_holder: LeaseHolder) -> None:
        """End the leases now, so that another scheduler need not wait for them."""
        ...

    async def silent(
        self, lease_holder: LeaseHolder, known: Collection[str], limit: int, owners: Collection[str] = ()
    ) -> Sequence[SilentRun]:
        """Runs that are overdue for a renewal, whose lease is implausible, or that belong to ``owners``; locked rows
        are left out.

        ``known``: the jobs of this code. A run of another job is included only after a long silence.
        """
        ...

    async def take_over(self, runs: Collection[SilentRun], lease_holder: LeaseHolder) -> Sequence[Execution]:
        """Give the runs that have not changed since they were read to ``lease_holder``, each with its next attempt."""
        ...
