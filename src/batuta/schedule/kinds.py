"""The kinds of schedules: cron, an interval, and a single instant. ``parse_schedule`` parses all of them.

*/5 * * * *            cron, five or six fields; @hourly, @daily, @weekly, @monthly, @yearly
@every 30s             every 30 seconds, counted from 1970 in UTC, so that every scheduler computes the same instants
@at 2026-12-01T09:00:00+00:00      once
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from batuta.kernel.clock import FARTHEST
from batuta.kernel.errors import InvalidCron
from batuta.kernel.reasons import Reason
from batuta.kernel.values import dataclass
from batuta.schedule.cron import Cron, parse

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LONGEST_INTERVAL: Final = timedelta(days=366)
_EVERY = re.compile(r"^@every (\d{1,9})s$")
_AT = re.compile(r"^@at (.+)$")


@dataclass(frozen=True, slots=True)
class Interval:
    """A schedule that fires at every multiple of ``every`` since 1970 in UTC, regardless of daylight saving time."""

    text: str
    every: timedelta

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime:
        """Return the first fire later than ``instant``, in UTC."""
        return EPOCH + ((instant - EPOCH) // self.every + 1) * self.every

    def count(self, since: datetime, until: datetime) -> int:
        return (until - EPOCH) // self.every - (since - EPOCH) // self.every


@dataclass(frozen=True, slots=True)
class Once:
    """A schedule that fires once, at the instant ``at``. Afterwards ``next_after`` returns FARTHEST."""

    text: str
    at: datetime

    def next_after(self, instant: datetime, zone: ZoneInfo) -> datetime:
        """Return the schedule's only fire if it is later than ``instant``. Otherwise return FARTHEST, which means that
        the schedule never fires again.
        """
        return self.at if self.at > instant else FARTHEST

    def count(self, since: datetime, until: datetime) -> int:
        return int(since < self.at <= until)


Schedule: TypeAlias = Cron | Interval | Once


def parse_schedule(text: str) -> Schedule:
    """Parse a schedule from its text form. Raises InvalidCron if the text is invalid."""
    if (interval := _EVERY.match(text.strip())) is not None:
        every = timedelta(seconds=int(interval[1]))
        if not timedelta(0) < every <= LONGEST_INTERVAL:
            why = "an interval must last from 1 second to {longest}"
            raise InvalidCron(cron=text, why=Reason("interval_range", why, longest=LONGEST_INTERVAL))
        return Interval(text.strip(), every)
    if (instant := _AT.match(text.strip())) is not None:
        return Once(text.strip(), _instant(text, instant[1]))
    return parse(text)


def every_text(every: timedelta | float) -> str:
    """Return the text form of an interval schedule, such as ``@every 30s``."""
    seconds = every.total_seconds() if isinstance(every, timedelta) else every
    if not isinstance(seconds, int | float) or seconds % 1 != 0:
        given = f"{seconds:g}" if isinstance(seconds, float) else str(seconds)
        why = "'{every}' is not a whole number of seconds"
        raise InvalidCron(cron=f"every={given}", why=Reason("interval_whole", why, every=given))
    return f"@every {int(seconds)}s"


def at_text(at: datetime) -> str:
    """Return the text form of a schedule that fires once. The instant must have a time zone."""
    if at.tzinfo is None:
        why = Reason("instant_zone", "the instant needs a time zone: pass timezone= or an instant with one")
        raise InvalidCron(cron=f"at={at.isoformat()}", why=why)
    return f"@at {at.astimezone(UTC).isoformat()}"


def _instant(text: str, written: str) -> datetime:
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        why = Reason(
            "instant_format", "'{written}' is not an instant such as 2026-12-01T09:00:00+00:00", written=written
        )
        raise InvalidCron(cron=text, why=why) from None
    if at.tzinfo is None:
        raise InvalidCron(
            cron=text,
            why=Reason("instant_zone", "the instant needs a time zone: pass timezone= or an instant with one"),
        )
    return min(at.astimezone(UTC), FARTHEST)
