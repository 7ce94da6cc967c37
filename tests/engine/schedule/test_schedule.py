from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest

from batuta.kernel.errors import InvalidCron, InvalidWindow
from batuta.schedule.cron import first_instant, parse
from batuta.schedule.due import CatchUp, default_sla, due, fires, last_fire, period
from batuta.schedule.window import Window, decode_window, easter, holiday_at, holidays

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
MOMENT = timedelta(microseconds=1)


def local(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=SAO_PAULO)


def next_fire(cron: str, after: str) -> str:
    return parse(cron).next_after(local(after), SAO_PAULO).astimezone(SAO_PAULO).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("cron", "after", "fire"),
    [
        ("* * * * *", "2026-01-05T12:00", "2026-01-05T12:01-03:00"),
        ("*/5 8-19 * * *", "2026-01-05T19:55", "2026-01-06T08:00-03:00"),
        ("0 9,14 * * 1-5", "2026-01-09T14:00", "2026-01-12T09:00-03:00"),
        ("0 2 * * 7", "2026-01-05T12:00", "2026-01-11T02:00-03:00"),
        ("0 2 * * 0", "2026-01-05T12:00", "2026-01-11T02:00-03:00"),
        ("0 4 * * MON", "2026-01-05T04:00", "2026-01-12T04:00-03:00"),
        ("0 4 * * seg", "2026-01-05T04:00", "2026-01-12T04:00-03:00"),
        ("0 0 1 FEB-mar *", "2026-01-05T04:00", "2026-02-01T00:00-03:00"),
        ("0 0 13 * 5", "2026-02-14T00:00", "2026-02-20T00:00-03:00"),  # the 13th OR a Friday
        ("0 0 29 2 *", "2026-01-05T04:00", "2028-02-29T00:00-03:00"),
        ("05 07 * * *", "2026-01-05T04:00", "2026-01-05T07:05-03:00"),
        ("10/20 * * * *", "2026-01-05T04:31", "2026-01-05T04:50-03:00"),
        ("@daily", "2026-01-05T04:31", "2026-01-06T00:00-03:00"),
        ("30 0 * * *", "2018-11-03T12:00", "2018-11-04T01:00-02:00"),  # 00:30 does not exist that night
        ("30 23 * * *", "2018-02-17T23:30", "2018-02-18T23:30-03:00"),  # on this night 23:30 occurs twice
    ],
)
def test_next_fire_follows_crontab_rules(cron: str, after: str, fire: str) -> None:
    assert next_fire(cron, after) == fire


@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Africa/Monrovia", "Europe/Amsterdam", "Asia/Kolkata"])
@pytest.mark.parametrize("day", [date(2, 1, 1), date(1900, 1, 1), date(1913, 6, 1)])
def test_zone_with_seconds_in_its_offset_fires_at_its_own_whole_minutes(zone: str, day: date) -> None:
    there = ZoneInfo(zone)
    start, end = (first_instant(datetime.combine(each, time()), there) for each in (day, day + timedelta(days=1)))
    for cron, wanted in (("* * * * *", 1440), ("*/15 * * * *", 96), ("0 * * * *", 24), ("0 0,12 * * *", 2)):
        found = list(islice(fires(parse(cron), there, start - MOMENT, end - MOMENT), 2000))
        assert len(found) == wanted
        assert all(each.astimezone(there).time().replace(minute=0, hour=0) == time() for each in found)
        assert all(later - earlier == timedelta(days=1) / wanted for earlier, later in pairwise(found))


@pytest.mark.parametrize(
    ("cron", "after", "wanted"),
    [
        ("* * * * *", "1914-01-01T03:05:28", ["1914-01-01T03:07:00", "1914-01-01T03:08:00"]),
        ("*/5 * * * *", "1914-01-01T03:01:28", ["1914-01-01T03:10:00"]),
        ("3 0 * * *", "1914-01-01T03:05:28", ["1914-01-01T03:06:28", "1914-01-02T03:03:00"]),  # 00:03 does not exist
        ("0 0 * * *", "1913-12-31T03:06:27", ["1913-12-31T03:06:28", "1914-01-01T03:06:28", "1914-01-02T03:00:00"]),
    ],
)
def test_clock_changes_by_minutes_and_seconds_are_handled(cron: str, after: str, wanted: list[str]) -> None:
    """Clock changes by minutes and seconds are handled. At the first midnight of 1914, São Paulo changed from
    UTC-03:06:28 to UTC-03:00, so its clocks jumped from 00:00:00 to 00:06:28.
    """
    since = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = islice(fires(parse(cron), SAO_PAULO, since, since + timedelta(days=3)), len(wanted))
    assert [f"{each:%Y-%m-%dT%H:%M:%S}" for each in found] == wanted


