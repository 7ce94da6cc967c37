"""Runs a process under supervision: a supervisor runs its loops, and a watchdog thread writes heartbeats, monitors the
event loop and notifies the parent process.

    async with guard_process(work, "worker", stop, notifier=…) as supervisor:
        await supervisor.run(stop, grace)
"""

import asyncio
import faulthandler
import os
import socket
import threading
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from typing import Self, TextIO

from batuta import __version__
from batuta.config import EngineSettings
from batuta.engine.batuta import Batuta
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import Recycled, StoreReplaced
from batuta.kernel.events import ProcessEnded, ProcessRecycled, StackFound
from batuta.kernel.identity import make_owner
from batuta.kernel.reasons import define
from batuta.kernel.values import dataclass
from batuta.processes.exit import FILE_WATCH_POLICY, RECYCLER_POLICY, FileWatch, Recycler
from batuta.processes.heartbeat import HEARTBEAT_POLICY, Heartbeat, ProcessStatus
from batuta.processes.loop_monitor import LoopMonitor, WatchdogThread, monitor_policy
from batuta.processes.notify import Notifier
from batuta.processes.requests import REQUESTS, REQUESTS_POLICY, RequestLoop
from batuta.processes.restarts import NewRestart, RestartReason, reason_of_dump
from batuta.stores.sql.database import Database
from batuta.stores.sql.tables.processes import SqlBeats, SqlProcessRequests, SqlRestarts
from batuta.supervise.stacks import StackFolder, process_stacks
from batuta.supervise.supervisor import Supervisor

