"""Decides which of the fires between two instants run, and which are recorded as missed.

    since │      │      │      │ until          policy latest: the last fire runs, the others are missed
          missed missed  missed run             policy all:    every fire not older than max_age runs, oldest first
                                                policy skip:   only a fire that is on time runs

Missed fires are listed one by one or, if there are many, as one counted gap.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import cache
from itertools import islice
from zoneinfo import ZoneInfo

from batuta.kernel.values import dataclass
from batuta.schedule.cron import DAY, MINUTE, Cron
from batuta.schedule.kinds import Interval, Once, Schedule

MOMENT = timedelta(microseconds=1)
NO_TIME = timedelta(0)
# A fire that is found within this time is on time. A fire that is found later counts as missed, and may be caught up.
ON_TIME = timedelta(seconds=10)
# If more fires than this were missed, they are reported as one gap.
MOST_MISSED = 100
# Maximum number of fires that one call returns; the others stay due.
FIRES_AT_A_TIME = 100


class CatchUp(StrEnum):
    """The rule for fires that became due while no scheduler was running."""

    SKIP = "skip"  # run none of them
    LATEST = "latest"  # run the most recent one
    ALL = "all"  # run each of them, oldest first


@dataclass(frozen=True, slots=True)
class Gap:
    """Many missed fires, reported together. ``count`` is computed in wall time, so it ignores hours that a clock change
    repeats or skips.
    """

    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Owed:
    run: tuple[datetime, ...]  # fires to run, oldest first
    missed: tuple[datetime, ...]
    gap: Gap | None = None  # replaces ``missed`` if many fires were missed


def due(
    cron: Schedule,
    zone: ZoneInfo,
    *,
    since: datetime,
    until: datetime,
    policy: CatchUp,
    max_age: timedelta,
    jitter: timedelta = NO_TIME,
) -> Owed:
    """Return the fires in (since, until] that run, and the fires that are missed. A fire older than ``max_age`` is
    always missed. ``jitter`` is the longest random delay before a start; it does not add to a fire's age.
    """
    run = _worth_running(cron, zone, since, until, policy, max_age, jitter)
    end = run[0] - MOMENT if run else until
    missed = tuple(islice(fires(cron, zone, since, end), MOST_MISSED + 1))
    if len(missed) <= MOST_MISSED:
        return Owed(run, missed)
    last = last_fire(cron, zone, end)
    return Owed(run, (), Gap(missed[0], last, count(cron, zone, since, last)))


def _worth_running(
    cron: Schedule,
    zone: ZoneInfo,
    since: datetime,
    until: datetime,
    policy: CatchUp,
    max_age: timedelta,
    jitter: timedelta,
) -> tuple[datetime, ...]:
    oldest = until - jitter - (ON_TIME if policy is CatchUp.SKIP else max(max_age, ON_TIME))
    earlier = max(since, oldest - MOMENT)
    if policy is CatchUp.LATEST:
        return (last_fire(cron, zone, until),) if cron.next_after(earlier, zone) <= until else ()
    return tuple(islice(fires(cron, zone, earlier, until), FIRES_AT_A_TIME))


def fires(cron: Schedule, zone: ZoneInfo, since: datetime, until: datetime) -> Iterator[datetime]:
    """Yield every fire of a schedule after ``since`` and up to ``until``."""
    fire = cron.next_after(since, zone)
    while fire <= until:
        yield fire
        fire = cron.next_after(fire, zone)


def last_fire(cron: Schedule, zone: ZoneInfo, until: datetime) -> datetime:
    """Return the last fire at or before ``until``, found by bisection."""
    back = MINUTE
    while (found := cron.next_after(until - back, zone)) > until:
        back *= 2
    later = until
    while later - found > MINUTE:
        middle = found + (later - found) / 2
        fire = cron.next_after(middle, zone)
        if fire <= until:
            found = fire
        else:
            later = middle
    # The search found that no fire is after ``later``, but a fire may be exactly at ``later``.
    return max((found, *fires(cron, zone, found, until)))


def count(cron: Schedule, zone: ZoneInfo, since: datetime, until: datetime) -> int:
    """Return the number of fires of a schedule after ``since`` and up to ``until``. For a cron schedule, count the
    matching wall times.
    """
    if not isinstance(cron, Cron):
        return cron.count(since, until)
    start, end = (instant.astimezone(zone).replace(tzinfo=None) for instant in (since, until))
    return _count_up_to(cron, end, start.year) - _count_up_to(cron, start, start.year)


def _count_up_to(cron: Cron, wall: datetime, first_year: int) -> int:
    """Return the number of wall times that match a cron schedule, from the start of ``first_year`` to ``wall``,
    inclusive.
    """
    whole_years = sum(_days_in_year(cron, *_kind(year)) for year in range(first_year, wall.year))
    day = wall.date()
    new_year = day.replace(month=1, day=1)
    whole_days = sum(cron.matches(new_year + n * DAY) for n in range((day - new_year).days))
    this_minute = time(wall.hour, wall.minute)
    earlier = sum(time(hour, minute) < this_minute for hour in cron.hours for minute in cron.minutes)
    is_now = wall.hour in cron.hours and wall.minute in cron.minutes
    today = earlier * len(cron.seconds) + (sum(each <= wall.second for each in cron.seconds) if is_now else 0)
    per_day = len(cron.hours) * len(cron.minutes) * len(cron.seconds)
    return (whole_years + whole_days) * per_day + (today if cron.matches(day) else 0)


def _kind(year: int) -> tuple[int, int]:
    """Return a year's number of days and its first weekday. Years with equal results have the same calendar."""
    first, following = date(year, 1, 1), date(year + 1, 1, 1)
    return (following - first).days, first.isoweekday()