def test_last_fire_is_the_later_of_two_a_minute_apart() -> None:
    until = datetime(2026, 1, 5, 0, 14, tzinfo=UTC)
    assert last_fire(parse("0,5,6 0 * * *"), ZoneInfo("UTC"), until) == until.replace(minute=6)


@pytest.mark.parametrize(
    ("cron", "complaint"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("* * * * * * *", "7 fields"),
        ("60 * * * *", "'60' is not a minute from 0 to 59"),
        ("* 24 * * *", "'24' is not a hour"),
        ("* * 0 * *", "'0' is not a day of month"),
        ("* * * 13 *", "'13' is not a month"),
        ("* * * * 8", "'8' is not a day of week"),
        ("* * * * FOO", "'FOO' is not a day of week"),
        ("*/0 * * * *", "contains no minute"),
        ("30-10 * * * *", "contains no minute"),
        ("1,,2 * * * *", "'' is not a minute"),
        ("a b c d e", "'A' is not a minute"),
        ("0 0 31 2 *", "would never fire"),
        ("0 0 31 4,6,9,11 *", "would never fire"),
        ("-1 * * * *", "'-1' is not a minute"),
    ],
)
def test_invalid_schedule_is_refused_with_the_reason(cron: str, complaint: str) -> None:
    with pytest.raises(InvalidCron, match=complaint):
        parse(cron)


def test_schedule_with_an_impossible_date_fires_on_its_weekday() -> None:
    assert next_fire("0 0 31 2 1", "2026-02-01T00:00") == "2026-02-02T00:00-03:00"


OFFICE = Window(opens=time(8), lasts=timedelta(hours=12))


@pytest.mark.parametrize(
    ("at", "opens"),
    [
        ("2026-01-05T07:59", "2026-01-05T08:00"),
        ("2026-01-05T08:00", "2026-01-05T08:00"),
        ("2026-01-05T19:59", "2026-01-05T19:59"),
        ("2026-01-05T20:00", "2026-01-06T08:00"),  # the end of the window is exclusive
        ("2026-01-09T20:00", "2026-01-12T08:00"),  # Friday evening to Monday
    ],
)
def test_office_hours_name_their_next_opening(at: str, opens: str) -> None:
    assert OFFICE.next_open(local(at), SAO_PAULO) == local(opens)
    assert OFFICE.is_open(local(at), SAO_PAULO) is (at == opens)


def test_open_window_names_its_closing_time() -> None:
    assert OFFICE.closes(local("2026-01-05T10:00"), SAO_PAULO) == local("2026-01-05T20:00")
    assert OFFICE.closes(local("2026-01-05T21:00"), SAO_PAULO) is None


def test_window_may_stay_open_over_midnight() -> None:
    night = Window(opens=time(22), lasts=timedelta(hours=4), days=frozenset({5}))
    assert night.is_open(local("2026-01-10T01:59"), SAO_PAULO)
    assert not night.is_open(local("2026-01-10T02:00"), SAO_PAULO)


def test_window_may_stay_closed_on_holidays() -> None:
    shut = Window(opens=time(10), on_holidays=False)
    assert shut.next_open(local("2026-09-07T10:30"), SAO_PAULO) == local(
        "2026-09-08T10:00"
    )  # Independence Day, a Monday
    assert Window(opens=time(10)).is_open(local("2026-09-07T10:30"), SAO_PAULO)


def test_window_that_opens_in_a_clock_gap_opens_after_it() -> None:
    midnight = Window(opens=time(0, 30), days=frozenset({0}))
    assert midnight.next_open(datetime(2018, 11, 4, 2, tzinfo=UTC), SAO_PAULO) == datetime(2018, 11, 4, 3, tzinfo=UTC)


@pytest.mark.parametrize(
    "mistake",
    [
        {"lasts": timedelta(0)},
        {"lasts": timedelta(hours=25)},
        {"days": frozenset()},
        {"days": frozenset({7})},
        {"opens": time(8, tzinfo=UTC)},
    ],
)
def test_invalid_window_is_refused(mistake: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="a window"):
        Window(**{"opens": time(8), **mistake})  # type: ignore[arg-type]


