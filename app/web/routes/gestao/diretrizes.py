"""``/api/v1/diretrizes``: the active directives and their versions."""

from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Request

from app.contexts.diretrizes.relato import diretriz_em_palavras
from app.contexts.diretrizes.service import DiretrizDesconhecida, Diretrizes
from app.web.refusals import as_problems
from batuta import BatutaError
from batuta.web import AuthoriseFirst

PREFIX = "/api/v1/diretrizes"
REFUSALS: dict[type[BatutaError], tuple[int, str]] = {DiretrizDesconhecida: (404, "directive_unknown")}
Tipo = Annotated[str, Path(pattern=r"^[a-z_]{1,60}$")]


def router(diretrizes: Diretrizes, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["diretrizes"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_diretrizes")
    async def everything() -> dict[str, Any]:
        """List the active directives, most important first."""
        return {"diretrizes": [diretriz_em_palavras(row, zone) for row in await diretrizes.ativas()]}

    @routes.get("/{tipo}", operation_id="show_diretriz", responses={404: {"description": "no such directive"}})
    async def show(request: Request, tipo: Tipo) -> dict[str, Any]:
        """Show the last 50 versions of one directive, newest first."""
        with as_problems(request, REFUSALS):
            return {"versoes": [diretriz_em_palavras(row, zone) for row in await diretrizes.versoes(tipo)]}

    return routes