LEFT_STACKS = define("left_stacks", "it died without a report, but left its stacks")
EVENT_LOOP_BLOCKED = define("event_loop_blocked", "the event loop did not respond for {silent}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessLimits:
    blocked: timedelta = timedelta(seconds=15)
    most_megabytes: int | None = None
    longest: timedelta | None = None

    @classmethod
    def from_settings(cls, settings: EngineSettings) -> Self:
        hours = settings.batuta_recycle_hours
        return cls(
            blocked=timedelta(seconds=settings.batuta_blocked_seconds),
            most_megabytes=settings.batuta_recycle_mb,
            longest=None if hours is None else timedelta(hours=hours),
        )


class OwnDatabase:
    """The database connection of the watchdog thread. The thread opens it on first use."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._is_open = False
        self._opening = asyncio.Lock()  # two loops of the watchdog thread share the connection

    async def open(self) -> None:
        async with self._opening:
            if not self._is_open:
                await self.database.open()
                self._is_open = True

    async def close(self) -> None:
        if self._is_open:
            await self.database.close()


@asynccontextmanager
async def guard_process(
    work: Batuta,
    role: str,
    stop: asyncio.Event,
    *,
    limits: ProcessLimits | None = None,
    notifier: Notifier | None = None,
    worker_name: str | None = None,
    shows: Collection[str] | None = None,
) -> AsyncIterator[Supervisor]:
    """Yield the supervisor for a role, and monitor the process with a watchdog thread while the ``async with`` block
    runs.

    Raises Recycled if the process requested a restart, and StoreReplaced if its database file was deleted or replaced.
    ``worker_name`` is the name in ``worker_heartbeats``; the default is the role. ``shows`` lists the names of the
    loops that the heartbeat reports; None means all.
    """
    name, notifier = worker_name or role, notifier or Notifier()
    with _dump(work, name) as dump:
        guard = _Guard(work, role, name, stop, limits or ProcessLimits(), notifier, dump, shows)
        guard.report_orphaned_stacks()
        guard.watchdog_thread.begin()
        notifier.ready()
        try:
            yield guard.supervisor
        finally:
            notifier.stopping()
            await guard.watchdog_thread.end()
    if guard.file_watch.lost is not None:
        raise guard.file_watch.lost
    if guard.recycler.why is not None:
        raise Recycled(why=guard.recycler.why)


class _Guard:
    def __init__(
        self,
        work: Batuta,
        role: str,
        name: str,
        stop: asyncio.Event,
        limits: ProcessLimits,
        notifier: Notifier,
        dump: TextIO | None,
        shows: Collection[str] | None,
    ) -> None:
        self._work = work
        self._name = name
        self._stop = stop
        self._home = asyncio.get_running_loop()
        own = OwnDatabase(work.connections.aside())
        self.heartbeat = Heartbeat(
            worker_id=make_owner(work.ids),
            worker_name=name,
            store=SqlBeats(own.database, __version__),
            restarts=SqlRestarts(own.database, work.ids),
            running=lambda: self.supervisor.running,
            clock=work.clock,
            now=work.now,
            state=self._state,
            open=own.open,
            shows=shows,
        )
        self.supervisor = work.supervisor(role, heartbeat=self.heartbeat)
        self._monitor = LoopMonitor(
            home=self._home,
            thread=threading.get_ident(),
            limit=limits.blocked,
            clock=SystemClock(),
            events=work.events,
            notifier=notifier,
            report_block=self._report_block,
            state_changed=self.heartbeat.wake,
            dump=dump,
        )
        self.recycler = Recycler(
            most_megabytes=limits.most_megabytes, longest=limits.longest, clock=SystemClock(), recycle=self._recycle
        )
        self.file_watch = FileWatch(
            check=work.database.check_file, stop=self._stop_soon, clock=SystemClock(), forced=self._report_end
        )
        # Heartbeats use the application's clock; the watchdog measures blocked time with the machine's clock.
        beating, watching = Supervisor(work.clock, work.events), Supervisor(SystemClock(), work.events)
        beating.add(self.heartbeat, HEARTBEAT_POLICY)
        requests = self._requests(own)
        work.wakeups.call(REQUESTS, requests.call)
        beating.add(requests, REQUESTS_POLICY)
        watching.add(self._monitor, monitor_policy(limits.blocked, notifier))
        if self.recycler.has_limits:
            watching.add(self.recycler, RECYCLER_POLICY)
        watching.add(self.file_watch, FILE_WATCH_POLICY)
        self.watchdog_thread = WatchdogThread(beating, watching, close=own.close)

    def _requests(self, own: OwnDatabase) -> RequestLoop:
        return RequestLoop(
            worker_id=self.heartbeat.worker_id,
            store=SqlProcessRequests(own.database, self._work.ids),
            clock=self._work.clock,
            drain_process=self._stop_soon,
            restart_process=self._restart,
            stacks=partial(process_stacks, self._home, threading.get_ident()),
            open=own.open,
            hears=lambda: self._work.wakeups.is_listening and self._monitor.is_answered,
        )

    def report_orphaned_stacks(self) -> None:
        """Emit and store the stack traces of this role's earlier processes that died without a report."""
        for left in StackFolder.for_database(self._work.database.where).list_orphaned(self._name):
            self._work.events.emit(StackFound(left.role, left.pid, left.stack))
            restart = NewRestart(
                worker_name=left.role,
                reason=reason_of_dump(left.stack),
                detail=LEFT_STACKS(),
                host=socket.gethostname(),
                pid=left.pid,
                stack=left.stack,
            )
            self.heartbeat.record(restart)

    def _state(self) -> ProcessStatus | None:
        if self._monitor.is_blocked:
            return ProcessStatus.STALLED
        return ProcessStatus.DRAINING if self._stop.is_set() else None

    async def _report_block(self, stack: str, silent: timedelta) -> None:
        detail = EVENT_LOOP_BLOCKED(silent=timedelta(seconds=round(silent.total_seconds(), 1)))
        await self.heartbeat.write_last(
            self.heartbeat.restart(RestartReason.BLOCKED, detail, stack=stack), ProcessStatus.STALLED
        )

    def _restart(self, why: str) -> None:
        self.recycler.why = why
        self._recycle(why)

    def _recycle(self, why: str) -> None:
        self._work.events.emit(ProcessRecycled(self._name, why))
        self.heartbeat.record(self.heartbeat.restart(RestartReason.RECYCLED, why))
        self._stop_soon()

    def _stop_soon(self) -> None:
        self._home.call_soon_threadsafe(self._stop.set)

    def _report_end(self, error: StoreReplaced) -> None:
        self._work.events.emit(ProcessEnded(self._name, str(error), failed=True))


@contextmanager
def _dump(work: Batuta, name: str) -> Iterator[TextIO | None]:
    folder = StackFolder.for_database(work.database.where)
    try:
        file = folder.open(name, os.getpid())
    except OSError:
        yield None
        return
    try:
        faulthandler.enable(file=file)
        yield file
    finally:
        faulthandler.cancel_dump_traceback_later()
        faulthandler.disable()
        file.close()
        folder.take(name, os.getpid())
        folder.tidy()
