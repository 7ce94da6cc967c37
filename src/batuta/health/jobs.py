"""Health of each job, judged by its expected fires.

A job is *stale* when a fire was expected at ``t``, ``t + SLA`` has passed, and no successful run has started since
``t``. So a job that fires only in working hours is never stale at night, a job that always fails is stale, and a job
that never ran can be stale too. A job *does not succeed* when its last three runs failed, or when it is stale and its
last run failed. A fire that was skipped because of a pause does not make the job stale, and a paused job is never
reported as *does not succeed*. Neither applies to a job that is not implemented yet.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from batuta.dispatch.job import Job
from batuta.dispatch.plan import hold
from batuta.dispatch.registry import JobRegistry
from batuta.guard.switches import Switch
from batuta.health.finding import Finding, Report, Severity, merge_reports
from batuta.kernel.clock import brief
from batuta.kernel.identity import short
from batuta.kernel.reasons import code_of, define
from batuta.kernel.values import dataclass
from batuta.runlog.history import ENOUGH_FAILURES, Facts, Reports
from batuta.runlog.log import ExecutionLog, Timetable
from batuta.runlog.reasons import UNFINISHED, WINDOW_CLOSED, is_partial, is_unfinished
from batuta.schedule.due import last_fire
from batuta.schedule.window import Window

DAY = timedelta(hours=24)
_FAILED = ("error", "timeout", "abandoned")
NEVER_RAN = define("never_ran", "it has never run")
NO_SCHEDULER = define("no_scheduler", "no scheduler has ever been seen")
NO_SUCCESS = define("no_success", "it is not succeeding: {why}")
NO_RUN = define("no_run", "no run since the last expected fire")


class JobState(StrEnum):
    """States of a job, worst first. If several states apply, the worst one is shown."""

    STALE = "stale"
    UNFINISHED = "unfinished"
    FAILING = "failing"
    HELD = "held"
    DEGRADED = "degraded"
    RUNNING = "running"
    WAITING = "waiting"  # no run has been expected so far
    OK = "ok"


class Level(StrEnum):
    HEALTHY = "healthy"
    DEGRADED = "degraded"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHealth:
    job: Job
    facts: Facts
    state: JobState
    why: str | None  # the reason why the state is not ok, or None
    held: str | None  # the reason why the job may not run now, or None
    expected_at: datetime | None  # the latest fire whose SLA has passed
    next_at: datetime

    @property
    def is_stale(self) -> bool:
        return self.state is JobState.STALE

    @property
    def never_ran(self) -> bool:
        return self.facts.last is None

    @property
    def does_not_succeed(self) -> bool:
        if self.state is JobState.UNFINISHED or _is_paused(self.held):
            return False
        last = self.facts.last
        has_failed = last is not None and last.status in _FAILED
        return self.facts.failures_in_a_row >= ENOUGH_FAILURES or (self.is_stale and has_failed)

    @property
    def is_troubled(self) -> bool:
        """Whether the job has, or had in the last 24 hours, a problem that needs an operator's attention."""
        counts = self.facts.counts
        return (
            self.is_stale
            or self.does_not_succeed
            or self.state in (JobState.FAILING, JobState.DEGRADED)
            or counts.total("error", "timeout", "abandoned") > 0
        )


def find_expected(job: Job, since: datetime, now: datetime) -> datetime | None:
    """Return the job's latest fire after ``since`` for which a successful run must have started by now, because the
    fire's SLA (the longest allowed delay) has passed. Return None if there is no such fire.
    """
    overdue = now - job.sla
    if overdue <= since:
        return None
    fire = last_fire(job.cron, job.zone, overdue)
    return fire if fire > since else None


def judge(
    job: Job, facts: Facts, *, expected_at: datetime | None, is_answered: bool, held: str | None, now: datetime
) -> JobHealth:
    state, why = _state(job, facts, expected_at, is_answered, held)
    return JobHealth(
        job=job,
        facts=facts,
        state=state,
        why=why,
        held=held,
        expected_at=expected_at,
        next_at=job.cron.next_after(now, job.zone),
    )


def _state(
    job: Job, facts: Facts, expected_at: datetime | None, is_answered: bool, held: str | None
) -> tuple[JobState, str | None]:
    last = facts.last
    if not job.finished or (last is not None and is_unfinished(last.reason)):
        return JobState.UNFINISHED, UNFINISHED()
    if expected_at is not None and not is_answered:
        return JobState.STALE, _why_stale(facts)
    if last is not None and last.status in _FAILED:
        return JobState.FAILING, last.error or last.reason
    if _is_paused(held):
        return JobState.HELD, held
    if last is not None and last.status == "success" and is_partial(last.reason):
        return JobState.DEGRADED, last.reason
    if facts.running:
        return JobState.RUNNING, None
    if held is not None:
        return JobState.HELD, held
    return (JobState.WAITING if last is None else JobState.OK), None


def _is_paused(held: str | None) -> bool:
    """Return whether a switch holds the job back. A closed window is ignored, so that a problem with the last run stays
    visible.
    """
    return held is not None and code_of(held) != WINDOW_CLOSED


def _why_stale(facts: Facts) -> str:
    last = facts.last
    if last is None:
        return NEVER_RAN() if facts.expected_since else NO_SCHEDULER()
    if last.status in _FAILED:
        return NO_SUCCESS(why=last.error or last.reason or last.status)
    return NO_RUN()


