"""One job and one execution, put together for their pages."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from batuta.dispatch.job import Job
from batuta.dispatch.plan import held_by_switch
from batuta.health.jobs import JobsSeen
from batuta.kernel.json import Json
from batuta.runlog.history import Recorded
from batuta.runlog.reasons import WINDOW_CLOSED
from batuta.schedule.calendar import holiday_at
from batuta.web.panel.words import Words

FIRES = 10
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CURSOR = re.compile(r"^(\d{1,17})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")


@dataclass(frozen=True, slots=True)
class Cursor:
    """After which row a page goes on, as it stands in its address."""

    at: datetime
    id: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """None: it is no cursor of ours, so the page is the newest."""
        found = _CURSOR.match(text)
        return None if found is None else cls(_EPOCH + int(found[1]) * _MICROSECOND, found[2])

    @classmethod
    def after(cls, row: Recorded) -> Self:
        return cls(row.started_at, row.id)

    def __str__(self) -> str:
        return f"{(self.at - _EPOCH) // _MICROSECOND}_{self.id}"


@dataclass(frozen=True, slots=True)
class Fire:
    """``stopped``: why it would not run, as things stand now. ``holiday``: which one it is, if any."""

    at: datetime
    stopped: str | None
    holiday: str | None


def next_fires(job: Job, seen: JobsSeen, words: Words) -> list[Fire]:
    found, at = [], seen.now
    for _ in range(FIRES):
        at = job.cron.next_after(at, job.zone)
        day = at.astimezone(job.zone).date()
        found.append(Fire(at, _stopped(job, seen, at, words), holiday_at(day, job.zone)))
    return found


def _stopped(job: Job, seen: JobsSeen, at: datetime, words: Words) -> str | None:
    if (held := held_by_switch(job, seen.switches, at)) is not None:
        return words.texts.reason(held)
    if job.window is not None and not seen.windows[job.window].is_open(at, job.zone):
        return words.texts.reason(WINDOW_CLOSED(window=job.window))
    return None


def why(row: Recorded, words: Words) -> str | None:
    return None if row.reason is None else words.texts.reason(row.reason)


def error(row: Recorded, words: Words) -> str | None:
    return None if row.error is None else words.texts.reason(row.error)


def newest(lists: Sequence[Sequence[Recorded]], limit: int) -> list[Recorded]:
    return sorted((row for rows in lists for row in rows), key=lambda row: row.started_at, reverse=True)[:limit]


def pretty(result: Json) -> str:
    """Written here and not by a browser, which would round a large number."""
    return json.dumps(result, ensure_ascii=False, indent=2, sort_keys=True)


def lateness(row: Recorded) -> timedelta | None:
    """How long after its instant it started; None: nobody had planned it, or it never started."""
    if row.scheduled_for is None or row.status == "missed":
        return None
    return max(row.started_at - row.scheduled_for, timedelta(0))
