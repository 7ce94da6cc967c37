"""The inbox: each Telegram message is stored once, together with its position in the stream of updates, and processed
later.

A private message belongs to the same conversation as the person's WhatsApp messages. A group message enters the groups
pipeline. A message that the account itself sent is an echo, which proves that the message was sent. Attachments are
stored only as references, without their content.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, assert_never

from app.contexts.comum.telefone import Address, telefone_de
from app.contexts.comum.whatsapp import Entrega
from app.contexts.conversas.service import Conversas
from app.contexts.grupos.service import Grupos
from app.contexts.telegram.contas import Contas
from app.contexts.telegram.entidades import SERVER, EntidadesConhecidas, message_id, peer_de, quem
from app.contexts.telegram.porta import (
    Apagadas,
    Atualizacao,
    Entidade,
    LidaPeloOutro,
    MensagemVista,
    Midia,
    Novidades,
    TipoDeChat,
)
from app.contexts.webhooks.api import DeGrupo, Eco, Fato, Ignorado, Recebida, Recibo
from batuta import Done
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.queues import ItemHandler, Lease, QueueTable, after_seconds
from batuta.sql import AsJson, Database, Query, Transaction, load_queries

TELEGRAM_ENTRADA: Final = QueueTable(
    name="telegram_entrada",
    ready=("pendente",),
    running="processando",
    done="processada",
    dead="erro",
    cancelled="cancelada",
    attempts="tentativas",
    crashes="quedas",
    error="erro",
    key="chave",
    group="chat",  # a chat's messages are processed in order, one at a time
)
TIMEOUT: Final = timedelta(seconds=60)
RETRY: Final = after_seconds([1, 5, 30, 120, 600])
LONGEST_TEXT: Final = 65_536
LONGEST_NAME: Final = 200
LONGEST_REFERENCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class InboxQueries:
    add: Query
    edit: Query
    delete: Query
    process: Query
    read_by_other: Query
    wake: Query


class Entrada:
    """Stores Telegram updates, and pages of a chat's old messages."""

    def __init__(
        self,
        database: Database,
        contas: Contas,
        entidades: EntidadesConhecidas,
        conversas: Conversas,
        ids: Ids,
        clock: Clock,
    ) -> None:
        self._database = database
        self._contas = contas
        self._entidades = entidades
        self._conversas = conversas
        self._ids = ids
        self._clock = clock
        self._queries = load_queries(InboxQueries, "sql/entrada.sql", database.dialect)

    async def guardar(self, conta: str, recebidas: Novidades) -> None:
        """Store updates together with the position after them in the stream of updates. Repeated updates have no
        effect.
        """
        seen = [each for each in recebidas.atualizacoes if isinstance(each, MensagemVista)]
        await self._entidades.keep(conta, _entities(seen))
        async with self._database.transaction() as transaction:
            for each in recebidas.atualizacoes:
                await self._store(transaction, conta, each)
            await self._contas.avancar(transaction, conta, recebidas.marca, is_news=bool(recebidas.atualizacoes))
            if seen:
                await transaction.one(self._queries.wake)

    async def guardar_historico(self, transaction: Transaction, conta: str, mensagens: Sequence[MensagemVista]) -> int:
        """Store a chat's old messages, and return how many were new. Julia does not answer old messages, but opt-outs
        in them apply, and their authors are linked to their phone numbers.
        """
        new = 0
        for seen in mensagens:
            row = _row(conta, seen)
            if not await self._add(transaction, seen, row, origem="historico"):
                continue
            new += 1
            if isinstance(fact := fact_of(row), Recebida):
                await self._conversas.historica(transaction, fact, now=self._clock.now())
        return new

    async def _store(self, transaction: Transaction, conta: str, update: Atualizacao) -> None:
        now = self._clock.now()
        match update:
            case MensagemVista():
                await self._receive(transaction, update, _row(conta, update))
            case Apagadas(chat=chat, ids=deleted):
                for id in deleted:
                    key = {"conta_id": conta, "mensagem": id, "chat": None if chat is None else chat.chave}
                    await transaction.run(self._queries.delete, **key, now=now)
            case LidaPeloOutro(chat=chat, ate=ate):
                rows = await transaction.all(self._queries.read_by_other, conta_id=conta, chat=chat.chave, ate=ate)
                for row in rows:
                    fact = Recibo(message_id=row["chave"], instance=conta, entrega=Entrega.READ)
                    await self._conversas.recibo(transaction, fact, now=now)
            case _:
                assert_never(update)

    async def _receive(self, transaction: Transaction, seen: MensagemVista, row: Mapping[str, Any]) -> None:
        if await self._add(transaction, seen, row, origem="atualizacao"):
            return
        if seen.editada is not None:
            new = {"texto": row["texto"], "editada_em": seen.editada}
            await transaction.run(self._queries.edit, chave=row["chave"], **new)
        elif not seen.chat.is_bot:
            # A backfill may have stored the message before its update arrived.
            await transaction.run(self._queries.process, chave=row["chave"], now=self._clock.now())

    async def _add(self, transaction: Transaction, seen: MensagemVista, row: Mapping[str, Any], *, origem: str) -> int:
        is_over, now = origem == "historico" or seen.chat.is_bot, self._clock.now()
        return await transaction.run(
            self._queries.add,
            **{**row, "midia": None if row["midia"] is None else AsJson(row["midia"])},
            id=self._ids.new(),
            origem=origem,
            status="processada" if is_over else "pendente",
            finished_at=now if is_over else None,
            now=now,
        )


