"""Cron schedules with five or six fields in any time zone, which are correct even on days when the clocks change.

    [second]  minute  hour  day-of-month  month  day-of-week    names (JAN, SUN, DOM), lists, ranges, steps; 0/7: Sunday

As in Debian's cron, if both day fields are restricted, a day matches if either field matches. When the clocks change:

- a job at fixed hours runs once: at the first instant after the gap if its time is skipped, at the first occurrence if
  its time occurs twice;
- a job whose minute or hour begins with ``*`` follows elapsed time: a clock change neither pauses it for an hour nor
  doubles its runs.

The code computes with wall times (naive, in the zone) and converts them to instants at the end; it never iterates over
minutes. A fire falls on a whole second of wall time or, with five fields, on a whole minute. If the UTC offset has
seconds (São Paulo was at -03:06:28 until 1914), the instant has seconds too.
"""

import calendar
import re
from bisect import bisect_left
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import product
from typing import Final
from zoneinfo import ZoneInfo

from batuta.kernel.errors import InvalidCron
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass

SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
DAY: Final = timedelta(days=1)
# Longer than the largest clock change in any time zone.
LARGEST_CLOCK_CHANGE: Final = timedelta(hours=26)

_MONTHS = {"JAN": 1, "FEB": 2, "MAR": 3, "APR": 4, "MAY": 5, "JUN": 6, "JUL": 7, "AUG": 8, "SEP": 9, "OCT": 10}
_MONTHS |= {"NOV": 11, "DEC": 12, "FEV": 2, "ABR": 4, "MAI": 5, "AGO": 8, "SET": 9, "OUT": 10, "DEZ": 12}
_DAYS = {"SUN": 0, "MON": 1, "TUE": 2, "WED": 3, "THU": 4, "FRI": 5, "SAT": 6}
_DAYS |= {"DOM": 0, "SEG": 1, "TER": 2, "QUA": 3, "QUI": 4, "SEX": 5, "SAB": 6}
_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PART = re.compile(r"^(\*|[A-Z0-9]+(?:-[A-Z0-9]+)?)(?:/(\d+))?$")


@dataclass(frozen=True, slots=True)
class Cron:
    """A parsed cron schedule, created by ``parse``. ``text`` is the schedule as written; the other attributes contain
    the numbers that match each part of the schedule.
    """

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    either_day: bool  # whether both day fields are restricted; a day then matches if either field matches
    follows_elapsed_time: bool
    seconds: tuple[int, ...] = (0,)

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime:
        """Return the first fire later than ``instant``, in UTC."""
        return self._next_elapsed(instant, zone) if self.follows_elapsed_time else self._next_fixed(instant, zone)

    def _next_fixed(self, instant: datetime, zone: ZoneInfo) -> datetime:
        wall = instant.astimezone(zone).replace(tzinfo=None, fold=0, microsecond=0)
        while True:
            wall = self._next_wall(wall + SECOND)
            fire = first_instant(wall, zone)
            if fire > instant:  # False in a repeated hour, because its wall times have already occurred once
                return fire

    def _next_elapsed(self, instant: datetime, zone: ZoneInfo) -> datetime:
        start = instant.astimezone(UTC).replace(microsecond=0) + SECOND
        while True:
            offset = _offset(start, zone)
            fire = (self._next_wall((start + offset).replace(tzinfo=None)) - offset).replace(tzinfo=UTC)
            near = min(fire, start + LARGEST_CLOCK_CHANGE)
            if _offset(near, zone) != offset:
                start = _first_change(start, near, zone)
            elif near == fire:
                return fire
            else:
                # No matching wall time lies before this instant, so earlier clock changes do not affect the result.
                start = fire - LARGEST_CLOCK_CHANGE

    def _next_wall(self, wall: datetime) -> datetime:
        """Return the first wall time at or after ``wall`` that matches the schedule."""
        if self.matches(wall.date()) and (found := self._next_time(wall.time())) is not None:
            return datetime.combine(wall.date(), found)
        day = wall.date() + DAY
        while not self.matches(day):
            day = _first_of_next_month(day) if day.month not in self.months else day + DAY
        return datetime.combine(day, time(self.hours[0], self.minutes[0], self.seconds[0]))

    def _next_time(self, earliest: time) -> time | None:
        """Return the first time of day at or after ``earliest`` that matches the schedule. ``earliest`` must be a whole
        second.
        """
        for hour in self.hours[bisect_left(self.hours, earliest.hour) :]:
            if hour > earliest.hour:
                return time(hour, self.minutes[0], self.seconds[0])
            for minute in self.minutes[bisect_left(self.minutes, earliest.minute) :]:
                if minute > earliest.minute:
                    return time(hour, minute, self.seconds[0])
                second = bisect_left(self.seconds, earliest.second)
                if second < len(self.seconds):
                    return time(hour, minute, self.seconds[second])
        return None

    def matches(self, day: date) -> bool:
        """Return whether the schedule fires on this calendar day."""
        if day.month not in self.months:
            return False
        by_date, by_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return by_date or by_weekday if self.either_day else by_date and by_weekday


