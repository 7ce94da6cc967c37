"""Decides under a lock, at every instant at which a job is due, whether the job runs, and starts the run.

The dispatcher wakes at least every second, so that it notices a changed clock, profile or window. It does not wait for
the runs that it started. Any number of dispatchers may run on one database: the first dispatcher records a fire as
decided, and the others skip that fire. A dispatcher whose timetable is not active stands by (see ``activation``).
"""

import heapq
from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from batuta.dispatch.activation import Activation, Active, StandsBy, TakesOver
from batuta.dispatch.job import Job
from batuta.dispatch.plan import facts_of, hold, next_start, plan
from batuta.dispatch.registry import JobRegistry
from batuta.dispatch.runner import Gate, Lanes, Runner
from batuta.kernel.clock import Clock
from batuta.kernel.errors import StoreUnavailable
from batuta.kernel.events import (
    ClockStepped,
    Events,
    JobsRegistered,
    ScheduleFailed,
    TimetableActivated,
    TimetableStandsBy,
)
from batuta.kernel.leases import LeaseHolder
from batuta.kernel.values import dataclass
from batuta.runlog.execution import Registration
from batuta.runlog.log import Controls, Decisions, ExecutionLog, Expected, Ledger, Opened
from batuta.supervise.loop import Again, Idle, Pace, Wakeup

T = TypeVar("T")

LONGEST_REST = timedelta(seconds=1)
# Maximum number of jobs decided in one transaction. It is halved after a transaction timed out.
JOBS_PER_TRANSACTION = 1_000
NEVER = datetime.max.replace(tzinfo=UTC)
# Delay before the dispatcher checks a job again, if the job has more fires to decide or another scheduler is deciding
# about it.
LOOK_AGAIN = timedelta(seconds=1)
# A backward jump of the wall clock by more than this means that the clock was set back. A smaller jump is an ordinary
# clock correction.
CLOCK_STEP = timedelta(seconds=2)
RETRY_SCHEDULE_AFTER = timedelta(minutes=1)


