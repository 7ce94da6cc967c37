"""``create_api`` puts an HTTP application together. Deny by default: every route passes ``authorise``."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry

from batuta import __version__
from batuta.config import EngineSettings
from batuta.engine.batuta import Batuta
from batuta.metrics import MetricReading, Readings
from batuta.supervise.running import Running
from batuta.texts import LANGUAGES, Texts
from batuta.web import panel, problems
from batuta.web.auth import OPEN, authorise, make_sessions
from batuta.web.context import ApiState
from batuta.web.middleware import Accounted, BodyLimit
from batuta.web.routes import circuits, health, incidents, job_health, jobs, metrics, openapi

# For the loops beside a server that somebody else runs.
LOOPS_GRACE = timedelta(seconds=5)


def create_api(
    work: Batuta,
    settings: EngineSettings,
    *,
    service: str = "batuta-api",
    routers: Sequence[APIRouter] = (),
    larger_bodies: Mapping[str, int] | None = None,
    own_proof: Collection[str] = (),
    readings: Mapping[str, MetricReading] | None = None,
) -> FastAPI:
    """``larger_bodies``: paths that may be sent more than the usual limit, with theirs in bytes.

    ``own_proof``: routes that no token opens, because they ask their caller for another proof. They must.
    ``readings``: what the application itself is asked for when somebody looks at ``/metrics``.
    """
    registry = metrics.observe_process(work, "api")
    looks = metrics.readings_of(work, registry, readings or {})
    state = _state(work, settings, registry, looks, service, OPEN | frozenset(own_proof))
    own = (health, job_health, incidents, circuits, jobs, metrics, openapi, panel)
    every = (*(each.router for each in own), *routers, health.pages, panel.home)
    return _assemble(state, every, dict(larger_bodies or {}))


def create_side_api(
    work: Batuta, settings: EngineSettings, role: str, loops: Callable[[], Iterable[Running]]
) -> FastAPI:
    """What a process without an API of its own shows of itself, under the same rules: that it lives, and its metrics."""
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
    return ApiState(work, settings, texts, registry, readings, service, make_sessions(settings), open_routes)


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
        docs_url=None,  # FastAPI's pages come from somebody else's server; ours is in ``reference``
        redoc_url=None,
        openapi_url=None,
    )
    api.state.batuta = state
    problems.install(api)
    for router in routers:
        api.include_router(router)
    openapi.describe(api, state.open_routes)
    api.add_middleware(
        BodyLimit, limit=lambda path: larger_bodies.get(path, settings.batuta_max_body_bytes), clock=work.clock
    )
    api.add_middleware(Accounted, clock=work.clock, ids=work.ids, events=work.events)
    return api
