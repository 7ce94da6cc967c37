"""Back-off between attempts, and asyncio helpers for races, cancellation, retries and time limits.

In the functions that compute a back-off, ``attempt`` counts from 1, and ``chance`` is a number in [0, 1), as returned
by ``random.random``.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded, StoreUnavailable

MOST_DOUBLINGS = 64  # after this many doublings, every wait exceeds any cap


def exponential(attempt: int, base: timedelta, cap: timedelta) -> timedelta:
    """Return the back-off before the next attempt: base, 2 base, 4 base, … up to cap."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    doublings = attempt - 1
    # Compare as numbers first, because a timedelta overflows after many doublings.
    factor: int = 2 ** min(doublings, MOST_DOUBLINGS)
    return cap if factor >= cap / base else base * factor


def full_jitter(wait: timedelta, chance: float) -> timedelta:
    """Return a random wait between zero and ``wait``, which spreads many callers' retries evenly."""
    return wait * chance


def equal_jitter(wait: timedelta, chance: float) -> timedelta:
    """Return a random wait between half of ``wait`` and ``wait``, for a loop that must never retry immediately."""
    return min(wait, wait / 2 + wait / 2 * chance)  # rounding of the two halves must not exceed ``wait``


T = TypeVar("T")
FIRST_REST = timedelta(milliseconds=250)
LONGEST_REST = timedelta(seconds=5)


async def first_of(*awaitables: Awaitable[Any]) -> int:
    """Wait until the first awaitable ends, and cancel the others. Return the index of the awaitable that ended; if it
    failed, raise its error.
    """
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*tasks)
    winner = next(index for index, task in enumerate(tasks) if task in done)
    await tasks[winner]
    return winner


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel the tasks and wait until all have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def insist(write: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Call ``write`` and return its result. While the store is unavailable, repeat the call after increasingly long
    waits, so that an outage loses no result.
    """
    failures = 0
    while True:
        try:
            return await write()
        except StoreUnavailable:
            failures += 1
        await clock.sleep(exponential(failures, FIRST_REST, LONGEST_REST).total_seconds())


async def with_deadline(deadline: datetime, awaitable: Awaitable[T], clock: Clock, what: str) -> T:
    """Await an awaitable and return its result. If it has not ended by ``deadline``, cancel it and raise
    DeadlineExceeded.
    """
    work = asyncio.ensure_future(awaitable)
    alarm = asyncio.ensure_future(clock.sleep(max(0.0, (deadline - clock.now()).total_seconds())))
    try:
        await asyncio.wait([work, alarm], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise DeadlineExceeded(what=what, deadline=deadline.isoformat(timespec="seconds"))
        return work.result()
    finally:
        await cancel_and_wait(work, alarm)


async def with_timeout(limit: timedelta, awaitable: Awaitable[T], clock: Clock, what: str) -> T:
    """Await an awaitable and return its result. If it takes longer than ``limit``, cancel it and raise
    DeadlineExceeded.
    """
    return await with_deadline(clock.now() + limit, awaitable, clock, what)
