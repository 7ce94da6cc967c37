"""``/api/v1/handoffs``: hand-offs to the people who posted vacancies in groups."""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict

from app.contexts.handoffs.model import HandoffDesconhecido, HandoffEncerrado, HandoffNaoAbre, Status
from app.contexts.handoffs.relato import (
    aberto_em_palavras,
    decidido_em_palavras,
    handoff_em_palavras,
    vista_do_handoff_em_palavras,
)
from app.contexts.handoffs.service import Handoffs
from app.web.personal import personal
from app.web.refusals import as_problems, caller_of
from app.web.routes.conversas import Motivo
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, needs

ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such hand-off"},
    409: {"description": "the hand-off has ended with another decision, or cannot be opened"},
}
PERSONAL = ("telefone", "motivo")
REFUSALS = {
    HandoffDesconhecido: (404, "handoff_unknown"),
    HandoffEncerrado: (409, "handoff_refused"),
    HandoffNaoAbre: (409, "handoff_refused"),
}


class NovoHandoff(BaseModel):
    model_config = ConfigDict(extra="forbid")
    vaga: UUID
    medico: UUID
    motivo: Motivo


class Decisao(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: Motivo


def router(handoffs: Handoffs, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/handoffs", tags=["handoffs"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_handoffs")
    async def everything(
        request: Request,
        status: Status | None = None,
        todos: Annotated[bool, Query(description="include ended hand-offs")] = False,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List hand-offs, most recent first."""
        rows = await handoffs.listar(status=status, todos=todos, limite=limite, pular=pular)
        shown = [handoff_em_palavras(row, zone) for row in rows]
        return {"handoffs": await personal(request, shown, *PERSONAL, count=len(rows))}

    @routes.get("/{id}", operation_id="show_handoff", responses={404: ANSWERS[404]})
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one hand-off with its history."""
        with as_problems(request, REFUSALS):
            document = vista_do_handoff_em_palavras(await handoffs.ver(str(id)), zone)
        return await personal(request, document, *PERSONAL)

    @routes.post(
        "", status_code=201, operation_id="open_handoff", responses={409: ANSWERS[409]}, openapi_extra=needs(Scope.SEND)
    )
    async def begin(request: Request, novo: NovoHandoff) -> dict[str, Any]:
        """Ask the person who posted a vacancy to confirm it for a doctor. Until that person decides, the vacancy is not
        offered.
        """
        with as_problems(request, REFUSALS):
            opened = await handoffs.abrir(str(novo.vaga), str(novo.medico), por=caller_of(request), motivo=novo.motivo)
            return aberto_em_palavras(opened, zone)

    @routes.post("/{id}/confirmar", operation_id="confirm_handoff", responses=ANSWERS)
    async def confirm(request: Request, id: UUID, porque: Decisao) -> dict[str, Any]:
        """Record that the person who posted the vacancy confirmed the doctor. The vacancy is reserved, and the doctor
        is informed. Idempotent.
        """
        with as_problems(request, REFUSALS):
            done = await handoffs.confirmar(str(id), por=caller_of(request), motivo=porque.motivo)
            return decidido_em_palavras(done)

    @routes.post("/{id}/recusar", operation_id="refuse_handoff", responses=ANSWERS)
    async def refuse(request: Request, id: UUID, porque: Decisao) -> dict[str, Any]:
        """Record that the person who posted the vacancy did not confirm the doctor. The vacancy is offered again.
        Idempotent.
        """
        with as_problems(request, REFUSALS):
            done = await handoffs.recusar(str(id), por=caller_of(request), motivo=porque.motivo)
            return decidido_em_palavras(done)

    return routes
