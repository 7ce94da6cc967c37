"""Weekly windows in a time zone, and Brazil's national holidays.

A window opens at a wall time on some weekdays and stays open for a fixed elapsed time; its end is exclusive. Carnival
and Corpus Christi are optional days off in Brazil, so they are not holidays here.
"""

import re
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from batuta.kernel.errors import InvalidCron, InvalidWindow
from batuta.kernel.reasons import Reason
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.schedule.cron import DAY, first_instant, parse

# Maps (month, day) to the holiday's name and the first year in which it is a national holiday; 0 means every year.
_FIXED: dict[tuple[int, int], tuple[str, int]] = {
    (1, 1): ("Confraternização Universal", 0),
    (4, 21): ("Tiradentes", 0),
    (5, 1): ("Dia do Trabalhador", 0),
    (9, 7): ("Independência do Brasil", 0),
    (10, 12): ("Nossa Senhora Aparecida", 1980),
    (11, 2): ("Finados", 0),
    (11, 15): ("Proclamação da República", 0),
    (11, 20): ("Dia da Consciência Negra", 2024),
    (12, 25): ("Natal", 0),
}


def holidays(year: int) -> dict[date, str]:
    found = {date(year, month, day): name for (month, day), (name, since) in _FIXED.items() if year >= since}
    found[easter(year) - timedelta(days=2)] = "Sexta-feira Santa"
    return found


_CITIES = (
    "Araguaina Bahia Belem Boa_Vista Campo_Grande Cuiaba Eirunepe Fortaleza Maceio Manaus Noronha Porto_Velho Recife "
    "Rio_Branco Santarem Sao_Paulo"
)
_ZONES = frozenset(f"America/{city}" for city in _CITIES.split())


def holiday_at(day: date, zone: ZoneInfo) -> str | None:
    """Return the name of the holiday on this day, or None. Only Brazilian time zones have holidays."""
    return holidays(day.year).get(day) if zone.key in _ZONES else None


def easter(year: int) -> date:
    """Return Easter Sunday, computed by the Gregorian computus."""
    golden = year % 19
    century, rest = divmod(year, 100)
    leaps_dropped, leap_phase = divmod(century, 4)
    moon_shift = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leaps_dropped - moon_shift + 15) % 30
    leaps, phase = divmod(rest, 4)
    weekday = (32 + 2 * leap_phase + 2 * leaps - epact - phase) % 7
    correction = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * correction + 114, 31)
    return date(year, month, day + 1)


# Upper bound of the wait: a window on one weekday may fall on several holidays in a row (Christmas, New Year), but
# never for two months.
LONGEST_WAIT_DAYS = 60
WEEKDAYS = frozenset({1, 2, 3, 4, 5})
MINUTES_OF_A_DAY = 24 * 60
_TIME_OF_DAY = re.compile(r"(\d{1,2}):(\d{2})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Hours on some days of the week during which a job may run. ``days`` are numbered as in cron (0 is Sunday). If
    ``on_holidays`` is false, the window does not open on Brazil's national holidays.
    """

    opens: time
    lasts: timedelta = timedelta(hours=2)
    days: frozenset[int] = WEEKDAYS
    on_holidays: bool = True

    def __post_init__(self) -> None:
        if not timedelta(0) < self.lasts <= DAY:
            raise ValueError(Reason("window_length", "the length of a window must be positive and at most a day"))
        if not self.days or not self.days <= frozenset(range(7)):
            raise ValueError("a window needs at least one day, from 0 (Sunday) to 6 (Saturday)")
        if self.opens.tzinfo is not None:
            raise ValueError(
                "the opening time of a window must have no time zone: pass the zone to is_open or next_open"
            )

    def is_open(self, instant: datetime, zone: ZoneInfo) -> bool:
        return self.closes(instant, zone) is not None

    def next_open(self, instant: datetime, zone: ZoneInfo) -> datetime:
        """Return ``instant`` if the window is open then, otherwise the next instant at which the window opens."""
        today = instant.astimezone(zone).date()
        for ahead in range(-1, LONGEST_WAIT_DAYS):
            opening = self._opening(today + ahead * DAY, zone)
            if opening is not None and instant < opening + self.lasts:
                return max(instant, opening)
        raise ValueError("the window does not open within two months")

    def closes(self, instant: datetime, zone: ZoneInfo) -> datetime | None:
        """Return the instant at which the window closes if it is open at ``instant``, otherwise None."""
        today = instant.astimezone(zone).date()
        for day in (today - DAY, today):
            opening = self._opening(day, zone)
            if opening is not None and opening <= instant < opening + self.lasts:
                return opening + self.lasts
        return None

    @property
    def cron(self) -> str:
        """The cron expression that fires when the window opens."""
        return f"{self.opens.minute} {self.opens.hour} * * {format_days(self.days)}"

    def _opening(self, day: date, zone: ZoneInfo) -> datetime | None:
        if day.isoweekday() % 7 not in self.days or (not self.on_holidays and day in holidays(day.year)):
            return None
        return first_instant(datetime.combine(day, self.opens), zone)


def format_days(days: frozenset[int]) -> str:
    """Format days as in a cron expression: 1-5, or 0,2,6."""
    ordered = sorted(days)
    if len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]}-{ordered[-1]}"
    return ",".join(map(str, ordered))


def encode_window(window: Window) -> dict[str, Json]:
    """Return the stored form of a window, which ``decode_window`` parses."""
    return {
        "opens": f"{window.opens:%H:%M}",
        "minutes": int(window.lasts.total_seconds() // 60),
        "days": format_days(window.days),
        "on_holidays": window.on_holidays,
    }


def decode_window(name: str, *, opens: str, minutes: int, days: str, on_holidays: bool = True) -> Window:
    """Parse a window from the form that operators write, such as 10:00, 120 and 1-5. Raises InvalidWindow."""
    try:
        weekdays = parse(f"0 0 * * {days}").weekdays
        # Limit the number so that it fits into a timedelta. Window then refuses a length of more than a day.
        lasts = timedelta(minutes=max(-1, min(minutes, MINUTES_OF_A_DAY + 1)))
        return Window(opens=_time_of_day(opens), lasts=lasts, days=weekdays, on_holidays=on_holidays)
    except (ValueError, InvalidCron) as error:
        first = error.facts["why"] if isinstance(error, InvalidCron) else error.args[0]
        given = first if isinstance(first, Reason) else str(error)
        raise InvalidWindow(window=name, why=given) from None


def _time_of_day(text: str) -> time:
    matched = _TIME_OF_DAY.fullmatch(text)
    if matched is None or int(matched[1]) > 23 or int(matched[2]) > 59:
        raise ValueError(
            Reason("no_time", "'{text}' is not a time of day: write the hour and the minutes, as in 10:00", text=text)
        )
    return time(int(matched[1]), int(matched[2]))
