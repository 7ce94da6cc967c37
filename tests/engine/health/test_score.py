"""All findings of the health checks are combined into one score."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest

from batuta.health.aggregator import CACHED_FOR, DATABASE_DOWN, HealthAggregator, HealthPage
from batuta.health.finding import (
    CONNECTIVITY,
    QUEUES,
    SECTIONS,
    Check,
    Finding,
    Grade,
    Report,
    Section,
    Severity,
    assess,
    find_silenced,
    grade,
    worst_first,
)
from batuta.kernel.errors import InvalidName, InvalidSections, StoreUnavailable, UnknownWord
from batuta.testing import FakeClock
from batuta.testing.clock import settle

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def finding(severity: Severity, cause: str = "a", *because: str) -> Finding:
    return Finding(severity=severity, source="test", cause=cause, says="part_down", because=because)


def check(name: str, *reports: Report | Exception, section: str = QUEUES) -> Check:
    """Return a health check that returns these reports one after another, and then repeats the last one."""
    answers = list(reports)

    async def ask() -> Report:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    return Check(name=name, section=section, ask=ask)


def aggregator(clock: FakeClock, *checks: Check) -> HealthAggregator:
    made = HealthAggregator(clock)
    for each in checks:
        made.add(each)
    return made


@pytest.mark.parametrize("order", [1, -1])
def test_lesser_finding_never_overwrites_a_worse_one(order: int) -> None:
    found = [finding(Severity.CRITICAL), finding(Severity.WARNING), finding(Severity.INFO)][::order]
    (worst,) = worst_first(found)
    assert worst.severity is Severity.CRITICAL
    assert assess([(QUEUES, Report(findings=tuple(found)))], NOW).worst is Severity.CRITICAL


def test_findings_are_listed_worst_first() -> None:
    found = [finding(severity, severity.value) for severity in reversed(Severity)]
    assert [each.severity for each in worst_first(found)] == list(Severity)


def test_section_without_checks_keeps_all_its_points() -> None:
    empty = assess([], NOW)
    assert (empty.score, empty.grade) == (100, Grade.HEALTHY)
    assert [(label, each.points, each.most) for label, each in empty.sections.items()] == [
        (section.name, section.weight, section.weight) for section in SECTIONS
    ]


def test_score_has_the_sections_of_the_application_by_the_names_it_shows() -> None:
    sections = (Section("queues", 60, shown="lines"), Section("printers", 40))
    late = Finding(severity=Severity.WARNING, source=QUEUES, cause="queue.old.a", says="queue_old")
    seen = assess([(QUEUES, Report(findings=(late,), lost=5)), ("printers", Report(lost=1))], NOW, sections)
    assert {label: (each.points, each.most) for label, each in seen.sections.items()} == {
        "lines": (55, 60),
        "printers": (39, 40),
    }
    assert (seen.score, [each.source for each in seen.findings]) == (94, ["lines"])


def test_sections_that_are_not_worth_a_hundred_points_are_refused(clock: FakeClock) -> None:
    with pytest.raises(InvalidSections, match="are worth 101 points: give them weights that add up to 100"):
        HealthAggregator(clock, (*SECTIONS, Section("printers", 1)))


def test_check_of_an_unknown_section_is_refused(clock: FakeClock) -> None:
    with pytest.raises(UnknownWord, match=r"section 'queue'.*queues"):
        aggregator(clock, check("well", Report(), section="queue"))


def test_critical_finding_keeps_the_score_below_forty() -> None:
    seen = assess([(QUEUES, Report(findings=(finding(Severity.CRITICAL),), lost=1))], NOW)
    assert (seen.score, seen.grade, seen.is_critical) == (39, Grade.CRITICAL, True)


def test_error_keeps_the_grade_below_healthy_and_a_warning_does_not() -> None:
    seen = assess([(QUEUES, Report(findings=(finding(Severity.ERROR),), lost=1))], NOW)
    assert (seen.score, seen.grade) == (79, Grade.ATTENTION)
    assert assess([(QUEUES, Report(findings=(finding(Severity.WARNING),), lost=1))], NOW).grade is Grade.HEALTHY


def test_section_loses_no_more_points_than_it_has() -> None:
    reports = [(QUEUES, Report(lost=20)), (QUEUES, Report(lost=20))]
    seen = assess(reports, NOW)
    assert (seen.sections[QUEUES].points, seen.score) == (0, 70)


@pytest.mark.parametrize(
    ("score", "level", "colour"),
    [
        (100, "healthy", "green"), (80, "healthy", "green"), (79, "attention", "yellow"), (60, "attention", "yellow"),
        (59, "degraded", "orange"), (40, "degraded", "orange"), (39, "critical", "red"), (0, "critical", "red"),
    ],
)  # fmt: skip
def test_score_has_one_scale_of_grades_and_colours(score: int, level: str, colour: str) -> None:
    assert (grade(score).value, grade(score).colour) == (level, colour)


def test_only_the_root_cause_of_a_chain_is_not_silenced() -> None:
    chain = [
        finding(Severity.CRITICAL, "database"),
        finding(Severity.CRITICAL, "scheduler", "database"),
        finding(Severity.ERROR, "jobs", "scheduler"),
        finding(Severity.ERROR, "alone", "not found"),
    ]
    assert find_silenced(chain) == {"scheduler": "database", "jobs": "database"}


def test_lesser_finding_does_not_silence_a_worse_one() -> None:
    assert find_silenced([finding(Severity.WARNING, "root"), finding(Severity.CRITICAL, "a", "root")]) == {}


def test_one_of_two_findings_that_explain_each_other_is_not_silenced() -> None:
    pair = [finding(Severity.ERROR, "a", "b"), finding(Severity.ERROR, "b", "a")]
    assert len(find_silenced(pair)) == 1


async def test_check_that_raises_is_reported_and_its_section_scores_zero(clock: FakeClock) -> None:
    seen = await aggregator(clock, check("broken", KeyError("5511900000001")), check("well", Report())).look()
    assert seen.sections[QUEUES].points == 0
    (worst,) = seen.findings
    assert (worst.cause, worst.severity) == ("check.broken", Severity.ERROR)
    # only the class is shown, because the message may contain personal data
    assert "5511900000001" not in str(worst.facts)


async def test_check_that_hangs_is_cancelled_at_its_own_time_limit(clock: FakeClock) -> None:
    async def hang() -> Report:
        await asyncio.Event().wait()
        return Report()

    looking = asyncio.create_task(aggregator(clock, Check(name="hangs", section=QUEUES, ask=hang)).look())
    await settle()
    await clock.advance(timedelta(seconds=3))
    seen = await looking
    assert (seen.sections[QUEUES].points, [each.cause for each in seen.findings]) == (0, ["check.hangs"])


async def test_check_that_ignores_cancellation_delays_no_caller(clock: FakeClock) -> None:
    asked, leave = 0, asyncio.Event()

    async def stubborn() -> Report:
        nonlocal asked
        asked += 1
        while not leave.is_set():
            with suppress(asyncio.CancelledError):
                await leave.wait()
        return Report()

    watching = aggregator(clock, Check(name="stubborn", section=QUEUES, ask=stubborn), check("well", Report()))
    for _ in range(2):
        looking = asyncio.create_task(watching.look(fresh=True))
        await settle()
        await clock.advance(timedelta(seconds=4))
        assert looking.done()
        assert [each.says for each in looking.result().findings] == ["check_late"]
    assert asked == 1
    leave.set()
    await settle()
    assert (await watching.look(fresh=True)).findings == ()


async def test_unavailable_database_explains_the_checks_that_need_it(clock: FakeClock) -> None:
    away = check("jobs", StoreUnavailable(where="there", why="away"))
    down = check("database", Report(findings=(finding(Severity.CRITICAL, DATABASE_DOWN),)), section=CONNECTIVITY)
    seen = await aggregator(clock, away, down).look()
    assert seen.silenced == {"check.jobs": DATABASE_DOWN}


async def test_assessment_is_cached_for_fifteen_seconds_and_shows_its_time(clock: FakeClock) -> None:
    made = aggregator(clock, check("turns", Report(), Report(findings=(finding(Severity.CRITICAL),))))
    first = await made.look()
    await clock.advance(CACHED_FOR - timedelta(seconds=1))
    assert await made.look() is first
    await clock.advance(timedelta(seconds=1))
    later = await made.look()
    assert later.is_critical
    assert later.at - first.at == CACHED_FOR


async def test_fresh_look_skips_the_cache(clock: FakeClock) -> None:
    made = aggregator(clock, check("turns", Report(), Report(findings=(finding(Severity.CRITICAL),))))
    assert not (await made.look()).is_critical
    assert (await made.look(fresh=True)).is_critical


async def test_concurrent_callers_share_one_assessment(clock: FakeClock) -> None:
    asked = 0

    async def ask() -> Report:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return Report()

    made = aggregator(clock, Check(name="counted", section=QUEUES, ask=ask))
    await asyncio.gather(*(made.look() for _ in range(50)))
    assert asked == 1


async def test_two_checks_with_the_same_name_are_refused(clock: FakeClock) -> None:
    with pytest.raises(InvalidName):
        aggregator(clock, check("same", Report()), check("same", Report()))


async def test_application_page_that_fails_reports_its_error(clock: FakeClock) -> None:
    async def ask() -> dict[str, object]:
        raise KeyError("x")

    made = aggregator(clock)
    made.add_page(HealthPage(name="fila", ask=ask, aliases=("fila-worker",)))
    document = await made.page("fila-worker")
    assert document is not None
    assert (document["status"], document["error"]) == ("error", "KeyError")
    assert await made.page("other") is None