@dataclass(eq=False)
class Dispatcher:
    name = "dispatcher"

    registry: JobRegistry
    log: ExecutionLog
    runner: Runner
    clock: Clock
    events: Events
    lease_holder: LeaseHolder
    release: str | None  # name of the deployment
    lanes: Lanes
    wakeup: Wakeup = field(default_factory=Wakeup, init=False)

    def __post_init__(self) -> None:
        self._controls: Controls | None = None
        self._timetable: Mapping[str, Job] = {}
        self._agenda = self._all_at(self.clock.now())
        self._ahead = timedelta(0)  # how far the database's clock is ahead of this machine's clock
        self._last: datetime | None = None
        self._portion = JOBS_PER_TRANSACTION
        self._declared = self.registry.changes
        self._activation = self._own_activation()
        self._behind: str | None = None

    def _own_activation(self) -> Activation:
        return Activation(self.registry.own(self.release), self.log, self.clock, self.lease_holder)

    def job(self, name: str) -> Job | None:
        """Return the job with this name, as it is currently scheduled. If the active profile lacks the job, return it
        from another profile, because a run in progress still needs it. Return None if this release does not declare the
        job.
        """
        return self._timetable.get(name) or self.registry.find_declared(name)

    @property
    def next_at(self) -> datetime:
        """The earliest instant at which any job must be checked, according to this process's clock."""
        return self._agenda.next() - self._ahead

    async def tick(self) -> Pace:
        # the program has declared another job since, so the timetable has changed
        if self._declared != self.registry.changes:
            self._declared, self._controls = self.registry.changes, None
            self._activation = self._own_activation()
        standing = await self._activation.look()
        if isinstance(standing, StandsBy):
            return self._stand_by(standing)
        self._behind = None
        if not await self._follow_controls(standing):
            return Again()  # another scheduler or an operator changed the controls first
        now = self._now()
        self._notice_steps(now)
        due = self._agenda.take(now, self._portion)
        if due and not await self._fire(due, now):
            return Again()  # the controls changed in the meantime, so apply them first
        if self._agenda.next() <= now:
            return Again()
        return Idle(min(self._agenda.next(), now + LONGEST_REST) - self._ahead)

    def _stand_by(self, standing: StandsBy) -> Pace:
        self._controls = None  # register the jobs again before the next fire
        if self._behind != standing.behind:
            self._behind = standing.behind
            self.events.emit(TimetableStandsBy(self._activation.own.fingerprint, standing.behind))
        return Idle(self.clock.now() + LONGEST_REST)

    async def _follow_controls(self, standing: Active | TakesOver) -> bool:
        """Register the jobs at the start, and again whenever this process takes over from another timetable or
        operators have changed the profile or a window. Return False, without registering, if another process changes
        the profile, a window or the active timetable at the same time.
        """
        controls = await self.log.controls()
        if controls == self._controls and isinstance(standing, Active):
            return True
        own, timetable = self._activation.own.fingerprint, self.registry.timetable(controls)
        active = own if isinstance(standing, Active) else standing.active
        expected = Expected(timetable=own, active=active, controls=controls)
        changed = await self.log.register(
            [registration(job) for job in timetable.values()], self.lease_holder, expected
        )
        if changed is None:
            return False
        self._controls, self._timetable = controls, timetable
        # Check every job once now. The database records up to which instant each job is decided, so no fire is decided
        # twice.
        self._agenda = self._all_at(self._now())
        if active != own:
            self.events.emit(TimetableActivated(own, active))
        self.events.emit(JobsRegistered(self.registry.profile(controls), len(timetable), tuple(sorted(changed))))
        return True

    def _notice_steps(self, now: datetime) -> None:
        if self._last is not None and now < self._last - CLOCK_STEP:
            self.events.emit(ClockStepped(self._last - now))
            self._agenda = self._all_at(now)
        self._last = now

    async def _fire(self, due: Collection[str], now: datetime) -> bool:
        """Decide which due fires of the given jobs run, record those decisions, and start the runs. Return False,
        without deciding, if an operator has changed the profile or a window, or if another timetable has become active.
        """
        waiting: set[str] = set()
        is_current = True

        def decide(ledger: Ledger) -> Decisions:
            nonlocal is_current
            is_current = (ledger.timetable, ledger.controls) == (self._activation.own.fingerprint, self._controls)
            return self._decide(due, ledger, waiting) if is_current else Decisions()

        with self.runner.expecting():
            try:
                opened = await self.log.open_due(due, self.lease_holder, decide)
            except BaseException as error:
                self._agenda.put(dict.fromkeys(due, now))
                if isinstance(error, StoreUnavailable):
                    self._portion = max(1, len(due) // 2)
                raise
            self._start(opened)
        self._portion = min(JOBS_PER_TRANSACTION, 2 * self._portion)
        if not is_current:
            self._agenda.put(dict.fromkeys(due, now))
            return False
        self._ahead = opened.ahead
        self._agenda.put({name: self._next(name, opened.now, name in waiting) for name in due})
        return True

    def _decide(self, due: Collection[str], ledger: Ledger, waiting: set[str]) -> Decisions:
        windows = self.registry.windows_now(ledger.controls)
        decided = []
        for name in due:
            if name in ledger.silenced:
                self._controls = None  # the job's row was changed by hand, so register the jobs again
            if name not in ledger.accounted:
                waiting.add(name)  # another scheduler is deciding about this job
                continue
            one = self._compute_safely(name, lambda job: plan(job, ledger, windows))
            if one is not None:
                decided.append(one)
                if one.waits:
                    waiting.add(name)
        openings = [opening for one in decided for opening in one.openings]
        accounted = {name: until for one in decided for name, until in one.accounted.items()}
        return Decisions(openings, accounted, replaced=frozenset(name for one in decided for name in one.replaced))

    def _start(self, opened: Opened) -> None:
        self.runner.cancel_replaced(opened.replaced)
        for event in facts_of(opened.explained):
            self.events.emit(event)
        for execution in opened.started:
            self.runner.start(execution, self._timetable[execution.job])

    def _all_at(self, instant: datetime) -> "Agenda":
        def is_first(name: str) -> bool:
            return self.lanes.is_reserved(self._timetable[name].category)

        return Agenda(is_first, dict.fromkeys(self._timetable, instant))

    def _next(self, name: str, now: datetime, waits: bool) -> datetime:
        if waits:
            return now + LOOK_AGAIN
        return self._compute_safely(name, lambda job: next_start(job, now)) or now + RETRY_SCHEDULE_AFTER

    def _compute_safely(self, name: str, compute: Callable[[Job], T]) -> T | None:
        """Return the result of ``compute``. If it raises an error, emit ScheduleFailed and return None, so that an
        error in one schedule does not stop the other schedules.
        """
        try:
            return compute(self._timetable[name])
        except Exception as error:  # noqa: BLE001 - no error in one schedule may stop the others
            self.events.emit(ScheduleFailed(name, error))
            return None

    def _now(self) -> datetime:
        return self.clock.now() + self._ahead


class Agenda:
    """Holds, for each job, the next instant at which the dispatcher checks the job. Jobs in a category with reserved
    capacity come first.
    """

    def __init__(self, is_live: Callable[[str], bool], entries: Mapping[str, datetime]) -> None:
        self._is_live = is_live
        self._live: list[tuple[datetime, str]] = []
        self._others: list[tuple[datetime, str]] = []
        self.put(entries)

    def put(self, entries: Mapping[str, datetime]) -> None:
        for name, at in entries.items():
            heapq.heappush(self._live if self._is_live(name) else self._others, (at, name))

    def take(self, now: datetime, most: int = JOBS_PER_TRANSACTION) -> list[str]:
        """Remove and return up to ``most`` due jobs. The caller adds each job again with its next instant."""
        for heap in (self._live, self._others):
            due: list[str] = []
            while heap and heap[0][0] <= now and len(due) < most:
                due.append(heapq.heappop(heap)[1])
            if due:
                return due
        return []

    def next(self) -> datetime:
        return min((heap[0][0] for heap in (self._live, self._others) if heap), default=NEVER)


def gate(registry: JobRegistry, log: ExecutionLog) -> Gate:
    """Return a function that the runner calls right before it delivers a run. That function returns the reason why a
    job may not run now, or None if it may run.
    """

    async def why_not(job: Job) -> str | None:
        ledger = await log.look()
        return hold(job, ledger.switches, registry.windows_now(ledger.controls), ledger.now)

    return why_not


def registration(job: Job) -> Registration:
    return Registration(job=job.name, category=job.category, schedule=job.cron.text, zone=job.zone.key)
