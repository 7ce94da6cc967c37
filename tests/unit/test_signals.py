"""What asks a process to end."""

import asyncio
import os
import signal
from collections.abc import Iterator

import pytest

from batuta.supervise.signals import stop_on_signals


@pytest.fixture
def hung_up() -> Iterator[None]:
    """Whatever becomes of the signal, it does not end the tests."""
    before = signal.signal(signal.SIGHUP, lambda number, frame: None)
    yield
    signal.signal(signal.SIGHUP, before)


async def test_a_terminal_that_is_closed_asks_for_an_orderly_end_once_however_often_it_says_so(hung_up: None) -> None:
    stop, asked = asyncio.Event(), []
    with stop_on_signals(stop, lambda: asked.append("to end")):
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(stop.wait(), 30)
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert asked == ["to end"]


async def test_who_was_started_to_outlive_its_terminal_does(hung_up: None) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stop = asyncio.Event()
    with stop_on_signals(stop):
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
