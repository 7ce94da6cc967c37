"""A process exits when its work is finished, even if threads or coroutines that it started are still running."""

import os
import subprocess
import sys

import pytest

from tests import ROOT

SOURCES = ROOT / "src"
PROGRAM = """
import asyncio, sys, threading, time
from batuta.processes.exit import run_to_exit

async def deaf():
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def main(leaves, code):
    match leaves:
        case "thread":
            threading.Thread(target=time.sleep, args=(3600,), name="mine").start()
        case "pool":
            main.task = asyncio.create_task(asyncio.to_thread(time.sleep, 3600))
        case "task":
            main.task = asyncio.create_task(deaf())
            await asyncio.to_thread(time.sleep, 0)  # an idle pool keeps no process alive
    await asyncio.sleep(0.01)
    if code == "raises":
        raise ValueError
    return int(code)

timeout = 60 if sys.argv[1] == "nothing" else 0.1
sys.exit(run_to_exit(main(*sys.argv[1:]), lambda what: print("held by", what, flush=True), timeout=timeout))
"""


def ended(leaves: str, code: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    program = [sys.executable, "-c", PROGRAM, leaves, code]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("leaves", "code", "expected", "holder"),
    [
        ("nothing", "3", 3, ""),
        ("thread", "0", 0, "held by mine"),
        ("thread", "raises", 1, "held by mine"),
        ("pool", "5", 5, "asyncio_0"),
        ("task", "0", 0, "held by deaf"),
    ],
)
def test_process_ends_after_its_work_and_reports_what_blocked_it(
    leaves: str, code: str, expected: int, holder: str
) -> None:
    exit_code, said = ended(leaves, code)
    assert exit_code == expected
    assert holder in said if holder else said == ""
