"""Waits: back-off between attempts, and asyncio combinators for the first of several, cancellation, retries and time limits.

``attempt`` counts from 1. ``chance`` is a number in [0, 1), as ``random.random`` gives.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded, StoreError, is_store_away

MANY = 64  # doublings that bring any wait to any cap


def exponential(attempt: int, base: timedelta, cap: timedelta) -> timedelta:
    """base, 2 base, 4 base, … up to cap, for any attempt."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    doublings = attempt - 1
    # Compared as numbers first: a timedelta cannot hold what many doublings of it would be.
    factor: int = 2 ** min(doublings, MANY)
    return cap if factor >= cap / base else base * factor


def full_jitter(wait: timedelta, chance: float) -> timedelta:
    """Random wait from zero to ``wait``: spreads retries best."""
    return wait * chance


def equal_jitter(wait: timedelta, chance: float) -> timedelta:
    """Random wait of at least half of ``wait``: for a loop that must not spin."""
    return min(wait, wait / 2 + wait / 2 * chance)  # the rounding of the halves must not exceed the whole


def from_list(attempt: int, waits: Sequence[timedelta]) -> timedelta | None:
    """The wait after the given attempt; None at the end of the list. n waits mean the first attempt and n retries."""
    if attempt < 1:
        raise ValueError("attempts count from 1")
    return waits[attempt - 1] if attempt <= len(waits) else None


T = TypeVar("T")
FIRST_REST = timedelta(milliseconds=250)
LONGEST_REST = timedelta(seconds=5)


async def first_of(*awaitables: Awaitable[Any]) -> int:
    """Wait for the first to end, cancel the others, and return which it was. Its error is raised."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_and_wait(*tasks)
    winner = next(index for index, task in enumerate(tasks) if task in done)
    await tasks[winner]
    return winner


async def cancel_and_wait(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait until each has ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def insist(write: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Write a result and retry while the store is unavailable: an outage must not lose it."""
    failures = 0
    while True:
        try:
            return await write()
        except StoreError as error:
            if not is_store_away(error):
                raise
            failures += 1
        await clock.sleep(exponential(failures, FIRST_REST, LONGEST_REST).total_seconds())


async def with_deadline(deadline: datetime, awaitable: Awaitable[T], clock: Clock, what: str) -> T:
    """Return the result, or cancel the work and raise DeadlineExceeded."""
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
    """Await something and raise DeadlineExceeded after a time."""
    return await with_deadline(clock.now() + limit, awaitable, clock, what)
