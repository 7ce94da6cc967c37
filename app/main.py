"""``app`` for uvicorn and ``work`` for the ``batuta`` command. Both are made when somebody asks for them, not at import."""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI

from app.composition.appointments import appointments_of, health_of
from app.composition.groups import authors, closings, heard, review, teaching, vacancies
from app.composition.julia import build, campaigns, hours, limits
from app.contexts.agendamentos.planilha.arquivo import MOST_BYTES
from app.contexts.webhooks.inbox import WEBHOOK_INBOX, Inbox
from app.settings import Settings
from app.web.metrics import readings
from app.web.routes import appointments, autores, campanhas, fechamentos, grupos, grupos_vistos, nomes, webhooks
from app.web.routes.health import health_router
from batuta import __version__
from batuta.config import environment, load
from batuta.engine.batuta import Batuta
from batuta.kernel.errors import ConfigError
from batuta.kernel.events import ProcessStarted
from batuta.logs import begin_logging
from batuta.web import create_api

if TYPE_CHECKING:
    app: FastAPI
    work: Batuta


def create_app(settings: Settings, work: Batuta | None = None) -> FastAPI:
    work = work or build(settings)
    agendamentos, importacao = appointments_of(work, settings)
    return create_api(
        work,
        settings,
        service="julia-api",
        routers=[
            health_router(limits(settings), hours(settings)),
            campanhas.router(campaigns(work, settings), work.zone),
            grupos.router(review(work, settings), work.zone),
            fechamentos.router(closings(work), work.zone),
            autores.router(authors(work), work.zone),
            nomes.router(teaching(work)),
            grupos_vistos.router(heard(work), vacancies(work), work.zone),
            appointments.router(work, agendamentos, importacao),
            webhooks.router(Inbox(work.queues[WEBHOOK_INBOX.name]), settings),
        ],
        larger_bodies={appointments.IMPORT: MOST_BYTES + 64 * 1024},
        own_proof=[webhooks.EVOLUTION],
        readings=readings(health_of(work, settings).documento),
    )


def __getattr__(name: str) -> object:
    if name == "app":
        return _app()
    if name == "work":
        return _work()
    raise AttributeError(name)


@cache
def _work() -> Batuta:
    return build(load(Settings, environment(), Path(".env")))


@cache
def _app() -> FastAPI:
    """For whoever starts uvicorn by hand: the process speaks as it does under ``batuta api``."""
    try:
        settings = load(Settings, environment(), Path(".env"))
        work = build(settings)
    except ConfigError as error:
        raise SystemExit(f"julia: {error}") from None
    begin_logging(work.events, settings, service="api", stream=sys.stdout, zone=work.zone)
    work.events.emit(ProcessStarted("api", __version__, work.clock.now().astimezone(work.zone)))
    return create_app(settings, work)
