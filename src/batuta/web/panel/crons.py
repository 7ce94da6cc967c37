"""A schedule in words, where it is simple enough for words to be shorter than the cron."""

from itertools import pairwise

from batuta.schedule.cron import Cron
from batuta.web.panel.words import Words

MOST_TIMES = 4  # more times of the day than this are not told one by one
_EVERY_DAY = frozenset(range(7))
_WORKING_DAYS = frozenset(range(1, 6))


def in_words(cron: Cron, words: Words) -> str | None:
    """None: the cron says it better."""
    days = _days(cron, words)
    times = _times(cron, words, every_day=not days)
    return None if days is None or times is None else ", ".join(part for part in (times, days) if part)


def _days(cron: Cron, words: Words) -> str | None:
    """Empty: every day."""
    if len(cron.months) < 12 or cron.either_day:
        return None
    if len(cron.days) < 31:
        return words.texts("panel.cron.on_day", day=min(cron.days)) if len(cron.days) == 1 else None
    if cron.weekdays == _EVERY_DAY:
        return ""
    if cron.weekdays == _WORKING_DAYS:
        return f"{words.weekday(1)}–{words.weekday(5)}"
    return words.listed([words.weekday(day) for day in sorted(cron.weekdays)])


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
    times = words.listed([f"{hour:02}:{minutes[0]:02}" for hour in hours])
    return texts("panel.cron.daily", times=times) if every_day else texts("panel.cron.at", times=times)


def _step(numbers: tuple[int, ...], end: int) -> int | None:
    """What ``*/step`` was written, if the steps go round evenly."""
    step = numbers[1] - numbers[0]
    return step if numbers == tuple(range(0, end, step)) and end % step == 0 else None


def _is_run(numbers: tuple[int, ...]) -> bool:
    return all(later - earlier == 1 for earlier, later in pairwise(numbers))
