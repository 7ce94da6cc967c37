"""The graphical timeline of an item or an execution: how long it waited, ran and rested between attempts.

The bar is 100 units wide. Even a very short period has a minimum width, so that users can see it and point at it.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from batuta.kernel.values import dataclass

WIDTH = 100.0
LEAST = 3.0  # minimum width of a period


@dataclass(frozen=True, slots=True)
class Period:
    """A period of time on the timeline. ``kind`` is planned, waited, earlier, ran or rests, and determines the period's
    text and fill pattern.
    """

    kind: str
    since: datetime
    until: datetime

    @property
    def lasts(self) -> timedelta:
        return self.until - self.since


@dataclass(frozen=True, slots=True)
class DrawnPeriod:
    period: Period
    x: float
    width: float


def periods_of(
    *,
    created: datetime,
    due: datetime | None,
    started: datetime | None,
    ended: datetime | None,
    now: datetime,
    attempts: int,
    is_running: bool,
) -> list[Period]:
    """Return the periods of an item or an execution in chronological order. If the item or execution has not ended, its
    last period extends to the current time.
    """
    ready = created if due is None or attempts else max(created, due)
    found = [Period("planned", created, min(ready, now))]
    if started is None:
        found.append(Period("waited", min(ready, now), ended or now))
        return _lasting(found)
    # The row contains only the start of the last attempt.
    found.append(Period("earlier" if attempts > 1 else "waited", min(ready, started), started))
    if ended is not None or is_running:
        found.append(Period("ran", started, ended or now))
    else:
        found.append(Period("rests", started, now))
    return _lasting(found)


def draw(periods: Sequence[Period]) -> list[DrawnPeriod]:
    total = sum((each.lasts for each in periods), timedelta(0))
    if not total:
        return []
    widths = [max(LEAST, WIDTH * (each.lasts / total)) for each in periods]
    scale, x, drawn = WIDTH / sum(widths), 0.0, []
    for each, width in zip(periods, widths, strict=True):
        drawn.append(DrawnPeriod(each, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return drawn


def _lasting(periods: Sequence[Period]) -> list[Period]:
    return [each for each in periods if each.lasts > timedelta(0)]
