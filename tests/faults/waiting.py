"""Functions that wait for other processes. On a slow machine they wait longer; they fail only if a condition never
becomes true.
"""

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

from tests.faults.figures import LONG

# Longer than any wait on a busy machine, and shorter than the time limit of a test.
TIMEOUT = 3600.0 if LONG else 600.0
SHORTEST_PAUSE, LONGEST_PAUSE = 0.02, 0.2
_STEPS, _STEP = 20, 0.002
# True if only calm tests are running. For more than a minute, the load average then still includes the tests that ran
# before them.
_is_calm = False


def expect_calm() -> None:
    """Make ``slowness`` ignore the machine's load average."""
    global _is_calm
    _is_calm = True


async def until(
    what: str, true: Callable[[], Any], within: float = TIMEOUT, explain: Callable[[], Any] = lambda: ""
) -> Any:
    """Wait until ``true`` returns a true value, and return that value. If it never does, ``explain`` describes the
    situation for the error.

    The pause between two checks grows with the time waited, because a check often reads a whole file or table.
    """
    began = time.monotonic()
    while (waited := time.monotonic() - began) < within:
        if found := await _value(true()):
            return found
        await asyncio.sleep(min(LONGEST_PAUSE, SHORTEST_PAUSE + waited / 20))
    raise AssertionError(f"{what}: not within {within} s; {await _value(explain())}")


async def _value(answer: Any) -> Any:
    return await answer if asyncio.iscoroutine(answer) else answer


def slowness() -> float:
    """Return how much slower this machine currently is than an idle one, as a factor from 1 to 30. The function
    alternates short computations and short sleeps, and compares their duration with their processor time. Tests
    multiply leases and limits by the result.
    """
    late = 0.0
    for _ in range(_STEPS):
        began, ran = time.monotonic(), time.thread_time()
        time.sleep(_STEP)
        while time.thread_time() - ran < _STEP:
            pass
        late += time.monotonic() - began - 2 * _STEP
    measured = 1 + late / (_STEPS * 2 * _STEP)
    load = 0.0 if _is_calm else os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(30.0, max(1.0, measured, load))
