"""The roles: ``batuta api``, ``batuta worker``, what the application adds, and ``batuta up`` for all of them."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Annotated

import typer

from batuta import __version__
from batuta.cli.announcer import Announcer
from batuta.cli.desk import ENV_FILE, FAILED, REFUSED, Desk, desk_of
from batuta.cli.sidecar import port_of_child, shown
from batuta.config import EngineSettings, in_file, names, near_misses
from batuta.engine import Batuta
from batuta.extension import Command, Role
from batuta.kernel.errors import BatutaError, ConfigError
from batuta.kernel.events import ProcessEnded, ProcessServing, ProcessStarted, SettingWarned
from batuta.logs import begin_logging
from batuta.supervise.address import listen
from batuta.supervise.loop import LoopPolicy
from batuta.supervise.processes import ChildSpec, Family, die_with_parent
from batuta.supervise.signals import stop_on_signals
from batuta.supervise.supervisor import Supervisor
from batuta.texts import Texts

ChildOf = Annotated[int | None, typer.Option("--child-of", hidden=True, help="the parent's process id")]
MARGIN = timedelta(seconds=5)  # to notice that a child has ended, or to kill it
FAMILY = LoopPolicy(every=timedelta(seconds=5), stuck_after=timedelta(minutes=2))
ANNOUNCING = LoopPolicy(every=timedelta(milliseconds=200), stuck_after=timedelta(minutes=2))


def add_to(cli: typer.Typer, texts: Texts) -> None:
    cli.command("up", help=texts("cli.up.help"))(up)
    for name in ("api", "scheduler", "worker"):
        cli.command(name, help=texts(f"cli.{name}.help"))(_command(name))


def add_roles_of_app(cli: typer.Typer, desk: Desk) -> None:
    """The application's own roles and commands become words. If it cannot be loaded, the word that needs it will say why."""
    try:
        extension = desk.work().extension
    except BatutaError:
        return
    for role in extension.roles:
        cli.command(role.name, help=desk.texts()(f"cli.{role.name}.help"))(_command(role.name))
    for name, command in extension.commands.items():
        _add_command(cli, desk, name, command)
    for name in extension.later:
        cli.command(name, help=desk.texts()("cli.later.help"))(_not_yet(name))


def _add_command(cli: typer.Typer, desk: Desk, name: str, command: Command) -> None:
    texts = desk.texts()
    if not isinstance(command, Mapping):
        cli.command(name, help=texts(f"cli.{name}.help"))(command)
        return
    group = typer.Typer(help=texts(f"cli.{name}.help"), no_args_is_help=True)
    for word, each in command.items():
        group.command(word, help=texts(f"cli.{name}.{word}_help"))(each)
    cli.add_typer(group, name=name)


def up(context: typer.Context) -> None:
    """Every role as a child of this process."""
    desk = desk_of(context)
    settings, work = desk.settings(), desk.work()
    listen(settings.host, settings.port).close()
    raise typer.Exit(asyncio.run(_up(desk, work, settings)))


async def _up(desk: Desk, work: Batuta, settings: EngineSettings) -> int:
    stop = asyncio.Event()
    grace = timedelta(seconds=settings.batuta_drain_seconds)
    roles = [role.name for role in roles_of(work, settings).values() if role.in_up]
    is_pretty = settings.log_format == "pretty" or (settings.log_format == "auto" and sys.stdout.isatty())
    specs = [_child(desk, work, role, is_pretty, port_of_child(settings, role)) for role in roles]
    family = Family(specs, work.clock, work.events, stop, prefixed=is_pretty)
    supervisor = Supervisor(work.clock, work.events)
    supervisor.add(family, FAMILY)
    address = f"http://{settings.host}:{settings.port}"
    supervisor.add(Announcer(address, lambda: work.events.emit(ProcessServing("up", address))), ANNOUNCING)
    # The children drain one after the other, each for as long as it may.
    running = _supervise(work, settings, "up", supervisor, stop, (grace + MARGIN) * len(roles))
    await _told(desk, work, settings, "up", stop, running)
    return family.exit_code


