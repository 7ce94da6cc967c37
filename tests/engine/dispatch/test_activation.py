"""The rules that decide which timetable is active, and which changes of the code produce a new timetable."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from batuta.dispatch.activation import Active, StandsBy, TakesOver, standing
from batuta.dispatch.job import make_job
from batuta.dispatch.registry import JobRegistry
from batuta.guard.switches import SwitchRule
from batuta.runlog.log import Timetable
from batuta.schedule.window import Window
from tests.engine.dispatch.scheduling import Endpoint

NOW = datetime(2026, 1, 5, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def seen(name: str, position: int, *, active: bool = False, ever: bool = True) -> Timetable:
    return Timetable(
        fingerprint=name,
        position=position,
        jobs=1,
        release=None,
        first_seen_at=NOW,
        renewals=7,
        renewed_at=NOW,
        renewed_by="host:1",
        has_been_active=ever,
        is_active=active,
    )


OLD, MIDDLE, NEW = seen("old", 1), seen("middle", 2), seen("new", 3)


def test_first_timetable_of_a_database_becomes_active() -> None:
    assert standing("old", [seen("old", 1, ever=False)], ()) == TakesOver(None)


def test_new_timetable_takes_over_from_the_active_one() -> None:
    assert standing("new", [replace(NEW, has_been_active=False), replace(OLD, is_active=True)], ()) == TakesOver("old")


def test_old_timetable_stands_by_while_a_more_recent_one_lives() -> None:
    assert standing("old", [OLD, MIDDLE, replace(NEW, is_active=True)], ()) == StandsBy("new")


def test_most_recent_of_the_older_timetables_takes_over() -> None:
    all_three = [OLD, MIDDLE, replace(NEW, is_active=True)]
    assert standing("middle", all_three, {"new"}) == TakesOver("new")
    assert standing("old", all_three, {"new"}) == StandsBy("middle")
    assert standing("old", all_three, {"new", "middle"}) == TakesOver("new")


def test_active_timetable_stays_active_until_another_one_is_activated() -> None:
    assert standing("old", [replace(OLD, is_active=True), NEW], ()) == Active()


def test_timetable_that_was_never_active_blocks_no_other() -> None:
    unborn = replace(NEW, has_been_active=False)
    assert standing("old", [OLD, replace(MIDDLE, is_active=True), unborn], {"middle"}) == TakesOver("middle")


def registry(**edit: Any) -> JobRegistry:
    options: dict[str, Any] = {"zone": ZoneInfo("UTC"), "schedule": "* * * * *", **edit}
    made = JobRegistry(["one", "two"], windows={"manha": Window(opens=time(9))})
    made.add(make_job("a", options.pop("schedule"), Endpoint(), **options))
    made.add(make_job("b", "0 9 * * *", Endpoint(), zone=ZoneInfo("UTC")), ["one"])
    return made


@pytest.mark.parametrize(
    "edit",
    [
        {"schedule": "*/2 * * * *"},
        {"zone": ZoneInfo("America/Sao_Paulo")},
        {"category": "other"},
        {"catch_up": "all"},
        {"max_age": 7},
        {"overlap": "allow"},
        {"window": "manha"},
        {"holds": (SwitchRule(key="piloto"),)},
    ],
)
def test_each_setting_that_affects_fires_changes_the_timetable(edit: dict[str, Any]) -> None:
    assert registry(**edit).own().fingerprint != registry().own().fingerprint


def test_order_of_declaration_does_not_change_the_timetable() -> None:
    jobs = [make_job(name, "* * * * *", Endpoint(), zone=ZoneInfo("UTC")) for name in ("a", "b")]
    one, two = JobRegistry(), JobRegistry()
    for each in jobs:
        one.add(each)
    for each in reversed(jobs):
        two.add(each)
    assert one.own() == two.own()
    assert one.own("2026-11-16").fingerprint != one.own().fingerprint
