"""Computes the content of dashboard pages without I/O: the first page, one job, one execution."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Self

from starlette.datastructures import QueryParams

from batuta.dispatch.job import Job
from batuta.dispatch.plan import hold, rules_of
from batuta.dispatch.registry import JobRegistry
from batuta.guard.base import Hold
from batuta.guard.switches import judge_switch as verdict_of
from batuta.health.finding import Assessment, Finding
from batuta.health.jobs import JobHealth, JobsSeen, JobState, Level, level
from batuta.kernel.clock import instant, microseconds
from batuta.kernel.identity import short
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.runlog.history import Recorded
from batuta.schedule.window import holiday_at
from batuta.texts import fold
from batuta.web.panel import words as crons
from batuta.web.panel.words import Words

# Sort order of the job list: problems, held jobs, healthy jobs, jobs that are not implemented. ``running`` and
# ``waiting`` have the rank of ``ok``, so that rows do not move at every fire.
_RANK = {
    JobState.STALE: 0,
    JobState.FAILING: 1,
    JobState.DEGRADED: 2,
    JobState.HELD: 3,
    JobState.RUNNING: 4,
    JobState.OK: 4,
    JobState.WAITING: 4,
    JobState.UNFINISHED: 5,
}
SHOWN = (
    JobState.STALE,
    JobState.FAILING,
    JobState.DEGRADED,
    JobState.RUNNING,
    JobState.OK,
    JobState.WAITING,
    JobState.HELD,
    JobState.UNFINISHED,
)
TROUBLED = (JobState.STALE, JobState.FAILING, JobState.DEGRADED)
PROBLEM = "problema"  # value of the status filter that selects the states in TROUBLED
MOST_NAMES = 4
_RAN = ("success", "error", "timeout", "abandoned")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """The filters for the job list. Unknown values are ignored."""

    state: JobState | None = None
    category: str | None = None
    text: str = ""
    has_problem: bool = False  # whether to show only jobs that are late, failing or degraded

    @classmethod
    def read(cls, params: QueryParams, categories: Sequence[str]) -> Self:
        state, category = params.get("estado", ""), params.get("categoria", "")
        return cls(
            state=JobState(state) if state in set(JobState) else None,
            category=category if category in categories else None,
            text=params.get("q", "")[:100],
            has_problem=state == PROBLEM,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    health: JobHealth
    schedule: str | None
    why: str | None
    hold_note: str | None  # the reason why the job may not run now, unless ``why`` already contains it
    searched: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """A notice above the job list. ``key`` is the text key of its sentence. After the sentence, the page lists the
    names of the jobs concerned, critical jobs first.
    """

    key: str
    jobs: Sequence[Job]

    @property
    def named_jobs(self) -> Sequence[Job]:
        return self.jobs[:MOST_NAMES]

    @property
    def unnamed(self) -> int:
        return max(0, len(self.jobs) - MOST_NAMES)


@dataclass(frozen=True, slots=True)
class JobsVerdict:
    level: Level
    notices: Sequence[Notice]
    no_scheduler: bool  # whether no scheduler is running, so that no job runs


@dataclass(frozen=True, slots=True)
class WindowNow:
    name: str
    opens: str
    closes: str
    is_open: bool
    changes_at: datetime  # when the window closes, or opens next if it is closed


def rows(seen: JobsSeen, asked: JobFilter, words: Words) -> list[JobRow]:
    ordered = sorted(seen.jobs, key=lambda health: _RANK[health.state])
    return [_row(health, seen, asked, words) for health in ordered]


def _row(health: JobHealth, seen: JobsSeen, asked: JobFilter, words: Words) -> JobRow:
    job = health.job
    schedule = crons.in_words(job.cron, words)
    why = explain(health, seen, words)
    names = (job.name, job.category, words.texts.category(job.category))
    text = (*names, job.cron.text, schedule or "", why or "", words.word("state", health.state.value))
    searched = fold(" ".join(text))
    is_shown = (
        asked.state in (None, health.state)
        and (not asked.has_problem or health.state in TROUBLED)
        and asked.category in (None, job.category)
        and all(word in searched for word in fold(asked.text).split())
    )
    return JobRow(
        health=health,
        schedule=schedule,
        why=why,
        hold_note=None if health.state is JobState.HELD else explain_hold(health, seen, words),
        searched=searched,
        is_shown=is_shown,
    )


def explain(health: JobHealth, seen: JobsSeen, words: Words) -> str | None:
    """Return the reason why a job is not ok. If the job is held back until a known instant, the reason includes that
    instant.
    """
    if health.state is JobState.HELD:
        return explain_hold(health, seen, words)
    return words.reason(health.why)


def explain_hold(health: JobHealth, seen: JobsSeen, words: Words) -> str | None:
    """Return the reason why the job is currently held back, with the end of the hold if it is known. Return None if the
    job may run.
    """
    if health.held is None:
        return None
    text, until = words.texts.reason(health.held), _hold_end(health.job, seen)
    return text if until is None else text + words.texts("panel.why.until", until=words.minute(until))


def _hold_end(job: Job, seen: JobsSeen) -> datetime | None:
    for rule in rules_of(job):
        switch = seen.switches.get(rule.key)
        if isinstance(verdict_of(rule, switch, seen.now), Hold):
            return switch.until if switch is not None and switch.until is not None and switch.until > seen.now else None
    return None if job.window is None else seen.windows[job.window].next_open(seen.now, job.zone)


def counts(seen: JobsSeen) -> dict[JobState, int]:
    return {state: sum(health.state is state for health in seen.jobs) for state in SHOWN}


def verdict(seen: JobsSeen) -> JobsVerdict:
    def of(*states: JobState) -> list[Job]:
        found = [health.job for health in seen.jobs if health.state in states]
        return sorted(found, key=lambda job: not job.critical)

    now = of(JobState.STALE, JobState.FAILING, JobState.DEGRADED)
    earlier = [health.job for health in seen.jobs if health.is_troubled and health.job not in now]
    found = {
        "stale": of(JobState.STALE),
        "failing": of(JobState.FAILING),
        "degraded": of(JobState.DEGRADED),
        "earlier": [] if now else earlier,
    }
    return JobsVerdict(
        level(seen.jobs),
        [Notice(key, jobs) for key, jobs in found.items() if jobs],
        no_scheduler=bool(seen.jobs) and all(health.facts.expected_since is None for health in seen.jobs),
    )


def windows(seen: JobsSeen, registry: JobRegistry, words: Words) -> list[WindowNow]:
    used = {health.job.window for health in seen.jobs}
    return [_window(name, seen, words) for name in registry.windows if name in used]


def _window(name: str, seen: JobsSeen, words: Words) -> WindowNow:
    window = seen.windows[name]
    closes_at = window.closes(seen.now, words.zone)
    opening = window.next_open(seen.now, words.zone) if closes_at is None else closes_at - window.lasts
    return WindowNow(
        name, words.hour(opening), words.hour(opening + window.lasts), closes_at is not None, closes_at or opening
    )


def shares(by_status: Mapping[str, int]) -> list[tuple[str, float, float]]:
    """Return the segments of a bar that shows the outcomes of the last 24 hours. Each segment has an outcome, a start
    and a width; the bar is 100 wide.
    """
    total = sum(by_status.values())
    groups = {
        "success": by_status.get("success", 0),
        "failed": sum(by_status.get(status, 0) for status in _RAN[1:]),
        "missed": by_status.get("missed", 0),
        "skipped": by_status.get("skipped", 0),
    }
    found, begins = [], 0.0
    for outcome, runs in groups.items():
        if runs:
            width = 100 * runs / total
            found.append((outcome, round(begins, 2), round(width, 2)))
            begins += width
    return found


MOST_FINDINGS = 5


def root_findings(assessment: Assessment) -> list[Finding]:
    """Return the findings that no other finding explains, worst first."""
    return [finding for finding in assessment.findings if finding.cause not in assessment.silenced]


FIRES = 10
_TIME = re.compile(r"([01]\d|2[0-3]):([0-5]\d)")
_CURSOR = re.compile(r"^(\d{1,17})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$")


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last row of a page, encoded in the page's address. The next page begins after this row."""

    at: datetime
    id: str

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse a cursor. Return None if the text is not a cursor; the page then shows the newest rows."""
        found = _CURSOR.match(text)
        return None if found is None else cls(instant(int(found[1])), found[2])

    @classmethod
    def after(cls, row: Recorded) -> Self:
        return cls(row.started_at, row.id)

    def __str__(self) -> str:
        return f"{microseconds(self.at)}_{self.id}"


@dataclass(frozen=True, slots=True)
class NextFire:
    """A future fire. ``stopped`` is the reason why the fire will not run if the switches and windows stay as they are.
    ``holiday`` is the name of a holiday on that day, if any.
    """

    at: datetime
    stopped: str | None
    holiday: str | None


def next_fires(job: Job, seen: JobsSeen, words: Words) -> list[NextFire]:
    found, at = [], seen.now
    for _ in range(FIRES):
        at = job.cron.next_after(at, job.zone)
        day = at.astimezone(job.zone).date()
        stopped = words.reason(hold(job, seen.switches, seen.windows, at))
        found.append(NextFire(at, stopped, holiday_at(day, job.zone)))
    return found


@dataclass(frozen=True, slots=True)
class WhyNot:
    """An explanation of why a job did not run at a given time of day."""

    text: str
    execution: str | None = None


def fire_at(job: Job, asked: str, now: datetime) -> datetime | None:
    """Return the latest past instant with this time of day (HH:MM) in the job's time zone, or None if the text is not a
    time of day.
    """
    found = _TIME.fullmatch(asked)
    if found is None:
        return None
    local = now.astimezone(job.zone)
    at = local.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
    return at if at <= local else at - timedelta(days=1)


def why_not(job: Job, at: datetime, rows: Sequence[Recorded], words: Words, *, held: str | None) -> WhyNot:
    """Explain a fire's outcome. ``rows`` are the executions around the fire; ``held`` is the reason why the job is
    currently held back, or None.
    """
    for row in rows:
        if row.scheduled_for == at or (row.scheduled_for is None and abs(row.started_at - at) < timedelta(minutes=1)):
            reason = words.reason(row.error) or words.reason(row.reason) or ""
            facts = {"status": words.word("status_word", row.status), "reason": reason, "at": words.local(at)}
            return WhyNot(words.texts("panel.why_recorded" if reason else "panel.why_ran", **facts), row.id)
    if job.cron.next_after(at - timedelta(seconds=1), job.zone) != at:
        following = job.cron.next_after(at, job.zone)
        return WhyNot(words.texts("panel.why_no_fire", at=words.local(at), next=words.local(following)))
    if held is not None:
        return WhyNot(words.texts("panel.why_held", at=words.local(at), reason=words.texts.reason(held)))
    return WhyNot(words.texts("panel.why_no_record", at=words.local(at)))


class Compared(NamedTuple):
    """One line in a comparison of two runs."""

    label: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        return self.first != self.second


def compare(first: Recorded, second: Recorded, words: Words) -> list[Compared]:
    """Compare two runs of a job. Each line in the result shows one property of both runs."""

    def late(row: Recorded) -> str:
        return "–" if (delay := lateness(row)) is None else words.texts.about(delay)

    columns: dict[str, Callable[[Recorded], str]] = {
        "panel.started": lambda row: words.second(row.started_at),
        "panel.late_by": late,
        "panel.status": lambda row: words.word("status_word", row.status),
        "panel.took": lambda row: words.took(row.duration_ms),
        "panel.items": lambda row: "–" if row.items is None else words.number(row.items),
        "panel.trigger": lambda row: words.word("trigger_word", row.trigger),
        "panel.attempt": lambda row: str(row.attempt),
        "panel.code": lambda row: str(row.response_code or "–"),
        "panel.owner": lambda row: short(row.owner) if row.owner else "–",
        "panel.why_column": lambda row: words.reason(row.error) or words.reason(row.reason) or "–",
        "panel.result": lambda row: "–" if row.result is None else pretty(row.result),
    }
    return [Compared(words.texts(key), read(first), read(second)) for key, read in columns.items()]


def newest(lists: Sequence[Sequence[Recorded]], limit: int) -> list[Recorded]:
    return sorted((row for rows in lists for row in rows), key=lambda row: row.started_at, reverse=True)[:limit]


def pretty(result: Json) -> str:
    """Format JSON on the server, because a browser would round large numbers."""
    return json.dumps(result, ensure_ascii=False, indent=2, sort_keys=True)


def lateness(row: Recorded) -> timedelta | None:
    """Return the delay between a fire and the start of its run. Return None if an operator started the run, or if the
    fire was missed.
    """
    if row.scheduled_for is None or row.status == "missed":
        return None
    return max(row.started_at - row.scheduled_for, timedelta(0))
