"""Formats instants, durations, numbers and schedules for people, in their language and time zone."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from batuta.kernel.values import dataclass
from batuta.schedule.cron import Cron
from batuta.schedule.kinds import Schedule
from batuta.texts import Texts

NOTHING = "–"
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Words:
    texts: Texts
    zone: ZoneInfo
    now: datetime

    def word(self, group: str, key: str) -> str:
        """Return the dashboard's word for a state, a status or a trigger, from the table of texts."""
        return self.texts(f"panel.{group}.{key}")

    def plain(self, group: str, key: str) -> str:
        return self.texts(f"{group}.{key}")

    def reason(self, reason: str | None) -> str | None:
        return None if reason is None else self.texts.reason(reason)

    def window(self, name: str) -> str:
        """Return the application's display name for a window (``window_name.<name>``), or the window's key if it has no
        display name.
        """
        return self.texts.get(f"window_name.{name}", name)

    def plural(self, key: str, count: int) -> str:
        return self.texts(f"panel.{key}_{'one' if count == 1 else 'many'}", count=self.number(count))

    def local(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone)

    def minute(self, instant: datetime) -> str:
        return self.texts.minute(self.local(instant))

    def short(self, instant: datetime) -> str:
        """Format an instant for a list. An instant today is shown as a time, and a date this year is shown without the
        year.
        """
        return f"{self._short_day(instant)}{self.local(instant):%H:%M}"

    def short_second(self, instant: datetime) -> str:
        return f"{self._short_day(instant)}{self.local(instant):%H:%M:%S}"

    def _short_day(self, instant: datetime) -> str:
        local, today = self.local(instant), self.local(self.now)
        if local.date() == today.date():
            return ""
        return (local.strftime(self.texts("format.short_day")) if local.year == today.year else self.day(instant)) + " "

    def second(self, instant: datetime) -> str:
        return self.texts.second(self.local(instant))

    def day(self, instant: datetime) -> str:
        return self.texts.day(self.local(instant))

    def hour(self, instant: datetime) -> str:
        return f"{self.local(instant):%H:%M}"

    def clock(self, instant: datetime) -> str:
        return f"{self.local(instant):%H:%M:%S}"

    def whole(self, instant: datetime) -> str:
        """Format an instant in full for a tooltip: weekday, date with year, time and UTC offset."""
        local = self.local(instant)
        return f"{self.weekday(local.isoweekday() % 7)} {self.texts.second(local)} {local:%z}"

    def weekday(self, day: int) -> str:
        """Return the name of a weekday; 0 is Sunday, as in cron."""
        return self.texts("panel.weekdays").split()[day]

    def ago(self, instant: datetime) -> str:
        return self.texts("panel.ago", span=self.texts.about(self.now - instant))

    def ahead(self, instant: datetime) -> str:
        return self.texts("panel.ahead", span=self.texts.about(instant - self.now))

    def took(self, milliseconds: int | None) -> str:
        return NOTHING if milliseconds is None else self.texts.took(milliseconds)

    def lasts(self, length: timedelta) -> str:
        """Format a duration: rounded, or in milliseconds if it is shorter than a second."""
        return self.texts.took(length // timedelta(milliseconds=1)) if length < SECOND else self.texts.about(length)

    def number(self, number: int) -> str:
        return self.texts.number(number)

    def figure(self, value: int | timedelta) -> str:
        if isinstance(value, timedelta):
            return self.texts.about(value) if value else NOTHING
        return self.number(value)

    def join(self, words: Sequence[str]) -> str:
        *most, last = words
        return f"{', '.join(most)} {self.texts('panel.and')} {last}" if most else last


MOST_TIMES = 4  # a schedule with more times per day than this is shown as an interval
_EVERY_DAY = frozenset(range(7))
_WORKING_DAYS = frozenset(range(1, 6))


def in_words(cron: Schedule, words: Words) -> str | None:
    """Return a phrase for a cron schedule. Return None if there is no simple phrase, so that the page shows the
    schedule's own text instead.
    """
    if not isinstance(cron, Cron) or cron.seconds != (0,):
        return None
    days = _days(cron, words)
    times = _times(cron, words, every_day=not days)
    return None if days is None or times is None else ", ".join(part for part in (times, days) if part)


def _days(cron: Cron, words: Words) -> str | None:
    """Return a phrase for the days that a cron expression matches. The phrase is empty if the expression matches every
    day, and None if no simple phrase exists.
    """
    if len(cron.months) < 12 or cron.either_day:
        return None
    if len(cron.days) < 31:
        return words.texts("panel.cron.on_day", day=min(cron.days)) if len(cron.days) == 1 else None
    if cron.weekdays == _EVERY_DAY:
        return ""
    if cron.weekdays == _WORKING_DAYS:
        return f"{words.weekday(1)}–{words.weekday(5)}"
    return words.join([words.weekday(day) for day in sorted(cron.weekdays)])


def _times(cron: Cron, words: Words, *, every_day: bool) -> str | None:
    texts = words.texts
    minutes, hours = cron.minutes, cron.hours
    if len(minutes) > 1:
        step = _step(minutes, 60)
        if step is None or not _is_run(hours):
            return None
        often = texts("panel.cron.every_minute") if step == 1 else texts("panel.cron.every_minutes", step=step)
        return often if len(hours) == 24 else f"{often}, {hours[0]}h–{hours[-1]}h"
    if len(hours) == 24:
        return (
            texts("panel.cron.hourly") if minutes[0] == 0 else texts("panel.cron.hourly_at", minute=f"{minutes[0]:02}")
        )
    if len(hours) > MOST_TIMES:
        return texts("panel.cron.hourly_between", first=hours[0], last=hours[-1]) if _is_run(hours) else None
    times = words.join([f"{hour:02}:{minutes[0]:02}" for hour in hours])
    return texts("panel.cron.daily", times=times) if every_day else texts("panel.cron.at", times=times)


def _step(numbers: tuple[int, ...], end: int) -> int | None:
    """Return the step N for which the cron field ``*/N`` matches exactly these numbers, or None if there is no such
    step.
    """
    step = numbers[1] - numbers[0]
    return step if numbers == tuple(range(0, end, step)) and end % step == 0 else None


def _is_run(numbers: tuple[int, ...]) -> bool:
    return all(later - earlier == 1 for earlier, later in pairwise(numbers))
