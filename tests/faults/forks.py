"""Processes forked from one server process that has already imported everything. Each starts within hundredths of a
second; a new interpreter would need a second of processor time.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from functools import cache
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

PLANTS = (
    "plant", "sink", "queue_plant", "guard_plant", "send_plant", "ladder_plant", "import_plant", "arq_plant",
    "telegram_plant", "shutdown_plant", "vacancy_plant", "watched_plant",
)  # fmt: skip
COMMANDS = ("batuta.cli.program", "batuta.cli.roles", "batuta.logs.kept", "batuta.stores.sqlite.driver")


@cache
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*COMMANDS, *(f"tests.faults.{plant}" for plant in PLANTS)])
    return context


async def processes_are_ready() -> None:
    """Start the fork server in a thread. The first process takes seconds to start, and the open transactions in this
    event loop must not wait for it.
    """
    await asyncio.to_thread(_start_fork_server)


@cache
def _start_fork_server() -> None:
    first = processes().Process(target=int)
    first.start()
    first.join()


def begin_command(folder: Path, environment: Mapping[str, str], *words: str) -> ForkServerProcess:
    """Start ``batuta`` with these arguments in ``folder``, as a shell would. Its output goes to the file ``log`` in
    that folder.
    """
    process = processes().Process(target=_run_command, args=(str(folder), dict(environment), words))
    process.start()
    return process


def _run_command(folder: str, environment: Mapping[str, str], words: tuple[str, ...]) -> None:
    from batuta.cli.program import main

    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    log_into(folder)
    sys.exit(main([*words, "--child-of", str(os.getppid())]))


def log_into(folder: str) -> None:
    """Append this process's output to the file ``log`` in the folder."""
    log = os.open(Path(folder) / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, sys.stdout.fileno())
    os.dup2(log, sys.stderr.fileno())


class ForkedCommand:
    """A forked command. It provides the subset of the ``subprocess.Popen`` interface that the tests use."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *words: str) -> None:
        self._process = begin_command(folder, environment, *words)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int | None:
        self._process.join(timeout)
        return self._process.exitcode


def stop(process: ForkServerProcess) -> None:
    assert process.pid is not None
    os.kill(process.pid, signal.SIGTERM)


def kill(process: ForkServerProcess) -> None:
    process.kill()
    process.join()
