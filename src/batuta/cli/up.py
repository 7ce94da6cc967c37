"""The command ``batuta up``, which runs every role as a child process, monitors the children and restarts those that
end.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from batuta.cli.context import CliContext, cli_context
from batuta.cli.output import OutputMux, ReadyBanner
from batuta.cli.roles import close_soon, longest_stop, port_of_child, roles_of, run_role, supervise
from batuta.cli.together import complete_app, require_one_worker, run_together
from batuta.config import EngineSettings, unset
from batuta.engine.batuta import Batuta
from batuta.environment import ENV_FILE
from batuta.health.aggregator import Part, Probe, State
from batuta.kernel.events import ProcessHeld, ProcessServing
from batuta.kernel.values import dataclass
from batuta.processes.address import listen
from batuta.processes.exit import run_to_exit
from batuta.processes.notify import Notifier, NotifySocket
from batuta.processes.tree import KILLING, RESTART_LOG_POLICY, ChildSpec, ProcessTree, RestartLog, Timeouts
from batuta.supervise.loop import FOR_EVER, LoopPolicy
from batuta.supervise.shutdown import EXIT_MARGIN
from batuta.supervise.stacks import StackFolder
from batuta.supervise.supervisor import Supervisor

PARENT = "up"
PAGES = "/painel"
# The parent retries without limit, because no other process would restart the children.
TREE_POLICY = LoopPolicy(
    every=timedelta(seconds=1), stuck_after=timedelta(minutes=1), max_failures=FOR_EVER, max_restarts=FOR_EVER
)
# One malloc arena per process: its threads mostly wait, and each additional glibc arena would keep some megabytes of
# freed memory.
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
# A long interval is enough, because the tree wakes the banner when a child becomes ready.
ANNOUNCING = replace(TREE_POLICY, every=timedelta(minutes=1))

Workers = Annotated[int | None, typer.Option("--workers", min=1, max=64, help="how many; default: BATUTA_WORKERS")]


OneProcess = Annotated[bool, typer.Option("--one-process", help="all roles in this process, for small machines")]


def up(context: typer.Context, workers: Workers = None, one_process: OneProcess = False) -> None:
    ctx = cli_context(context)
    if one_process:
        _up_in_one_process(ctx, workers)
        return
    # The parent runs no work, so it loads the application without services. It needs the services only if it has a
    # metrics port, to report their health.
    settings = ctx.catalogue().settings
    work = ctx.catalogue() if settings.batuta_metrics_port is None else ctx.work()
    _require_start(work, settings)
    running = _Up(ctx, work, settings, workers or settings.batuta_workers).run()
    raise typer.Exit(run_to_exit(running, lambda what: work.events.emit(ProcessHeld(PARENT, what))))


def _up_in_one_process(ctx: CliContext, workers: int | None) -> None:
    work = complete_app(ctx)
    require_one_worker(workers or work.settings.batuta_workers)
    _require_start(work, work.settings)
    running = run_together(ctx, work, PARENT)
    raise typer.Exit(run_to_exit(running, lambda what: work.events.emit(ProcessHeld(PARENT, what))))


def _require_start(work: Batuta, settings: EngineSettings) -> None:
    """Raise an error unless the API's secrets are set and every port that the roles use is free."""
    settings.require_access()
    for place in ((settings.host, settings.port), *(role.listens for role in work.extension.roles if role.in_up)):
        if place is not None:
            listen(*place).close()