class EntradaWork:
    """Processes stored Telegram messages. Each message's effects are written in the transaction that
    settles its row.
    """

    def __init__(self, conversas: Conversas, grupos: Grupos, clock: Clock) -> None:
        self._conversas = conversas
        self._grupos = grupos
        self._clock = clock

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=TIMEOUT, retry=RETRY, retry_timeout=True)

    async def handle(self, lease: Lease) -> Done:
        fact = fact_of(lease.row)

        async def write(transaction: Any) -> None:
            now = self._clock.now()
            match fact:
                case Recebida():
                    await self._conversas.recebida(transaction, fact, now=now)
                case Eco():
                    await self._conversas.eco(transaction, fact, now=now)
                case DeGrupo():
                    await self._grupos.ingerir(transaction, fact, now=now)

        return Done(effect=write)


def _row(conta: str, seen: MensagemVista) -> dict[str, Any]:
    """Return the columns that describe an inbound Telegram message."""
    chat, autor = seen.chat, seen.autor
    person = autor if autor is not None and not seen.is_own else chat
    return {
        "chave": message_id(conta, chat.peer, seen.id),
        "conta_id": conta,
        "chat": chat.peer.chave,
        "chat_nome": (chat.nome or "")[:LONGEST_NAME] or None,
        "mensagem": seen.id,
        "propria": seen.is_own,
        "quem": quem(person.peer),
        "autor_nome": None if seen.is_own else (person.nome or "")[:LONGEST_NAME] or None,
        "autor_telefone": telefone_de(person.telefone or ""),
        "texto": seen.texto[:LONGEST_TEXT],
        "midia": None if seen.midia is None else _reference(seen.midia),
        "resposta_a": seen.resposta_a,
        "encaminhada": seen.encaminhada,
        "em": seen.em,
        "editada_em": seen.editada,
    }


def fact_of(row: Any) -> Fato:
    """Convert a stored Telegram message to a ``Fato``, the type of inbound message that the conversation and group
    contexts process.
    """
    chat, conta = peer_de(row["chat"]), str(row["conta_id"])
    midia = None if row["midia"] is None else str(row["midia"]["tipo"])
    who = None if row["quem"] is None else Address(row["quem"], row["autor_telefone"], row["quem"])
    if chat.tipo is TipoDeChat.PESSOA and who is None:
        return Ignorado("no person")
    if chat.tipo is TipoDeChat.PESSOA and row["propria"] and who is not None:
        return Eco(
            message_id=row["chave"],
            instance=conta,
            para=who,
            texto=row["texto"] or None,
            entrega=Entrega.SENT,
            em=row["em"],
        )
    if chat.tipo is TipoDeChat.PESSOA and who is not None:
        return Recebida(
            message_id=row["chave"],
            instance=conta,
            de=who,
            nome=row["autor_nome"],
            texto=row["texto"],
            midia=midia,
            em=row["em"],
        )
    if row["propria"]:
        return Ignorado("an own message in a group")
    return DeGrupo(
        message_id=row["chave"],
        instance=conta,
        grupo=f"{row['chat']}@{SERVER}",
        autor=who,
        nome=row["autor_nome"],
        texto=row["texto"],
        midia=midia,
        encaminhada=row["encaminhada"],
        em=row["em"],
        citada=None if row["resposta_a"] is None else message_id(conta, chat, row["resposta_a"]),
    )


def _reference(midia: Midia) -> dict[str, Json]:
    """Return the attachment fields that are stored. Names in them are shortened, because the sender chooses them."""
    return {
        "tipo": midia.tipo,
        "referencia": midia.referencia[:LONGEST_REFERENCE],
        "nome": None if midia.nome is None else midia.nome[:LONGEST_NAME],
        "mime": None if midia.mime is None else midia.mime[:LONGEST_NAME],
        "tamanho": midia.tamanho,
    }


def _entities(seen: Sequence[MensagemVista]) -> list[Entidade]:
    return [*{each.peer.chave: each for message in seen for each in (message.chat, message.autor) if each}.values()]
