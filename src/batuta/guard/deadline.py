"""Nothing outside is awaited without an end."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime, timedelta
from typing import TypeVar

from batuta.kernel.clock import Clock
from batuta.kernel.errors import DeadlineExceeded
from batuta.kernel.waiting import ended

T = TypeVar("T")


async def by(deadline: datetime, awaitable: Awaitable[T], clock: Clock, what: str) -> T:
    """The result, or DeadlineExceeded and the work cancelled."""
    work = asyncio.ensure_future(awaitable)
    alarm = asyncio.ensure_future(clock.sleep(max(0.0, (deadline - clock.now()).total_seconds())))
    try:
        await asyncio.wait([work, alarm], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise DeadlineExceeded(what=what, deadline=deadline.isoformat(timespec="seconds"))
        return work.result()
    finally:
        await ended(work, alarm)


async def within(limit: timedelta, awaitable: Awaitable[T], clock: Clock, what: str) -> T:
    return await by(clock.now() + limit, awaitable, clock, what)
