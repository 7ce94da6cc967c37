"""How long to wait before trying again: pure functions of the attempt, with chance handed in.

``attempt`` counts from 1. ``chance`` is a number in [0, 1), as ``random.random`` gives.
"""

from collections.abc import Sequence
from datetime import timedelta

MANY = 64  # doublings that bring any wait to any cap


def exponential(attempt: int, base: timedelta, cap: timedelta) -> timedelta:
    """base, 2 base, 4 base, … and never more than cap, however large the attempt."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    doublings = attempt - 1
    # Compared as numbers first: a timedelta cannot hold what many doublings of it would be.
    factor: int = 2 ** min(doublings, MANY)
    return cap if factor >= cap / base else base * factor


def full_jitter(wait: timedelta, chance: float) -> timedelta:
    """Anywhere between nothing and ``wait``: spreads a crowd of retries best."""
    return wait * chance


def equal_jitter(wait: timedelta, chance: float) -> timedelta:
    """At least half of ``wait``: for a loop that must not spin."""
    return min(wait, wait / 2 + wait / 2 * chance)  # the rounding of the halves must not add up to more


def from_list(attempt: int, waits: Sequence[timedelta]) -> timedelta | None:
    """The wait after the given attempt; None when the list is used up. n waits mean the first attempt and n retries."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    return waits[attempt - 1] if attempt <= len(waits) else None
