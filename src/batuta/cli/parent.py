"""The parent process of `batuta up`: starts the other processes and monitors them.

    batuta up ── loads the application, checks the settings ── Plan ──▶ this module, in the same process

The parent runs no work, so it does not keep the application in its memory: `batuta up` writes a ``Plan`` and replaces
its program with this module (``hand_over``). The process id, the standard streams and the environment stay the same.
"""

import asyncio
import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict
from datetime import datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol
from zoneinfo import ZoneInfo

from batuta import __version__
from batuta.cli.output import OutputMux, ReadyBanner
from batuta.cli.running import Reporting, close_soon, run_role
from batuta.environment import environment
from batuta.kernel import events
from batuta.kernel.clock import Clock, SystemClock
from batuta.kernel.errors import BatutaError
from batuta.kernel.ids import Ids
from batuta.kernel.values import dataclass
from batuta.processes.exit import run_to_exit
from batuta.processes.notify import Notifier, NotifySocket
from batuta.processes.restarts import NewRestart
from batuta.processes.tree import (
    KILLING,
    RESTART_LOG_POLICY,
    ChildSpec,
    NewRestarts,
    ProcessTree,
    RestartLog,
    Stalls,
    Timeouts,
)
from batuta.supervise.loop import FOR_EVER, LoopPolicy
from batuta.supervise.shutdown import EXIT_MARGIN
from batuta.supervise.stacks import StackFolder
from batuta.supervise.supervisor import Supervisor
from batuta.texts import Language, Wording

if TYPE_CHECKING:
    from batuta.stores.sql.database import Database

