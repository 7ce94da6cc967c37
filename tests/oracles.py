"""Independent reference implementations: slow and simple, and sharing no code with the code that they check."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)


def cron_fires(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Return every fire in [start, end], found by checking each minute in turn. If the expression has six fields, the
    first one specifies the seconds.

    If the minute or hour field begins with *, the job fires in each real minute whose wall time matches. Otherwise it
    fires once for each matching wall time. If a clock change repeats that time, the job fires at its first occurrence.
    If a clock change skips that time, the job fires at the first minute after the change.
    """
    if len(text.split()) == 6:
        return _with_seconds(text, zone, start, end)
    minute, hour, *_ = text.split()
    if minute.startswith("*") or hour.startswith("*"):
        count = int((end - start) / MINUTE) + 1
        real = (start + step * MINUTE for step in range(count))
        return [each for each in real if matches(text, each.astimezone(zone).replace(tzinfo=None))]
    wall = (start.astimezone(zone) - timedelta(days=1)).replace(tzinfo=None)
    last = (end.astimezone(zone) + timedelta(days=1)).replace(tzinfo=None)
    found = set()
    while wall <= last:
        if matches(text, wall):
            found.add(happens(wall, zone))
        wall += MINUTE
    return sorted(each for each in found if start <= each <= end)


def _with_seconds(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    """Return the fires of an expression with six fields, each in the seconds that its first field specifies. If a clock
    change skips a matching minute, the job fires only once for it, at the first instant after the change.
    """
    second, _, minutes = text.partition(" ")
    minute, hour, *_ = minutes.split()
    follows = minute.startswith("*") or hour.startswith("*")
    found = set()
    for fire in cron_fires(minutes, zone, start - MINUTE, end):
        if follows or matches(minutes, fire.astimezone(zone).replace(tzinfo=None)):
            found |= {fire + timedelta(seconds=each) for each in values(second, 0, 59)}
        else:
            found.add(fire)
    return sorted(each for each in found if start <= each <= end)


def happens(wall: datetime, zone: ZoneInfo) -> datetime:
    while not exists(wall, zone):
        wall += MINUTE
    return wall.replace(tzinfo=zone, fold=0).astimezone(UTC)


def exists(wall: datetime, zone: ZoneInfo) -> bool:
    return wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None) == wall


def matches(text: str, wall: datetime) -> bool:
    minute, hour, day, month, weekday = text.split()
    if wall.minute not in values(minute, 0, 59) or wall.hour not in values(hour, 0, 23):
        return False
    if wall.month not in values(month, 1, 12):
        return False
    by_date = wall.day in values(day, 1, 31)
    by_weekday = wall.isoweekday() % 7 in {value % 7 for value in values(weekday, 0, 7)}
    restricted = not day.startswith("*") and not weekday.startswith("*")
    return by_date or by_weekday if restricted else by_date and by_weekday


@cache
def values(field: str, low: int, high: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        begin = low if first == "*" else int(first)
        end = high if first == "*" or (step and not last) else int(last or first)
        found |= set(range(begin, end + 1, int(step or 1)))
    return frozenset(found)