@dataclass(slots=True)
class _Up:
    ctx: CliContext
    work: Batuta
    settings: EngineSettings
    workers: int

    async def run(self) -> int:
        stop, notifier = asyncio.Event(), Notifier.from_environment(self.ctx.env)
        specs = self._specs()
        names = [PARENT, *(spec.name for spec in specs)]
        output = OutputMux(sys.stdout, names, prefixed=self._is_pretty, coloured=self._is_coloured)
        notify_socket, restart_log = NotifySocket.open(), self._restart_log()
        tree = ProcessTree(
            specs,
            self.work.clock,
            self.work.events,
            stop,
            output.say,
            notify_socket,
            restart_log.record,
            StackFolder.for_database(self.work.database.where).take,
            Timeouts(living=timedelta(seconds=self.settings.batuta_watchdog_seconds)),
            changed=lambda: self._notify(tree, notifier, banner),
            beat=notifier.alive,
        )
        # The parent is ready when its children are. The children use the database, so they report on it themselves.
        self.work.probes = {"processes": Probe(lambda: _answer(tree), needed=True)}
        address = f"http://{self.settings.host}:{self.settings.port}"
        banner = ReadyBanner(
            address, lambda: tree.is_complete, lambda: self._announce(address, output), self.work.clock
        )
        # All children drain at the same time. The parent kills a child after the child's drain time plus the exit
        # margin.
        grace = longest_stop(self.settings) + KILLING
        supervisor = self._supervisor(tree, restart_log, banner)
        running = supervise(self.work, self.settings, PARENT, supervisor, stop, grace)
        try:
            stream = output.stream(PARENT)
            within = grace + EXIT_MARGIN
            await run_role(self.ctx, self.work, self.settings, PARENT, stop, running, notifier, stream, within)
        finally:
            await close_soon(self.work.connections.close())
            output.close()
            if notify_socket is not None:
                notify_socket.close()
        return tree.exit_code

    def _supervisor(self, tree: ProcessTree, restart_log: RestartLog, banner: ReadyBanner) -> Supervisor:
        supervisor = Supervisor(self.work.clock, self.work.events)
        supervisor.add(restart_log, RESTART_LOG_POLICY)
        supervisor.add(tree, TREE_POLICY)
        supervisor.add(banner, ANNOUNCING)
        return supervisor

    def _notify(self, tree: ProcessTree, notifier: Notifier, banner: ReadyBanner) -> None:
        _notify_systemd(tree, notifier)
        banner.wakeup.set()

    def _announce(self, address: str, output: OutputMux) -> None:
        self.work.events.emit(ProcessServing(PARENT, address))
        if not self._is_pretty:
            return
        facts = {"service": self.work.extension.service, "page": f"{address}{PAGES}", "command": command_here()}
        for line in ("", *(self.ctx.texts()(f"cli.up.{each}", **facts) for each in ("page", "next", "stop")), ""):
            output.write(line)

    def _restart_log(self) -> RestartLog:
        work = self.work
        return RestartLog(self._open_database, work.beats, work.observability.restarts, work.clock, work.now)

    async def _open_database(self) -> None:
        """Open the database, or reopen it after a restore replaced its file."""
        await self.work.database.close()
        await self.work.database.open()

    @property
    def _is_pretty(self) -> bool:
        wanted = self.settings.log_format
        return wanted == "pretty" or (wanted == "auto" and sys.stdout.isatty())

    @property
    def _is_coloured(self) -> bool:
        forced = self.settings.force_color is not None
        return self._is_pretty and self.settings.no_color is None and (forced or sys.stdout.isatty())

    def _specs(self) -> list[ChildSpec]:
        roles = [role.name for role in roles_of(self.work, self.settings).values() if role.in_up]
        places = [(role, number) for role in roles for number in range(1, self._count(role) + 1)]
        return [self._child(role, number) for role, number in places]

    def _count(self, role: str) -> int:
        return self.workers if role == "worker" else 1

    def _child(self, role: str, number: int) -> ChildSpec:
        ctx = self.ctx
        app = ["--app", ctx.app_name] if ctx.app_name else []
        name = role if self._count(role) == 1 else f"{role}-{number}"
        argv = [sys.executable, "-m", "batuta", *app, "--lang", ctx.language, role]
        argv += ["--child-of", str(os.getpid()), "--named", name]
        port = port_of_child(self.settings, role, number)
        own_env = unset({**ONE_ARENA, **self.work.extension.child_env}, ctx.env, ENV_FILE)
        env = {**ctx.env, **own_env, **self._log_env(), **port}
        return ChildSpec(role, argv, env, name)

    def _log_env(self) -> Mapping[str, str]:
        """Return the log settings for a child. The child writes to a pipe, so it cannot detect whether its lines end up
        in a terminal.
        """
        form = {"LOG_FORMAT": "pretty" if self._is_pretty else "json"}
        return form | ({"FORCE_COLOR": "1"} if self._is_coloured else {})


async def _answer(tree: ProcessTree) -> Part:
    return Part(State.OK if tree.children and all(child.is_ready for child in tree.children) else State.ERROR)


def command_here() -> str:
    """Return the command that starts ``batuta`` in another terminal: its name, or its path relative to the current
    folder.
    """
    return "batuta" if shutil.which("batuta") else os.path.relpath(Path(sys.executable).with_name("batuta"))


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
