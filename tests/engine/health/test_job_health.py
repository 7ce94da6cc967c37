"""A job's health is computed from the fires for which a run was expected."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from batuta.health.jobs import JobHealth, JobState, Level, find_expected, judge, level
from batuta.runlog.history import Counts, Facts, LastRun
from batuta.runlog.reasons import PARTIAL, PAUSED_ALL, UNFINISHED, WINDOW_CLOSED
from tests.engine.dispatch.scheduling import job

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=SAO_PAULO)


def last(status: str = "success", reason: str | None = None, error: str | None = None) -> LastRun:
    return LastRun(
        id="1",
        scheduled_for=None,
        started_at=LONG_AGO,
        status=status,
        duration_ms=1,
        error=error,
        reason=reason,
        items=None,
    )


def judged(
    facts: Facts, *, is_expected: bool = True, answered: bool = True, held: str | None = None, **options: Any
) -> JobHealth:
    fire = local("2026-01-05T12:00") if is_expected else None
    return judge(
        job(**options), facts, expected_at=fire, is_answered=answered, held=held, now=local("2026-01-05T12:30")
    )


@pytest.mark.parametrize(
    ("schedule", "now", "fire"),
    [
        ("* * * * *", "2026-01-05T12:00:30", "2026-01-05T11:57"),
        ("*/5 8-19 * * *", "2026-01-05T03:00", "2026-01-04T19:55"),  # at night: the last fire of the evening
        (
            "*/5 8-19 * * *",
            "2026-01-05T08:01",
            "2026-01-04T19:55",
        ),  # in the morning: today's fire is still within its SLA
        ("*/5 8-19 * * *", "2026-01-05T08:16", "2026-01-05T08:00"),
        ("0 8 * * 1-5", "2026-01-05T08:01", "2026-01-02T08:00"),  # on Monday: Friday's fire
        ("0 10 * * *", "2026-01-05T11:01", "2026-01-04T10:00"),
        ("0 10 * * *", "2026-01-05T10:59", "2026-01-03T10:00"),
    ],
)
def test_job_is_judged_by_the_last_fire_whose_sla_is_over(schedule: str, now: str, fire: str) -> None:
    assert find_expected(job(schedule=schedule, zone=SAO_PAULO), LONG_AGO, local(now)) == local(fire)


def test_no_fire_is_expected_before_the_job_was_registered() -> None:
    registered = local("2026-01-05T09:59:30")
    hourly = job(schedule="0 * * * *", zone=SAO_PAULO)
    assert find_expected(hourly, registered, local("2026-01-05T11:59")) is None
    assert find_expected(hourly, registered, local("2026-01-05T12:00")) == local("2026-01-05T10:00")


def test_job_is_stale_without_a_success_since_the_expected_fire() -> None:
    assert judged(Facts(last=last()), answered=False).state is JobState.STALE
    assert judged(Facts(last=last()), answered=True).state is JobState.OK


def test_job_that_always_fails_is_stale_with_its_reason() -> None:
    health = judged(Facts(last=last("error", error="HTTP 500")), answered=False)
    assert health.is_stale
    assert "HTTP 500" in (health.why or "")


def test_job_that_never_ran_is_stale() -> None:
    assert judged(Facts(expected_since=LONG_AGO), answered=False).why == "it has never run"
    assert judged(Facts(), answered=False).why == "no scheduler has ever been seen"
    assert judged(Facts(), is_expected=False, answered=False).state is JobState.WAITING


def test_held_job_with_recorded_fires_is_held() -> None:
    health = judged(Facts(last=last()), held=PAUSED_ALL(setting=""))
    assert (health.state, health.why) == (JobState.HELD, "everything is paused")


def test_job_outside_its_window_is_held_and_its_failures_still_count() -> None:
    closed = WINDOW_CLOSED(window="manha")
    assert judged(Facts(last=last()), held=closed).state is JobState.HELD
    assert judged(Facts(last=last(), running=1), held=closed).state is JobState.RUNNING
    assert judged(Facts(last=last(reason=PARTIAL(why="3 of 5"))), held=closed).state is JobState.DEGRADED
    failures = Facts(last=last("error"), failures_in_a_row=3)
    assert judged(failures, held=closed).does_not_succeed
    assert not judged(failures, held=PAUSED_ALL(setting="")).does_not_succeed


def test_pause_does_not_hide_that_no_scheduler_fires() -> None:
    """A paused job is still reported as stale if its fires have no rows. A pause writes a row for each fire that it
    holds back, so a missing row means that no scheduler was running.
    """
    assert judged(Facts(last=last()), answered=False, held=PAUSED_ALL(setting="")).is_stale


def test_unfinished_job_is_never_stale() -> None:
    assert judged(Facts(last=last("skipped", UNFINISHED())), answered=False).state is JobState.UNFINISHED
    assert judged(Facts(), answered=False, finished=False).state is JobState.UNFINISHED


def test_partial_success_is_degraded() -> None:
    assert judged(Facts(last=last(reason=PARTIAL(why="3 of 5")))).state is JobState.DEGRADED


@pytest.mark.parametrize(
    ("healths", "verdict"),
    [
        ([], Level.HEALTHY),
        ([judged(Facts(last=last()))], Level.HEALTHY),
        ([judged(Facts(last=last(), counts=Counts(by_status={"timeout": 1})))], Level.DEGRADED),
        ([judged(Facts(last=last()), answered=False), judged(Facts(last=last()))], Level.DEGRADED),
        ([judged(Facts(last=last()), answered=False)], Level.CRITICAL),  # no job fires
        ([judged(Facts(last=last()), answered=False, critical=True)], Level.CRITICAL),
        ([judged(Facts(), answered=False, critical=True, finished=False)], Level.HEALTHY),
    ],
)
def test_worst_finding_wins(healths: list[JobHealth], verdict: Level) -> None:
    assert level(healths) is verdict


def test_job_health_shows_the_next_fire() -> None:
    assert judged(Facts()).next_at == local("2026-01-05T12:31").astimezone(UTC) - timedelta(0)
