"""``/grupos/revisao``: vacancies from groups that are awaiting an operator's decision, with their source text."""

from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from app.contexts.grupos.relato import vaga_em_palavras
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import RECUSAS, WHATSAPP, Correcao
from app.contexts.vagas.retificacoes import MudancaSemVaga
from app.contexts.vagas.revisao import (
    Decidida,
    HospitalBloqueado,
    Revisao,
    VagaDecidida,
    VagaIncompleta,
    VagaInexistente,
    VagaPassada,
)
from app.web.refusals import as_problems, caller_of
from batuta.extension import Scope
from batuta.web import WRITABLE, AuthoriseFirst, disclose, needs

NAME = r"^[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
HOUR = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
Word = Annotated[str, Field(max_length=200, pattern=NAME)]
Hour = Annotated[str, Field(pattern=HOUR, description="as in 19:00")]
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such vacancy"},
    409: {"description": "already decided"},
}


class Aprovacao(BaseModel):
    """Corrections to the fields of a vacancy. An absent field keeps the value that was read."""

    model_config = ConfigDict(extra="forbid")
    hospital: Word | None = None
    cidade: Word | None = None
    uf: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None
    especialidade: Word | None = None
    data: date | None = None
    periodo: Periodo | None = None
    hora_inicio: Hour | None = None
    hora_fim: Hour | None = None
    valor: Annotated[float, Field(ge=100, le=50_000, strict=True)] | None = None
    contato_nome: Word | None = None
    contato_whatsapp: Annotated[str, Field(pattern=WHATSAPP, description="55, area code, number")] | None = None
    notas: str | None = Field(default=None, max_length=500, pattern=WRITABLE)


class Rejeicao(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: Annotated[str, Field(max_length=300, pattern=NAME)]


REFUSALS = {
    VagaInexistente: (404, "vaga_unknown"),
    VagaDecidida: (409, "vaga_decided"),
    HospitalBloqueado: (409, "vaga_refused"),
    MudancaSemVaga: (409, "vaga_refused"),
    **dict.fromkeys((VagaIncompleta, VagaPassada, *RECUSAS), (422, "vaga_refused")),
}


def router(revisao: Revisao, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/grupos/revisao", tags=["grupos"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_revisao", openapi_extra=needs(Scope.PII))
    async def waiting(
        request: Request,
        status: Literal[
            "aguardando_revisao", "importada", "rejeitada", "descartada", "duplicada"
        ] = "aguardando_revisao",
        limite: Annotated[int, Query(ge=1, le=200)] = 50,
        pular: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    ) -> dict[str, Any]:
        """List the vacancies in review, oldest first, each with its source text and the position of each field in that
        text.
        """
        rows = await revisao.pendentes(limite=limite, pular=pular, status=status)
        await disclose(request, len(rows))
        return {"aguardando": await revisao.quantas(), "vagas": [vaga_em_palavras(row, zone) for row in rows]}

    @routes.get("/{id}", operation_id="show_revisao", responses={404: ANSWERS[404]}, openapi_extra=needs(Scope.PII))
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one vacancy with every message about it."""
        with as_problems(request, REFUSALS):
            row, sources = await revisao.ver(str(id))
        await disclose(request, 1)
        return vaga_em_palavras(row, zone, sources)

    @routes.post("/{id}/aprovar", operation_id="approve_revisao", responses=ANSWERS)
    async def approve(request: Request, id: UUID, como: Aprovacao | None = None) -> dict[str, Any]:
        """Approve a vacancy, with corrections if any. If the hospital is corrected, the hospital name in the message
        becomes an alias of the chosen hospital.
        """
        said = {} if como is None else como.model_dump(exclude={"notas"})
        with as_problems(request, REFUSALS):
            done = await revisao.aprovar(
                str(id), Correcao(**said), por=caller_of(request), notas=None if como is None else como.notas
            )
        return _decision_document(done)

    @routes.post("/{id}/rejeitar", operation_id="reject_revisao", responses=ANSWERS)
    async def reject(request: Request, id: UUID, porque: Rejeicao) -> dict[str, Any]:
        """Reject a vacancy that is in review. The reason is recorded."""
        with as_problems(request, REFUSALS):
            return _decision_document(await revisao.rejeitar(str(id), porque.motivo, por=caller_of(request)))

    return routes


def _decision_document(done: Decidida) -> dict[str, Any]:
    return {"id": done.id, "status": done.status, "vaga_id": done.vaga_id, "aprendido": done.aprendido}
