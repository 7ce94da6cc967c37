"""What operators should know about the versions that share a database: which one's schedules fire, and which ones stand by."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from batuta.health.finding import Finding, Report, Severity, merged
from batuta.kernel.durations import brief
from batuta.kernel.identity import short
from batuta.runlog.timetables import Timetable

# A living scheduler renews its timetable every two seconds.
LIVES = timedelta(seconds=30)
# A more recent version that was gone for longer than this was most likely rolled back on purpose.
REMEMBERED = timedelta(hours=1)
LOOKED_AT = 10
SOURCE = "jobs"


class Timetables(Protocol):
    async def newest(self, limit: int) -> Sequence[Timetable]:
        """The most recent ones first, and the active one."""
        ...


class TimetableState(StrEnum):
    ACTIVE = "active"
    STANDING_BY = "standing_by"
    GONE = "gone"


def state_of(timetable: Timetable, now: datetime) -> TimetableState:
    if timetable.is_active:
        return TimetableState.ACTIVE
    return TimetableState.STANDING_BY if now - timetable.renewed_at <= LIVES else TimetableState.GONE


def judge_timetables(seen: Sequence[Timetable], now: datetime) -> Report:
    active = next((each for each in seen if each.is_active), None)
    if active is None:
        return Report()
    return merged([_standing_in(active, seen, now), _standing_by(active, seen, now)])


def _standing_in(active: Timetable, seen: Sequence[Timetable], now: datetime) -> Report:
    """The schedulers of a more recent version are gone, and the schedules of an older one fire."""
    gone = [
        each
        for each in seen
        if each.position > active.position and each.has_been_active and LIVES < now - each.renewed_at <= REMEMBERED
    ]
    if not gone:
        return Report()
    last = max(gone, key=lambda each: each.renewed_at)
    finding = Finding(
        severity=Severity.WARNING,
        source=SOURCE,
        cause="timetable.older_active",
        says="older_timetable",
        facts={"timetable": active.release or active.fingerprint, "gone": last.release or last.fingerprint,
               "last": brief(now - last.renewed_at)},
        since=last.renewed_at,
    )  # fmt: skip
    return Report(findings=(finding,), lost=5)


def _standing_by(active: Timetable, seen: Sequence[Timetable], now: datetime) -> Report:
    older = [each for each in seen if state_of(each, now) is TimetableState.STANDING_BY]
    older = [each for each in older if each.position < active.position]
    if not older:
        return Report()
    finding = Finding(
        severity=Severity.INFO,
        source=SOURCE,
        cause="timetable.standing_by",
        says="scheduler_stands_by",
        facts={"schedulers": ", ".join(short(each.renewed_by) for each in older)},
        value=len(older),
    )
    return Report(findings=(finding,))
