"""The graphical timeline of an item. The periods in which the item is planned, waits, runs and rests fill the bar, and
even a short period is visible.
"""

from datetime import timedelta

from batuta.testing.clock import START
from batuta.web.panel.timeline import LEAST, draw, periods_of

MINUTE = timedelta(minutes=1)


def kinds(**facts: object) -> list[tuple[str, timedelta]]:
    known = {"due": None, "started": None, "ended": None, "attempts": 0, "is_running": False}
    found = periods_of(**{"created": START, "now": START + 10 * MINUTE, **known, **facts})  # type: ignore[arg-type]
    return [(each.kind, each.lasts) for each in found]


def test_an_item_is_planned_waits_runs_and_rests() -> None:
    started = START + 5 * MINUTE
    assert kinds(due=START + 4 * MINUTE) == [("planned", 4 * MINUTE), ("waited", 6 * MINUTE)]
    assert kinds(started=started, attempts=1, is_running=True) == [("waited", 5 * MINUTE), ("ran", 5 * MINUTE)]
    ended = kinds(started=started, ended=started + MINUTE, attempts=3)
    assert ended == [("earlier", 5 * MINUTE), ("ran", MINUTE)]
    assert kinds(started=started, attempts=1, due=START + 20 * MINUTE)[-1] == ("rests", 5 * MINUTE)


def test_a_short_period_keeps_a_width_and_the_bar_is_full() -> None:
    periods = periods_of(
        created=START, due=None, started=START + timedelta(hours=9), ended=START + timedelta(hours=9, seconds=1),
        now=START + timedelta(hours=10), attempts=1, is_running=False,
    )  # fmt: skip
    drawn = draw(periods)
    assert sum(each.width for each in drawn) == 100
    assert drawn[-1].width >= LEAST * 0.9
    assert draw([]) == []
