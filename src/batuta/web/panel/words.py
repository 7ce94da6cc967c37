"""Instants, spans and numbers as people read them, in their language and their zone."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from batuta.texts import Texts

NOTHING = "–"
_SECOND, _MINUTE, _HOUR, _DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"))


@dataclass(frozen=True, slots=True)
class Words:
    texts: Texts
    zone: ZoneInfo
    now: datetime

    def word(self, group: str, key: str) -> str:
        """A text whose key is known only now: the word for a state, a status, a trigger."""
        return self.texts(f"panel.{group}.{key}")

    def plain(self, group: str, key: str) -> str:
        """The same, of a group that the commands use too."""
        return self.texts(f"{group}.{key}")

    def plural(self, key: str, count: int) -> str:
        return self.texts(f"panel.{key}_{'one' if count == 1 else 'many'}", count=self.number(count))

    def local(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone)

    def minute(self, instant: datetime) -> str:
        return f"{self.local(instant):%d/%m %H:%M}"

    def second(self, instant: datetime) -> str:
        return f"{self.local(instant):%d/%m %H:%M:%S}"

    def hour(self, instant: datetime) -> str:
        return f"{self.local(instant):%H:%M}"

    def whole(self, instant: datetime) -> str:
        """With the year and the offset, for a title."""
        local = self.local(instant)
        return f"{self.weekday(local.isoweekday() % 7)} {local:%d/%m/%Y %H:%M:%S} {local:%z}"

    def weekday(self, day: int) -> str:
        """0 is Sunday, as in a cron."""
        return self.texts("panel.weekdays").split()[day]

    def ago(self, instant: datetime) -> str:
        return self.texts("panel.ago", span=self.about(self.now - instant))

    def ahead(self, instant: datetime) -> str:
        return self.texts("panel.ahead", span=self.about(instant - self.now))

    def about(self, span: timedelta) -> str:
        """The largest unit that says enough: 40 s, 12 min, 5 h, 3 d."""
        span = max(span, timedelta(0))
        for unit, sign in _UNITS[:-1]:
            if span >= (2 * unit if unit is _DAY else unit):
                return f"{span // unit} {sign}"
        return f"{span // _SECOND} s"

    def span(self, span: timedelta) -> str:
        """Exactly, in its own units: 45 min, 25 h, 8 d, 1 h 30 min. A single day is 24 h."""
        if span % _DAY == timedelta(0) and span >= 2 * _DAY:
            return f"{span // _DAY} d"
        parts = []
        for unit, sign in _UNITS[1:]:
            if span >= unit:
                parts.append(f"{span // unit} {sign}")
                span %= unit
        return " ".join(parts) or "0 s"

    def took(self, milliseconds: int | None) -> str:
        if milliseconds is None:
            return NOTHING
        if milliseconds < 1000:
            return f"{milliseconds} ms"
        if milliseconds < 60_000:
            return f"{self.decimal(milliseconds / 1000)} s"
        return self.span(timedelta(seconds=milliseconds // 1000))

    def decimal(self, number: float) -> str:
        return f"{number:.1f}".replace(".", self.texts("panel.decimal_point"))

    def number(self, number: int) -> str:
        """Thousands apart by a narrow space, which no language mistakes for a decimal point."""
        return f"{number:,}".replace(",", "\u202f")

    def figure(self, value: int | timedelta) -> str:
        return self.about(value) if isinstance(value, timedelta) else self.number(value)

    def listed(self, words: Sequence[str]) -> str:
        """a, b e c"""
        *most, last = words
        return f"{', '.join(most)} {self.texts('panel.and')} {last}" if most else last


def folded(text: str) -> str:
    """Without accents and capitals, for a search that forgives. The page's script does the same."""
    apart = unicodedata.normalize("NFD", text)
    return "".join(sign for sign in apart if not unicodedata.combining(sign)).lower()
