"""``/grupos/autores``: block authors who post no offers, and unblock them."""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request

from app.contexts.grupos.autores import Autores, AutorInexistente, SemAutor
from app.contexts.grupos.relato import autor_bloqueado, autor_em_palavras
from app.contexts.vagas.revisao import VagaInexistente
from app.web.refusals import as_problems, caller_of
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, disclose, needs

REFUSALS = {
    VagaInexistente: (404, "vaga_unknown"),
    SemAutor: (409, "autor_hidden"),
    AutorInexistente: (404, "autor_unknown"),
}


def router(autores: Autores, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/grupos", tags=["grupos"], route_class=AuthoriseFirst)

    @routes.get("/autores", operation_id="list_autores", openapi_extra=needs(Scope.PII))
    async def list_blocked(
        request: Request,
        limite: Annotated[int, Query(ge=1, le=200)] = 50,
        pular: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> dict[str, Any]:
        """List blocked authors, latest block first."""
        rows = await autores.bloqueados(limite=limite, pular=pular)
        await disclose(request, len(rows))
        return {"autores": [autor_bloqueado(row, zone) for row in rows]}

    @routes.post(
        "/revisao/{id}/bloquear-autor",
        operation_id="block_autor",
        responses={
            404: {"description": "no such vacancy"},
            409: {"description": "the author of the vacancy is unknown"},
        },
    )
    async def block(request: Request, id: UUID) -> dict[str, Any]:
        """Block the author of a vacancy, and reject all of the author's vacancies that are in review. Idempotent."""
        with as_problems(request, REFUSALS):
            return autor_em_palavras(await autores.bloquear(str(id), por=caller_of(request)))

    @routes.post("/autores/{id}/liberar", operation_id="lift_autor", responses={404: {"description": "no such author"}})
    async def lift(request: Request, id: UUID) -> dict[str, Any]:
        """Unblock an author. Idempotent."""
        with as_problems(request, REFUSALS):
            return autor_em_palavras(await autores.liberar(str(id), por=caller_of(request)))

    return routes
