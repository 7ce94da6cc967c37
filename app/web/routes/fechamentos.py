"""``/grupos/fechamentos``: notices that a vacancy is taken. An operator decides to which vacancy a notice refers."""

from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from app.contexts.grupos.relato import aviso_em_palavras
from app.contexts.vagas.fechamentos import Fechado, FechamentoDecidido, FechamentoInexistente, Fechamentos, VagaDeOutro
from app.web.refusals import as_problems, caller_of
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, disclose, needs

ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such notice"},
    409: {"description": "already decided"},
}


class Quais(BaseModel):
    model_config = ConfigDict(extra="forbid")
    vagas: Annotated[
        list[UUID],
        Field(min_length=1, max_length=20, description="vacancies to close, out of those that the notice may mean"),
    ]


REFUSALS = {
    FechamentoInexistente: (404, "fechamento_unknown"),
    FechamentoDecidido: (409, "fechamento_decided"),
    VagaDeOutro: (422, "fechamento_other"),
}


def router(fechamentos: Fechamentos, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/grupos/fechamentos", tags=["grupos"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_fechamentos", openapi_extra=needs(Scope.PII))
    async def waiting(
        request: Request,
        status: Literal["aguardando_revisao", "fechada", "mantida"] = "aguardando_revisao",
        limite: Annotated[int, Query(ge=1, le=200)] = 50,
        pular: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> dict[str, Any]:
        """List closing notices (messages that say that a vacancy is taken), oldest first, each with its text and the
        vacancies to which it may refer.
        """
        found = await fechamentos.pendentes(limite=limite, pular=pular, status=status)
        await disclose(request, len(found))
        return {"avisos": [aviso_em_palavras(row, vagas, zone) for row, vagas in found]}

    @routes.post("/{id}/fechar", operation_id="close_fechamento", responses=ANSWERS)
    async def close(request: Request, id: UUID, quais: Quais) -> dict[str, Any]:
        """Close the given vacancies, because the group message (closing notice) says that they are taken."""
        return await _resolve(fechamentos, request, id, [str(each) for each in quais.vagas])

    @routes.post("/{id}/manter", operation_id="keep_fechamento", responses=ANSWERS)
    async def keep(request: Request, id: UUID) -> dict[str, Any]:
        """Record an operator's decision that a closing notice closes no vacancy."""
        return await _resolve(fechamentos, request, id, [])

    return routes


async def _resolve(fechamentos: Fechamentos, request: Request, id: UUID, vagas: list[str]) -> dict[str, Any]:
    with as_problems(request, REFUSALS):
        return resolvido(await fechamentos.resolver(str(id), vagas, por=caller_of(request)))


def resolvido(done: Fechado) -> dict[str, Any]:
    return {"id": done.id, "status": done.status, "vagas": list(done.vagas)}