@pytest.mark.parametrize("opens", ["11:00:00", "11", "1e1:00", "onze", "", "-1:00", "+1:00", "1_1:00", "٣:00"])
def test_window_with_an_invalid_opening_time_is_refused_with_the_format(opens: str) -> None:
    with pytest.raises(InvalidWindow, match="write the hour and the minutes, as in 10:00"):
        decode_window("manha", opens=opens, minutes=120, days="1-5")


@pytest.mark.parametrize("minutes", [-1, 0, 1441, 999999999999999, -(10**40), 10**40])
def test_window_longer_than_a_day_is_refused(minutes: int) -> None:
    with pytest.raises(InvalidWindow, match="at most a day"):
        decode_window("manha", opens="10:00", minutes=minutes, days="1-5")


@pytest.mark.parametrize(
    ("year", "day"), [(2024, "03-31"), (2025, "04-20"), (2026, "04-05"), (2038, "04-25"), (1818, "03-22")]
)
def test_easter_is_on_its_church_date(year: int, day: str) -> None:
    assert easter(year) == date.fromisoformat(f"{year}-{day}")


def test_national_holidays_of_a_year_are_listed() -> None:
    assert sorted(f"{day:%d/%m}" for day in holidays(2026)) == sorted(
        ["01/01", "03/04", "21/04", "01/05", "07/09", "12/10", "02/11", "15/11", "20/11", "25/12"]
    )
    assert holiday_at(date(2026, 4, 21), ZoneInfo("America/Sao_Paulo")) == "Tiradentes"
    assert holiday_at(date(2026, 4, 21), ZoneInfo("Europe/Lisbon")) is None
    assert date(2023, 11, 20) not in holidays(2023)
    assert date(2024, 11, 20) in holidays(2024)
    assert date(2026, 2, 17) not in holidays(2026)  # carnival is optional


def test_two_centuries_of_missed_minutes_are_one_gap() -> None:
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2226, 1, 1, tzinfo=UTC)
    owed = due(
        parse("* * * * *"), ZoneInfo("UTC"), since=since, until=until, policy=CatchUp.LATEST, max_age=timedelta(days=1)
    )
    assert owed.run == (until,)
    assert owed.missed == ()
    assert owed.gap is not None
    assert owed.gap.count == (until - since) // timedelta(minutes=1) - 1
    assert owed.gap.last == until - timedelta(minutes=1)


def test_first_look_at_a_new_job_finds_no_due_fire() -> None:
    now = local("2026-01-05T12:00")
    owed = due(parse("0 12 * * *"), SAO_PAULO, since=now, until=now, policy=CatchUp.ALL, max_age=timedelta(days=1))
    assert owed.run == ()
    assert owed.missed == ()


@pytest.mark.parametrize(
    ("cron", "every", "sla"),
    [
        ("* * * * *", timedelta(minutes=1), timedelta(minutes=3)),
        ("*/5 8-19 * * *", timedelta(minutes=5), timedelta(minutes=15)),
        ("*/10 * * * *", timedelta(minutes=10), timedelta(minutes=30)),
        ("*/15 * * * *", timedelta(minutes=15), timedelta(minutes=45)),
        ("*/30 * * * *", timedelta(minutes=30), timedelta(minutes=90)),
        ("0 * * * *", timedelta(hours=1), timedelta(hours=2)),
        ("0 10 * * *", timedelta(days=1), timedelta(hours=25)),
        ("0 10 * * 1-5", timedelta(days=1), timedelta(hours=25)),
        ("0 9,14 * * 1-5", timedelta(hours=5), timedelta(hours=15)),
        ("0 9 * * 1", timedelta(days=7), timedelta(days=8)),
    ],
)
def test_default_sla_follows_from_the_period(cron: str, every: timedelta, sla: timedelta) -> None:
    assert period(parse(cron), SAO_PAULO) == every
    assert default_sla(every) == sla


@pytest.mark.parametrize(
    ("cron", "seconds"),
    [("0,10,50 * * * * *", 10), ("5,50 * * * * *", 15), ("0,50 */5 * * * *", 50), ("* * * * * *", 1)],
)
def test_period_is_the_shortest_time_between_two_fires_with_seconds(cron: str, seconds: int) -> None:
    assert period(parse(cron), SAO_PAULO) == timedelta(seconds=seconds)


def test_weekly_window_skips_holidays_to_the_first_free_day() -> None:
    window = Window(
        opens=time(10), days=frozenset({5}), on_holidays=False
    )  # Fridays; 25 December and 1 January are Fridays too
    assert not window.is_open(local("2026-12-19T10:30"), SAO_PAULO)
    assert window.next_open(local("2026-12-19T10:30"), SAO_PAULO) == local("2027-01-08T10:00")
