"""A timetable looked at as a whole: the fires of a day, and how often two timetables wake everybody up."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain
from zoneinfo import ZoneInfo

from batuta.dispatch.job import Job
from batuta.schedule.cron import first_instant
from batuta.schedule.due import fires, fires_per_week

# Any week without a change of the clocks near it.
_WEEK = (datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 12, tzinfo=UTC))
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Fire:
    at: datetime
    job: Job


@dataclass(frozen=True, slots=True)
class Change:
    """Fires a day, before and after. ``reduction`` is a share: 0.5 is half as many."""

    job: str
    before: float
    after: float

    @property
    def reduction(self) -> float:
        return 0.0 if self.before == 0 else 1 - self.after / self.before


@dataclass(frozen=True, slots=True)
class Comparison:
    changed: Change  # the jobs whose schedule is another one, together
    all: Change
    per_job: tuple[Change, ...]
    per_hour: tuple[Change, ...]  # by hour of the day


def day_of(jobs: Collection[Job], day: date, zone: ZoneInfo) -> list[Fire]:
    """Every fire of a day in the zone, in order."""
    start, end = (first_instant(datetime.combine(each, time()), zone) for each in (day, day + timedelta(days=1)))
    found = [Fire(at, job) for job in jobs for at in fires(job.cron, job.zone, start - _MOMENT, end - _MOMENT)]
    return sorted(found, key=lambda fire: (fire.at, fire.job.name))


def compare(before: Collection[Job], after: Collection[Job]) -> Comparison:
    """Jobs are matched by what they replace: three windows are one job of the other timetable."""
    old, new = _by_work(before), _by_work(after)
    works = dict.fromkeys(chain(old, new))
    per_job = tuple(Change(work, _per_day(old.get(work, [])), _per_day(new.get(work, []))) for work in works)
    changed = [work for work in works if _schedules(old.get(work, [])) != _schedules(new.get(work, []))]
    return Comparison(
        changed=_sum("changed", [change for change in per_job if change.job in changed]),
        all=_sum("all", per_job),
        per_job=tuple(change for change in per_job if change.job in changed),
        per_hour=_per_hour(before, after),
    )


def _by_work(jobs: Collection[Job]) -> Mapping[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(job.replaces or job.name, []).append(job)
    return found


def _schedules(jobs: Collection[Job]) -> list[str]:
    return sorted(job.cron.text for job in jobs)


def _per_day(jobs: Collection[Job]) -> float:
    return sum(fires_per_week(job.cron, job.zone) for job in jobs) / 7


def _sum(name: str, changes: Collection[Change]) -> Change:
    return Change(name, sum(change.before for change in changes), sum(change.after for change in changes))


def _per_hour(before: Collection[Job], after: Collection[Job]) -> tuple[Change, ...]:
    old, new = _hours(before), _hours(after)
    return tuple(Change(f"{hour:02d}", old[hour] / 7, new[hour] / 7) for hour in range(24))


def _hours(jobs: Collection[Job]) -> list[int]:
    counts = [0] * 24
    for job in jobs:
        for fire in fires(job.cron, job.zone, *_WEEK):
            counts[fire.astimezone(job.zone).hour] += 1
    return counts
