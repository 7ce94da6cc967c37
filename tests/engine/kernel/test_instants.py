from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batuta.kernel.clock import EARLIEST, FARTHEST, instant, microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_what_is_counted_comes_back_as_it_was(at: datetime) -> None:
    assert instant(microseconds(at)) == at


@pytest.mark.parametrize(("counted", "read"), [(2**63 - 1, FARTHEST), (-(2**63), EARLIEST), (10**30, FARTHEST)])
def test_what_lies_beyond_the_calendar_is_its_last_day_or_its_first(counted: int, read: datetime) -> None:
    assert instant(counted) == read


@pytest.mark.parametrize("end", [EARLIEST, FARTHEST])
def test_the_ends_can_be_told_in_every_zone(end: datetime) -> None:
    for hours in (-23, 23):
        assert end.astimezone(timezone(timedelta(hours=hours))) == end
