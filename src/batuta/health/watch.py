"""Looks at every job of the timetable that counts now."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from batuta.dispatch.book import JobBook
from batuta.dispatch.plan import held_by_switch
from batuta.guard.switches import Switch
from batuta.health.jobs import DAY, JobHealth, expectations, judge
from batuta.runlog.log import ExecutionLog
from batuta.runlog.report import Facts, Reports
from batuta.schedule.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsSeen:
    now: datetime
    profile: str
    windows: Mapping[str, Window]
    switches: Mapping[str, Switch]
    jobs: tuple[JobHealth, ...]  # in the order of the catalogue


class JobWatch:
    def __init__(self, book: JobBook, log: ExecutionLog, reports: Reports, opened_at: Callable[[], datetime]) -> None:
        """``opened_at``: since when runs are expected of jobs that no scheduler has registered, or one never would be missed."""
        self._book = book
        self._log = log
        self._reports = reports
        self._opened_at = opened_at

    async def look(self, profile: str | None = None) -> JobsSeen:
        """``profile``: as if this one counted; None: the one that does."""
        ledger = await self._log.look()
        controls = ledger.controls if profile is None else replace(ledger.controls, profile=profile)
        now, windows = ledger.now, self._book.windows_now(controls)
        jobs = self._book.timetable(controls)
        facts = await self._reports.facts(since=now - DAY, now=now)
        otherwise = await self._reports.known_since() or self._opened_at()
        due = expectations(jobs, facts, otherwise, now)
        answered = await self._reports.answered(due, now)
        return JobsSeen(
            now=now,
            profile=self._book.profile(controls),
            windows=windows,
            switches=ledger.switches,
            jobs=tuple(
                judge(
                    job,
                    facts.get(name, Facts()),
                    expected_at=due.get(name),
                    is_answered=name in answered,
                    held=held_by_switch(job, ledger.switches, now),
                    now=now,
                )
                for name, job in jobs.items()
            ),
        )
