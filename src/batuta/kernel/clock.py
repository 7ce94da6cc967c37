"""The only module that reads the machine's time; all other code receives a clock or an instant. This module also
formats durations for people, and converts instants to and from the microseconds that databases store. A stored instant
that Python cannot represent becomes EARLIEST or FARTHEST.
"""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Awaited(Protocol):
    """An object that a clock can wait for: an asyncio.Event, or the wake-up of a loop."""

    async def wait(self) -> bool: ...


class Clock(Protocol):
    """The source of time for all code. ``now`` returns an aware UTC instant, for records. ``monotonic`` returns
    seconds, for measuring durations. Code never mixes the two values.
    """

    def now(self) -> datetime: ...
    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
    async def wait(self, event: Awaited, seconds: float) -> bool:
        """Wait until ``event`` is set or ``seconds`` have passed, and return whether ``event`` is set."""


class SystemClock:
    """A clock that returns the machine's time."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio  # imported here, because most commands format times but run no event loop

        await asyncio.sleep(seconds)

    async def wait(self, event: Awaited, seconds: float) -> bool:
        # Every loop of a process waits here, so the cost matters: a timer costs a third of what creating and
        # cancelling two tasks costs.
        import asyncio

        try:
            async with asyncio.timeout(seconds):
                return await event.wait()
        except TimeoutError:
            return False


_UNITS = (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1)))


def brief(length: timedelta) -> str:
    """Format a duration approximately, with one number and one unit, as in ``3 h``."""
    rounded = timedelta(seconds=max(0, round(length.total_seconds())))
    for unit, size in _UNITS:
        if rounded >= 2 * size:
            return f"{rounded // size} {unit}"
    return f"{rounded.seconds} s"


def exact(length: timedelta) -> str:
    """Format a duration without rounding, for limits and settings: 45 s, 1 h, 1 h 30 min."""
    parts, left = [], length
    for unit, size in _UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    if left or not parts:
        parts.append(f"{left.total_seconds():g} s")
    return " ".join(parts)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Outside these two instants, a database may return values that Python cannot represent in every time zone.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
FARTHEST = datetime(9999, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def in_microseconds(span: timedelta) -> int:
    """Convert a duration to microseconds, the unit that SQL statements use."""
    return span // _MICROSECOND


def instant(microseconds: float) -> datetime:
    try:
        return EPOCH + timedelta(0, 0, microseconds)
    except OverflowError:
        return FARTHEST if microseconds > 0 else EARLIEST
