"""``batuta up --one-process``: every role in one process, for machines with little memory.

The roles share one event loop and one watchdog thread. A role that blocks the event loop delays all other roles, and a
crash ends all of them. No work is lost, because leases, fences and recovery work as they do with several processes. No
parent restarts the process, so a service manager (systemd, Docker) must restart it.
"""

import asyncio
import sys
from collections.abc import Awaitable, Iterator, Sequence
from datetime import timedelta

from batuta.cli.context import CliContext
from batuta.cli.roles import guard_by_settings, longest_stop, make_api, open_for_process, reporting_of, roles_of
from batuta.cli.running import run_role
from batuta.config import EngineSettings, unset
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Role
from batuta.environment import ENV_FILE
from batuta.kernel.errors import ConfigError
from batuta.kernel.events import ProcessServing
from batuta.kernel.reasons import define
from batuta.kernel.waiting import first_of
from batuta.processes.notify import Notifier

# Time for requests that are still open after the loops have drained.
API_GRACE = timedelta(seconds=5)
ONE_WORKER = define("one_worker", "--one-process runs one worker, but {count} are configured")
ONE_WORKER_STEP = define("one_worker_step", "remove --workers and BATUTA_WORKERS, or run without --one-process")


def complete_app(ctx: CliContext) -> Batuta:
    """Return the application with the settings that `batuta up` would pass to its children."""
    work = ctx.work()
    added = unset(work.extension.child_env, ctx.env, ENV_FILE)
    if not added or work.extension.rebuilt is None:
        return work
    rebuilt: Batuta = work.extension.rebuilt(added)
    return rebuilt


def require_one_worker(count: int) -> None:
    if count > 1:
        raise ConfigError(problem=ONE_WORKER(count=count), next_step=ONE_WORKER_STEP())


async def run_together(ctx: CliContext, work: Batuta, name: str) -> None:
    """Run every role of `batuta up` in this process until a signal arrives or one of the roles ends."""
    stop, notifier, settings = asyncio.Event(), Notifier.from_environment(ctx.env), work.settings
    roles = [role for role in roles_of(work, settings).values() if role.in_up]
    running = _run(work, settings, roles, stop, notifier)
    reporting = reporting_of(ctx, work, settings)
    await run_role(reporting, name, stop, running, notifier, sys.stdout, longest_stop(settings) + API_GRACE)


async def _run(
    work: Batuta, settings: EngineSettings, roles: Sequence[Role], stop: asyncio.Event, notifier: Notifier
) -> None:
    serve = make_api(work, settings, API_GRACE)
    grace = timedelta(seconds=settings.batuta_drain_seconds)
    guard = guard_by_settings(work, settings, "api", stop, notifier)
    async with open_for_process(work), work.resources.started(), guard as watched:
        await work.reports.expect(now=work.clock.now())
        work.events.emit(ProcessServing("api", f"http://{settings.host}:{settings.port}"))
        # The API ends last, because a draining job may call it.
        drained = asyncio.Event()
        serving = asyncio.create_task(serve(drained))
        supervised = [watched.run(stop, grace), *_supervisors(work, roles, stop, grace)]
        try:
            await _end_together([*supervised, *_own(work, roles, stop)], serving, stop)
        finally:
            drained.set()
            await serving


def _supervisors(
    work: Batuta, roles: Sequence[Role], stop: asyncio.Event, grace: timedelta
) -> Iterator[Awaitable[None]]:
    own = {role.name: role for role in work.extension.roles}
    for role in roles:
        declared = own.get(role.name)
        if role.name == "api" or (declared is not None and declared.run is not None):
            continue
        name, shows = (None, None) if declared is None else (declared.worker_name, declared.shows)
        yield work.supervisor(role.name, worker_name=name, shows=shows).run(stop, grace)


def _own(work: Batuta, roles: Sequence[Role], stop: asyncio.Event) -> Iterator[Awaitable[None]]:
    started = {role.name for role in roles}
    for role in work.extension.roles:
        if role.run is not None and role.name in started:
            yield role.run(stop)


async def _end_together(running: Sequence[Awaitable[None]], serving: asyncio.Future[None], stop: asyncio.Event) -> None:
    """Wait until ``stop`` is set, or until any role or the API ends. Then stop the remaining roles and raise the first
    error, if any.
    """
    tasks = [asyncio.ensure_future(each) for each in running]
    try:
        await first_of(stop.wait(), asyncio.wait([*tasks, serving], return_when=asyncio.FIRST_COMPLETED))
    finally:
        stop.set()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for each in ended:
        if isinstance(each, BaseException):
            raise each
