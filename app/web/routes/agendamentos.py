"""``/api/v1/appointments`` and ``/api/v1/jobs/{job_id}/status``. An upload stores the rows of a file. Background tasks
then parse addresses and documents.
"""

from collections.abc import AsyncIterator
from datetime import date
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, File, Form, Path, Query, Request, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from starlette.convertors import Convertor, register_url_convertor
from starlette.types import Receive, Send
from starlette.types import Scope as Scope_

from app.contexts.agendamentos.importacao import Importacao, leitura_em_json, resultado
from app.contexts.agendamentos.model import (
    AgendamentoInexistente,
    AgendamentoRecusado,
    AgendamentoRepetido,
    PlanilhaRecusada,
    StatusDaLeitura,
)
from app.contexts.agendamentos.planilha.celulas import DDDS
from app.contexts.agendamentos.planilha.linhas import LONGEST_NAME, LONGEST_TEXT, SituacaoDoAgendamento
from app.contexts.agendamentos.relato import (
    Visao,
    agendamento_em_palavras,
    arquivo_coberto,
    em_csv,
    job_do_agendamento,
    job_em_palavras,
)
from app.contexts.agendamentos.service import CEP, Agendamentos, Filtro
from app.web.refusals import as_problems, caller_of
from batuta import Batuta
from batuta.extension import Scope, Texts
from batuta.reasons import Reason
from batuta.sql import Row
from batuta.web import AuthoriseFirst, Problem, disclose, note_access, require, sees_personal_data, texts_for

PREFIX = "/api/v1"
IMPORT = f"{PREFIX}/appointments/import"
PAGE = 500
ANSWERS: dict[int | str, dict[str, Any]] = {404: {"description": "no such appointment"}}
REPEATED: dict[int | str, dict[str, Any]] = {
    409: {"description": "another appointment has the same patient, place and time"}
}
# At least one visible character, and no control characters.
TEXT = r"^[^\s\x00-\x1f\x7f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"


def _day(value: str) -> str:
    """Return the day if it is valid and in ISO format. Raises ValueError otherwise."""
    try:
        written = date.fromisoformat(value).isoformat()
    except ValueError:
        written = ""
    if not written or written != value:
        raise ValueError(Reason("agendamento_dia", "write the day as in 2026-03-11"))
    return value


def require_number(value: object) -> object:
    """Raise ValueError for a text or a boolean where a number is required."""
    if isinstance(value, str | bool):
        raise ValueError(Reason("int_type", "write the number without quotes"))  # noqa: TRY004 - pydantic asks for it
    return value


