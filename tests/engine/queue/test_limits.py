"""Decisions about the limits of a task, as pure functions: rates, keys, free slots, and how free slots are shared among
several keys.
"""

import inspect
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batuta.kernel.errors import InvalidName, UnknownWord
from batuta.queue.limits import (
    NO_KEY,
    Limits,
    Rate,
    Room,
    Use,
    limits_of,
    parse_rate,
    room,
    share,
    why_line_waits,
    why_task_waits,
)

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def send(to: str, subject: str = "", *, tenant: int = 0) -> None: ...


PARAMETERS = list(inspect.signature(send).parameters.values())


def test_a_rate_is_a_number_and_a_unit() -> None:
    assert parse_rate("100/minute") == Rate(100, MINUTE)
    assert parse_rate("3 / hour") == Rate(3, timedelta(hours=1))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("100/minutes", 'write "100/minute"'),
        ("100", 'for example "100/minute"'),
        ("100/fortnight", 'for example "100/minute"'),
        ("0/hour", "at least one"),
        ("1000000/day", "use a shorter period"),
    ],
)
def test_a_wrong_rate_is_rejected_with_the_next_step(wrong: str, says: str) -> None:
    with pytest.raises(InvalidName, match=says):
        Limits(rate=wrong)


def test_a_concurrency_is_at_least_one() -> None:
    with pytest.raises(InvalidName, match="at least 1"):
        Limits(concurrency=0)


def test_an_unknown_parameter_is_rejected_with_the_nearest_one() -> None:
    with pytest.raises(UnknownWord, match="did you mean tenant"):
        limits_of("send", PARAMETERS, Limits(), Limits(by="tenants", concurrency=1))
    with pytest.raises(InvalidName, match="Limits\\(by="):
        limits_of("send", PARAMETERS, Limits(), Limits(concurrency=1))
    with pytest.raises(InvalidName, match="a concurrency or a rate"):
        limits_of("send", PARAMETERS, Limits(), Limits(by="to"))


def test_the_key_of_a_call_does_not_depend_on_how_it_is_given_and_hides_its_value() -> None:
    limits = limits_of("send", PARAMETERS, Limits(), Limits(by="to", concurrency=1))
    assert limits is not None
    key = limits.key_of(["a@example.com"], {})
    assert key == limits.key_of([], {"to": "a@example.com"}) != limits.key_of(["b@example.com"], {})
    assert "example" not in key
    assert limits.key_of([None], {}) == NO_KEY
    by_tenant = limits_of("send", PARAMETERS, Limits(), Limits(by="tenant", concurrency=1))
    assert by_tenant is not None
    assert by_tenant.key_of(["a", "b"], {}) == by_tenant.key_of(["c"], {"tenant": 0}) != NO_KEY


def test_a_task_without_limits_has_none() -> None:
    assert limits_of("send", PARAMETERS, Limits(), None) is None


def test_room_is_what_both_limits_leave() -> None:
    rate = Rate(3, MINUTE)
    assert room(5, rate, Use(running=1, started=1), 10) == Room(2)
    assert room(5, None, Use(running=7), 10) == Room(0)
    assert room(None, rate, Use(started=3, first_start=NOON), 10) == Room(0, is_rate=True, until=NOON + MINUTE)


@given(st.integers(0, 40), st.lists(st.integers(0, 9), max_size=9))
def test_a_share_uses_every_place_and_no_line_gets_two_more_than_a_line_that_could_take_more(
    places: int, waiting: list[int]
) -> None:
    lines = {str(n): most for n, most in enumerate(waiting)}
    given_to = share(places, lines)
    assert sum(given_to.values()) == min(places, sum(lines.values()))
    assert all(0 < count <= lines[key] for key, count in given_to.items())
    hungry = [given_to.get(key, 0) for key, most in lines.items() if given_to.get(key, 0) < most]
    assert not hungry or max(given_to.values(), default=0) <= min(hungry) + 1


def test_a_waiting_item_says_which_limit_it_waits_for() -> None:
    limits = limits_of(
        "send", PARAMETERS, Limits(concurrency=2, rate="9/hour"), Limits(by="to", concurrency=1, rate="3/hour")
    )
    assert limits is not None
    assert why_task_waits(limits, Use(running=1, started=8)) is None
    task = [why_task_waits(limits, Use(running=2)), why_task_waits(limits, Use(started=9, first_start=NOON))]
    line = [why_line_waits(limits, "k", Use(running=1)), why_line_waits(limits, "k", Use(started=3))]
    assert [each and each.code for each in [*task, *line]] == [
        "limit_task_concurrency",
        "limit_task_rate",
        "limit_key_concurrency",
        "limit_key_rate",
    ]
    assert why_line_waits(limits, NO_KEY, Use(running=9)) is None
