"""How often a schedule fires, and how long its silence may last."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from batuta.schedule.cron import Cron

WEEK = timedelta(days=7)
# Any Monday without a change of the clocks near it: a period is about the schedule, not about a particular week.
_REFERENCE = datetime(2026, 1, 5, tzinfo=UTC)
_SHORTEST = timedelta(minutes=1)

# What operators agreed on; any other period is forgiven twice: three times the period.
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
def period(cron: Cron, zone: ZoneInfo) -> timedelta:
    """The shortest gap between two fires in a week; of a rarer schedule, the next gap. Monday to Friday counts as daily."""
    last = cron.next_after(_REFERENCE, zone)
    shortest = None
    while shortest is None or (last < _REFERENCE + WEEK and shortest > _SHORTEST):
        following = cron.next_after(last, zone)
        shortest = min(shortest or following - last, following - last)
        last = following
    return shortest


def default_sla(every: timedelta) -> timedelta:
    """How long after an expected fire a successful run must have started."""
    return _AGREED.get(every, 3 * every)


@cache
def fires_per_week(cron: Cron, zone: ZoneInfo) -> int:
    count, at = 0, _REFERENCE
    while (at := cron.next_after(at, zone)) <= _REFERENCE + WEEK:
        count += 1
    return count
