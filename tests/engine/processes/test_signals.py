"""What asks a process to end."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from batuta.processes.exit import stop_on_signals
from tests import ROOT

SOURCES = ROOT / "src"


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


FORKING = """
import asyncio, multiprocessing, time
from batuta.processes.exit import stop_on_signals

async def main():
    stop, forking = asyncio.Event(), multiprocessing.get_context("fork")
    with stop_on_signals(stop):
        child = forking.Process(target=time.sleep, args=(3600,))
        child.start()
        child.terminate()
        await asyncio.to_thread(child.join, 30)
        code = child.exitcode
        child.kill()
        await asyncio.sleep(0.1)
        print(code, stop.is_set())

asyncio.run(main())
"""


def test_a_signal_for_a_process_that_was_forked_off_is_for_that_process() -> None:
    """They share the pipe by which asyncio is told of signals."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    program = [sys.executable, "-c", FORKING]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    assert said.split() == [str(-signal.SIGTERM), "False"]
