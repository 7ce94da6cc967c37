"""``create_api`` puts an HTTP application together. Deny by default: every route passes ``authorise``."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import APIRouter, Depends, FastAPI
from prometheus_client import CollectorRegistry

from batuta import __version__
from batuta.config import EngineSettings
from batuta.engine import Batuta
from batuta.metrics import MetricsSubscriber
from batuta.texts import LANGUAGES, Texts
from batuta.web import health, job_health, jobs, metrics, panel, problems, reference
from batuta.web.access import authorise
from batuta.web.context import ApiState
from batuta.web.middleware import Accounted, BodyLimit


def create_api(
    work: Batuta,
    settings: EngineSettings,
    *,
    service: str = "batuta-api",
    routers: Sequence[APIRouter] = (),
    larger_bodies: Mapping[str, int] | None = None,
) -> FastAPI:
    """``larger_bodies``: paths that may be sent more than the usual limit, with theirs in bytes."""
    registry = CollectorRegistry()
    folders: Sequence[Path] = work.extension.texts
    texts = {language: Texts(language, folders) for language in LANGUAGES}
    state = ApiState(work, settings, texts, registry, service)
    work.events.subscribe(MetricsSubscriber(registry))

    @asynccontextmanager
    async def open_while_serving(api: FastAPI) -> AsyncIterator[None]:
        async with work:
            await work.reports.expect(now=work.clock.now())
            yield

    api = FastAPI(
        title=service,
        version=__version__,
        lifespan=open_while_serving,
        dependencies=[Depends(authorise)],
        docs_url=None,  # FastAPI's pages come from somebody else's server; ours is in ``reference``
        redoc_url=None,
        openapi_url=None,
    )
    api.state.batuta = state
    problems.install(api)
    own = (health.router, job_health.router, jobs.router, metrics.router, reference.router, panel.router)
    for router in (*own, *routers, panel.home):
        api.include_router(router)
    exceptions = dict(larger_bodies or {})
    api.add_middleware(BodyLimit, limit=lambda path: exceptions.get(path, settings.batuta_max_body_bytes))
    api.add_middleware(Accounted, clock=work.clock, ids=work.ids, events=work.events)
    return api
