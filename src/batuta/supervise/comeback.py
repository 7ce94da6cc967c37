"""What becomes of a child that ended: when it is started again, and whether that happens too often. Decided, not done.

Ends of the last ten minutes count, so a healthy stretch of that length gives the whole budget back. Each waits longer than the one
before; with the fifth the child is in a crash loop: an alarm is raised, and it is tried at the longest wait, for ever.
The first end of a child that had worked for a minute waits for nothing: its work is waiting.
One that drained and asks to be started afresh waits for nothing, if it has worked for a minute; for the alarm it counts.
"""

from dataclasses import dataclass
from datetime import timedelta

from batuta.kernel.backoff import equal_jitter, exponential

EXIT_CONFIG = 2  # no other start can heal it
EXIT_AGAIN = 75  # it drained and asks to be started afresh

AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=1)
    window: timedelta = timedelta(minutes=10)
    most: int = 5  # ends within the window that make a crash loop
    # A child that ended sooner than this has not worked: it waits, also if it asked to be started afresh.
    too_young: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Comeback:
    wait: timedelta | None  # None: it is hopeless
    ends: tuple[float, ...]  # the instants that count, this one included
    is_looping: bool


def comeback(
    exit_code: int,
    lived: timedelta,
    was_ready: bool,
    ends: tuple[float, ...],
    passed: float,
    chance: float,
    budget: Budget,
) -> Comeback:
    """``was_ready``: one of this role has been ready before. ``ends``, ``passed``: monotonic seconds."""
    counted = (*within(ends, passed, budget), passed)
    is_looping = len(counted) >= budget.most
    if exit_code == EXIT_AGAIN and lived >= budget.too_young:
        return Comeback(AT_ONCE, counted, is_looping)
    # What worked before was changed under it: somebody will mend that, and the others go on meanwhile.
    if exit_code == EXIT_CONFIG and not was_ready:
        return Comeback(None, counted, is_looping=False)
    longest = is_looping or exit_code == EXIT_CONFIG
    if len(counted) == 1 and lived >= budget.too_young and not longest:
        return Comeback(AT_ONCE, counted, is_looping)
    wait = budget.cap if longest else exponential(len(counted), budget.base, budget.cap)
    return Comeback(equal_jitter(wait, chance), counted, is_looping)


def within(ends: tuple[float, ...], passed: float, budget: Budget) -> tuple[float, ...]:
    return tuple(end for end in ends if passed - end < budget.window.total_seconds())