def level(healths: Collection[JobHealth]) -> Level:
    broken = (health for health in healths if health.is_stale or health.does_not_succeed)
    if nothing_works(healths) or any(health.job.critical for health in broken):
        return Level.CRITICAL
    return Level.DEGRADED if any(health.is_troubled for health in healths) else Level.HEALTHY


def nothing_works(healths: Collection[JobHealth]) -> bool:
    """Return whether every job that should have run by now is stale, which means that no run of it has succeeded in
    time.
    """
    judged = [health for health in healths if health.expected_at and health.state is not JobState.UNFINISHED]
    return bool(judged) and all(health.is_stale for health in judged)


def expectations(
    jobs: Mapping[str, Job], facts: Mapping[str, Facts], otherwise: datetime, now: datetime
) -> dict[str, datetime]:
    """Return, for each job, its latest fire for which a successful run must have started by now (see
    ``find_expected``). Fires before the job was registered are ignored. If no scheduler has registered a job, the
    instant ``otherwise`` is used as the time of its registration.
    """
    found = {}
    for name, job in jobs.items():
        since = facts.get(name, Facts()).expected_since or otherwise
        if (fire := find_expected(job, since, now)) is not None:
            found[name] = fire
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsSeen:
    now: datetime
    profile: str
    windows: Mapping[str, Window]
    switches: Mapping[str, Switch]
    jobs: tuple[JobHealth, ...]  # in the order of the registry


@dataclass(eq=False)
class JobHealthQuery:
    """Assesses the health of the jobs in a profile."""

    registry: JobRegistry
    log: ExecutionLog
    reports: Reports
    opened_at: Callable[
        [], datetime
    ]  # returns the instant from which jobs that no scheduler has registered are expected to fire

    async def look(self, profile: str | None = None) -> JobsSeen:
        """Assess every job in a profile. If ``profile`` is None, assess the active profile."""
        ledger = await self.log.look()
        controls = ledger.controls if profile is None else replace(ledger.controls, profile=profile)
        now, windows = ledger.now, self.registry.windows_now(controls)
        jobs = self.registry.timetable(controls)
        facts = await self.reports.facts(since=now - DAY, now=now)
        otherwise = await self.reports.find_first_use() or self.opened_at()
        due = expectations(jobs, facts, otherwise, now)
        answered = await self.reports.find_answered(due, now)
        return JobsSeen(
            now=now,
            profile=self.registry.profile(controls),
            windows=windows,
            switches=ledger.switches,
            jobs=tuple(
                judge(
                    job,
                    facts.get(name, Facts()),
                    expected_at=due.get(name),
                    is_answered=name in answered,
                    held=hold(job, ledger.switches, windows, now),
                    now=now,
                )
                for name, job in jobs.items()
            ),
        )


# A running scheduler renews its timetable every two seconds. After two run leases without a renewal, another release
# may take over.
LIVES = timedelta(seconds=12)
# A newer release that stopped longer ago than this was probably rolled back on purpose.
REMEMBERED = timedelta(hours=1)
LOOKED_AT = 10
SOURCE = "jobs"


class Timetables(Protocol):
    async def newest(self, limit: int) -> Sequence[Timetable]:
        """Return up to ``limit`` timetables, newest first, including the active timetable."""
        ...


class TimetableState(StrEnum):
    ACTIVE = "active"
    STANDING_BY = "standing_by"
    GONE = "gone"


def state_of(timetable: Timetable, now: datetime) -> TimetableState:
    if timetable.is_active:
        return TimetableState.ACTIVE
    return TimetableState.STANDING_BY if now - timetable.renewed_at <= LIVES else TimetableState.GONE


def judge_timetables(seen: Sequence[Timetable], now: datetime) -> Report:
    active = next((each for each in seen if each.is_active), None)
    if active is None:
        return Report()
    return merge_reports([_report_older_timetable(active, seen, now), _report_standby(active, seen, now)])


def _report_older_timetable(active: Timetable, seen: Sequence[Timetable], now: datetime) -> Report:
    """Report that all schedulers of a newer release have stopped, and that an older timetable is therefore active
    again.
    """
    gone = [
        each
        for each in seen
        if each.position > active.position and each.has_been_active and LIVES < now - each.renewed_at <= REMEMBERED
    ]
    if not gone:
        return Report()
    last = max(gone, key=lambda each: each.renewed_at)
    finding = Finding(
        severity=Severity.WARNING,
        source=SOURCE,
        cause="timetable.older_active",
        says="older_timetable",
        facts={"timetable": active.release or active.fingerprint, "gone": last.release or last.fingerprint,
               "last": brief(now - last.renewed_at)},
        since=last.renewed_at,
    )  # fmt: skip
    return Report(findings=(finding,), lost=5)


def _report_standby(active: Timetable, seen: Sequence[Timetable], now: datetime) -> Report:
    older = [each for each in seen if state_of(each, now) is TimetableState.STANDING_BY]
    older = [each for each in older if each.position < active.position]
    if not older:
        return Report()
    finding = Finding(
        severity=Severity.INFO,
        source=SOURCE,
        cause="timetable.standing_by",
        says="scheduler_stands_by",
        facts={"schedulers": ", ".join(short(each.renewed_by) for each in older)},
        value=len(older),
    )
    return Report(findings=(finding,))
