"""Operators' actions on Telegram: send, edit, delete and forward messages, send files, show the state of a message,
read a chat's old messages, and link a person to a doctor.
"""

from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.fila import Fila
from app.contexts.comum.telefone import Address, chave, telefone_de
from app.contexts.conversas.service import Conversas
from app.contexts.mensagens.api import NovaMensagem, Tipo, na_conta
from app.contexts.telegram.arquivos import ANEXO, Arquivos, anexo_de
from app.contexts.telegram.contas import Contas, EstadoDaConta
from app.contexts.telegram.entidades import SERVER, EntidadesConhecidas
from app.contexts.telegram.porta import Arquivo
from app.contexts.telegram.tarefas import Acao, task_queries
from batuta import BatutaError
from batuta.kernel import Clock, Ids, Json
from batuta.queues import NewItem
from batuta.reasons import decode, describe_reason
from batuta.sql import Database, Row, is_uuid

MOST_MESSAGES: Final = 100_000


class SemPessoa(BatutaError):
    sentence = "no doctor has this number or id: register the doctor first with `batuta medicos importar`"


class SemContaAtiva(BatutaError):
    sentence = "there is no active Telegram account: add one with `batuta telegram login`"


class SemMensagem(BatutaError):
    sentence = (
        "there is no Telegram message {id}: `batuta queue show telegram_saida --state ready` lists the waiting messages"
    )


class SemAcao(BatutaError):
    sentence = "there is no action {id}: `batuta telegram acoes` lists the latest actions"


class AcaoIncompleta(BatutaError):
    sentence = (
        "an edit needs a text (texto) and a forward a doctor (para); other actions take neither: change the request"
    )