@lru_cache(maxsize=1024)
def parse(text: str) -> Cron:
    fields = _MACROS.get(text.strip().lower(), text).upper().split()
    if len(fields) not in (5, 6):
        why = (
            "it has {count} fields and needs 5 (minute hour day month weekday), or 6 with the seconds first, "
            "as in '*/5 8-19 * * 1-5'"
        )
        raise _invalid(text, "cron_fields", why, count=len(fields))
    second, minute, hour, day, month, weekday = ["0", *fields][-6:]
    cron = Cron(
        text=text,
        minutes=tuple(sorted(_numbers(text, minute, "minute", 0, 59))),
        hours=tuple(sorted(_numbers(text, hour, "hour", 0, 23))),
        days=frozenset(_numbers(text, day, "day of month", 1, 31)),
        months=frozenset(_numbers(text, month, "month", 1, 12, _MONTHS)),
        weekdays=frozenset(number % 7 for number in _numbers(text, weekday, "day of week", 0, 7, _DAYS)),
        either_day=not day.startswith("*") and not weekday.startswith("*"),
        follows_elapsed_time=minute.startswith("*") or hour.startswith("*"),
        seconds=tuple(sorted(_numbers(text, second, "second", 0, 59))),
    )
    if not _ever_fires(cron):
        raise _invalid(text, "cron_never", "none of its months has such a day, so it would never fire")
    return cron


def _numbers(cron: str, field: str, name: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        matched = _PART.match(part)
        if matched is None:
            raise _invalid(cron, "cron_part", "'{part}' is not a {field}", part=part, field=_field_name(name))
        span, step = matched[1], int(matched[2] or 1)
        first, last = _span(cron, span, name, low, high, names or {})
        if matched[2] is not None and span != "*" and "-" not in span:
            last = high  # 5/10 means from 5 to the end in steps of 10
        if step == 0 or first > last:
            raise _invalid(cron, "cron_empty", "'{part}' contains no {field}", part=part, field=_field_name(name))
        found |= set(range(first, last + 1, step))
    return found


def _span(cron: str, span: str, name: str, low: int, high: int, names: dict[str, int]) -> tuple[int, int]:
    if span == "*":
        # 7 also means Sunday, so a step must not count it a second time.
        return low, min(high, 6) if high == 7 else high
    first, _, last = span.partition("-")
    return _number(cron, first, name, low, high, names), _number(cron, last or first, name, low, high, names)


def _number(cron: str, word: str, name: str, low: int, high: int, names: dict[str, int]) -> int:
    number = names.get(word, int(word) if word.isdigit() else -1)
    if not low <= number <= high:
        why = "'{word}' is not a {field} from {low} to {high}"
        raise _invalid(cron, "cron_number", why, word=word, field=_field_name(name), low=low, high=high)
    return number


def _invalid(cron: str, code: str, english: str, **facts: object) -> InvalidCron:
    return InvalidCron(cron=cron, why=Reason(code, english, **facts))


def _field_name(field: str) -> Reason:
    """Return the name of a cron field as a ``Reason``, so that error messages show it in the operator's language."""
    return Reason(f"cron_{field.replace(' ', '_')}", field)


def _ever_fires(cron: Cron) -> bool:
    if cron.either_day:
        return True
    # 2024 is a leap year, so a day that does not exist in 2024 never occurs.
    return any(day <= calendar.monthrange(2024, month)[1] for month, day in product(cron.months, cron.days))


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    offset = instant.astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def first_instant(wall: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant of a wall time. If a clock change repeats the wall time, return the first occurrence. If a
    clock change skips it, return the end of the gap.
    """
    instant = wall.replace(tzinfo=zone).astimezone(UTC)
    if instant.astimezone(zone).replace(tzinfo=None, fold=0) == wall:
        return instant
    # The wall time is in a gap. The conversion used the offset from before the gap, so ``instant`` is after the gap,
    # and a day earlier is before it.
    return _first_change(instant - DAY, instant, zone)


def _first_change(before: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Find the first second at which the zone's UTC offset differs from its offset at ``before``. The result lies
    between ``before`` and ``after``, which are whole seconds with different offsets.
    """
    offset = _offset(before, zone)
    while after - before > SECOND:
        middle = before + ((after - before) // 2 // SECOND) * SECOND
        if _offset(middle, zone) == offset:
            before = middle
        else:
            after = middle
    return after


def _first_of_next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
