"""The commands that run one role: ``batuta api``, ``batuta worker``, and the application's own roles. ``batuta up``
starts all roles.

A role without its own API serves ``/metrics`` and ``/health`` on the port BATUTA_METRICS_PORT.
"""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any

import typer

from batuta.cli.context import FAILED, CliContext, cli_context
from batuta.cli.running import Reporting, close_soon, run_role
from batuta.config import MOST_CONCURRENT, EngineSettings, names, near_misses
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Role
from batuta.engine.process import ProcessLimits, guard_process
from batuta.environment import ENV_FILE, in_file
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import ConfigError
from batuta.kernel.events import ProcessHeld
from batuta.kernel.reasons import define
from batuta.processes.address import listen
from batuta.processes.exit import FILE_WATCH_POLICY, FileWatch, run_to_exit
from batuta.processes.notify import Notifier
from batuta.processes.tree import die_with_parent
from batuta.supervise.loop import FunctionLoop, LoopPolicy
from batuta.supervise.shutdown import EXIT_MARGIN
from batuta.supervise.supervisor import Supervisor

ROLE_OFF = define("role_off", "the process '{role}' is not enabled in the settings")
ROLE_ON = define("role_on", "set the setting that enables it; docs/reference.md lists the settings")
SIDECAR_GRACE = timedelta(seconds=1)


@asynccontextmanager
async def serve_metrics(
    work: Batuta, settings: EngineSettings, role: str, supervisor: Supervisor
) -> AsyncIterator[None]:
    """Serve ``/metrics`` and ``/health`` on the port BATUTA_METRICS_PORT while the ``async with`` block runs. If that
    setting has no value, do nothing.
    """
    port = settings.batuta_metrics_port
    if port is None:
        yield
        return
    try:
        from batuta.web.api import create_side_api, serve
    except ModuleNotFoundError as missing:
        problem, next_step = f"BATUTA_METRICS_PORT needs {missing.name}", "pip install 'batuta[web]'"
        raise ConfigError(problem=problem, next_step=next_step) from None
    listening = listen(settings.host, port, "BATUTA_METRICS_PORT")
    stop = asyncio.Event()
    api = create_side_api(work, settings, role, lambda: supervisor.running)
    serving = asyncio.create_task(serve(api, listening, stop, SIDECAR_GRACE))
    try:
        yield
    finally:
        stop.set()
        await serving


ChildOf = Annotated[int | None, typer.Option("--child-of", hidden=True, help="the parent's process id")]
Named = Annotated[
    str | None, typer.Option("--named", hidden=True, help="the name that the parent gave to this process")
]


def roles_of(work: Batuta, settings: EngineSettings, notifier: Notifier | None = None) -> dict[str, Role]:
    """Return all roles of the application by name, including the engine's own. ``notifier`` reports readiness to the
    parent or systemd.
    """
    parent = notifier or Notifier()
    own = [
        Role("api", lambda stop: _serve_api(work, settings, stop, parent)),
        Role(
            "scheduler",
            lambda stop: _run_supervised(work, settings, "scheduler", stop, parent),
            # The scheduler also runs for a program with tasks but without jobs, because its database may contain
            # schedules.
            in_up=len(work.registry) > 0 or any(work.task_registry),
        ),
        Role("worker", lambda stop: _run_supervised(work, settings, "worker", stop, parent)),
    ]
    added = [_supervise(role, work, settings, parent) for role in work.extension.roles]
    return {role.name: role for role in (*added, *own)}


def _supervise(role: Role, work: Batuta, settings: EngineSettings, notifier: Notifier) -> Role:
    if role.run is not None:
        return role
    return replace(role, run=lambda stop: _run_supervised(work, settings, role.name, stop, notifier, role))


def make_api(
    work: Batuta, settings: EngineSettings, grace: timedelta
) -> Callable[[asyncio.Event], Coroutine[Any, Any, None]]:
    """Build the API and listen on its port. Return a function that takes an event and serves requests until the event
    is set. After that, requests in progress may finish within ``grace``.
    """
    try:
        from batuta.web import create_api
        from batuta.web.api import serve
    except ModuleNotFoundError as missing:
        problem, next_step = f"the api needs {missing.name}", "pip install 'batuta[web]'"
        raise ConfigError(problem=problem, next_step=next_step) from None

    api = work.extension.api() if work.extension.api else create_api(work, settings)
    listening = listen(settings.host, settings.port)
    return lambda stop: serve(api, listening, stop, grace)


async def _serve_api(work: Batuta, settings: EngineSettings, stop: asyncio.Event, notifier: Notifier) -> None:
    grace = timedelta(seconds=settings.batuta_drain_seconds)
    serve = make_api(work, settings, grace)
    guard = guard_by_settings(work, settings, "api", stop, notifier)
    async with open_for_process(work), work.resources.started(), guard as supervisor:
        await work.reports.expect(now=work.clock.now())
        watching = asyncio.create_task(supervisor.run(stop, grace))
        try:
            await serve(stop)
        finally:
            stop.set()
            await watching


