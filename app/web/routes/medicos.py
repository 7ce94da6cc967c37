"""``/api/v1/medicos``: register doctors, and show and correct their states."""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from app.contexts.estado_medico.model import (
    CicloDeVida,
    CorrecaoDoMedico,
    CorrecaoVazia,
    DataPassada,
    EstadoDesconhecido,
    MedicoPediuParaParar,
    Permissao,
)
from app.contexts.estado_medico.relato import estado_em_palavras
from app.contexts.estado_medico.service import Estados, Filtro
from app.contexts.medicos.cadastro import Cadastro, NovoMedico
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import Word
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta.web import AuthoriseFirst

PREFIX = "/api/v1/medicos"
MOST_NEW = 500
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such doctor"},
    409: {"description": "the doctor opted out, the correction is empty, or an instant is in the past"},
}
REFUSALS = {
    EstadoDesconhecido: (404, "doctor_unknown"),
    MedicoPediuParaParar: (409, "doctor_refused"),
    CorrecaoVazia: (409, "doctor_refused"),
    DataPassada: (409, "doctor_refused"),
}


class Medico(BaseModel):
    model_config = ConfigDict(extra="forbid")
    telefone: Annotated[str, Field(pattern=r"^[1-9][0-9]{9,14}$", description="digits with the country code")]
    primeiro_nome: Word | None = None
    sobrenome: Word | None = None
    crm: Word | None = None
    especialidade: Word | None = None
    cidade: Word | None = None
    estado: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None


class Medicos(BaseModel):
    model_config = ConfigDict(extra="forbid")
    medicos: Annotated[list[Medico], Field(min_length=1, max_length=MOST_NEW)]


class CorrecaoPedida(BaseModel):
    """A correction to a doctor's state. An absent field stays unchanged. A null ends the rest (a period without
    messages from Julia) or cancels the agreed next contact.
    """

    model_config = ConfigDict(extra="forbid")
    motivo: Word
    temperatura: Annotated[float, Field(ge=0, le=1, strict=True)] = 0
    ciclo: CicloDeVida = CicloDeVida.NOVO
    descanso_ate: AwareDatetime | None = None
    proximo_contato: AwareDatetime | None = None

    def read_given(self) -> CorrecaoDoMedico:
        """Return the fields of a doctor's state that the caller wants to correct."""
        written, given = self.model_fields_set, CorrecaoDoMedico()
        if "temperatura" in written:
            given["temperatura"] = self.temperatura
        if "ciclo" in written:
            given["ciclo"] = self.ciclo
        if "descanso_ate" in written:
            given["descanso_ate"] = self.descanso_ate
        if "proximo_contato" in written:
            given["proximo_contato"] = self.proximo_contato
        return given


def router(cadastro: Cadastro, estados: Estados, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["medicos"], route_class=AuthoriseFirst)

    @routes.post("", status_code=201, operation_id="add_doctors")
    async def add(request: Request, novos: Medicos) -> dict[str, Any]:
        """Register doctors. If a number is already registered, its record stays unchanged."""
        medicos = [NovoMedico(**each.model_dump()) for each in novos.medicos]
        incluidos = await cadastro.incluir(medicos, por=caller_of(request))
        return {"novos": list(incluidos.novos), "repetidos": incluidos.repetidos}

    @routes.get("", operation_id="list_doctor_states")
    async def everything(
        permissao: Permissao | None = None, ciclo: CicloDeVida | None = None, limite: Limit = 50, pular: Skip = 0
    ) -> dict[str, Any]:
        """List doctors' states, most recently changed first."""
        rows = await estados.listar(Filtro(permissao=permissao, ciclo=ciclo), limite=limite, pular=pular)
        return {"medicos": [estado_em_palavras(row, zone) for row in rows]}

    @routes.get("/{id}/estado", operation_id="show_doctor_state", responses={404: ANSWERS[404]})
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show a doctor's state, with the number of messages that Julia initiated in the last seven days."""
        with as_problems(request, REFUSALS):
            return estado_em_palavras(await estados.ver(str(id)), zone)

    @routes.post("/{id}/estado", operation_id="correct_doctor_state", responses=ANSWERS)
    async def correct(request: Request, id: UUID, correcao: CorrecaoPedida) -> dict[str, Any]:
        """Correct a doctor's state. The caller and the reason are recorded."""
        por = caller_of(request)
        with as_problems(request, REFUSALS):
            row = await estados.corrigir(str(id), correcao.read_given(), por=por, motivo=correcao.motivo)
            return estado_em_palavras(row, zone)

    return routes
