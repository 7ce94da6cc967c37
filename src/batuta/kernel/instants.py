"""Instants as databases count them. What lies beyond our calendar is its last day, or its first: reading never fails."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A little further, and what one database wrote cannot be read back, or not in every zone.
EARLIEST = datetime(1, 1, 2, tzinfo=UTC)
FARTHEST = datetime(9999, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(instant: datetime) -> int:
    return (instant - EPOCH) // _MICROSECOND


def instant(microseconds: int) -> datetime:
    try:
        return EPOCH + timedelta(0, 0, microseconds)
    except OverflowError:
        return FARTHEST if microseconds > 0 else EARLIEST
