"""``/api/v1/conversas`` and ``/api/v1/pendencias``: show and change who handles a conversation, and list the messages
that are waiting for a person.
"""

from typing import Annotated, Any
from uuid import UUID
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from app.composition.conversas import Messages
from app.contexts.conversas.atendimento import (
    LONGEST_MOTIVO,
    Atendimento,
    Com,
    ConversaComPessoa,
    ConversaDesconhecida,
    ConversaEncerrada,
    ConversaSemPessoa,
    EstagioDaConversa,
)
from app.contexts.conversas.escrita import LONGEST_TEXTO, EscritaDaEquipe, RespostaRecusada
from app.contexts.conversas.pendencias import PendenciaDesconhecida
from app.contexts.conversas.relato import (
    conversa_em_palavras,
    mudada_em_palavras,
    pendencia_em_palavras,
    respondida_em_palavras,
    vista_da_conversa_em_palavras,
)
from app.contexts.mensagens.service import NaDevolucao
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import NAME
from app.web.routes.listas_de_grupos import Limit, Skip
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, disclose, needs

ANSWERS: dict[int | str, dict[str, Any]] = {
    404: {"description": "no such conversation"},
    409: {"description": "the conversation has ended, or another person handles it"},
}
REFUSALS = {
    ConversaDesconhecida: (404, "conversa_unknown"),
    **dict.fromkeys((ConversaEncerrada, ConversaComPessoa, ConversaSemPessoa), (409, "conversa_state")),
    RespostaRecusada: (422, "conversa_refused"),
    PendenciaDesconhecida: (404, "pendencia_unknown"),
}
# Text with at least one visible character, and no control characters except line breaks.
TEXT = r"^[ \t\r\n]*[^\s\x00-\x1f\x7f][^\x00-\x08\x0b\x0c\x0e-\x1f\x7f]*$"
Motivo = Annotated[str, Field(max_length=LONGEST_MOTIVO - 50, pattern=NAME)]


class Porque(BaseModel):
    model_config = ConfigDict(extra="forbid")
    motivo: Motivo


class Devolucao(BaseModel):
    model_config = ConfigDict(extra="forbid")
    mensagens: NaDevolucao = Field(description="whether the messages that waited continue or are cancelled")
    motivo: Motivo


class Escrito(BaseModel):
    """A message from the caller to the doctor. A repeated request with the same ``chave`` queues no second message."""

    model_config = ConfigDict(extra="forbid")
    texto: Annotated[str, Field(max_length=LONGEST_TEXTO, pattern=TEXT)]
    chave: Annotated[str, Field(max_length=100, pattern=NAME)] | None = None


def routers(messages: Messages, escrita: EscritaDaEquipe, zone: ZoneInfo) -> list[APIRouter]:
    routes = APIRouter(prefix="/api/v1/conversas", tags=["conversas"], route_class=AuthoriseFirst)
    _add_reading(routes, messages.atendimento, zone)
    _add_handling(routes, messages.atendimento, escrita)
    return [routes, _pending(messages, zone)]


def _add_reading(routes: APIRouter, care: Atendimento, zone: ZoneInfo) -> None:
    @routes.get("", operation_id="list_conversas")
    async def everything(
        com: Annotated[Com | None, Query(description="only conversations that Julia (ai) or a person handles")] = None,
        estagio: EstagioDaConversa | None = None,
        encerradas: Annotated[bool, Query(description="include ended conversations")] = False,
        limite: Limit = 50,
        pular: Skip = 0,
    ) -> dict[str, Any]:
        """List conversations, most recently changed first, without their texts."""
        rows = await care.listar(com=com, estagio=estagio, encerradas=encerradas, limite=limite, pular=pular)
        return {"conversas": [conversa_em_palavras(row, zone) for row in rows]}

    @routes.get("/{id}", operation_id="show_conversa", responses={404: ANSWERS[404]}, openapi_extra=needs(Scope.PII))
    async def show(request: Request, id: UUID) -> dict[str, Any]:
        """Show one conversation with its last messages, its queued messages and its history."""
        with as_problems(request, REFUSALS):
            vista = await care.ver(str(id))
        await disclose(request, 1)
        return vista_da_conversa_em_palavras(vista, zone)


def _add_handling(routes: APIRouter, care: Atendimento, escrita: EscritaDaEquipe) -> None:
    @routes.post("/{id}/assumir", operation_id="take_conversa", responses=ANSWERS)
    async def take(request: Request, id: UUID, porque: Porque) -> dict[str, Any]:
        """Assign the conversation to the caller. Julia's queued messages are held back until the caller hands the
        conversation back to Julia.
        """
        with as_problems(request, REFUSALS):
            return mudada_em_palavras(await care.assumir(str(id), por=caller_of(request), motivo=porque.motivo))

    @routes.post(
        "/{id}/responder",
        status_code=202,
        operation_id="answer_conversa",
        responses=ANSWERS,
        openapi_extra=needs(Scope.SEND),
    )
    async def answer(request: Request, id: UUID, escrito: Escrito) -> dict[str, Any]:
        """Queue a message from the caller to the doctor, and assign the conversation to the caller. The message is
        subject to the sending rules. ``mensagem`` is null if a message with the same key is already queued.
        """
        with as_problems(request, REFUSALS):
            done = await escrita.responder(str(id), escrito.texto, por=caller_of(request), chave=escrito.chave)
            return respondida_em_palavras(done)

    @routes.post("/{id}/devolver", operation_id="return_conversa", responses=ANSWERS)
    async def give_back(request: Request, id: UUID, como: Devolucao) -> dict[str, Any]:
        """Hand the conversation back to Julia. The request says whether the messages that were held back are released
        or cancelled.
        """
        with as_problems(request, REFUSALS):
            done = await care.devolver(str(id), como.mensagens, por=caller_of(request), motivo=como.motivo)
            return mudada_em_palavras(done)

    @routes.post("/{id}/encerrar", operation_id="end_conversa", responses=ANSWERS)
    async def finish(request: Request, id: UUID, porque: Porque) -> dict[str, Any]:
        """End the conversation and cancel Julia's queued messages to the doctor."""
        with as_problems(request, REFUSALS):
            return mudada_em_palavras(await care.encerrar(str(id), por=caller_of(request), motivo=porque.motivo))


def _pending(messages: Messages, zone: ZoneInfo) -> APIRouter:
    routes = APIRouter(prefix="/api/v1/pendencias", tags=["conversas"], route_class=AuthoriseFirst)
    pending = messages.pendencias

    @routes.get("", operation_id="list_pendencias", openapi_extra=needs(Scope.PII))
    async def waiting(request: Request, limite: Limit = 50) -> dict[str, Any]:
        """List the inbound messages waiting for a person, oldest first. Each entry has the text of the sender's first
        waiting message.
        """
        found = await pending.listar(limite=limite)
        await disclose(request, len(found))
        shown = [pendencia_em_palavras(each, zone) for each in found]
        return {"abertas": await pending.quantas(), "pendencias": shown}

    @routes.post(
        "/{id}/resolver", operation_id="resolve_pendencia", responses={404: {"description": "no such open entry"}}
    )
    async def resolve(request: Request, id: UUID, porque: Porque) -> dict[str, Any]:
        """Mark one person's waiting messages as answered."""
        with as_problems(request, REFUSALS):
            await pending.resolver(str(id), por=caller_of(request), motivo=porque.motivo)
        return {"id": str(id), "resolvida": True}

    return routes