PARENT = "up"
# The events that the parent emits. It cannot use an application's phrases for them, because it does not have the
# application. ProcessStarted is missing: its phrase is a part of the plan.
OWN_EVENTS: Final = (
    events.ProcessServing,
    events.ProcessDraining,
    events.ProcessEnded,
    events.ProcessHeld,
    events.ChildStarted,
    events.ChildReady,
    events.ChildSilent,
    events.ChildEnded,
    events.ChildLooping,
    events.ChildRecovered,
    events.LoopFailed,
    events.LoopAbandoned,
    events.LoopRecovered,
    events.LoopStuck,
    events.LoopRestarted,
    events.LoopEnded,
    events.TaskUncancellable,
    events.ShutdownPhase,
    events.SettingWarned,
    events.SubscriberFailed,
)
# The parent retries without limit, because no other process would restart the children.
TREE_POLICY = LoopPolicy(
    every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
# A long interval is enough, because the tree wakes the banner when a child becomes ready.
ANNOUNCING = LoopPolicy(
    every=timedelta(minutes=1), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
HANDED_OVER: Final = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The facts about the application and its settings that the parent uses. The plan can be written as JSON."""

    app_name: str | None
    language: Language
    roles: Sequence[str]
    workers: int
    child_env: Mapping[str, str]  # environment variables that the children get in addition to the parent's
    metrics_port: int | None
    address: str  # URL of the API
    page: Sequence[str]  # lines for the operator at the terminal, shown when the API answers
    watchdog_seconds: float
    stop_seconds: float  # longest time that a child may take to stop
    database_url: str
    database: str  # ``Database.where``
    zone: str
    started: str | None  # the application's phrase for the event ProcessStarted
    field_names: Mapping[str, str]  # ``Wording.fields``
    misspelt: Sequence[Sequence[str]]  # ``Reporting.misspelt``
    log_level: str
    log_format: Literal["pretty", "json", "auto"]
    no_color: str | None
    force_color: str | None

    @property
    def is_pretty(self) -> bool:
        return self.log_format == "pretty" or (self.log_format == "auto" and sys.stdout.isatty())

    @property
    def is_coloured(self) -> bool:
        return self.is_pretty and self.no_color is None and (self.force_color is not None or sys.stdout.isatty())

    @property
    def children(self) -> list[ChildSpec]:
        places = [(role, number) for role in self.roles for number in range(1, self._count(role) + 1)]
        return [self._child(role, number) for role, number in places]

    def _count(self, role: str) -> int:
        return self.workers if role == "worker" else 1

    def _child(self, role: str, number: int) -> ChildSpec:
        app = ["--app", self.app_name] if self.app_name else []
        name = role if self._count(role) == 1 else f"{role}-{number}"
        argv = [sys.executable, "-m", "batuta", *app, "--lang", self.language, role]
        argv += ["--child-of", str(os.getpid()), "--named", name]
        port = port_of_child(self.metrics_port, role, number)
        env = {**environment(), **self.child_env, **self._log_env(), **port}
        return ChildSpec(role, argv, env, name)

    def _log_env(self) -> Mapping[str, str]:
        """Return the log settings for a child. The child writes to a pipe, so it cannot detect whether its lines end up
        in a terminal.
        """
        form = {"LOG_FORMAT": "pretty" if self.is_pretty else "json"}
        return form | ({"FORCE_COLOR": "1"} if self.is_coloured else {})


def port_of_child(port: int | None, role: str, number: int = 1) -> dict[str, str]:
    """Return the environment variable that gives a child of `batuta up` its metrics port. The parent uses ``port``, the
    scheduler uses the next port, and the workers use the ports after it.
    """
    after = {"scheduler": 1, "worker": 1 + number}.get(role)
    return {} if port is None else {"BATUTA_METRICS_PORT": "" if after is None else str(port + after)}


class Records(NewRestarts, Stalls, Protocol):
    """The tables in which the parent records what happens to its children."""

    async def open(self) -> None:
        """Open the database, or reopen it after a restore replaced its file."""

    async def close(self) -> None: ...


Serving = Callable[[ProcessTree, Supervisor], AbstractAsyncContextManager[None]]


@dataclass(slots=True)
class Parent:
    """The parent process. ``serving`` serves the parent's own pages while its loops run."""

    plan: Plan
    env: Mapping[str, str]
    reporting: Reporting
    records: Records
    now: Callable[[], datetime | None] = lambda: None
    serving: Serving = lambda tree, supervisor: nullcontext()

    async def run(self) -> int:
        plan, clock = self.plan, self.reporting.clock
        stop, notifier, specs = asyncio.Event(), Notifier.from_environment(self.env), self.plan.children
        names = [PARENT, *(spec.name for spec in specs)]
        output = OutputMux(sys.stdout, names, prefixed=plan.is_pretty, coloured=plan.is_coloured)
        notify_socket = NotifySocket.open()
        restart_log = RestartLog(self.records.open, self.records, self.records, clock, self.now)
        tree = ProcessTree(
            specs,
            clock,
            self.reporting.events,
            stop,
            output.say,
            notify_socket,
            restart_log.record,
            StackFolder.for_database(plan.database).take,
            Timeouts(living=timedelta(seconds=plan.watchdog_seconds)),
            changed=lambda: self._notify(tree, notifier, banner),
            beat=notifier.alive,
        )
        banner = ReadyBanner(plan.address, lambda: tree.is_complete, lambda: self._announce(output), clock)
        # All children drain at the same time. The parent kills a child after the child's drain time plus the exit
        # margin.
        grace = timedelta(seconds=plan.stop_seconds) + KILLING
        running = self._supervise(tree, restart_log, banner, stop, grace)
        try:
            within = grace + EXIT_MARGIN
            await run_role(self.reporting, PARENT, stop, running, notifier, output.stream(PARENT), within)
        finally:
            await close_soon(self.records.close())
            output.close()
            if notify_socket is not None:
                notify_socket.close()
        return tree.exit_code

    async def _supervise(
        self, tree: ProcessTree, restart_log: RestartLog, banner: ReadyBanner, stop: asyncio.Event, grace: timedelta
    ) -> None:
        supervisor = Supervisor(self.reporting.clock, self.reporting.events)
        supervisor.add(restart_log, RESTART_LOG_POLICY)
        supervisor.add(tree, TREE_POLICY)
        supervisor.add(banner, ANNOUNCING)
        async with self.serving(tree, supervisor):
            await supervisor.run(stop, grace)

    def _notify(self, tree: ProcessTree, notifier: Notifier, banner: ReadyBanner) -> None:
        _notify_systemd(tree, notifier)
        banner.wakeup.set()

    def _announce(self, output: OutputMux) -> None:
        self.reporting.events.emit(events.ProcessServing(PARENT, self.plan.address))
        for line in self.plan.page if self.plan.is_pretty else ():
            output.write(line)


def _notify_systemd(tree: ProcessTree, notifier: Notifier) -> None:
    """Report the children's state to systemd. The service is reported as ready once every child has become ready or has
    ended at least once.
    """
    lives = [child.spec.name for child in tree.children if child.process is not None and child.is_ready]
    missing = [child.spec.name for child in tree.children if child.spec.name not in lives]
    waiting = f"; waiting for {', '.join(missing)}" if missing else ""
    notifier.status(f"running: {', '.join(lives) or 'none'}{waiting}")
    if tree.is_complete:
        notifier.ready()


def hand_over(plan: Plan) -> None:
    """Replace the program of this process with the parent. Return only if that is impossible.

    The plan contains passwords, so it is passed in memory that only this process can read. Signals that request the end
    wait until the parent handles them.
    """
    if sys.platform != "linux":
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDED_OVER)
    try:
        passed = os.memfd_create("batuta-plan", 0)  # some systems forbid it
        with os.fdopen(passed, "w") as writing:
            json.dump(asdict(plan), writing)
            writing.seek(0)
            os.set_inheritable(passed, True)
            sys.stdout.flush()
            sys.stderr.flush()
            # The last words are for operators who list the processes.
            argv = [sys.executable, "-m", __name__, str(passed), "batuta", *sys.argv[1:]]
            os.execv(sys.executable, argv)  # noqa: S606 - the same interpreter, without a shell
    except OSError:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def take_plan(passed: int) -> Plan:
    with os.fdopen(passed) as reading:
        return Plan(**json.load(reading))


class LateRecords:
    """Records in the application's database. The database modules are imported before the first record, because most
    parents never write one.
    """

    def __init__(self, url: str, clock: Clock) -> None:
        self._url = url
        self._clock = clock
        self._database: Database | None = None
        self._stalls: Stalls | None = None
        self._restarts: NewRestarts | None = None

    async def open(self) -> None:
        if self._database is None:
            # In a thread, because the parent answers signals and heartbeats meanwhile.
            stores, tables = await asyncio.to_thread(_import_stores)
            self._database = stores.connect(self._url, self._clock, stores.ASIDE)
            self._stalls = tables.SqlBeats(self._database, __version__)
            self._restarts = tables.SqlRestarts(self._database, Ids(self._clock))
        await self._database.close()
        await self._database.open()

    async def record_stall(self, *, host: str, pid: int) -> bool:
        assert self._stalls is not None  # the restart log opens the database first
        return await self._stalls.record_stall(host=host, pid=pid)

    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        assert self._restarts is not None
        return await self._restarts.add(restart, now=now)

    async def close(self) -> None:
        if self._database is not None:
            await self._database.close()


def _import_stores() -> tuple[Any, Any]:
    return import_module("batuta.stores"), import_module("batuta.stores.sql.tables.processes")


def main() -> int:
    """Run the parent with the plan from ``hand_over``, and return its exit code."""
    plan, clock, emitted = take_plan(int(sys.argv[1])), SystemClock(), events.Fanout()
    started = plan.started
    wording = Wording(
        phrases={} if started is None else {events.ProcessStarted: lambda event: started}, fields=plan.field_names
    )
    misspelt = [(name, nearest) for name, nearest in plan.misspelt]
    reporting = Reporting(
        events=emitted, clock=clock, zone=ZoneInfo(plan.zone), wording=wording, log=plan, misspelt=misspelt
    )
    parent = Parent(plan, environment(), reporting, LateRecords(plan.database_url, clock))
    gc.freeze()  # later collections skip the modules
    try:
        return run_to_exit(parent.run(), lambda what: emitted.emit(events.ProcessHeld(PARENT, what)))
    except (BatutaError, KeyboardInterrupt) as error:
        from batuta.cli.context import make_cli_context
        from batuta.cli.program import report

        return report(make_cli_context(["--lang", plan.language]), error)


if __name__ == "__main__":
    sys.exit(main())
