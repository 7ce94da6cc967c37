"""Pure functions that decide which due fires of a job run, based on state that the caller read from the database. They
also list and compare the fires of timetables.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job, Overlap
from batuta.guard.base import Hold
from batuta.guard.switches import SWITCH_OFF, SWITCH_ON, Switch, SwitchRule, judge_switch
from batuta.kernel.errors import JobRefused
from batuta.kernel.events import Event, FireExplained, FiresMissed
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.runlog import reasons
from batuta.runlog.execution import Opening, Status, Trigger
from batuta.runlog.log import Decisions, Ledger
from batuta.schedule.cron import MINUTE, first_instant
from batuta.schedule.due import FIRES_AT_A_TIME, MOMENT, ON_TIME, CatchUp, Owed, count, due, fires, fires_per_week
from batuta.schedule.window import Window

PAUSE_ALL = "pause.all"
# Clocks of two machines differ by less than this. If fires are already decided further into the future, the clock was
# set back.
SKEW = timedelta(minutes=1)


def pause_of_job(name: str) -> str:
    return f"pause.job.{name}"


def pause_of_category(name: str) -> str:
    return f"pause.category.{name}"


def rules_of(job: Job) -> tuple[SwitchRule, ...]:
    """Return every rule that can hold the job back: the three pauses (all, category, job), then the switches that the
    job names.
    """
    return (*_pauses_of(job), *job.holds)


def _pauses_of(job: Job) -> tuple[SwitchRule, ...]:
    keys = (PAUSE_ALL, pause_of_category(job.category), pause_of_job(job.name))
    return tuple(SwitchRule(key=key) for key in keys)


def find_holding_switch(job: Job, switches: Mapping[str, Switch], now: datetime) -> str | None:
    """Return the reason given by the first switch that holds the job back, or None if no switch does."""
    for rule in rules_of(job):
        if isinstance(held := judge_switch(rule, switches.get(rule.key), now), Hold):
            return _pause_reason(job, rule, held.reason)
    return None


def possible_holds(job: Job) -> list[str]:
    """Return, for each rule that can hold the job back, the reason that operators see while the job is held back."""
    return [
        _pause_reason(job, rule, (SWITCH_ON if rule.hold_when else SWITCH_OFF)(switch=rule.key, setting=""))
        for rule in rules_of(job)
    ]


def _pause_reason(job: Job, rule: SwitchRule, why: str) -> str:
    """Return the reason that operators see for a job that is held back: ``why`` itself or, if ``why`` only names the
    switch that implements a pause, a reason that names the pause.
    """
    if not isinstance(why, Reason) or why.code != SWITCH_ON:
        return why
    setting = why.facts["setting"]
    if rule.key == PAUSE_ALL:
        return reasons.PAUSED_ALL(setting=setting)
    if rule.key == pause_of_category(job.category):
        return reasons.PAUSED_CATEGORY(name=job.category, setting=setting)
    return reasons.PAUSED_JOB(name=job.name, setting=setting) if rule.key == pause_of_job(job.name) else why


def find_past_hold(job: Job, switches: Mapping[str, Switch], fire: datetime) -> str | None:
    """Return the reason why a switch held the job back at the past instant ``fire``, or None if no switch did. A fire
    that was held back does not run later.
    """
    for rule in rules_of(job):
        switch = switches.get(rule.key)
        if switch is not None and switch.on is not rule.hold_when and switch.set_at > fire:
            if rule in _pauses_of(job):
                return reasons.PAUSE_LIFTED_LATER(by=switch.set_by)
            return reasons.LIFTED_LATER(switch=rule.key, by=switch.set_by)
    return None


def hold(job: Job, switches: Mapping[str, Switch], windows: Mapping[str, Window], now: datetime) -> str | None:
    """Return the reason why the job may not run at ``now``, or None if it may run."""
    if (held := find_holding_switch(job, switches, now)) is not None:
        return held
    if job.window is not None and not windows[job.window].is_open(now, job.zone):
        return reasons.WINDOW_CLOSED(window=job.window)
    return None


def plan(job: Job, ledger: Ledger, windows: Mapping[str, Window]) -> Decisions:
    """Decide which due fires of a job run. Return one row per fire, and the instant up to which all fires are
    decided.
    """
    now = ledger.now
    since = ledger.accounted[job.name]
    if since > now + SKEW:
        # The clock was set back. Fires up to ``since`` have rows, and the unique key keeps them from running again.
        since = now - ON_TIME
    delayed = _find_delayed_fire(job, since, now)
    owed = due(
        job.cron,
        job.zone,
        since=since,
        until=now if delayed is None else delayed - MOMENT,
        policy=job.catch_up,
        max_age=job.max_age,
        jitter=job.jitter,
    )
    is_running = job.name in ledger.running
    openings = list(_list_missed_openings(job, owed, now, is_running))
    accounted = owed.gap.last if owed.gap is not None else max(owed.missed, default=since)
    held_now = hold(job, ledger.switches, windows, now)
    waits, replaced = len(owed.run) == FIRES_AT_A_TIME, frozenset[str]()
    for fire in owed.run:
        is_late = now - fire - job.delay_of(fire) > ON_TIME
        held = held_now or (find_past_hold(job, ledger.switches, fire) if is_late else None)
        if held is None and is_running and job.overlap in (Overlap.SKIP, Overlap.QUEUE_ONE):
            if job.overlap is Overlap.QUEUE_ONE or (is_late and job.catch_up is CatchUp.ALL):
                waits = True  # the remaining fires stay due until the current run ends
                break
            openings.append(_row(job, fire, is_late, Status.SKIPPED, reasons.OVERLAP()))
        elif held is not None:
            openings.append(_row(job, fire, is_late, Status.SKIPPED, reasons.hold_reason(held)))
        else:
            openings.append(_row(job, fire, is_late, Status.RUNNING, None))
            if is_running and job.overlap is Overlap.REPLACE:
                replaced = frozenset({job.name})
            is_running = True
        accounted = fire
    moved = {job.name: accounted} if accounted != ledger.accounted[job.name] else {}
    return Decisions(openings, moved, waits, replaced)


def _find_delayed_fire(job: Job, since: datetime, now: datetime) -> datetime | None:
    """Return the fire after ``since`` whose jitter delay has not passed yet, or None. There is at most one such fire,
    because jitter is shorter than the time between two fires.
    """
    if not job.jitter:
        return None
    recent = fires(job.cron, job.zone, max(since, now - job.jitter), now)
    return next((fire for fire in recent if fire + job.delay_of(fire) > now), None)


def next_start(job: Job, now: datetime) -> datetime:
    """Return the next instant after ``now`` at which a fire starts a run of the job."""
    fire = _find_delayed_fire(job, now - job.jitter, now) or job.cron.next_after(now, job.zone)
    return fire + job.delay_of(fire)


def _list_missed_openings(job: Job, owed: Owed, now: datetime, is_running: bool) -> Iterator[Opening]:
    for fire in owed.missed:
        # A later fire replaced this one in the queue. The run for which it waited may have just ended.
        if job.overlap is Overlap.QUEUE_ONE and (is_running or now - fire <= ON_TIME):
            yield _row(job, fire, True, Status.SKIPPED, reasons.OVERLAP())
        else:
            yield _row(job, fire, True, Status.MISSED, _why_missed(job))
    if (gap := owed.gap) is not None:
        row = _row(job, gap.last, True, Status.MISSED, reasons.MANY_FIRES(why=_why_missed(job), count=gap.count))
        span: dict[str, Json] = {"from": gap.first.isoformat(), "to": gap.last.isoformat(), "count": gap.count}
        yield replace(row, covers=span)


def facts_of(openings: Sequence[Opening]) -> Iterator[Event]:
    """Return the events about fires that do not run: one event per skipped fire, and a single event for all missed
    fires, so that a long outage does not flood the log.
    """
    missed = [each for each in openings if each.status is Status.MISSED]
    for each in openings:
        if each.status is not Status.MISSED:
            yield FireExplained(each.job, each.category, each.scheduled_for, each.status.value, each.reason)
    if not missed:
        return
    counts, instants = Counter[str](), list[datetime]()
    for each in missed:
        covers = each.covers or {}
        counts[each.job] += int(str(covers.get("count", 1)))
        instants += [datetime.fromisoformat(str(covers["from"]))] if covers else []
        instants += [] if each.scheduled_for is None else [each.scheduled_for]
    yield FiresMissed(counts.total(), len(counts), min(instants), max(instants), dict(counts))


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
    """Return the database row for a run that an operator requested. Raise JobRefused if the job is running and its
    overlap rule forbids a second run, or if the job is held back and ``even_if_held`` is false.
    """
    is_running = job.name in ledger.running
    if is_running and job.overlap in (Overlap.SKIP, Overlap.QUEUE_ONE):
        raise JobRefused(job=job.name, why=reasons.ALREADY_RUNNING(), next_step=reasons.WAIT_AND_REPEAT())
    held = hold(job, ledger.switches, windows, ledger.now)
    if held is not None and not even_if_held:
        raise JobRefused(job=job.name, why=reasons.hold_reason(held), next_step=reasons.LIFT_OR_INSIST())
    opening = Opening(
        job=job.name,
        category=job.category,
        scheduled_for=None,
        trigger=Trigger.MANUAL,
        status=Status.RUNNING,
        reason=None if held is None else reasons.BY_HAND(why=reasons.hold_reason(held)),
        params=params or None,
    )
    replaced = frozenset({job.name} if is_running and job.overlap is Overlap.REPLACE else ())
    return Decisions([opening], replaced=replaced)


# An arbitrary week far from any daylight-saving change.
_WEEK = (datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC))


@dataclass(frozen=True, slots=True)
class Fire:
    at: datetime
    job: Job


@dataclass(frozen=True, slots=True)
class Change:
    """The average number of fires per day, before and after a timetable change, for the job, group or hour that ``job``
    names. ``reduction`` is a fraction: 0.5 means half as many fires.
    """

    job: str
    before: float
    after: float

    @property
    def reduction(self) -> float:
        return 0.0 if self.before == 0 else 1 - self.after / self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    changed: Change  # sum over the jobs whose schedules differ
    all: Change
    per_job: tuple[Change, ...]
    per_hour: tuple[Change, ...]  # one entry per hour of the day


def day_of(jobs: Collection[Job], day: date, zone: ZoneInfo) -> list[Fire]:
    """Return every fire of one calendar day in the time zone ``zone``, in chronological order."""
    start, end = (first_instant(datetime.combine(each, time()), zone) for each in (day, day + timedelta(days=1)))
    found = [Fire(at, job) for job in jobs for at in fires(job.cron, job.zone, start - MOMENT, end - MOMENT)]
    return sorted(found, key=lambda fire: (fire.at, fire.job.name))


def compare(before: Collection[Job], after: Collection[Job]) -> Comparison:
    """Compare the fires of two timetables, per job and per hour. A job that replaces another job is compared with that
    job.
    """
    old, new = _group_by_work(before), _group_by_work(after)
    works = dict.fromkeys(chain(old, new))
    per_job = tuple(
        Change(work, _fires_per_day(old.get(work, [])), _fires_per_day(new.get(work, []))) for work in works
    )
    changed = [work for work in works if _schedules(old.get(work, [])) != _schedules(new.get(work, []))]
    hours = enumerate(zip(_hours(before), _hours(after), strict=True))
    return Comparison(
        changed=_sum("changed", [change for change in per_job if change.job in changed]),
        all=_sum("all", per_job),
        per_job=tuple(change for change in per_job if change.job in changed),
        per_hour=tuple(Change(f"{hour:02d}", first, second) for hour, (first, second) in hours),
    )


def _group_by_work(jobs: Collection[Job]) -> Mapping[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.replaces or job.name, []).append(job)
    return found


def _schedules(jobs: Collection[Job]) -> list[str]:
    return sorted(job.cron.text for job in jobs)


def _fires_per_day(jobs: Collection[Job]) -> float:
    return sum(fires_per_week(job.cron, job.zone) for job in jobs) / 7


def _sum(name: str, changes: Collection[Change]) -> Change:
    return Change(name, sum(change.before for change in changes), sum(change.after for change in changes))


def _hours(jobs: Collection[Job]) -> list[float]:
    """Return, for each hour of the day, the average number of fires in that hour."""
    counts = [0] * 24
    for job in jobs:
        if job.every < MINUTE:  # for frequent jobs, counting is faster than listing hundreds of thousands of fires
            for hour in range(7 * 24):
                start = _WEEK[0] + timedelta(hours=hour)
                counts[start.astimezone(job.zone).hour] += count(
                    job.cron, job.zone, start - MOMENT, start + timedelta(hours=1) - MOMENT
                )
            continue
        for fire in fires(job.cron, job.zone, *_WEEK):
            counts[fire.astimezone(job.zone).hour] += 1
    return [count / 7 for count in counts]
