"""The conditions under which a scheduler takes over another scheduler's run."""

from datetime import UTC, datetime, timedelta

import pytest

from batuta.dispatch.reaper import may_take_over
from batuta.runlog.log import SilentRun

NOW = datetime(2026, 1, 5, tzinfo=UTC)
LEASE = timedelta(seconds=6)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("left", "watched", "owner", "is_taken"),
    [
        (2 * SECOND, 9 * SECOND, "host:1", False),  # the lease is valid
        (-SECOND, 0 * SECOND, "host:1", False),  # first check: the clock may have been set forward
        (-SECOND, 2 * SECOND, "host:1", False),  # second check: the row may have been locked until now
        (-SECOND, 3 * SECOND, "host:1", True),
        (
            timedelta(hours=1),
            89 * SECOND,
            "host:1",
            False,
        ),  # the clock was set back, so a healthy owner still has time to renew
        (timedelta(hours=1), 90 * SECOND, "host:1", True),
        (-SECOND, 0 * SECOND, None, True),  # the owner released the lease
    ],
)
def test_run_is_taken_over_after_its_owner_was_silent_for_long_enough(
    left: timedelta, watched: timedelta, owner: str | None, is_taken: bool
) -> None:
    run = SilentRun(id="r", job="j", attempt=1, owner=owner, lease_until=NOW + left, left=left)
    assert may_take_over(run, watched, LEASE) is is_taken
