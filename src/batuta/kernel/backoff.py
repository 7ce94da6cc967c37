"""How long to wait before trying again: pure functions of the attempt, with chance handed in.

``attempt`` counts from 1. ``chance`` is a number in [0, 1), as ``random.random`` gives.
"""

from collections.abc import Sequence
from datetime import timedelta


def exponential(attempt: int, base: timedelta, cap: timedelta) -> timedelta:
    """base, 2 base, 4 base, … and never more than cap, however large the attempt."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    # Beyond 2**32 the power only costs time: any cap was reached long before.
    return min(cap, base * (2 ** min(attempt - 1, 32))) if base <= cap else cap


def full_jitter(wait: timedelta, chance: float) -> timedelta:
    """Anywhere between nothing and ``wait``: spreads a crowd of retries best."""
    return wait * chance


def equal_jitter(wait: timedelta, chance: float) -> timedelta:
    """At least half of ``wait``: for a loop that must not spin."""
    return wait / 2 + wait / 2 * chance


def from_list(attempt: int, waits: Sequence[timedelta]) -> timedelta | None:
    """The wait after the given attempt; None when the list is used up. n waits mean the first attempt and n retries."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    return waits[attempt - 1] if attempt <= len(waits) else None