class ServicoTelegram:
    def __init__(
        self,
        database: Database,
        contas: Contas,
        entidades: EntidadesConhecidas,
        arquivos: Arquivos,
        conversas: Conversas,
        saida: Fila,
        historico: Fila,
        acoes: Fila,
        ids: Ids,
        clock: Clock,
    ) -> None:
        self._database = database
        self._contas = contas
        self._entidades = entidades
        self._arquivos = arquivos
        self._conversas = conversas
        self._saida = saida
        self._historico = historico
        self._acoes = acoes
        self._ids = ids
        self._clock = clock
        self._queries = task_queries(database.dialect)

    async def enviar(
        self,
        quem: str,
        texto: str,
        *,
        by: str,
        conta: str | None = None,
        arquivo: Arquivo | None = None,
        chave: str | None = None,
    ) -> str | None:
        """Queue a message to a doctor. ``quem`` is the doctor's phone number or id. Return the id of the message, or
        None if a message with this ``chave`` is already queued.
        """
        row = await self._doctor(quem)
        chosen = (
            await self._contas.conta(conta)
            if conta
            else await self._entidades.conta_para(self._database, row["telefone"])
        )
        if chosen is None:
            raise SemContaAtiva
        metadata: dict[str, Json] = {"por": by}
        if arquivo is not None:
            metadata[ANEXO] = anexo_de(arquivo)
        item = NovaMensagem(
            tipo=Tipo.MANUAL,
            cliente_id=str(row["id"]),
            telefone=row["telefone"],
            texto=texto,
            chave=chave or f"telegram:{self._ids.new()}",
            metadata=metadata,
        ).item(now=self._clock.now())
        async with self._database.transaction() as transaction:
            (id,) = await self._saida.put([na_conta(item, chosen)], within=transaction)
            if id is not None and arquivo is not None:
                await self._arquivos.guardar(transaction, id, str(row["id"]), arquivo)
        return id

    async def situacao(self, id: str) -> dict[str, Any]:
        row = await self._database.one(self._queries.sent, id=id) if is_uuid(id) else None
        if row is None:
            raise SemMensagem(id=id)
        values = dict(row)
        values["arquivo"] = (values.pop("metadata") or {}).get(ANEXO)
        return values

    async def ler_historico(self, conta: str, destino: str, *, maximo: int, chave: str | None = None) -> str | None:
        """Queue a backfill: a task that reads a chat's old messages. Return its id, or None if a backfill of this chat
        is already queued.
        """
        id = await self._contas.conta(conta)
        values = {"conta_id": id, "destino": destino, "maximo": min(maximo, MOST_MESSAGES)}
        (made,) = await self._historico.put([NewItem(values=values, key=chave or f"{id}:{destino}")])
        return made

    async def historicos(self, zone: ZoneInfo, *, limit: int) -> list[dict[str, Any]]:
        """Return the latest backfills (tasks that read a chat's old messages) with their progress."""
        rows = await self._database.all(self._queries.backfills, limit=limit)
        return [in_words(row, zone) for row in rows]

    async def agir(
        self,
        conta: str,
        acao: Acao,
        chat: str,
        mensagem: int,
        *,
        by: str,
        texto: str | None = None,
        para: str | None = None,
    ) -> str | None:
        """Queue an action on a Telegram message: edit it, delete it, mark it as read, or forward it. ``texto`` is the
        new text of an edited message. ``para`` is the doctor who receives a forwarded message. Return the id of the
        action, or None if the same action is already queued.
        """
        if (texto is not None) != (acao is Acao.EDITAR) or (para is not None) != (acao is Acao.ENCAMINHAR):
            raise AcaoIncompleta
        id = await self._contas.conta(conta)
        destino = None if para is None else str((await self._doctor(para))["id"])
        values = {
            "conta_id": id,
            "acao": acao.value,
            "chat": chat,
            "mensagem": mensagem,
            "texto": texto,
            "destino": destino,
            "pedida_por": by,
        }
        key = f"{id}:{chat}:{mensagem}:{acao.value}:{self._ids.new() if acao is Acao.EDITAR else destino or ''}"
        (made,) = await self._acoes.put([NewItem(values=values, key=key)])
        return made

    async def acao(self, id: str) -> Row:
        row = await self._database.one(self._queries.action, id=id) if is_uuid(id) else None
        if row is None:
            raise SemAcao(id=id)
        return row

    async def acoes(self, zone: ZoneInfo, *, limit: int) -> list[dict[str, Any]]:
        """Return the latest actions on Telegram messages."""
        return [in_words(row, zone) for row in await self._database.all(self._queries.actions, limit=limit)]

    async def vincular(self, quem: str, usuario_id: int) -> None:
        """Link a person on Telegram to a doctor. An opt-out that the person requested on Telegram then applies to
        WhatsApp too.
        """
        row = await self._doctor(quem)
        address = f"{usuario_id}@{SERVER}"
        async with self._database.transaction() as transaction:
            await self._conversas.telefone_de(
                transaction, Address(address, row["telefone"], address), now=self._clock.now()
            )

    async def mudar(self, conta: str, estado: EstadoDaConta, *, by: str) -> bool:
        return await self._contas.mudar(await self._contas.conta(conta), estado, by=by)

    async def _doctor(self, quem: str) -> Row:
        telefone = telefone_de(quem)
        row = await self._database.one(
            self._queries.doctor, chave=None if telefone is None else chave(telefone), quem=quem
        )
        if row is None:
            raise SemPessoa
        return row


# Columns that contain a reason, each with the prefix of the fields that show the reason to operators.
_REASONS: Final = {"erro": "erro", "outcome_reason_code": "outcome_reason"}


def in_words(row: Row | dict[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    """Convert a row for operators: times become local times, and each reason becomes its sentence, its code and its
    facts.
    """
    values: dict[str, Any] = {}
    for name, value in dict(row).items():
        if name in _REASONS:
            reason, field = decode(value), _REASONS[name]
            values |= {field: reason, **describe_reason(reason, field)}
        else:
            values[name] = value.astimezone(zone).isoformat() if isinstance(value, datetime) else value
    return values
