"""``/campanhas``: create, schedule, pause and cancel campaigns, and show their progress."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Request
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from app.contexts.campanhas.model import (
    MOST_RECIPIENTS,
    CampanhaInexistente,
    CampanhaNaoPode,
    CampanhaRecusada,
    MedicosDesconhecidos,
    SemPublico,
    StatusDaCampanha,
    TipoDeCampanha,
)
from app.contexts.campanhas.publico import MotivoDaExclusao
from app.contexts.campanhas.relato import agendada_em_palavras, campanha_em_palavras, progresso_em_palavras
from app.contexts.campanhas.service import Campanhas, NovaCampanha
from app.web.refusals import as_problems, caller_of
from batuta.extension import Scope
from batuta.web import WRITABLE, AuthoriseFirst, needs, texts_for

Id = Annotated[int, Path(ge=1, le=2**62, description="the campaign's number")]
Limit = Annotated[int, Query(ge=1, le=500)]
ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such campaign"},
    409: {"description": "the state of the campaign does not permit the action"},
}
# At least one visible character, and no control characters.
NAME = r"^[^\s\x00-\x1f\x7f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"
_PLACE = r"\{[ \t\r\n]*(?:nome|especialidade)[ \t\r\n]*\}|\{\{[ \t\r\n]*(?:nome|especialidade)[ \t\r\n]*\}\}"
# The pattern is only documentation for the OpenAPI schema. Other text in braces causes an error that lists the
# placeholders.
BODY = rf"^[ \t\r\n]*(?:[^\s{{}}\x00-\x1f\x7f]|{_PLACE})(?:[^{{}}\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|{_PLACE})*$"


def _text(value: object) -> object:
    """Raise ValueError for a number where an instant is required."""
    if not isinstance(value, str):
        raise ValueError("write the instant as in 2026-03-11T10:00:00-03:00")  # noqa: TRY004 - pydantic asks for it
    return value


def _boolean(value: object) -> object:
    """Raise ValueError for any value other than true and false, such as the number 1."""
    if not isinstance(value, bool):
        raise ValueError("write true or false")  # noqa: TRY004 - pydantic asks for it
    return value


def _reachable(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("the year is out of range") from None


Word = Annotated[str, Field(max_length=200, pattern=NAME)]
Instant = Annotated[AwareDatetime, BeforeValidator(_text), AfterValidator(_reachable)]


class Publico(BaseModel):
    """The audience: named doctors, or all doctors with any of these specialities in any of these regions."""

    model_config = ConfigDict(extra="forbid")
    especialidades: list[Word] = Field(default_factory=list, max_length=200)
    regioes: list[Word] = Field(default_factory=list, max_length=200, description="cities or states, as in SP")
    clientes_especificos: list[UUID] = Field(default_factory=list, max_length=MOST_RECIPIENTS)
    chips_excluidos: list[Word] = Field(default_factory=list, max_length=200)
    quantidade_alvo: int = Field(default=50, ge=1, le=MOST_RECIPIENTS, strict=True)
    pressure_score_max: int = Field(default=50, ge=0, le=100, strict=True)
    modo_selecao: Literal["deterministico", "aleatorio"] = "deterministico"
    excluir_opt_out: Annotated[Literal[True], BeforeValidator(_boolean)] = True


class Nova(BaseModel):
    model_config = ConfigDict(extra="forbid")
    nome_template: str = Field(max_length=120, pattern=NAME)
    tipo_campanha: TipoDeCampanha
    corpo: str = Field(
        max_length=4_000, description="{nome} and {especialidade} are filled in", json_schema_extra={"pattern": BODY}
    )
    audience_filters: Publico = Field(default_factory=Publico)
    objetivo: str | None = Field(default=None, max_length=2_000, pattern=WRITABLE)
    pode_ofertar: StrictBool = False


class Agendamento(BaseModel):
    model_config = ConfigDict(extra="forbid")
    agendar_para: Instant | None = Field(
        default=None, description="with a time zone; if missing or in the past, as soon as possible"
    )


REFUSALS = {
    CampanhaInexistente: (404, "campanha_unknown"),
    CampanhaNaoPode: (409, "campanha_state"),
    SemPublico: (409, "campanha_refused"),
    MedicosDesconhecidos: (404, "campanha_refused"),
    CampanhaRecusada: (422, "campanha_refused"),
}


def router(campanhas: Campanhas, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/campanhas", tags=["campanhas"], route_class=AuthoriseFirst)
    _add_reading(routes, campanhas, zone)

    @routes.post(
        "",
        status_code=201,
        operation_id="create_campanha",
        responses={404: {"description": "no doctor has such an id"}},
    )
    async def create(request: Request, nova: Nova) -> dict[str, Any]:
        """Create a campaign as a draft. No message is sent before the campaign is scheduled."""
        with as_problems(request, REFUSALS):
            asked = NovaCampanha(
                nome=nova.nome_template,
                tipo=nova.tipo_campanha,
                corpo=nova.corpo,
                audience_filters=nova.audience_filters.model_dump(mode="json", exclude_unset=True),
                objetivo=nova.objetivo,
                pode_ofertar=nova.pode_ofertar,
            )
            id = await campanhas.criar(asked, by=caller_of(request))
            texts, strange = texts_for(request), await campanhas.avisos(asked.audience_filters)
            avisos = [texts("campanhas.de_ninguem", valor=word) for word in strange]
            return {**progresso_em_palavras(await campanhas.progresso(id), zone), "avisos": avisos}

    @routes.post("/{id}/agendar", operation_id="schedule_campanha", responses=ANSWERS, openapi_extra=needs(Scope.SEND))
    async def agendar(request: Request, id: Id, quando: Agendamento | None = None) -> dict[str, Any]:
        """Schedule a campaign for a given time, or as soon as possible. Under the profile `janelas` it starts in the
        window for its type.

        Returns the expected audience. An empty audience is refused (409), and nothing changes.
        """
        para = None if quando is None else quando.agendar_para
        with as_problems(request, REFUSALS):
            return agendada_em_palavras(id, await campanhas.agendar(id, para, by=caller_of(request)))

    @routes.post("/{id}/pausar", operation_id="pause_campanha", responses=ANSWERS)
    async def pausar(request: Request, id: Id) -> dict[str, Any]:
        """Pause a campaign. Queued messages stay in the queue."""
        return await _act(request, id, lambda: campanhas.pausar(id, by=caller_of(request)))

    @routes.post("/{id}/retomar", operation_id="resume_campanha", responses=ANSWERS, openapi_extra=needs(Scope.SEND))
    async def retomar(request: Request, id: Id) -> dict[str, Any]:
        """Resume a campaign immediately."""
        return await _act(request, id, lambda: campanhas.retomar(id, by=caller_of(request)))

    @routes.post("/{id}/cancelar", operation_id="cancel_campanha", responses=ANSWERS)
    async def cancelar(request: Request, id: Id) -> dict[str, Any]:
        """Cancel a campaign permanently. Queued messages are cancelled; messages that are being sent are stopped if
        possible.
        """
        return await _act(request, id, lambda: campanhas.cancelar(id, by=caller_of(request)))

    return routes


def _add_reading(routes: APIRouter, campanhas: Campanhas, zone: ZoneInfo) -> None:
    @routes.get("", operation_id="list_campanhas")
    async def everything(
        request: Request,
        status: StatusDaCampanha | None = None,
        antes_de: Annotated[int | None, Query(ge=1, le=2**62, description="only campaigns older than this id")] = None,
        limite: Limit = 50,
    ) -> dict[str, Any]:
        """List campaigns, newest first, with the number of messages sent."""
        rows = await campanhas.todas(status=status, before=antes_de, limit=limite)
        texts = texts_for(request)
        return {"campanhas": [texts.render(campanha_em_palavras(row, zone)) for row in rows]}

    @routes.get("/{id}", operation_id="show_campanha", responses={404: ANSWERS[404]})
    async def show(request: Request, id: Id) -> dict[str, Any]:
        """Show a campaign's progress: the number of recipients and of queued, sent, delivered and answered messages,
        and the exclusions and blocks by reason.
        """
        with as_problems(request, REFUSALS):
            shown: dict[str, Any] = texts_for(request).render(
                progresso_em_palavras(await campanhas.progresso(id), zone)
            )
            return shown

    @routes.get("/{id}/destinatarios", operation_id="list_campanha_people", responses={404: ANSWERS[404]})
    async def people(
        request: Request,
        id: Id,
        situacao: Literal["selecionado", "enfileirado", "excluido"] | None = None,
        motivo: Annotated[MotivoDaExclusao | None, Query(description="reason of the exclusion")] = None,
        depois_de: Annotated[int, Query(ge=0, le=2**31 - 1, description="only positions after this one")] = 0,
        limite: Limit = 100,
    ) -> dict[str, Any]:
        """List the recipients and the excluded doctors of a campaign, sorted by ``posicao``. An excluded doctor's entry
        has the reason.
        """
        with as_problems(request, REFUSALS):
            rows = await campanhas.destinatarios(id, situacao=situacao, motivo=motivo, after=depois_de, limit=limite)
        return {"destinatarios": [dict(row) for row in rows]}


async def _act(request: Request, id: int, act: Callable[[], Awaitable[StatusDaCampanha]]) -> dict[str, Any]:
    with as_problems(request, REFUSALS):
        status = await act()
    return {"id": id, "status": status.value}
