"""Builds the HTTP application and serves it. Access is denied by default: every route calls ``authorise``."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry

from batuta import __version__
from batuta.access import parse_networks
from batuta.config import EngineSettings
from batuta.engine.batuta import Batuta
from batuta.health.aggregator import Cached, look
from batuta.kernel.clock import SystemClock
from batuta.metrics.readings import MetricReading, Readings
from batuta.supervise.running import LoopState
from batuta.supervise.shutdown import Phase, Shutdown
from batuta.texts import LANGUAGES, Texts
from batuta.web import panel, problems
from batuta.web.auth import OPEN, AuthoriseFirst, authorise, make_sessions
from batuta.web.clients import POLICY, Clients
from batuta.web.connections import Http, make_limited_protocol
from batuta.web.context import ApiState
from batuta.web.counts import LargeCounts
from batuta.web.limit import RefusalLimit
from batuta.web.live import POLICY as LIVE_POLICY
from batuta.web.live import LiveViews
from batuta.web.middleware import BodyLimit, RequestAccounting
from batuta.web.routes import batches, health, incidents, jobs, logs, metrics, openapi, schedules, tasks

# How long the readiness result is cached. The route is public, and each check queries the database and services.
READY_KEPT = timedelta(seconds=2)
# Time within which the API's loops must end at shutdown, if another program runs the server.
LOOPS_GRACE = timedelta(seconds=5)
DATE_EVERY = 1.0  # interval in seconds at which the Date header is updated


def create_api(
    work: Batuta,
    settings: EngineSettings | None = None,
    *,
    service: str = "batuta-api",
    routers: Sequence[APIRouter] = (),
    larger_bodies: Mapping[str, int] | None = None,
    own_proof: Collection[str] = (),
    readings: Mapping[str, MetricReading] | None = None,
) -> FastAPI:
    """Build the application's API. Without ``settings`` the API uses the settings of ``work``.

    ``larger_bodies`` maps paths to larger body limits, in bytes. ``own_proof`` lists routes that need no token because
    they check the caller themselves, for example by a webhook's secret. ``readings`` contains the application's own
    metrics, which are read at each request for ``/metrics``.
    """
    settings = settings or work.settings
    settings.require_access()
    registry = metrics.observe_process(work, "api")
    looks = metrics.readings_of(work, registry, readings or {})
    prefix, actions = settings.batuta_panel_prefix, panel.actions_of(work)
    open_routes = OPEN | panel.open_routes(prefix) | frozenset(own_proof)
    state = _state(work, settings, registry, looks, service, open_routes)
    state.actions = actions
    work.replace_loop(state.clients, POLICY, role="api")
    work.replace_loop(state.live, LIVE_POLICY, role="api")
    own = (batches, health, incidents, jobs, logs, metrics, openapi, schedules, tasks)
    pages, last_pages = panel.build_routers(prefix, work.extension, actions)
    every = (*(each.router for each in own), pages, health.details, *routers, health.pages, last_pages)
    uploads = {f"{prefix}/acoes/{each.name}": each.largest_body for each in actions.values() if each.largest_body}
    return _assemble(state, every, {**uploads, **(larger_bodies or {})})


def create_side_api(
    work: Batuta, settings: EngineSettings, role: str, loops: Callable[[], Iterable[LoopState]]
) -> FastAPI:
    """Build a small API for a process that does not run the main API. It serves liveness and metrics, with the same
    access rules as the main API.
    """
    settings.require_access()
    registry = metrics.observe_process(work, role, loops)
    state = _state(work, settings, registry, Readings({}, work.clock, registry), f"batuta-{role}", OPEN)
    return _assemble(state, (health.router, metrics.router), {})


def _state(
    work: Batuta,
    settings: EngineSettings,
    registry: CollectorRegistry,
    readings: Readings,
    service: str,
    open_routes: frozenset[str],
) -> ApiState:
    folders: Sequence[Path] = work.extension.texts
    texts = {language: Texts(language, folders) for language in LANGUAGES}
    sessions = make_sessions(settings)
    clients = Clients(
        work.clock,
        work.events,
        work.access,
        work.tokens,
        sessions,
        proxies=parse_networks(settings.batuta_trusted_proxies),
        limit=settings.batuta_refusals_per_minute,
    )
    if settings.api_token is not None:
        clients.accept(settings.api_token.get_secret_value())
    ready = Cached(lambda: look(work.probes, work.clock), work.clock, READY_KEPT)
    live, counts = LiveViews(work.clock), LargeCounts(work.clock)
    return ApiState(
        work, settings, texts, registry, readings, service, sessions, clients, ready, open_routes, live, counts
    )


def _assemble(state: ApiState, routers: Sequence[APIRouter], larger_bodies: Mapping[str, int]) -> FastAPI:
    work, settings = state.work, state.settings

    @asynccontextmanager
    async def open_while_serving(api: FastAPI) -> AsyncIterator[None]:
        stop = asyncio.Event()
        async with work:
            await work.reports.expect(now=work.clock.now())
            watching = asyncio.create_task(work.supervisor("api").run(stop, LOOPS_GRACE))
            try:
                yield
            finally:
                stop.set()
                await watching

    api = FastAPI(
        title=state.service,
        version=__version__,
        lifespan=open_while_serving,
        dependencies=[Depends(authorise), Depends(problems.refuse_unwritable)],
        # disabled, because FastAPI's pages load files from another host; ``routes.openapi`` has replacements
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # disabled, because the framework would redirect to the host that the client names
        openapi_url=None,
    )
    api.state.batuta = state
    problems.install(api)
    for router in routers:
        if all(isinstance(route, AuthoriseFirst) for route in router.routes):
            api.router.routes.extend(router.routes)
        else:  # a router with other route classes: FastAPI adds the application's dependencies to its routes
            api.include_router(router)
    openapi.describe(api, state.open_routes)
    api.add_middleware(
        BodyLimit, limit=lambda path: larger_bodies.get(path, settings.batuta_max_body_bytes), clock=work.clock
    )
    api.add_middleware(
        RequestAccounting,
        clock=work.clock,
        ids=work.ids,
        events=work.events,
        clients=state.clients,
        limit=RefusalLimit(state),
        https=settings.has_https,
    )
    return api


def _protocol(state: ApiState | None) -> type[asyncio.Protocol]:
    if state is None:
        return Http
    return make_limited_protocol(state.settings.batuta_max_connections, state.clients.refuse, RefusalLimit(state))


class Server(uvicorn.Server):
    """A uvicorn server that installs no signal handlers, because the process handles signals itself. The server wakes
    once a second to update the Date header; uvicorn's own server wakes ten times a second.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        while not await SystemClock().wait(self.stopping, DATE_EVERY):
            await self.on_tick(0)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(api: Any, listening: socket.socket, stop: asyncio.Event, grace: timedelta) -> None:
    """Serve requests until ``stop`` is set, then close the socket, finish the open requests within ``grace``, and
    return.

    Requests that are still open after nine tenths of ``grace`` are cancelled; the remaining time is for their cleanup.
    The application's lifespan is not run, so the caller opens everything that the application needs.
    """
    clock = SystemClock()
    state: ApiState | None = getattr(getattr(api, "state", None), "batuta", None)
    config = uvicorn.Config(
        api,
        http=_protocol(state),
        ws="none",
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(Shutdown.begin(clock, grace).length(Phase.FINISH).total_seconds())),
    )
    if state is not None:
        state.is_served = True
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if state is not None:
            state.draining.set()
        shutdown = Shutdown.begin(clock, grace)
        server.stopping.set()
        await serving
        if cancelled := server.server_state.tasks:
            await asyncio.wait(cancelled, timeout=shutdown.time_left().total_seconds())
    finally:
        stopping.cancel()
