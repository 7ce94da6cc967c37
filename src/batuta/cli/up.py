"""The command ``batuta up``, which runs every role as a child process, monitors the children and restarts those that
end. The command checks the settings; ``cli.parent`` is the process that runs afterwards.
"""

import os
import shutil
import sys
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from batuta import __version__
from batuta.cli.context import CliContext, cli_context
from batuta.cli.parent import OWN_EVENTS, PARENT, Parent, Plan, hand_over
from batuta.cli.roles import longest_stop, reporting_of, roles_of, serve_metrics
from batuta.cli.running import Reporting
from batuta.cli.together import complete_app, require_one_worker, run_together
from batuta.config import EngineSettings, unset
from batuta.engine.batuta import Batuta
from batuta.environment import ENV_FILE
from batuta.health.aggregator import Part, Probe, State
from batuta.kernel.events import ProcessHeld, ProcessStarted
from batuta.kernel.values import dataclass
from batuta.processes.address import listen
from batuta.processes.exit import run_to_exit
from batuta.processes.restarts import NewRestart
from batuta.processes.tree import ProcessTree
from batuta.supervise.supervisor import Supervisor

PAGES = "/painel"
# One malloc arena per process: its threads mostly wait, and each additional glibc arena would keep some megabytes of
# freed memory.
ONE_ARENA = {"MALLOC_ARENA_MAX": "1"}
# Modules whose subscribers only handle the events of a process that works.
OF_WORKERS = ("batuta.engine.", "batuta.tasks.")

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
    reporting = reporting_of(ctx, work, settings)
    plan = _plan(ctx, work, settings, workers or settings.batuta_workers, reporting)
    if not needs_application(work):
        hand_over(plan)
    parent = Parent(plan, ctx.env, reporting, _WorkRecords(work), work.now, _Serving(work, settings))
    raise typer.Exit(run_to_exit(parent.run(), lambda what: work.events.emit(ProcessHeld(PARENT, what))))


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


def needs_application(work: Batuta) -> bool:
    """Return whether the parent process uses the application: it has a metrics port, a clock of its own, its own phrases
    for the parent's events, or subscribers to these events.
    """
    phrases = work.extension.wording.phrases
    watched = [each for each in work.events.subscribers if not _module(each).startswith(OF_WORKERS)]
    return (
        work.settings.batuta_metrics_port is not None
        or work.now() is not None
        or any(kind in phrases for kind in OWN_EVENTS)
        or bool(watched)
    )


def _module(subscriber: object) -> str:
    return str(getattr(subscriber, "__module__", ""))


def _plan(ctx: CliContext, work: Batuta, settings: EngineSettings, workers: int, reporting: Reporting) -> Plan:
    address = f"http://{settings.host}:{settings.port}"
    facts = {"service": work.extension.service, "page": f"{address}{PAGES}", "command": command_here()}
    return Plan(
        app_name=ctx.app_name,
        language=ctx.language,
        roles=[role.name for role in roles_of(work, settings).values() if role.in_up],
        workers=workers,
        child_env=unset({**ONE_ARENA, **work.extension.child_env}, ctx.env, ENV_FILE),
        metrics_port=settings.batuta_metrics_port,
        address=address,
        page=["", *(ctx.texts()(f"cli.up.{each}", **facts) for each in ("page", "next", "stop")), ""],
        watchdog_seconds=settings.batuta_watchdog_seconds,
        stop_seconds=longest_stop(settings).total_seconds(),
        database_url=work.connections.url,
        database=work.database.where,
        zone=work.zone.key,
        started=_phrase_of_start(work),
        field_names=dict(work.extension.wording.fields),
        misspelt=reporting.misspelt,
        log_level=settings.log_level,
        log_format=settings.log_format,
        no_color=settings.no_color,
        force_color=settings.force_color,
    )


def _phrase_of_start(work: Batuta) -> str | None:
    """Return the application's phrase for the start of the parent, or None if it has no phrase of its own."""
    phrase = work.extension.wording.phrases.get(ProcessStarted)
    if phrase is None:
        return None
    return phrase(ProcessStarted(PARENT, __version__, work.clock.now().astimezone(work.zone)))


@dataclass(frozen=True, slots=True)
class _WorkRecords:
    """Records in the database of an application that the parent has loaded."""

    work: Batuta

    async def open(self) -> None:
        await self.work.database.close()
        await self.work.database.open()

    async def record_stall(self, *, host: str, pid: int) -> bool:
        return await self.work.beats.record_stall(host=host, pid=pid)

    async def add(self, restart: NewRestart, *, now: datetime | None = None) -> str:
        return await self.work.observability.restarts.add(restart, now=now)

    async def close(self) -> None:
        await self.work.connections.close()


@dataclass(frozen=True, slots=True)
class _Serving:
    """Serves the parent's metrics and health."""

    work: Batuta
    settings: EngineSettings

    def __call__(self, tree: ProcessTree, supervisor: Supervisor) -> AbstractAsyncContextManager[None]:
        # The parent is ready when its children are. The children use the database, so they report on it themselves.
        self.work.probes = {"processes": Probe(lambda: _answer(tree), needed=True)}
        return serve_metrics(self.work, self.settings, PARENT, supervisor)


async def _answer(tree: ProcessTree) -> Part:
    return Part(State.OK if tree.children and all(child.is_ready for child in tree.children) else State.ERROR)


def command_here() -> str:
    """Return the command that starts ``batuta`` in another terminal: its name, or its path relative to the current
    folder.
    """
    return "batuta" if shutil.which("batuta") else os.path.relpath(Path(sys.executable).with_name("batuta"))
