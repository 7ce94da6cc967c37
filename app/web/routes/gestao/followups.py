"""``/api/v1/followups``: conversations that are waiting for a follow-up, and the pauses of follow-ups."""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, Field

from app.contexts.conversas.atendimento import ConversaDesconhecida, ConversaEncerrada, EstagioDaConversa
from app.contexts.followups.model import PausaNoPassado
from app.contexts.followups.relato import followup_em_palavras, followups_mudados_em_palavras
from app.contexts.followups.service import Followups
from app.web.refusals import as_problems, caller_of
from app.web.routes.conversas import Porque
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta.web import AuthoriseFirst

ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such conversation"},
    409: {"description": "the conversation has ended, or the end of the pause has passed"},
}
REFUSALS = {
    ConversaDesconhecida: (404, "conversa_unknown"),
    **dict.fromkeys((ConversaEncerrada, PausaNoPassado), (409, "conversa_state")),
}


class Pausa(Porque):
    ate: AwareDatetime = Field(description="end of the pause")


def router(followups: Followups, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/followups", tags=["followups"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_followups")
    async def everything(
        estagio: EstagioDaConversa | None = None,
        devidos: Annotated[bool, Query(description="only those that the next run of the job queues")] = False,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List conversations that have not been answered, by stage and then by age. Each conversation has the reason
        that prevents a follow-up, or null.
        """
        rows = await followups.listar(estagio=estagio, devidos=devidos, limite=limite, pular=pular)
        return {"followups": [followup_em_palavras(row, zone) for row in rows]}

    @routes.post("/{id}/pausar", operation_id="pause_followups", responses=ANSWERS)
    async def pause(request: Request, id: UUID, pausa: Pausa) -> dict[str, Any]:
        """Pause the follow-ups of a conversation. A queued follow-up is cancelled before it is sent."""
        with as_problems(request, REFUSALS):
            done = await followups.pausar(str(id), pausa.ate, por=caller_of(request), motivo=pausa.motivo)
            return followups_mudados_em_palavras(done, zone)

    @routes.post("/{id}/retomar", operation_id="resume_followups", responses=ANSWERS)
    async def resume(request: Request, id: UUID, porque: Porque) -> dict[str, Any]:
        """End the pause of a conversation's follow-ups, and reset the count of failed follow-ups."""
        with as_problems(request, REFUSALS):
            done = await followups.retomar(str(id), por=caller_of(request), motivo=porque.motivo)
            return followups_mudados_em_palavras(done, zone)

    return routes
