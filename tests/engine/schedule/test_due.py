"""The computation of due fires, compared with a plain list of every fire."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from batuta.schedule.due import FIRES_AT_A_TIME, MOST_MISSED, ON_TIME, CatchUp, Owed, count, due, last_fire
from batuta.schedule.kinds import parse_schedule as parse
from tests.engine.schedule.test_cron import crons
from tests.oracles import cron_fires

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
MINUTE = timedelta(minutes=1)
instants = st.datetimes(datetime(2018, 1, 1), datetime(2019, 3, 1), timezones=st.just(UTC))
gaps = st.timedeltas(timedelta(0), timedelta(days=3))
ages = st.timedeltas(timedelta(seconds=30), timedelta(days=1))


def owed(text: str, since: datetime, until: datetime, policy: CatchUp, max_age: timedelta) -> Owed:
    return due(parse(text), SAO_PAULO, since=since, until=until, policy=policy, max_age=max_age)


def every_fire(text: str, since: datetime, until: datetime) -> list[datetime]:
    walked = cron_fires(text, SAO_PAULO, since.replace(second=0, microsecond=0), until)
    return [fire for fire in walked if since < fire <= until]


@settings(max_examples=80, deadline=None)
@given(crons, instants, gaps, ages, st.sampled_from(CatchUp))
def test_every_fire_is_either_run_or_missed(
    text: str, since: datetime, gap: timedelta, max_age: timedelta, policy: CatchUp
) -> None:
    until = since + gap
    found, all_fires = owed(text, since, until, policy, max_age), every_fire(text, since, until)
    left = all_fires[all_fires.index(found.run[-1]) + 1 :] if found.run else []
    assert not left or (policy is CatchUp.ALL and len(found.run) == FIRES_AT_A_TIME)
    fires = [*found.missed, *found.run, *left]
    if found.gap is None:
        assert fires == all_fires
        assert len(found.missed) <= MOST_MISSED
    else:
        before = [fire for fire in all_fires if fire not in found.run and fire not in left]
        assert (found.gap.first, found.gap.last) == (before[0], before[-1])
        assert abs(found.gap.count - len(before)) <= 120  # clock changes inside the gap


@settings(max_examples=80, deadline=None)
@given(crons, instants, gaps, ages, st.sampled_from(CatchUp))
def test_policy_decides_which_fires_run(
    text: str, since: datetime, gap: timedelta, max_age: timedelta, policy: CatchUp
) -> None:
    until = since + gap
    all_fires = every_fire(text, since, until)
    young = [fire for fire in all_fires if until - fire <= max(max_age, ON_TIME)]
    wanted = {
        CatchUp.SKIP: [fire for fire in all_fires if until - fire <= ON_TIME],
        CatchUp.LATEST: young[-1:],
        CatchUp.ALL: young[:FIRES_AT_A_TIME],
    }
    assert list(owed(text, since, until, policy, max_age).run) == wanted[policy]


@settings(max_examples=80, deadline=None)
@given(crons, instants)
def test_no_fire_follows_the_last_fire(text: str, until: datetime) -> None:
    cron = parse(text)
    last = last_fire(cron, SAO_PAULO, until)
    assert last <= until < cron.next_after(last, SAO_PAULO)


@settings(max_examples=60, deadline=None)
@given(crons, st.datetimes(datetime(2020, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC)), gaps)
def test_count_is_exact_without_clock_changes(text: str, since: datetime, gap: timedelta) -> None:
    assert count(parse(text), SAO_PAULO, since, since + gap) == len(every_fire(text, since, since + gap))


schedules = st.one_of(
    crons.map(lambda text: f"*/20 {text}"),
    st.integers(1, 100_000).map(lambda every: f"@every {every}s"),
    instants.map(lambda at: f"@at {at.isoformat()}"),
)


@settings(max_examples=80, deadline=None)
@given(schedules, instants, st.timedeltas(timedelta(0), timedelta(hours=3)), ages, st.sampled_from(CatchUp))
def test_other_kinds_of_schedules_run_or_miss_every_fire(
    text: str, since: datetime, gap: timedelta, max_age: timedelta, policy: CatchUp
) -> None:
    until, schedule = since + gap, parse(text)
    found, walked, at = owed(text, since, until, policy, max_age), [], since
    while (at := schedule.next_after(at, SAO_PAULO)) <= until:
        walked.append(at)
    assert [fire for fire in found.run if fire not in walked] == []
    counted = len(found.missed) if found.gap is None else found.gap.count
    left = len(walked) - walked.index(found.run[-1]) - 1 if found.run else 0
    if schedule.text.startswith("@"):
        assert counted + len(found.run) + left == len(walked)
        assert count(schedule, SAO_PAULO, since, until) == len(walked)
    if walked:
        assert last_fire(schedule, SAO_PAULO, until) == walked[-1]
