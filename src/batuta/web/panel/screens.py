"""The routes for the screens that an application adds to the dashboard."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from batuta.engine.screens import Screen
from batuta.web.auth import needs
from batuta.web.panel.actions.perform import Handler
from batuta.web.panel.frame import show, visit_of, words_of


def add_routes(router: APIRouter, screens: Sequence[Screen]) -> None:
    for screen in screens:
        router.add_api_route(screen.path, _showing(screen), methods=["GET"], openapi_extra=needs(screen.scope))


def _showing(screen: Screen) -> Handler:
    async def show_screen(request: Request) -> HTMLResponse:
        visit = visit_of(request)
        values = await screen.read(visit)
        title = visit.texts(screen.title)
        own = {"visit": visit, "title": title}
        return show(request, screen.template, words_of(request), {**own, **values}, live=screen.is_live)

    return show_screen
