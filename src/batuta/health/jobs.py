"""How each job is, judged by the fires that were expected of it.

A job is *stale* when a fire was expected at ``t``, ``t + SLA`` is over, and no successful run has started since ``t``. So a job of
working hours is never stale at night, one that always fails is not fresh, and one that never ran is not forgotten.

A job *does not succeed* when its last three runs failed, or when it is stale and its last run failed. A job that an operator
holds, or that is not implemented yet, does not count.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from batuta.dispatch.job import Job
from batuta.runlog.execution import HELD, PARTIAL, UNFINISHED
from batuta.runlog.report import ENOUGH_FAILURES, Facts
from batuta.schedule.due import last_fire

DAY = timedelta(hours=24)
_FAILED = ("error", "timeout", "abandoned")


class JobState(StrEnum):
    """Worst first: the first that applies is shown."""

    STALE = "stale"
    UNFINISHED = "unfinished"
    FAILING = "failing"
    HELD = "held"
    DEGRADED = "degraded"
    RUNNING = "running"
    WAITING = "waiting"  # nothing has been expected of it yet
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
    why: str | None  # what keeps it from being all right
    held: str | None  # what keeps it from running at this moment
    expected_at: datetime | None  # the last fire whose SLA is over
    next_at: datetime

    @property
    def is_stale(self) -> bool:
        return self.state is JobState.STALE

    @property
    def never_ran(self) -> bool:
        return self.facts.last is None

    @property
    def does_not_succeed(self) -> bool:
        if self.state is JobState.UNFINISHED or self.held is not None:
            return False
        last = self.facts.last
        has_failed = last is not None and last.status in _FAILED
        return self.facts.failures_in_a_row >= ENOUGH_FAILURES or (self.is_stale and has_failed)

    @property
    def is_troubled(self) -> bool:
        """An operator should look at something of the last 24 hours, or of now."""
        counts = self.facts.counts
        return (
            self.is_stale
            or self.does_not_succeed
            or self.state in (JobState.FAILING, JobState.DEGRADED)
            or counts.of("error", "timeout", "abandoned") > 0
        )


def expected(job: Job, since: datetime, now: datetime) -> datetime | None:
    """The last fire whose SLA is over; None: nothing had to happen by now."""
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
    if not job.finished or (last is not None and last.reason == UNFINISHED):
        return JobState.UNFINISHED, UNFINISHED
    if expected_at is not None and not is_answered:
        return JobState.STALE, _why_stale(facts)
    if last is not None and last.status in _FAILED:
        return JobState.FAILING, last.error or last.reason
    if held is not None:
        return JobState.HELD, held.removeprefix(HELD)
    if last is not None and last.status == "success" and (last.reason or "").startswith(PARTIAL):
        return JobState.DEGRADED, last.reason
    if facts.running:
        return JobState.RUNNING, None
    return (JobState.WAITING if last is None else JobState.OK), None


def _why_stale(facts: Facts) -> str:
    last = facts.last
    if last is None:
        return "it never ran" if facts.expected_since else "no scheduler has ever been seen"
    if last.status in _FAILED:
        return f"it does not succeed: {last.error or last.reason or last.status}"
    return "no run since the last expected fire"


def level(healths: Collection[JobHealth]) -> Level:
    """The worst finding wins."""
    broken = (health for health in healths if health.is_stale or health.does_not_succeed)
    if nothing_works(healths) or any(health.job.critical for health in broken):
        return Level.CRITICAL
    return Level.DEGRADED if any(health.is_troubled for health in healths) else Level.HEALTHY


def nothing_works(healths: Collection[JobHealth]) -> bool:
    """Of the jobs that should have run by now, none did."""
    judged = [health for health in healths if health.expected_at and health.state is not JobState.UNFINISHED]
    return bool(judged) and all(health.is_stale for health in judged)


def expectations(
    jobs: Mapping[str, Job], facts: Mapping[str, Facts], otherwise: datetime, now: datetime
) -> dict[str, datetime]:
    """For each job the fire it is judged by. ``otherwise``: since when, for jobs that no scheduler has registered."""
    found = {}
    for name, job in jobs.items():
        since = facts.get(name, Facts()).expected_since or otherwise
        if (fire := expected(job, since, now)) is not None:
            found[name] = fire
    return found
