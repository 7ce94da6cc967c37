"""Waiting for an event works on every clock that the engine and its tests use."""

import asyncio

import pytest

from batuta.kernel.clock import Clock, SystemClock
from batuta.testing import FakeClock, FastClock, JumpClock
from batuta.testing.clock import START


@pytest.mark.parametrize(
    "clock",
    [SystemClock(), FakeClock(), FastClock.start(START, 10), JumpClock(START)],
    ids=lambda clock: type(clock).__name__,
)
async def test_wait_ends_with_its_event(clock: Clock) -> None:
    event = asyncio.Event()
    waiting = asyncio.create_task(clock.wait(event, 3600))
    await asyncio.sleep(0)
    event.set()
    assert await waiting
    assert await clock.wait(event, 3600)


@pytest.mark.parametrize(
    "clock", [SystemClock(), FastClock.start(START, 10), JumpClock(START)], ids=lambda clock: type(clock).__name__
)
async def test_wait_ends_with_its_time(clock: Clock) -> None:
    began = clock.monotonic()
    assert not await clock.wait(asyncio.Event(), 0.01)
    assert clock.monotonic() - began >= 0.01


async def test_cancelled_wait_is_cancelled() -> None:
    waiting = asyncio.create_task(SystemClock().wait(asyncio.Event(), 3600))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
