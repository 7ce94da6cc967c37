"""Translates an operator's query from PostgreSQL's SQL to SQLite's SQL, so that the same query works on both databases.

SQLite stores instants as microseconds. ``NOW()``, ``CURRENT_DATE``, ``CURRENT_TIMESTAMP``, ``DATE(x)`` and ``INTERVAL
'24 hours'`` become expressions on microseconds. Days begin at midnight in the application's time zone.
"""

import re
from datetime import timedelta
from zoneinfo import ZoneInfo

from batuta.kernel.clock import in_microseconds, instant, microseconds
from batuta.kernel.errors import QueryRefused
from batuta.kernel.reasons import define

INTERVAL_FORMS = define("interval_forms", "INTERVAL '{interval}': write a number and one of {units}")

_UNITS = {
    "second": timedelta(seconds=1),
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}
_WORD = re.compile(
    r"""INTERVAL\s+'(?P<interval>[^']*)'|(?P<same>'(?:[^']|'')*'|"[^"]*"|--[^\n]*)"""
    r"""|\b(?P<today>CURRENT_DATE)\b|\b(?P<now>CURRENT_TIMESTAMP)\b|\b(?P<day>DATE)\s*\(""",
    re.IGNORECASE,
)
_INTERVAL = re.compile(r"\s*(\d+)\s*([a-z]+?)s?\s*", re.IGNORECASE)


def translate(text: str, zone: ZoneInfo) -> str:
    def word(found: re.Match[str]) -> str:
        if found["interval"] is not None:
            return str(_microseconds(found["interval"]))
        if found["today"]:
            return f"local_day('{zone.key}', now())"
        if found["day"]:
            return f"local_day('{zone.key}', "
        return "now()" if found["now"] else found["same"]

    return _WORD.sub(word, text)


def local_day(zone: str, value: int | None) -> int | None:
    """Return the local midnight at or before an instant, both in microseconds. SQLite calls this function from SQL."""
    if value is None:
        return None
    local = instant(value).astimezone(ZoneInfo(zone))
    return microseconds(local.replace(hour=0, minute=0, second=0, microsecond=0))


def _microseconds(interval: str) -> int:
    parsed = _INTERVAL.fullmatch(interval)
    unit = None if parsed is None else _UNITS.get(parsed[2].lower())
    if parsed is None or unit is None:
        raise QueryRefused(why=INTERVAL_FORMS(interval=interval, units=", ".join(_UNITS)))
    return in_microseconds(int(parsed[1]) * unit)
