"""``/api/v1/telegram``: queue a message, a file or an action and show its state, backfill a chat, and pause
an account.
"""

from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, File, Form, Path, Request, UploadFile
from pydantic import BaseModel, ConfigDict, Field

from app.contexts.mensagens.guardrails import LONGEST_ON_TELEGRAM
from app.contexts.telegram.arquivos import LARGEST_FILE, LONGEST_CAPTION, ArquivoRecusado, arquivo_de
from app.contexts.telegram.contas import EstadoDaConta, SemConta
from app.contexts.telegram.service import (
    MOST_MESSAGES,
    SemAcao,
    SemContaAtiva,
    SemMensagem,
    SemPessoa,
    ServicoTelegram,
    in_words,
)
from app.contexts.telegram.tarefas import Acao
from app.web.personal import personal
from app.web.refusals import as_problems, caller_of
from app.web.routes.conversas import TEXT
from app.web.routes.grupos import Word
from batuta import Batuta
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, needs, require, texts_for

PREFIX = "/api/v1/telegram"
SEND_FILE = f"{PREFIX}/arquivos"
# Maximum request size: the file and the remaining fields of its form.
LARGEST_BODY = LARGEST_FILE + 64 * 1024
UNKNOWN: dict[int | str, dict[str, Any]] = {404: {"description": "no such account"}}
REFUSALS = {
    SemConta: (404, "telegram_account_unknown"),
    SemPessoa: (404, "telegram_person_unknown"),
    SemMensagem: (404, "telegram_message_unknown"),
    SemContaAtiva: (409, "telegram_no_account"),
    SemAcao: (404, "telegram_action_unknown"),
    ArquivoRecusado: (422, "telegram_file_refused"),
}


class NovaMensagem(BaseModel):
    """A message to a doctor. A repeated request with the same ``chave`` queues no second message."""

    model_config = ConfigDict(extra="forbid")
    quem: Word
    texto: Annotated[str, Field(min_length=1, max_length=LONGEST_ON_TELEGRAM, pattern=TEXT)]
    conta: Word | None = None
    chave: Word | None = None


class NovoHistorico(BaseModel):
    model_config = ConfigDict(extra="forbid")
    chat: Word
    maximo: Annotated[int, Field(ge=1, le=MOST_MESSAGES)] = 1_000


class _SobreMensagem(BaseModel):
    """An action on a message in a chat. The message ``tg:…:pessoa:7:42`` has the ``chat`` "pessoa:7" and the number
    (``mensagem``) 42.
    """

    model_config = ConfigDict(extra="forbid")
    chat: Word
    mensagem: Annotated[int, Field(ge=1, le=2**31 - 1)]


class Edicao(_SobreMensagem):
    acao: Literal[Acao.EDITAR]
    texto: Annotated[str, Field(min_length=1, max_length=LONGEST_ON_TELEGRAM, pattern=TEXT)]


class Encaminhamento(_SobreMensagem):
    acao: Literal[Acao.ENCAMINHAR]
    para: Word


class AcaoSimples(_SobreMensagem):
    acao: Literal[Acao.APAGAR, Acao.LER]


NovaAcao: TypeAlias = Annotated[Edicao | Encaminhamento | AcaoSimples, Field(discriminator="acao")]


def router(work: Batuta, servico: ServicoTelegram) -> APIRouter:
    routes = APIRouter(prefix=PREFIX, tags=["telegram"], route_class=AuthoriseFirst)
    _add_sending(routes, work, servico)
    _add_actions(routes, work, servico)
    _add_accounts(routes, work, servico)
    return routes


def _add_sending(routes: APIRouter, work: Batuta, servico: ServicoTelegram) -> None:

    @routes.post(
        "/mensagens",
        operation_id="send_telegram",
        status_code=202,
        openapi_extra=needs(Scope.SEND),
        responses={404: {"description": "no such doctor or account"}, 409: {"description": "no active account"}},
    )
    async def send(request: Request, nova: NovaMensagem) -> dict[str, Any]:
        """Queue a message on Telegram. ``id`` is null if a message with the same key is already queued."""
        with as_problems(request, REFUSALS):
            key = None if nova.chave is None else f"telegram:{nova.chave}"
            id = await servico.enviar(nova.quem, nova.texto, by=caller_of(request), conta=nova.conta, chave=key)
        return {"id": id}

    @routes.post(
        "/arquivos",
        operation_id="send_telegram_file",
        status_code=202,
        openapi_extra=needs(Scope.SEND),
        responses={
            404: {"description": "no such doctor or account"},
            409: {"description": "no active account"},
            413: {"description": "the file is too large"},
        },
    )
    async def send_file(
        request: Request,
        arquivo: Annotated[UploadFile, File(description="at most 20 MB")],
        quem: Annotated[Word, Form()],
        texto: Annotated[str, Form(min_length=1, max_length=LONGEST_CAPTION, pattern=TEXT)],
        conta: Annotated[Word | None, Form()] = None,
        chave: Annotated[Word | None, Form()] = None,
    ) -> dict[str, Any]:
        """Queue a file with a text on Telegram. ``GET /mensagens/{id}`` returns its state. ``id`` is null if a message
        with the same key is already queued.
        """
        content = await arquivo.read()
        with as_problems(request, REFUSALS):
            file = arquivo_de(arquivo.filename or "", arquivo.content_type or "", content, texto)
            key = None if chave is None else f"telegram:{chave}"
            id = await servico.enviar(quem, texto, by=caller_of(request), conta=conta, arquivo=file, chave=key)
        return {"id": id}

    @routes.get("/mensagens/{id}", operation_id="see_telegram", responses={404: {"description": "no such message"}})
    async def see(request: Request, id: Annotated[str, Path(max_length=64)]) -> dict[str, Any]:
        """Return a message's state: its status, whether it is in doubt (may or may not have been sent), attempts,
        outcome, and reasons with their codes and facts.
        """
        with as_problems(request, REFUSALS):
            return dict(texts_for(request).render(in_words(await servico.situacao(id), work.zone)))