async def _run_supervised(
    work: Batuta,
    settings: EngineSettings,
    role: str,
    stop: asyncio.Event,
    notifier: Notifier,
    added: Role | None = None,
) -> None:
    guard = guard_by_settings(work, settings, role, stop, notifier, added)
    async with open_for_process(work), work.resources.started(), guard as supervisor:
        grace = timedelta(seconds=settings.batuta_drain_seconds)
        await supervise(work, settings, role, supervisor, stop, grace)


@asynccontextmanager
async def open_for_process(work: Batuta) -> AsyncIterator[None]:
    """Open the application for the lifetime of a process. Closing it has a time limit, so a hanging database delays the
    process's exit only briefly.

    The garbage collector ignores the objects that exist once the application is open, such as modules and routes,
    because visiting them would stop the event loop for about 50 ms.
    """
    await work.open()
    gc.freeze()
    try:
        yield
    finally:
        await close_soon(work.close())


def longest_stop(settings: EngineSettings) -> timedelta:
    """Return how long a role's process may take to shut down before its parent kills it."""
    return timedelta(seconds=settings.batuta_drain_seconds) + EXIT_MARGIN


def guard_by_settings(
    work: Batuta,
    settings: EngineSettings,
    role: str,
    stop: asyncio.Event,
    notifier: Notifier,
    added: Role | None = None,
) -> AbstractAsyncContextManager[Supervisor]:
    return guard_process(
        work,
        role,
        stop,
        limits=ProcessLimits.from_settings(settings),
        notifier=notifier,
        worker_name=None if added is None else added.worker_name,
        shows=None if added is None else added.shows,
    )


async def supervise(
    work: Batuta, settings: EngineSettings, role: str, supervisor: Supervisor, stop: asyncio.Event, grace: timedelta
) -> None:
    async with serve_metrics(work, settings, role, supervisor):
        await supervisor.run(stop, grace)


def role_command(name: str) -> Callable[..., None]:
    """Return the command that runs a role. The worker's command has additional flags."""
    if name == "worker":
        return worker

    def command(context: typer.Context, child_of: ChildOf = None, named: Named = None) -> None:
        if context.invoked_subcommand is not None:
            return  # the application's own command runs, not the role
        _start(cli_context(context), name, child_of, named)

    return command


def worker(
    context: typer.Context,
    queues: Annotated[list[str] | None, typer.Option("--queues")] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, max=MOST_CONCURRENT)] = None,
    child_of: ChildOf = None,
    named: Named = None,
) -> None:
    if context.invoked_subcommand is not None:
        return  # the application's own command runs, not the role
    ctx = cli_context(context)
    work = ctx.work()
    if queues:
        work.only = tuple(name.strip() for name in ",".join(queues).split(",") if name.strip())
    if concurrency is not None:
        work.worker_policy = replace(work.worker_policy, limit=concurrency)
    _start(ctx, "worker", child_of, named)


def _start(ctx: CliContext, name: str, child_of: int | None, named: str | None) -> None:
    if child_of is not None and not die_with_parent(child_of):
        raise typer.Exit(FAILED)
    work = ctx.work()
    running = _run(ctx, work, ctx.settings(), name, named or name)
    run_to_exit(running, lambda what: work.events.emit(ProcessHeld(name, what)))


async def _run(ctx: CliContext, work: Batuta, settings: EngineSettings, name: str, service: str) -> None:
    stop, notifier = asyncio.Event(), Notifier.from_environment(ctx.env)
    if (role := roles_of(work, settings, notifier).get(name)) is None:
        raise ConfigError(problem=ROLE_OFF(role=name), next_step=ROLE_ON())
    assert role.run is not None  # roles_of sets ``run`` for every role
    own = role in work.extension.roles  # the engine does not guard a role whose ``run`` the application defines
    running = _run_app_role(role.run, work, stop, notifier) if own else role.run(stop)
    reporting = reporting_of(ctx, work, settings)
    await run_role(reporting, name, stop, running, notifier, sys.stdout, longest_stop(settings), service)


async def _run_app_role(
    run: Callable[[asyncio.Event], Awaitable[None]], work: Batuta, stop: asyncio.Event, notifier: Notifier
) -> None:
    """Run a role that the application defines. The process reports immediately that it is ready, and sends heartbeats
    while its event loop runs.
    """
    over, signs = asyncio.Event(), Supervisor(work.clock, work.events)
    if (every := notifier.watchdog_every) is not None:

        async def ping() -> None:
            notifier.alive()

        signs.add(FunctionLoop("watchdog-ping", ping), LoopPolicy(every=every / 2, stuck_after=timedelta(minutes=1)))
    file_watch = FileWatch(check=work.database.check_file, stop=stop.set, clock=SystemClock())
    signs.add(file_watch, FILE_WATCH_POLICY)
    watching_signs = asyncio.create_task(signs.run(over, timedelta(seconds=1)))
    notifier.ready()
    try:
        await run(stop)
    finally:
        over.set()
        await watching_signs
    if file_watch.lost is not None:
        raise file_watch.lost


def reporting_of(ctx: CliContext, work: Batuta, settings: EngineSettings) -> Reporting:
    """Return the objects with which a process of this application reports on itself."""
    return Reporting(
        events=work.events,
        clock=work.clock,
        zone=work.zone,
        wording=work.extension.wording,
        log=settings,
        misspelt=near_misses({**in_file(ENV_FILE), **ctx.env}, names(type(settings))),
    )
