"""``/api/v1/vagas``: vacancies, from their creation to the confirmation of the shift."""

from collections.abc import Awaitable, Callable
from datetime import date
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from app.composition.plantoes import Shifts
from app.contexts.leitura_grupos.api import Periodo
from app.contexts.nomes.correcoes import EspecialidadeDesconhecida, NaoENome
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.model import (
    MAIOR_VALOR,
    MENOR_VALOR,
    MOST_OFFERS,
    CampoDaVagaRecusado,
    HospitalDesconhecido,
    HospitalDeVarios,
    HospitalSemOfertas,
    MedicoDesconhecido,
    MotivoDaCancelada,
    NovaVaga,
    PlantaoComecou,
    Resposta,
    VagaDesconhecida,
    VagaNaoPode,
    VagaOcupada,
    VagaRepetida,
    exigir,
)
from app.contexts.plantoes.relato import (
    anuncio_em_palavras,
    candidato_em_palavras,
    resposta_em_palavras,
    vaga_em_palavras,
    vista_em_palavras,
)
from app.contexts.plantoes.service import Filtro
from app.contexts.vagas.api import StatusDaVaga
from app.web.personal import personal
from app.web.refusals import as_problems, caller_of
from app.web.routes.agendamentos import require_number
from app.web.routes.grupos import Hour, Word
from app.web.routes.listas_de_grupos import Day, Limit, Skip
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, needs

PREFIX = "/api/v1/vagas"
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such vacancy, doctor, hospital or speciality"},
    409: {"description": "the vacancy is taken by another doctor, or its state does not permit the action"},
}
# These errors are not 422, because a schema cannot express which names exist or which days are allowed.
REFUSALS = {
    VagaDesconhecida: (404, "vacancy_unknown"),
    MedicoDesconhecido: (404, "doctor_unknown"),
    HospitalDesconhecido: (404, "vacancy_refused"),
    EspecialidadeDesconhecida: (404, "vacancy_refused"),
    VagaOcupada: (409, "vacancy_taken"),
    VagaNaoPode: (409, "vacancy_state"),
    **dict.fromkeys(
        (VagaRepetida, HospitalDeVarios, HospitalSemOfertas, CampoDaVagaRecusado, NaoENome, PlantaoComecou),
        (409, "vacancy_refused"),
    ),
}


# Accepts 39.0, because JSON has one kind of number. This validator must come last in an annotation; otherwise the API
# document loses the limits.
A_NUMBER = BeforeValidator(require_number)


class Nova(BaseModel):
    """A new vacancy. Hours or a period are required. If ``valor`` is absent, the price is to be agreed."""

    model_config = ConfigDict(extra="forbid")
    hospital: Word
    cidade: Word | None = None
    uf: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None
    especialidade: Word
    data: date
    periodo: Periodo | None = None
    hora_inicio: Hour | None = None
    hora_fim: Hour | None = None
    valor: Annotated[int, Field(ge=MENOR_VALOR, le=MAIOR_VALOR), A_NUMBER] | None = None
    novo_hospital: StrictBool = Field(default=False, description="create the hospital if its name is unknown")
    outra: StrictBool = Field(default=False, description="create the vacancy even if an equal one is open")


class DeMedico(BaseModel):
    model_config = ConfigDict(extra="forbid")
    medico: UUID


class AosMedicos(BaseModel):
    model_config = ConfigDict(extra="forbid")
    medicos: Annotated[list[UUID], Field(min_length=1, max_length=MOST_OFFERS)]


class AosMelhores(BaseModel):
    model_config = ConfigDict(extra="forbid")
    melhores: Annotated[int, Field(ge=1, le=MOST_OFFERS, description="number of best candidates"), A_NUMBER]


