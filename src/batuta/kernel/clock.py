"""The only module that reads the machine's time; everything else receives a clock or an instant. Also instants as databases
store them, clamped to the calendar so that reading never fails, and durations as people read them.
"""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """``now`` is aware UTC, for records. ``monotonic`` is seconds, for durations. Never mix them."""

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))


def brief(length: timedelta) -> str:
    """Approximate duration: one number and one unit."""
    seconds = max(0, round(length.total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def exact(length: timedelta) -> str:
    """Duration without rounding, for limits and settings: 45 s, 1 h, 1 h 30 min."""
    parts, left = [], length
    for unit, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    if left or not parts:
        parts.append(f"{left.total_seconds():g} s")
    return " ".join(parts)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Beyond this, a database returns instants that Python cannot represent in every zone.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
FARTHEST = datetime(9999, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def in_microseconds(span: timedelta) -> int:
    """Duration in the unit of SQL statements."""
    return span // _MICROSECOND


def instant(microseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(0, 0, microseconds)
    except OverflowError:
        return FARTHEST if microseconds > 0 else EARLIEST
