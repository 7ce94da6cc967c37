"""Several guards combined: switches, sending hours, pilot mode, circuit breaker and rate limit."""

from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from batuta.guard.base import FREE, WORKED, Admit, AllOf, EffectReport, Hold, HoursGuard, Verdict
from batuta.schedule.window import Window
from batuta.testing import FakeClock

ZONE = ZoneInfo("America/Sao_Paulo")
HOURS = HoursGuard(
    name="horário", window=Window(opens=time(8), lasts=timedelta(hours=12), on_holidays=False), zone=ZONE
)


@dataclass(eq=False)
class RecordingGuard:
    """A guard that issues tickets, the permissions for single effects, and records the result that is reported for each
    ticket.
    """

    holds: bool = False
    takes: float = 0.0
    clock: FakeClock | None = None
    reports: list[EffectReport | None] = field(default_factory=list)
    by: datetime | None = None

    async def admit(self, now: datetime) -> Verdict:
        if self.clock is not None:
            await self.clock.advance(self.takes)
        return Hold(now, "full") if self.holds else Admit(self, self.by)

    async def report(self, report: EffectReport) -> None:
        self.reports.append(report)

    async def give_back(self) -> None:
        self.reports.append(None)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZONE)


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-01-05T07:59:59.999999", "2026-01-05T08:00"),
        ("2026-01-05T08:00", None),
        ("2026-01-05T19:59:59.999999", None),
        ("2026-01-05T20:00", "2026-01-06T08:00"),  # the end of the hours is exclusive
        ("2026-01-09T20:00", "2026-01-12T08:00"),  # Friday evening
        ("2026-01-10T12:00", "2026-01-12T08:00"),  # Saturday
        ("2026-04-03T12:00", "2026-04-06T08:00"),  # Good Friday
    ],
)
async def test_hours_end_at_eight_and_name_their_next_opening(now: str, opens: str | None) -> None:
    verdict = await HOURS.admit(at(now))
    if opens is None:
        assert verdict == Admit()
    else:
        assert isinstance(verdict, Hold)
        assert verdict.until == at(opens)


async def test_all_guards_must_admit_and_each_gets_the_report(clock: FakeClock) -> None:
    one, other = RecordingGuard(), RecordingGuard()
    verdict = await AllOf(HOURS, one, other, clock=clock).admit(clock.now())
    assert isinstance(verdict, Admit)
    await verdict.ticket.report(WORKED)
    assert (one.reports, other.reports) == ([WORKED], [WORKED])


async def test_first_hold_wins_and_earlier_tickets_are_returned(clock: FakeClock) -> None:
    one, full, never = RecordingGuard(), RecordingGuard(holds=True), RecordingGuard()
    assert await AllOf(one, full, never, clock=clock).admit(clock.now()) == Hold(clock.now(), "full")
    assert (one.reports, full.reports, never.reports) == ([None], [], [])


async def test_earliest_deadline_counts(clock: FakeClock) -> None:
    soon, later = clock.now() + timedelta(seconds=5), clock.now() + timedelta(minutes=5)
    verdict = await AllOf(
        HOURS, RecordingGuard(by=later), RecordingGuard(by=soon), RecordingGuard(), clock=clock
    ).admit(clock.now())
    assert isinstance(verdict, Admit)
    assert verdict.by == soon


async def test_guards_without_tickets_combine_into_one_without_a_ticket(clock: FakeClock) -> None:
    verdict = await AllOf(HOURS, HOURS, clock=clock).admit(clock.now())
    assert verdict == Admit(FREE)


async def test_caller_that_waited_past_closing_time_is_held(clock: FakeClock) -> None:
    closing = clock.now().astimezone(ZONE).replace(hour=20)
    await clock.advance((closing - clock.now()).total_seconds() - 1)
    slow = RecordingGuard(takes=1.0, clock=clock)
    assert isinstance(await AllOf(HOURS, slow, clock=clock).admit(clock.now()), Hold)
    assert slow.reports == [None]


async def test_failing_guard_returns_the_tickets_of_the_others(clock: FakeClock) -> None:
    class FailingGuard:
        async def admit(self, now: datetime) -> Verdict:
            raise ZeroDivisionError

    one = RecordingGuard()
    with pytest.raises(ZeroDivisionError):
        await AllOf(one, FailingGuard(), clock=clock).admit(clock.now())
    assert one.reports == [None]