@cache
def _days_in_year(cron: Cron, length: int, first_weekday: int) -> int:
    like = next(year for year in range(2000, 2028) if _kind(year) == (length, first_weekday))
    first = date(like, 1, 1)
    return sum(cron.matches(first + n * DAY) for n in range(length))


WEEK = timedelta(days=7)
# An arbitrary Monday far from any clock change. With a fixed week, a schedule's period does not depend on the current
# date.
_REFERENCE = datetime(2026, 1, 5, tzinfo=UTC)

# The period assumed for a schedule that fires once: its fire can be caught up within this time.
ONLY_FIRE = timedelta(days=366)

# SLAs agreed with operators, by period; any other period gets three times its length.
_AGREED = {
    timedelta(minutes=1): timedelta(minutes=3),
    timedelta(minutes=5): timedelta(minutes=15),
    timedelta(minutes=10): timedelta(minutes=30),
    timedelta(minutes=15): timedelta(minutes=45),
    timedelta(hours=1): timedelta(hours=2),
    timedelta(days=1): timedelta(hours=25),
    WEEK: timedelta(days=8),
}


@cache
def period(cron: Schedule, zone: ZoneInfo) -> timedelta:
    """Return the shortest time between two fires within a week. If the schedule has fewer than two fires in a week,
    return the time between its next two fires. If the schedule fires only once, return ONLY_FIRE.
    """
    if isinstance(cron, Interval):
        return cron.every
    if isinstance(cron, Once):
        return ONLY_FIRE
    last, least = cron.next_after(_REFERENCE, zone), _least_period(cron)
    shortest = None
    while shortest is None or (last < _REFERENCE + WEEK and shortest > least):
        following = cron.next_after(last, zone)
        shortest = min(shortest or following - last, following - last)
        last = following
    return shortest


def _least_period(cron: Cron) -> timedelta:
    """Return a lower bound for the result of ``period``: the smallest distance between two values of the seconds field
    or, if that field has only one value, of the minutes field. The function ``period`` stops its search when it reaches
    this bound.
    """
    values, unit = (cron.seconds, timedelta(seconds=1)) if len(cron.seconds) > 1 else (cron.minutes, MINUTE)
    following = (*values[1:], values[0] + 60)
    return min(after - before for before, after in zip(values, following, strict=True)) * unit


def default_sla(every: timedelta) -> timedelta:
    """Return the default SLA (the longest acceptable time between a fire and a successful run) for a schedule with the
    interval ``every`` between fires.
    """
    return _AGREED.get(every, 3 * every)


@cache
def fires_per_week(cron: Schedule, zone: ZoneInfo) -> int:
    return count(cron, zone, _REFERENCE, _REFERENCE + WEEK)
