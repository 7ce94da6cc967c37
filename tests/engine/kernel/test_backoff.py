from datetime import timedelta

from hypothesis import example, given
from hypothesis import strategies as st

from batuta.kernel.waiting import equal_jitter, exponential, full_jitter
from batuta.queue.outcome import Waits

attempts = st.integers(1, 10**9)
waits = st.timedeltas(timedelta(milliseconds=1), timedelta(days=1))
chances = st.floats(0, 1, exclude_max=True)


@given(attempts, waits, waits)
def test_wait_never_exceeds_its_cap_however_large_the_attempt(attempt: int, base: timedelta, cap: timedelta) -> None:
    assert timedelta(0) < exponential(attempt, base, cap) <= cap


@given(st.integers(1, 40), waits)
def test_waits_never_get_shorter(attempt: int, base: timedelta) -> None:
    cap = timedelta(days=2)
    assert exponential(attempt, base, cap) <= exponential(attempt + 1, base, cap)


@given(waits, chances)
@example(timedelta(seconds=1, microseconds=3), 0.9999999999999999)
def test_full_jitter_stays_below_the_wait_and_equal_jitter_keeps_half_of_it(wait: timedelta, chance: float) -> None:
    assert timedelta(0) <= full_jitter(wait, chance) <= wait
    assert wait / 2 - timedelta(microseconds=1) <= equal_jitter(wait, chance) <= wait


@given(st.lists(waits, max_size=5), attempts)
def test_list_of_n_waits_allows_n_retries(listed: list[timedelta], attempt: int) -> None:
    assert Waits(tuple(listed)).wait_after(attempt, lambda: 0.5) == (
        listed[attempt - 1] if attempt <= len(listed) else None
    )
