"""What becomes of a job's fires: decided here, from what the database knows, without touching anything."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from batuta.dispatch.job import Job, Overlap
from batuta.guard.base import Hold
from batuta.guard.switches import SWITCH_ON, Switch, SwitchRule, judge_switch
from batuta.kernel.errors import JobRefused
from batuta.kernel.json import Json
from batuta.kernel.reasons import Reason
from batuta.runlog import reasons
from batuta.runlog.execution import Opening, Status, Trigger
from batuta.runlog.log import Decisions, Ledger
from batuta.schedule.due import FIRES_AT_A_TIME, ON_TIME, CatchUp, Owed, due
from batuta.schedule.window import Window

PAUSE_ALL = "pause.all"
# A watermark further ahead than clocks differ: the clock was put back.
SKEW = timedelta(minutes=1)


def pause_of_job(name: str) -> str:
    return f"pause.job.{name}"


def pause_of_category(name: str) -> str:
    return f"pause.category.{name}"


def rules_of(job: Job) -> tuple[SwitchRule, ...]:
    """Everything that may hold it, the widest first."""
    pauses = (PAUSE_ALL, pause_of_category(job.category), pause_of_job(job.name))
    return (*(SwitchRule(key=key) for key in pauses), *job.holds)


def held_by_switch(job: Job, switches: Mapping[str, Switch], now: datetime) -> str | None:
    """Return the reason of the first switch that holds the job; None: no switch does."""
    for rule in rules_of(job):
        if isinstance(held := judge_switch(rule, switches.get(rule.key), now), Hold):
            return _paused(job, rule, held.reason)
    return None


def _paused(job: Job, rule: SwitchRule, why: str) -> str:
    """Name the pause instead of its switch."""
    if not isinstance(why, Reason) or why.code != SWITCH_ON:
        return why
    turned = why.facts["turned"]
    if rule.key == PAUSE_ALL:
        return reasons.PAUSED_ALL(turned=turned)
    if rule.key == pause_of_category(job.category):
        return reasons.PAUSED_CATEGORY(name=job.category, turned=turned)
    return reasons.PAUSED_JOB(name=job.name, turned=turned) if rule.key == pause_of_job(job.name) else why


def held_then(job: Job, switches: Mapping[str, Switch], fire: datetime) -> str | None:
    """Whether something held it at an instant that is past: it was lifted since, and nothing is owed from before that."""
    for rule in rules_of(job):
        switch = switches.get(rule.key)
        if switch is not None and switch.on is not rule.hold_when and switch.turned_at > fire:
            return reasons.LIFTED_LATER(switch=rule.key, by=switch.turned_by)
    return None


def hold(job: Job, switches: Mapping[str, Switch], windows: Mapping[str, Window], now: datetime) -> str | None:
    """Why it may not run at ``now``; None: it may."""
    if (held := held_by_switch(job, switches, now)) is not None:
        return held
    if job.window is not None and not windows[job.window].is_open(now, job.zone):
        return reasons.WINDOW_CLOSED(window=job.window)
    return None


def plan(job: Job, ledger: Ledger, windows: Mapping[str, Window]) -> Decisions:
    """The rows its owed fires become, and how far it is accounted for then."""
    now = ledger.now
    since = ledger.accounted[job.name]
    if since > now + SKEW:
        # Fires of that time have their rows already, and the unique key keeps those from running again.
        since = now - ON_TIME
    owed = due(job.cron, job.zone, since=since, until=now, policy=job.catch_up, max_age=job.max_age)
    openings = list(_missed(job, owed))
    accounted = max((fire for fire in (*owed.missed, *_ends(owed))), default=since)
    held_now = hold(job, ledger.switches, windows, now)
    is_running = job.name in ledger.running
    waits = len(owed.run) == FIRES_AT_A_TIME
    for fire in owed.run:
        is_late = now - fire > ON_TIME
        held = held_now or (held_then(job, ledger.switches, fire) if is_late else None)
        if held is None and is_running and job.overlap is Overlap.SKIP:
            if is_late and job.catch_up is CatchUp.ALL:
                waits = True  # for its turn: what is left is owed still
                break
            openings.append(_row(job, fire, is_late, Status.SKIPPED, reasons.OVERLAP()))
        elif held is not None:
            openings.append(_row(job, fire, is_late, Status.SKIPPED, reasons.held(held)))
        else:
            openings.append(_row(job, fire, is_late, Status.RUNNING, None))
            is_running = True
        accounted = fire
    moved = {job.name: accounted} if accounted != ledger.accounted[job.name] else {}
    return Decisions(openings, moved, waits)


def _ends(owed: Owed) -> tuple[datetime, ...]:
    return () if owed.gap is None else (owed.gap.last,)


def _missed(job: Job, owed: Owed) -> Iterator[Opening]:
    for fire in owed.missed:
        yield _row(job, fire, True, Status.MISSED, _why_missed(job))
    if (gap := owed.gap) is not None:
        row = _row(job, gap.last, True, Status.MISSED, reasons.MANY_FIRES(why=_why_missed(job), count=gap.count))
        span: dict[str, Json] = {"from": gap.first.isoformat(), "to": gap.last.isoformat(), "count": gap.count}
        yield replace(row, covers=span)


def _why_missed(job: Job) -> str:
    match job.catch_up:
        case CatchUp.SKIP:
            return reasons.MISSED_SKIP()
        case CatchUp.LATEST:
            return reasons.MISSED_LATEST()
        case CatchUp.ALL:
            return reasons.MISSED_OLD()


def _row(job: Job, fire: datetime, is_late: bool, status: Status, reason: str | None) -> Opening:
    return Opening(
        job=job.name,
        category=job.category,
        scheduled_for=fire,
        trigger=Trigger.CATCH_UP if is_late else Trigger.SCHEDULE,
        status=status,
        reason=reason,
    )


def plan_manual(
    job: Job, ledger: Ledger, windows: Mapping[str, Window], params: Mapping[str, str], *, even_if_held: bool
) -> Decisions:
    """One run that a person asked for; or JobRefused."""
    if job.overlap is Overlap.SKIP and job.name in ledger.running:
        raise JobRefused(job=job.name, why=reasons.ALREADY_RUNNING(), next_step=reasons.WAIT_AND_REPEAT())
    held = hold(job, ledger.switches, windows, ledger.now)
    if held is not None and not even_if_held:
        raise JobRefused(job=job.name, why=reasons.held(held), next_step=reasons.LIFT_OR_INSIST())
    opening = Opening(
        job=job.name,
        category=job.category,
        scheduled_for=None,
        trigger=Trigger.MANUAL,
        status=Status.RUNNING,
        reason=None if held is None else reasons.BY_HAND(why=reasons.held(held)),
        params=params or None,
    )
    return Decisions([opening])
