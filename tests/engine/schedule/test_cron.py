"""Our cron implementation, compared with a simple reference that checks each minute in turn."""

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batuta.schedule.cron import parse
from tests.oracles import cron_fires

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
DAY = timedelta(days=1)
# Every clock change of São Paulo from 2017 to 2019, in the middle of a span of three days.
CHANGES = [
    datetime(2017, 2, 19),
    datetime(2017, 10, 15),
    datetime(2018, 2, 18),
    datetime(2018, 11, 4),
    datetime(2019, 2, 17),
]
KNOWN = [
    "30 0 * * *", "30 23 * * *", "0 0 * * *", "0 1 * * *", "*/15 * * * *", "0 * * * *", "30 0-2 * * *",
    "15,45 23 * * *", "*/10 0 * * *",
    "* 1 * * 0", "* */7 * * 7", "14,22,35 * * * 6", "0 0 15 * 0", "59 23 * * 6", "0-59/7 22-23 * * *",
]  # fmt: skip


def field(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    spans = st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.integers(1, high)
    return st.one_of(
        st.just("*"),
        steps.map(lambda step: f"*/{step}"),
        number.map(str),
        spans,
        st.tuples(spans, steps).map(lambda pair: f"{pair[0]}/{pair[1]}"),
        st.lists(number, min_size=2, max_size=4).map(lambda numbers: ",".join(map(str, numbers))),
    )


days = st.sampled_from(["*", "*", "*", "1-15", "4", "15,18", "*/2"])
weekdays = st.sampled_from(["*", "*", "0", "6", "7", "1-5", "6-7", "*/2"])
crons = st.tuples(field(0, 59), field(0, 23), days, st.just("*"), weekdays).map(" ".join)


def fires(text: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    cron, found, at = parse(text), [], start - timedelta(minutes=1)
    while (at := cron.next_after(at, zone)) <= end:
        found.append(at)
    return found


def span_around(change: datetime) -> tuple[datetime, datetime]:
    middle = change.replace(tzinfo=UTC, hour=3)
    return middle - 1.5 * DAY, middle + 1.5 * DAY


@pytest.mark.parametrize("text", KNOWN)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: f"{change:%Y-%m-%d}")
def test_known_schedules_are_right_at_clock_changes_of_sao_paulo(text: str, change: datetime) -> None:
    start, end = span_around(change)
    assert fires(text, SAO_PAULO, start, end) == cron_fires(text, SAO_PAULO, start, end)


@settings(max_examples=120, deadline=None)
@given(crons, st.sampled_from(CHANGES))
def test_any_cron_is_right_at_clock_changes_of_sao_paulo(text: str, change: datetime) -> None:
    start, end = span_around(change)
    assert fires(text, SAO_PAULO, start, end) == cron_fires(text, SAO_PAULO, start, end)


seconds = st.sampled_from(["0", "30", "*/20", "5,10", "59", "*"])


@settings(max_examples=60, deadline=None)
@given(seconds, crons, st.sampled_from(CHANGES))
def test_any_cron_with_seconds_is_right_at_clock_changes_of_sao_paulo(second: str, text: str, change: datetime) -> None:
    middle = change.replace(tzinfo=UTC, hour=3)
    start, end = middle - timedelta(hours=2), middle + timedelta(hours=2)
    cron, found, at = parse(f"{second} {text}"), [], start - timedelta(microseconds=1)
    while (at := cron.next_after(at, SAO_PAULO)) <= end:
        found.append(at)
    assert found == cron_fires(f"{second} {text}", SAO_PAULO, start, end)


@cache
def changes_of(zone: str) -> list[datetime]:
    """Return the days from 2010 to 2030 on which the zone changed its clocks."""
    info, found = ZoneInfo(zone), []
    day = datetime(2010, 1, 1, tzinfo=UTC)
    while day.year < 2030:
        if day.astimezone(info).utcoffset() != (day + DAY).astimezone(info).utcoffset():
            found.append(day.replace(tzinfo=None))
        day += DAY
    return found


ZONES = sorted(zone for zone in available_timezones() if "/" in zone and not zone.startswith(("Etc/", "SystemV/")))


@settings(max_examples=60, deadline=None)
@given(crons, st.sampled_from(ZONES), st.randoms(use_true_random=False))
def test_any_cron_is_right_in_any_zone(text: str, zone: str, chance: object) -> None:
    days_of_change = changes_of(zone) or [datetime(2026, 1, 5)]
    start, end = span_around(chance.choice(days_of_change))  # type: ignore[attr-defined]
    assert fires(text, ZoneInfo(zone), start, end) == cron_fires(text, ZoneInfo(zone), start, end)


@given(crons, st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1)), st.sampled_from(ZONES))
def test_next_fire_is_always_later_and_always_found(text: str, at: datetime, zone: str) -> None:
    instant = at.replace(tzinfo=UTC)
    fire = parse(text).next_after(instant, ZoneInfo(zone))
    assert fire > instant
    assert fire.tzinfo is UTC
    assert (fire.second, fire.microsecond) == (0, 0)