class Liberacao(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: Word


class Cancelamento(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: MotivoDaCancelada


def router(shifts: Shifts, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["vagas"], route_class=AuthoriseFirst)
    _add_reading(routes, shifts, zone)
    _add_changes(routes, shifts)

    @routes.post("", status_code=201, operation_id="create_vaga", responses=ANSWERS)
    async def create(request: Request, nova: Nova) -> dict[str, Any]:
        """Create an open vacancy. Hospital and speciality are given by name."""
        with as_problems(request, REFUSALS):
            id = await shifts.plantoes.criar(NovaVaga(**nova.model_dump()), por=caller_of(request))
            return vista_em_palavras(await shifts.plantoes.ver(id), zone)

    @routes.post("/{id}/anunciar", operation_id="announce_vaga", responses=ANSWERS, openapi_extra=needs(Scope.SEND))
    async def announce(request: Request, id: UUID, a_quem: AosMedicos | AosMelhores) -> dict[str, Any]:
        """Offer the vacancy to the given doctors, or to the best candidates. Each doctor gets at most one offer for
        each vacancy.

        Returns the doctors who get no offer, each with the reason.
        """
        por = caller_of(request)
        with as_problems(request, REFUSALS):
            match a_quem:
                case AosMedicos(medicos=doctors):
                    answer = await shifts.anuncios.anunciar(str(id), [str(each) for each in doctors], por=por)
                case AosMelhores(melhores=count):
                    answer = await shifts.anuncios.anunciar_aos_melhores(str(id), count, por=por)
            return anuncio_em_palavras(answer) if isinstance(answer, Anuncio) else _words(answer)

    return routes


def _add_reading(routes: APIRouter, shifts: Shifts, zone: ZoneInfo) -> None:
    @routes.get("", operation_id="list_vagas")
    async def everything(
        status: StatusDaVaga | None = None,
        origem: Literal["manual", "grupo_whatsapp"] | None = None,
        medico: Annotated[UUID | None, Query(description="only vacancies of this doctor")] = None,
        de: Annotated[Day | None, Query(description="only from this day on")] = None,
        ate: Annotated[Day | None, Query(description="only up to this day")] = None,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List vacancies, earliest day first."""
        filtro = Filtro(
            status=status,
            origem=origem,
            cliente_id=None if medico is None else str(medico),
            de=de or date.min,
            ate=ate or date.max,
        )
        rows = await shifts.plantoes.listar(filtro, limite=limite, pular=pular)
        return {"vagas": [vaga_em_palavras(row, zone) for row in rows]}

    @routes.get("/{id}", operation_id="show_vaga", responses={404: ANSWERS[404]})
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one vacancy with its history, its offers and the interested doctors."""
        with as_problems(request, REFUSALS):
            document = vista_em_palavras(await shifts.plantoes.ver(str(id)), zone)
        return await personal(request, document, "motivo")

    @routes.get("/{id}/candidatos", operation_id="list_vaga_candidates", responses={404: ANSWERS[404]})
    async def candidates(request: Request, id: UUID, limite: Limit = 20) -> dict[str, Any]:
        """List the doctors who may receive an offer, best first, with their score."""
        with as_problems(request, REFUSALS):
            found = await shifts.candidatos.candidatos(str(id), limite)
        return {"candidatos": [candidato_em_palavras(each) for each in found]}


def _add_changes(routes: APIRouter, shifts: Shifts) -> None:
    plantoes = shifts.plantoes

    @routes.post("/{id}/interesse", operation_id="want_vaga", responses=ANSWERS)
    async def want(request: Request, id: UUID, quem: DeMedico) -> dict[str, Any]:
        """Record that a doctor wants the vacancy. Idempotent."""
        por, doctor = caller_of(request), str(quem.medico)
        return await _change(request, lambda: plantoes.registrar_interesse(str(id), doctor, por=por))

    @routes.post("/{id}/reservar", operation_id="reserve_vaga", responses=ANSWERS)
    async def reserve(request: Request, id: UUID, quem: DeMedico) -> dict[str, Any]:
        """Reserve the vacancy for a doctor. If several requests arrive at the same time, exactly one succeeds. The
        others get 409.
        """
        por, doctor = caller_of(request), str(quem.medico)
        return await _change(request, lambda: plantoes.reservar(str(id), doctor, por=por))

    @routes.post("/{id}/liberar", operation_id="release_vaga", responses=ANSWERS)
    async def release(request: Request, id: UUID, porque: Liberacao) -> dict[str, Any]:
        """Release a reserved vacancy, so that other doctors can take it."""
        por = caller_of(request)
        return await _change(request, lambda: plantoes.liberar(str(id), por=por, motivo=porque.motivo))

    @routes.post("/{id}/realizada", operation_id="complete_vaga", responses=ANSWERS)
    async def complete(request: Request, id: UUID) -> dict[str, Any]:
        """Confirm that the shift took place. Idempotent."""
        por = caller_of(request)
        return await _change(request, lambda: plantoes.realizar(str(id), por=por))

    @routes.post("/{id}/cancelar", operation_id="cancel_vaga", responses=ANSWERS)
    async def cancel(request: Request, id: UUID, porque: Cancelamento) -> dict[str, Any]:
        """Record that the shift did not take place, or withdraw a vacancy that has no doctor. Idempotent."""
        por = caller_of(request)
        return await _change(request, lambda: plantoes.cancelar(str(id), porque.motivo, por=por))


async def _change(request: Request, act: Callable[[], Awaitable[Resposta]]) -> dict[str, Any]:
    with as_problems(request, REFUSALS):
        return _words(await act())


def _words(answer: Resposta) -> dict[str, Any]:
    return resposta_em_palavras(exigir(answer))
