"""Runs roles inside another program: in the lifespan of FastAPI or Litestar, in a script, or in a test.

    enter ──▶ log to the program's handlers ──▶ open the database ──▶ start the loops of each role ──▶ the block
    exit  ──▶ stop the loops and finish the running work ──▶ close the database

Processes that the command ``batuta`` starts also have a watchdog thread, signal handling, and a parent that restarts
them (``engine.process``).
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Final, Literal, Protocol, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

from batuta.config import EngineSettings
from batuta.engine.extension import Extension
from batuta.kernel.calls.resources import Resources
from batuta.kernel.clock import Clock
from batuta.kernel.errors import BatutaError
from batuta.kernel.events import Fanout, ProcessEnded, ProcessStarted
from batuta.kernel.suggestions import unknown
from batuta.kernel.waiting import cancel_and_wait
from batuta.stores.sql.tables.history import SqlReports
from batuta.supervise.supervisor import Supervisor

# Reaction to a loop that gives up: ``raise`` ends the block with the error, ``terminate`` sends SIGTERM to the process.
OnFailure: TypeAlias = Literal["raise", "terminate"]
DEFAULT_ROLES: Final = ("worker", "scheduler")
ROLES: Final = ("api", *DEFAULT_ROLES)


class Program(Protocol):
    """The attributes of ``Batuta`` that ``run_roles`` uses."""

    is_open: bool
    clock: Clock
    zone: ZoneInfo
    events: Fanout
    extension: Extension
    settings: EngineSettings
    reports: SqlReports
    resources: Resources

    def supervisor(self, role: str) -> Supervisor: ...
    async def open(self) -> None: ...
    async def close(self) -> None: ...


SomeProgram = TypeVar("SomeProgram", bound=Program)


@asynccontextmanager
async def run_roles(
    work: SomeProgram, roles: Collection[str], on_failure: OnFailure, version: str
) -> AsyncIterator[SomeProgram]:
    _refuse_in_child()
    known = (*ROLES, *(role.name for role in work.extension.roles if role.run is None))
    if on_failure not in ("raise", "terminate"):
        raise unknown("choice of on_failure", on_failure, ("raise", "terminate"))
    for role in roles:
        if role not in known:
            raise unknown("role", role, known)
    from batuta.logs.host import log_to_host  # imported here, because the logging library takes a while to load

    async with log_to_host(work.events, work.extension.wording), _opened(work):
        names = tuple(dict.fromkeys(roles))
        now = work.clock.now().astimezone(work.zone)
        for role in names:
            work.events.emit(ProcessStarted(role, version, now))
        await work.reports.expect(now=now)
        failure: BaseException | None = None
        try:
            async with (
                work.resources.started(),
                _supervised([work.supervisor(role) for role in names], work.settings, on_failure),
            ):
                yield work
        except BatutaError as error:
            failure = error
            raise
        finally:
            why = "the block ended" if failure is None else str(failure)
            for role in names:
                work.events.emit(ProcessEnded(role, why, failed=failure is not None))


@contextmanager
def logged(work: Program) -> Iterator[None]:
    """While the ``with`` block runs, write events to standard ``logging``, unless this process already logs them."""
    from batuta.logs.host import log_if_silent  # imported here, because the logging library takes a while to load

    with log_if_silent(work.events, work.extension.wording):
        yield


def _refuse_in_child() -> None:
    """Raise RuntimeError if the program is running only because a task's child process is importing the main module.
    Without this error, the task would hang until its time limit.
    """
    loaded = sys.modules.get("multiprocessing.process")
    if loaded is not None and getattr(loaded.current_process(), "_inheriting", False):
        raise RuntimeError(
            "a task with process=True started this program again: write the start under `if __name__ == '__main__':`"
        )


@asynccontextmanager
async def _opened(work: Program) -> AsyncIterator[None]:
    """Keep the application open while the ``async with`` block runs. If the program itself had already opened the
    application, the application stays open afterwards.
    """
    await work.open()
    try:
        yield
    finally:
        await work.close()


@asynccontextmanager
async def _supervised(
    supervisors: Sequence[Supervisor], settings: EngineSettings, on_failure: OnFailure
) -> AsyncIterator[None]:
    """Run the loops while the ``async with`` block runs. If a loop gives up, cancel the block and raise the loop's
    error instead of the cancellation.
    """
    stop, block = asyncio.Event(), asyncio.current_task()
    assert block is not None
    cancels = block.cancelling()
    is_over = is_cancelled = False
    running = asyncio.create_task(_run_together(supervisors, stop, timedelta(seconds=settings.batuta_drain_seconds)))

    def end_block(_: "asyncio.Task[None]") -> None:
        nonlocal is_cancelled
        if is_over:
            return
        if on_failure == "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
            return
        is_cancelled = True
        block.cancel()

    running.add_done_callback(end_block)
    try:
        yield
    except asyncio.CancelledError:
        if not is_cancelled or block.uncancel() > cancels:
            raise
    finally:
        is_over = True
        stop.set()
        try:
            await asyncio.wait([running])
        finally:
            await cancel_and_wait(running)
    running.result()


async def _run_together(supervisors: Sequence[Supervisor], stop: asyncio.Event, grace: timedelta) -> None:
    """Run all supervisors until ``stop`` is set. If a loop gives up, stop the other supervisors and raise the loop's
    error.
    """
    running = [asyncio.create_task(each.run(stop, grace)) for each in supervisors]
    try:
        await asyncio.wait(running)
    finally:
        await cancel_and_wait(*running)
    for each in running:
        each.result()