def roles_of(work: Batuta, settings: EngineSettings) -> dict[str, Role]:
    own = [
        Role("api", lambda stop: _serve_api(work, settings, stop)),
        Role("scheduler", lambda stop: _schedule(work, settings, stop), in_up=len(work.book) > 0),
        Role("worker", lambda stop: _work(work, settings, stop)),
    ]
    return {role.name: role for role in (*work.extension.roles, *own)}


async def _serve_api(work: Batuta, settings: EngineSettings, stop: asyncio.Event) -> None:
    try:
        from batuta.web import create_api
        from batuta.web.server import serve
    except ModuleNotFoundError as missing:
        problem, next_step = f"the api needs {missing.name}", "pip install 'batuta[web]'"
        raise ConfigError(problem=problem, next_step=next_step) from None

    api = work.extension.api() if work.extension.api else create_api(work, settings)
    listening = listen(settings.host, settings.port)
    grace = timedelta(seconds=settings.batuta_drain_seconds)
    async with work:
        await work.reports.expect(now=work.clock.now())
        watching = asyncio.create_task(work.supervisor("api").run(stop, grace))
        try:
            await serve(api, listening, stop, grace)
        finally:
            stop.set()
            await watching


async def _work(work: Batuta, settings: EngineSettings, stop: asyncio.Event) -> None:
    async with work:
        grace = timedelta(seconds=settings.batuta_drain_seconds)
        await _supervise(work, settings, "worker", work.supervisor(), stop, grace)


async def _schedule(work: Batuta, settings: EngineSettings, stop: asyncio.Event) -> None:
    async with work:
        grace = timedelta(seconds=settings.batuta_drain_seconds)
        await _supervise(work, settings, "scheduler", work.supervisor("scheduler"), stop, grace)


async def _supervise(
    work: Batuta, settings: EngineSettings, role: str, supervisor: Supervisor, stop: asyncio.Event, grace: timedelta
) -> None:
    async with shown(work, settings, role, supervisor):
        await supervisor.run(stop, grace)


def _command(name: str) -> Callable[..., None]:
    def command(context: typer.Context, child_of: ChildOf = None) -> None:
        desk = desk_of(context)
        settings, work = desk.settings(), desk.work()
        if child_of is not None and not die_with_parent(child_of):
            raise typer.Exit(FAILED)
        asyncio.run(_run(desk, work, settings, roles_of(work, settings)[name]))

    return command


async def _run(desk: Desk, work: Batuta, settings: EngineSettings, role: Role) -> None:
    stop = asyncio.Event()
    await _told(desk, work, settings, role.name, stop, role.run(stop))


async def _told(
    desk: Desk, work: Batuta, settings: EngineSettings, role: str, stop: asyncio.Event, running: Awaitable[None]
) -> None:
    """Run a process and announce its start and its end, whichever way it ends."""
    begin_logging(work.events, settings, service=role, stream=sys.stdout, zone=work.zone)
    with stop_on_signals(stop):
        for name, nearest in near_misses({**in_file(ENV_FILE), **desk.env}, names(type(settings))):
            work.events.emit(SettingWarned(name, nearest))
        work.events.emit(ProcessStarted(role, __version__, work.clock.now().astimezone(work.zone)))
        try:
            await running
        except BatutaError as error:
            work.events.emit(ProcessEnded(role, str(error), failed=True))
            raise
    work.events.emit(ProcessEnded(role, "asked to" if stop.is_set() else "nothing left to do", failed=False))


def _not_yet(name: str) -> Callable[..., None]:
    def command(context: typer.Context) -> None:
        desk = desk_of(context)
        known = ", ".join(sorted(roles_of(desk.work(), desk.settings())))
        desk.say_wrong(desk.texts()("cli.later.sentence", role=name, known=known))
        raise typer.Exit(REFUSED)

    return command


def _child(desk: Desk, work: Batuta, role: str, is_pretty: bool, told: Mapping[str, str]) -> ChildSpec:
    app = ["--app", desk.app_name] if desk.app_name else []
    argv = [sys.executable, "-m", "batuta", *app, "--lang", desk.language, role, "--child-of", str(os.getpid())]
    # A child writes into a pipe: what the terminal's reader would like has to be told to it.
    form = {"LOG_FORMAT": "pretty" if is_pretty else "json"}
    return ChildSpec(role, argv, {**work.extension.child_env, **desk.env, **form, **told})