Text = Annotated[str, Field(max_length=LONGEST_TEXT, pattern=TEXT)]
Name = Annotated[str, Field(max_length=LONGEST_NAME, pattern=TEXT)]
Day = Annotated[str, AfterValidator(_day), Field(json_schema_extra={"format": "date"})]
Clock = Annotated[str, Field(pattern=r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$")]
Phone = Annotated[str, Field(pattern=rf"^55(?:{'|'.join(sorted(DDDS))})(?:9[0-9]{{8}}|[2-8][0-9]{{7}})$")]
Cep = Annotated[str, Field(pattern=CEP)]
Id = Annotated[UUID, Path(description="the appointment's id")]
Documents = Annotated[bool, Query(description="also show documents, which are masked otherwise; needs the scope pii")]


class OneOfThem(Convertor[str]):
    """Matches one path segment that is not the name of another route, such as ``import``.

    An invalid id therefore gets a specific error, and another route's name is never read as an appointment id.
    """

    regex = r"(?!(?:import|imports|stats|export|reprocess)(?:/|$))[^/]+"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("agendamento", OneOfThem())


class Paged(StreamingResponse):
    """Response that streams pages. It does not check whether the client disconnected, because each page is short."""

    async def __call__(self, scope: Scope_, receive: Receive, send: Send) -> None:
        await self.stream_response(send)


class Campos(BaseModel):
    """Appointment fields to set. A field that the request omits stays unchanged; null clears a field."""

    model_config = ConfigDict(extra="forbid")
    nome_marca: Name | None = None
    nome_unidade: Name | None = None
    data_agendamento: Day | None = None
    hora_agendamento: Clock | None = None
    status: SituacaoDoAgendamento = SituacaoDoAgendamento.PENDENTE
    telefone: Phone | None = None
    observacoes: Text | None = None
    exames: Text | None = None
    carro: Name | None = None
    canal_confirmacao: Name | None = None
    data_confirmacao: Day | None = None
    hora_confirmacao: Clock | None = None
    cep: Cep | None = None
    endereco_coleta: Text | None = None
    endereco_completo: Text | None = None
    documento_completo: Text | None = None
    numero_convenio: Name | None = None
    nome_convenio: Name | None = None
    carteira_convenio: Name | None = None
    especialidade: Name | None = None
    origem_id: Name | None = None

    def given_fields(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)


class Novo(Campos):
    nome_paciente: Name


class Mudanca(Campos):
    nome_paciente: Name = ""


class Reprocesso(BaseModel):
    model_config = ConfigDict(extra="forbid")
    ids: list[UUID] | None = Field(
        default=None,
        max_length=1000,
        description="only these appointments, in any state; without ids, all whose reading failed or was skipped",
    )
    limite: Annotated[int, BeforeValidator(require_number)] = Field(default=1000, ge=1, le=10_000)


REFUSALS = {
    AgendamentoInexistente: (404, "appointment_unknown"),
    AgendamentoRepetido: (409, "appointment_repeated"),
    AgendamentoRecusado: (422, "appointment_refused"),
    PlanilhaRecusada: (422, "spreadsheet_refused"),
}


def router(work: Batuta, agendamentos: Agendamentos, importacao: Importacao) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["appointments"], route_class=AuthoriseFirst)
    _add_importing(routes, importacao)
    _add_reading(routes, agendamentos)

    @routes.post("/appointments", status_code=201, operation_id="create_appointment", responses=REPEATED)
    async def create(request: Request, novo: Novo) -> dict[str, Any]:
        """Create an appointment. Its address and documents are parsed in the background."""
        with as_problems(request, REFUSALS):
            row = await agendamentos.criar(novo.given_fields(), by=caller_of(request))
        return agendamento_em_palavras(row, await visao_of(request, 1))

    @routes.patch("/appointments/{id:agendamento}", operation_id="change_appointment", responses=ANSWERS | REPEATED)
    async def change(request: Request, id: Id, mudanca: Mudanca) -> dict[str, Any]:
        """Change fields of an appointment. A changed address or document is parsed again."""
        with as_problems(request, REFUSALS):
            row = await agendamentos.alterar(str(id), mudanca.given_fields(), by=caller_of(request))
        return agendamento_em_palavras(row, await visao_of(request, 1))

    @routes.post("/appointments/reprocess", operation_id="reprocess_appointments")
    async def reprocess(request: Request, quais: Reprocesso | None = None) -> dict[str, Any]:
        """Enqueue a task for each appointment whose parsing failed or was skipped, or for the appointments with the
        given ids.
        """
        asked = quais or Reprocesso()
        ids = None if asked.ids is None else [str(each) for each in asked.ids]
        found = await agendamentos.reprocessar(ids, limit=asked.limite, by=caller_of(request))
        return {"success": True, "jobs_enqueued": len(found), "ids": found}

    @routes.get("/jobs/{job_id}/status", operation_id="job_status", responses={404: {"description": "no such task"}})
    async def job_status(job_id: Annotated[UUID, Path()]) -> dict[str, Any]:
        """Show the state of a task: queued, in_progress, complete or failed.

        A cancelled task is reported as failed, with the reason of its cancellation as the error.
        """
        status = await work.status(str(job_id))
        if status is not None:
            job = job_em_palavras(status)
        elif (row := await agendamentos.da_tarefa(str(job_id))) is not None:
            job = job_do_agendamento(str(job_id), row)
        else:
            raise Problem(404, "job_unknown", id=str(job_id))
        return {"success": True, "message": "Status do job obtido com sucesso", "job": job}

    return routes


def _add_importing(routes: APIRouter, importacao: Importacao) -> None:
    @routes.post(
        "/appointments/import",
        operation_id="import_appointments",
        responses={422: {"description": "the file cannot be imported"}},
    )
    async def import_(
        request: Request,
        file: Annotated[UploadFile, File(description=".xlsx or .csv")],
        colunas: Annotated[
            list[str] | None,
            Form(description="TITLE=FIELD for columns with unknown titles, as in DIA DA CONSULTA=data"),
        ] = None,
    ) -> dict[str, Any]:
        """Import a spreadsheet. Before the response is sent, every valid row is stored together with its task.

        If a column title is uncertain, the file is refused, and the response proposes a field for each column. Send the
        file again with ``colunas``.
        """
        content = await file.read()
        with as_problems(request, REFUSALS):
            row = await importacao.importar(content, file.filename or "", by=caller_of(request), colunas=colunas or ())
        await note_access(request, "import", count=row["imported"], importacao=row["id"])
        return _import_document(request, row)

    @routes.get("/appointments/imports", operation_id="list_imports")
    async def imports(request: Request, limite: Annotated[int, Query(ge=1, le=100)] = 20) -> dict[str, Any]:
        """List imports, newest first."""
        rows = await importacao.recentes(limite)
        await disclose(request, len(rows))
        return {"imports": [_import_document(request, row) for row in rows]}

    @routes.get(
        "/appointments/imports/{id}",
        operation_id="show_import",
        responses={404: {"description": "no such import"}},
    )
    async def one_import(request: Request, id: Annotated[UUID, Path()]) -> dict[str, Any]:
        """Show the progress of an import and of the tasks that parse its rows, and list the rejected rows."""
        row = await importacao.encontrada(str(id))
        if row is None:
            raise Problem(404, "import_unknown", id=str(id))
        await disclose(request, 1)
        return {**_import_document(request, row), "leitura": leitura_em_json(await importacao.leitura(str(id)))}


def _add_reading(routes: APIRouter, agendamentos: Agendamentos) -> None:
    @routes.get("/appointments", operation_id="list_appointments")
    async def everything(
        request: Request,
        normalization_status: StatusDaLeitura | None = None,
        status: SituacaoDoAgendamento | None = None,
        data_de: Day | None = None,
        data_ate: Day | None = None,
        unidade: Annotated[str | None, Query(max_length=200)] = None,
        importacao_id: UUID | None = None,
        antes_de: Annotated[UUID | None, Query(description="only appointments older than this id")] = None,
        documentos: Documents = False,
        limite: Annotated[int, Query(ge=1, le=PAGE)] = 50,
    ) -> dict[str, Any]:
        """List appointments, newest first. To get the next page, pass the returned ``proxima`` as ``antes_de``."""
        require_documents(request, documentos)
        filtro = Filtro(
            leitura=normalization_status,
            situacao=status,
            de=data_de,
            ate=data_ate,
            unidade=unidade,
            importacao=None if importacao_id is None else str(importacao_id),
            antes_de=None if antes_de is None else str(antes_de),
        )
        rows = await agendamentos.lista(filtro, limite)
        visao = await visao_of(request, len(rows), documentos=documentos)
        shown = [agendamento_em_palavras(row, visao) for row in rows]
        return {"appointments": shown, "proxima": shown[-1]["id"] if len(shown) == limite else None}

    @routes.get("/appointments/stats", operation_id="appointment_stats")
    async def stats() -> dict[str, Any]:
        """Count the appointments by parsing state."""
        counts = await agendamentos.contagem()
        return {"normalization_status": counts, "total": sum(counts.values())}

    _add_export(routes, agendamentos)

    @routes.get("/appointments/{id:agendamento}", operation_id="show_appointment", responses=ANSWERS)
    async def show(request: Request, id: Id, documentos: Documents = False) -> dict[str, Any]:
        """Show an appointment. Personal data needs the scope pii. Documents also need the parameter ``documentos``."""
        require_documents(request, documentos)
        with as_problems(request, REFUSALS):
            row = await agendamentos.um(str(id))
        return agendamento_em_palavras(row, await visao_of(request, 1, documentos=documentos))


def _add_export(routes: APIRouter, agendamentos: Agendamentos) -> None:
    @routes.get(
        "/appointments/export",
        operation_id="export_appointments",
        response_class=Paged,
        responses={
            200: {"content": {"text/csv": {}}, "description": "CSV for spreadsheet programs; no cell is a formula"}
        },
    )
    async def export(
        request: Request, normalization_status: StatusDaLeitura | None = None, documentos: Documents = False
    ) -> Paged:
        """Export appointments as CSV. Personal data needs the scope pii. Documents also need the parameter
        ``documentos``.
        """
        require_documents(request, documentos)
        visao = _visao(request, documentos)
        counts = await agendamentos.contagem()
        count = sum(counts.values()) if normalization_status is None else counts.get(normalization_status, 0)
        await note_access(request, "export", count=count, view=visao.name.lower())
        stream = _csv(agendamentos, normalization_status, visao)
        headers = {"Content-Disposition": 'attachment; filename="agendamentos.csv"'}
        return Paged(stream, media_type="text/csv; charset=utf-8", headers=headers)


async def _csv(agendamentos: Agendamentos, leitura: StatusDaLeitura | None, visao: Visao) -> AsyncIterator[bytes]:
    before: str | None = None
    yield b"\xef\xbb\xbf" + em_csv([], visao, header=True).encode()
    for _ in range(1_000_000):
        rows = await agendamentos.lista(Filtro(leitura=leitura, antes_de=before), PAGE)
        if rows:
            before = rows[-1]["id"]
            yield em_csv(rows, visao, header=False).encode()
        if len(rows) < PAGE:
            break


def require_documents(request: Request, asked: bool) -> None:
    """Refuse a request for documents without the scope pii (403) before any work begins."""
    if asked:
        require(request.state.caller, Scope.PII)


async def visao_of(request: Request, count: int, *, documentos: bool = False) -> Visao:
    """Return which fields of appointments the caller may see. If the caller may see personal data, record access to
    ``count`` appointments in the audit log.
    """
    await disclose(request, count, unmasked=documentos)
    return _visao(request, documentos)


def _visao(request: Request, documentos: bool) -> Visao:
    if not sees_personal_data(request):
        return Visao.SEM_DADOS
    return Visao.INTEIRA if documentos else Visao.SEM_DOCUMENTOS


def _import_document(request: Request, row: Row) -> dict[str, Any]:
    document = with_reasons(resultado(row), texts_for(request))
    if not sees_personal_data(request):
        document["filename"] = arquivo_coberto(document["filename"])
    return document


def with_reasons(document: dict[str, Any], texts: Texts) -> dict[str, Any]:
    """Add the text of each problem to an import's JSON object."""
    for name in ("errors", "warnings"):
        document[name] = [
            {
                **{place: each[place] for place in ("aba", "linha", "coluna") if place in each},
                "motivo": texts(f"agendamentos.motivo.{each['problema']}"),
            }
            for each in document[name]
        ]
    return document
