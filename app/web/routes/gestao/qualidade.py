"""``/api/v1/qualidade``: evaluations of conversations, people's corrections of them, and the guidance for the model."""

from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from app.composition.gestao.qualidade import Quality
from app.contexts.qualidade.avaliacoes import BEST, LONGEST_CORRECTION, AvaliacaoDesconhecida, AvaliacaoMudou
from app.contexts.qualidade.notas import LISTAS
from app.contexts.qualidade.relato import avaliacao_em_palavras, orientacao_em_palavras
from app.web.personal import personal
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import NAME
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta import BatutaError
from batuta.web import AuthoriseFirst

PREFIX = "/api/v1/qualidade"
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such evaluation"}}
CHANGED: dict[int | str, dict[str, Any]] = {409: {"description": "another person has just corrected it"}}
REFUSALS: dict[type[BatutaError], tuple[int, str]] = {
    AvaliacaoDesconhecida: (404, "evaluation_unknown"),
    AvaliacaoMudou: (409, "evaluation_changed"),
}
# Personal data, because evaluations and the guidance made from them may quote a conversation.
PERSONAL = (*LISTAS, "correcao", "conteudo")
Nota = Annotated[int, Field(ge=1, le=BEST)]


class Correcao(BaseModel):
    model_config = ConfigDict(extra="forbid")
    nota: Nota
    motivo: Annotated[str, Field(max_length=LONGEST_CORRECTION, pattern=NAME)]


def router(quality: Quality, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["qualidade"], route_class=AuthoriseFirst)
    evaluations = quality.avaliacoes

    @routes.get("", operation_id="list_avaliacoes")
    async def everything(
        request: Request,
        avaliador: Literal["regras", "modelo"] | None = None,
        ate: Annotated[Nota, Query(description="only evaluations with at most this score")] = BEST,
        limite: Limit = 20,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List the evaluations of conversations, newest first."""
        rows = await evaluations.listar(avaliador=avaliador, ate=ate, limite=limite, pular=pular)
        shown = [avaliacao_em_palavras(row, zone) for row in rows]
        return {"avaliacoes": await personal(request, shown, *PERSONAL, count=len(rows))}

    @routes.get("/orientacao", operation_id="show_orientacao")
    async def guidance(request: Request) -> dict[str, Any]:
        """Show the last 50 versions of the guidance for the language model, newest first. The first one is active."""
        shown = [orientacao_em_palavras(row, zone) for row in await quality.orientacoes.versoes()]
        return {"versoes": await personal(request, shown, *PERSONAL, count=len(shown))}

    @routes.get("/{id}", operation_id="show_avaliacao", responses=UNKNOWN)
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one evaluation."""
        with as_problems(request, REFUSALS):
            document = avaliacao_em_palavras(await evaluations.ver(str(id)), zone)
        return await personal(request, document, *PERSONAL)

    @routes.post("/{id}/corrigir", operation_id="correct_avaliacao", responses=UNKNOWN | CHANGED)
    async def correct(request: Request, id: UUID, correcao: Correcao) -> dict[str, Any]:
        """Store the caller's score for an evaluation, with the reason. The next version of the guidance for the
        language model contains both.
        """
        with as_problems(request, REFUSALS):
            por = caller_of(request)
            row = await evaluations.corrigir(str(id), correcao.nota, por=por, motivo=correcao.motivo)
        return await personal(request, avaliacao_em_palavras(row, zone), *PERSONAL)

    return routes
