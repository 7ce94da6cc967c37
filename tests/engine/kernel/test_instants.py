from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batuta.kernel.clock import EARLIEST, FARTHEST, instant, microseconds


@given(st.datetimes(timezones=st.just(UTC)))
def test_instant_survives_the_conversion_to_microseconds(at: datetime) -> None:
    assert instant(microseconds(at)) == at


@pytest.mark.parametrize(("counted", "read"), [(2**63 - 1, FARTHEST), (-(2**63), EARLIEST), (10**30, FARTHEST)])
def test_instant_beyond_the_calendar_becomes_its_first_or_last_day(counted: int, read: datetime) -> None:
    assert instant(counted) == read


@pytest.mark.parametrize("end", [EARLIEST, FARTHEST])
def test_first_and_last_instant_convert_to_every_zone(end: datetime) -> None:
    for hours in (-23, 23):
        assert end.astimezone(timezone(timedelta(hours=hours))) == end
