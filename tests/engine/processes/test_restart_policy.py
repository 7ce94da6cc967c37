"""The rules by which a parent process restarts a child, and the number of restarts that counts as a crash loop."""

from datetime import timedelta

import pytest

from batuta.processes.restarts import EXIT_AGAIN, EXIT_CONFIG, Budget, RestartDecision, decide_restart

BUDGET = Budget()
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
KILLED = -9


def after(
    *ends: float, at: float, code: int = KILLED, lived: timedelta = SECOND, was_ready: bool = True, chance: float = 1.0
) -> RestartDecision:
    return decide_restart(code, lived, was_ready, ends, at, chance, BUDGET)


def waits(code: int, step: float, times: int) -> list[float | None]:
    """Return the wait before each restart of a child that ends ``times`` times, at intervals of ``step`` seconds."""
    ends: tuple[float, ...] = ()
    found: list[float | None] = []
    for number in range(times):
        decided = after(*ends, at=number * step, code=code)
        ends = decided.ends
        found.append(None if decided.wait is None else decided.wait.total_seconds())
    return found


def test_each_end_waits_longer_and_the_fifth_begins_a_crash_loop_at_the_cap() -> None:
    assert waits(KILLED, 1, 7) == [1, 2, 4, 8, 60, 60, 60]


def test_jitter_halves_a_wait_at_most() -> None:
    assert after(at=0, chance=0.0).wait == SECOND / 2


def test_healthy_period_restores_the_whole_budget() -> None:
    decided = after(1, 2, 3, 4, 5, at=5 + 600)
    assert (decided.wait, decided.ends, decided.is_looping) == (SECOND, (605,), False)


def test_occasional_ends_never_begin_a_crash_loop() -> None:
    assert waits(KILLED, 200, 50) == [1, 2, 4, *[4] * 47]


def test_crash_loop_is_retried_without_limit() -> None:
    assert waits(KILLED, 61, 500)[9:] == [60] * 491


def test_requested_restart_has_no_wait() -> None:
    assert after(1, 2, at=10, code=EXIT_AGAIN, lived=HOUR).wait == timedelta(0)


def test_repeated_requested_restarts_have_no_wait_but_count_as_a_loop() -> None:
    decided = after(1, 100, 200, 300, at=400, code=EXIT_AGAIN, lived=HOUR)
    assert (decided.wait, decided.is_looping) == (timedelta(0), True)


def test_restart_requested_within_a_minute_of_the_start_waits() -> None:
    assert waits(EXIT_AGAIN, 1, 5) == [1, 2, 4, 8, 60]


@pytest.mark.parametrize("code", [1, KILLED, -11])
def test_first_end_of_a_process_that_worked_has_no_wait(code: int) -> None:
    assert after(at=5, code=code, lived=HOUR).wait == timedelta(0)
    assert after(5, at=605, code=code, lived=HOUR).wait == timedelta(0)


def test_second_end_within_ten_minutes_waits() -> None:
    assert after(5, at=70, lived=timedelta(seconds=65)).wait == 2 * SECOND


def test_configuration_error_before_the_first_success_is_final() -> None:
    assert after(at=0, code=EXIT_CONFIG, was_ready=False).wait is None


def test_configuration_error_after_a_success_is_retried() -> None:
    assert after(at=0, code=EXIT_CONFIG, was_ready=True).wait == BUDGET.cap


@pytest.mark.parametrize("code", [0, 1, KILLED, -11])
def test_child_is_restarted_after_any_exit_code(code: int) -> None:
    assert after(at=0, code=code, was_ready=False).wait == SECOND