def _add_actions(routes: APIRouter, work: Batuta, servico: ServicoTelegram) -> None:
    @routes.post(
        "/contas/{conta}/acoes",
        operation_id="act_on_telegram",
        status_code=202,
        responses={404: {"description": "no such account or doctor"}},
    )
    async def act(request: Request, conta: Annotated[str, Path(max_length=200)], nova: NovaAcao) -> dict[str, Any]:
        """Queue an action on a message: edit, delete, mark as read, or forward to a doctor. A forwarded message is
        subject to the sending rules. ``id`` is null if the same action is already queued. Editing and forwarding need
        the scopes operate and send.
        """
        if isinstance(nova, Edicao | Encaminhamento):
            require(request.state.caller, Scope.SEND)
        with as_problems(request, REFUSALS):
            id = await servico.agir(
                conta,
                nova.acao,
                nova.chat,
                nova.mensagem,
                by=caller_of(request),
                texto=nova.texto if isinstance(nova, Edicao) else None,
                para=nova.para if isinstance(nova, Encaminhamento) else None,
            )
        return {"id": id}

    @routes.get("/acoes/{id}", operation_id="see_telegram_action", responses={404: {"description": "no such action"}})
    async def see_action(request: Request, id: Annotated[str, Path(max_length=64)]) -> dict[str, Any]:
        """Return the state of an action on a Telegram message. If the action forwards a message, ``mensagem_id`` is the
        queued message.
        """
        with as_problems(request, REFUSALS):
            document = texts_for(request).render(in_words(await servico.acao(id), work.zone))
        return await personal(request, document, "chat")

    @routes.get("/acoes", operation_id="list_telegram_actions")
    async def actions(request: Request) -> dict[str, Any]:
        """List the latest actions on Telegram messages, each with its state."""
        found = texts_for(request).render(await servico.acoes(work.zone, limit=50))
        return {"acoes": await personal(request, found, "chat", count=len(found))}


def _add_accounts(routes: APIRouter, work: Batuta, servico: ServicoTelegram) -> None:
    @routes.post(
        "/contas/{conta}/historico",
        operation_id="read_telegram",
        status_code=202,
        responses=UNKNOWN,
    )
    async def read(
        request: Request, conta: Annotated[str, Path(max_length=200)], novo: NovoHistorico
    ) -> dict[str, Any]:
        """Queue a backfill of a chat, which reads the chat's old messages."""
        with as_problems(request, REFUSALS):
            return {"id": await servico.ler_historico(conta, novo.chat, maximo=novo.maximo)}

    @routes.get("/historicos", operation_id="list_telegram_histories")
    async def histories(request: Request) -> dict[str, Any]:
        """List the latest backfills with their progress."""
        found = texts_for(request).render(await servico.historicos(work.zone, limit=50))
        return {"historicos": await personal(request, found, "destino", count=len(found))}

    @routes.post("/contas/{conta}/pausar", operation_id="pause_telegram", responses=UNKNOWN)
    async def pause(request: Request, conta: Annotated[str, Path(max_length=200)]) -> dict[str, Any]:
        """Pause a Telegram account. Its messages wait until the account is resumed."""
        return await _change(request, conta, EstadoDaConta.PAUSADA)

    @routes.post("/contas/{conta}/retomar", operation_id="resume_telegram", responses=UNKNOWN)
    async def resume(request: Request, conta: Annotated[str, Path(max_length=200)]) -> dict[str, Any]:
        """Resume a paused Telegram account."""
        return await _change(request, conta, EstadoDaConta.ATIVA)

    async def _change(request: Request, conta: str, estado: EstadoDaConta) -> dict[str, Any]:
        with as_problems(request, REFUSALS):
            await servico.mudar(conta, estado, by=caller_of(request))
        return {"conta": conta, "estado": estado.value}
