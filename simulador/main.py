"""The simulator: one small ASGI application that replaces every external service.

Its state is in memory, so that each restart begins empty and no test finds data of another test. Therefore the
simulator must run as one process. ``GET /`` lists the simulated services, ``GET /recebidos`` lists the calls that each
received, and ``DELETE /recebidos`` deletes them. ``/controle/evolution`` sets the faults of the WhatsApp gateway (see
``controle``) and lists the messages that were really sent. A separate process simulates Telegram
(``simulador.telegram.api``). The simulator has no authentication, so bind it to loopback.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from batuta.events import Fanout
from batuta.kernel import Clock, Json
from batuta.loops import LoopPolicy, Supervisor
from simulador.chatwoot import Chatwoot
from simulador.comportamento import Comportamento
from simulador.deadman import Deadman
from simulador.evolution.gateway import Evolution
from simulador.google_docs import GoogleDocs
from simulador.openai import OpenAI
from simulador.recebidos import Recebidos
from simulador.slack import Slack


class StandIn(Protocol):
    name: str
    path: str
    line: str
    recebidos: Recebidos

    def mount(self) -> Mount: ...
    def forget(self) -> None: ...


def create_app(
    clock: Clock,
    *,
    seed: int = 0,
    at_rest: Comportamento | None = None,
    webhook: Mapping[str, Json] | None = None,
    instances: Sequence[str] = (),
) -> Starlette:
    """Build the application that simulates the external services.

    ``at_rest`` is the default behaviour of the simulated WhatsApp gateway. ``webhook`` is set on the gateway's
    instances from the start. ``instances`` contains the names of the connected instances that exist in addition to the
    default one. The caller must run ``app.state.loops`` together with the application, because these loops deliver
    acknowledgements and replies.
    """
    evolution = Evolution(clock, seed=seed, at_rest=at_rest, webhook=webhook, instances=instances)
    slack = Slack(clock)
    stand_ins: tuple[StandIn, ...] = (
        evolution,
        slack,
        Deadman(clock),
        OpenAI(clock),
        Chatwoot(clock),
        GoogleDocs(clock),
    )

    app = application(stand_ins, evolution.controle.mount())
    app.state.evolution = evolution
    app.state.slack = slack
    app.state.loops = (evolution.carteiro, evolution.falatorio)
    return app


def application(stand_ins: Sequence[StandIn], *more: BaseRoute) -> Starlette:
    """Return an application with the given simulated services, the pages that list the services, and the additional
    routes ``more``.
    """

    async def index(request: Request) -> Response:
        return JSONResponse([{"name": each.name, "path": each.path, "line": each.line} for each in stand_ins])

    async def recebidos(request: Request) -> Response:
        return JSONResponse({each.name: each.recebidos.all() for each in stand_ins})

    async def forget(request: Request) -> Response:
        for each in stand_ins:
            each.forget()
        return Response(status_code=204)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    routes = [
        Route("/", index),
        Route("/health", health),
        Route("/recebidos", recebidos),
        Route("/recebidos", forget, methods=["DELETE"]),
        *more,
        *(each.mount() for each in stand_ins),
    ]
    return Starlette(routes=routes, exception_handlers={HTTPException: _refusal, 500: _breakdown})


def keeper(app: Starlette, clock: Clock) -> Supervisor:
    """Return a supervisor that runs the application's loops."""
    supervisor = Supervisor(clock, Fanout())
    for loop in app.state.loops:
        supervisor.add(
            loop, LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=2), max_failures=1000)
        )
    return supervisor


async def _refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _problem(error.status_code, error.detail, "GET / lists the simulated services")


async def _breakdown(request: Request, error: Exception) -> Response:
    return _problem(500, "The simulator failed", "this is a defect of the simulator; its log shows where")


def _problem(status: int, title: str, detail: str) -> Response:
    content = {"status": status, "title": title, "detail": detail}
    return JSONResponse(content, status, media_type="application/problem+json")
