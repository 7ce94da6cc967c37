"""Findings about the code versions of the running schedulers."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from batuta.health.finding import Report, Severity
from batuta.health.jobs import LIVES, REMEMBERED, TimetableState, judge_timetables, state_of
from batuta.runlog.log import Timetable

NOW = datetime(2026, 1, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OLD = Timetable(
    fingerprint="old",
    position=1,
    jobs=1,
    release=None,
    first_seen_at=NOW,
    renewals=7,
    renewed_at=NOW - SECOND,
    renewed_by="host:1:2:3:4",
    has_been_active=True,
    is_active=False,
)
NEW = replace(OLD, fingerprint="new", position=2, renewed_by="host:2:2:3:4", is_active=True)


def severities(report: Report) -> dict[str, Severity]:
    return {finding.cause: finding.severity for finding in report.findings}


def test_single_version_raises_no_finding() -> None:
    assert judge_timetables([NEW], NOW) == Report()
    assert judge_timetables([], NOW) == Report()


def test_older_scheduler_that_stands_by_is_named() -> None:
    report = judge_timetables([NEW, OLD], NOW)
    assert severities(report) == {"timetable.standing_by": Severity.INFO}
    assert report.findings[0].facts == {"schedulers": "host:1"}
    assert report.lost == 0


def test_version_that_ended_raises_no_finding() -> None:
    assert judge_timetables([NEW, replace(OLD, renewed_at=NOW - LIVES - SECOND)], NOW) == Report()


def test_older_active_version_is_a_warning_for_a_while() -> None:
    standing_in, gone = replace(OLD, is_active=True), replace(NEW, is_active=False, renewed_at=NOW - 2 * LIVES)
    assert severities(judge_timetables([gone, standing_in], NOW)) == {"timetable.older_active": Severity.WARNING}
    rolled_back = replace(gone, renewed_at=NOW - REMEMBERED - SECOND)
    assert judge_timetables([rolled_back, standing_in], NOW) == Report()


def test_timetable_state_for_operators() -> None:
    assert state_of(NEW, NOW) is TimetableState.ACTIVE
    assert state_of(OLD, NOW) is TimetableState.STANDING_BY
    assert state_of(replace(OLD, renewed_at=NOW - LIVES - SECOND), NOW) is TimetableState.GONE
