"""Signals that request a process to stop."""

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
def sighup_handled() -> Iterator[None]:
    """Prevent SIGHUP from ending the test run."""
    before = signal.signal(signal.SIGHUP, lambda number, frame: None)
    yield
    signal.signal(signal.SIGHUP, before)


async def test_closed_terminal_requests_an_orderly_end_once(sighup_handled: None) -> None:
    stop, asked = asyncio.Event(), []
    with stop_on_signals(stop, lambda: asked.append("to end")):
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.wait_for(stop.wait(), 30)
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert asked == ["to end"]


async def test_process_started_with_nohup_ignores_sighup(sighup_handled: None) -> None:
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


def test_signal_to_a_forked_child_does_not_stop_the_parent() -> None:
    """A forked child inherits the pipe through which asyncio receives signals. Unless the engine prevents it, signals
    to the child reach the parent.
    """
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    program = [sys.executable, "-c", FORKING]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    assert said.split() == [str(-signal.SIGTERM), "False"]


BLOCKED = """
import asyncio, os, signal
from batuta.processes.exit import stop_on_signals

async def main():
    stop = asyncio.Event()
    with stop_on_signals(stop):
        await asyncio.wait_for(stop.wait(), 30)
        print("stopped")

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
asyncio.run(main())
"""


def test_signal_that_came_while_signals_were_blocked_stops_the_process() -> None:
    """`batuta up` blocks the signals while it replaces its program with the parent."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    program = [sys.executable, "-c", BLOCKED]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False).stdout
    assert said.split() == ["stopped"]
