"""The loops ``history`` and ``jobs``. The first runs backfills, which read chats' old messages. The second performs
actions on existing Telegram messages.

A backfill reads one page per attempt. It stores the page together with its position, so that it can continue there
after a crash. Repeating an edit, a deletion or a read mark is harmless. A forwarded message is a message to a doctor:
the loop ``jobs`` reads the original and queues it for forwarding. The loop ``outbound`` then sends it under the same
rules as every other message.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar

from app.contexts.comum.fila import Fila
from app.contexts.mensagens.api import NovaMensagem, Tipo, na_conta
from app.contexts.telegram.canal import ENCAMINHA, texto_de
from app.contexts.telegram.conexoes import FLOOD, OFFLINE, Conexoes
from app.contexts.telegram.contas import Contas
from app.contexts.telegram.entidades import EntidadesConhecidas
from app.contexts.telegram.entrada import Entrada
from app.contexts.telegram.porta import (
    Entidade,
    Falha,
    Feito,
    FloodWait,
    Historico,
    Linha,
    Metodo,
    Peer,
    PeerBlocked,
    PeerUnknown,
    Refused,
    reason_of,
)
from app.contexts.telegram.prazo import Prazos, chamar
from batuta import Done, Failed, Outcome, Snooze
from batuta.kernel import Clock, dataclass
from batuta.queues import ItemHandler, Lease, QueueTable, after_seconds
from batuta.reasons import define
from batuta.sql import Database, Query, Transaction, load_queries

T = TypeVar("T")
_QUEUE: Final = {
    "ready": ("pendente",),
    "running": "processando",
    "dead": "erro",
    "attempts": "tentativas",
    "crashes": "quedas",
    "error": "erro",
    "key": "chave",
    "group": "conta_id",
}
TELEGRAM_HISTORICO: Final = QueueTable(
    name="telegram_historico",
    done="concluido",
    cancelled="cancelado",
    cancel_requested="cancelamento_pedido",
    **_QUEUE,  # type: ignore[arg-type]
)
TELEGRAM_ACOES: Final = QueueTable(
    name="telegram_acoes",
    done="feita",
    cancelled="cancelada",
    **_QUEUE,  # type: ignore[arg-type]
)
RETRY: Final = after_seconds([5, 30, 120, 600, 1800])
PAGE: Final = 100
NEXT_PAGE = define("telegram_proxima_pagina", "{lidas} messages read; the next page follows")
NO_ORIGINAL = define("telegram_sem_original", "the chat has no message {mensagem}")
NO_DOCTOR = define("telegram_sem_medico", "the doctor who should receive the message no longer exists")
FAILED = define("telegram_pedido_falhou", "Telegram did not accept the request: {why}")


class Acao(StrEnum):
    EDITAR = "editar"
    APAGAR = "apagar"
    LER = "ler"
    ENCAMINHAR = "encaminhar"


_METODOS: Final = {
    Acao.EDITAR: Metodo.EDIT,
    Acao.APAGAR: Metodo.DELETE,
    Acao.LER: Metodo.MARK_READ,
    Acao.ENCAMINHAR: Metodo.HISTORY,
}


@dataclass(frozen=True, slots=True)
class TaskQueries:
    progress: Query
    backfills: Query
    sent: Query
    doctor: Query
    action: Query
    actions: Query
    forwarded: Query


def task_queries(dialect: Any) -> TaskQueries:
    return load_queries(TaskQueries, "sql/tarefas.sql", dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tarefas:
    database: Database
    conexoes: Conexoes
    contas: Contas
    entidades: EntidadesConhecidas
    entrada: Entrada
    saida: Fila
    prazos: Prazos
    clock: Clock

    def historico(self) -> ItemHandler:
        return ItemHandler(handle=self.ler_pagina, timeout=self.prazos.cycle, retry=RETRY, retry_timeout=True)

    def acoes(self) -> ItemHandler:
        return ItemHandler(handle=self.agir, timeout=self.prazos.cycle, retry=RETRY, retry_timeout=True)

    async def ler_pagina(self, lease: Lease) -> Outcome:
        """Read one page of a chat's old messages, and store it together with its position."""
        row, conta = lease.row, str(lease.row["conta_id"])
        linha = await self._ready(conta, Metodo.HISTORY)
        if isinstance(linha, Snooze):
            return linha
        entidade = await self._resolve(linha, row["destino"])
        if not isinstance(entidade, Entidade):
            return entidade
        after, most = row["cursor"], min(PAGE, row["maximo"] - row["lidas"])
        page = await self._call(
            linha,
            lambda limit: linha.history(entidade.peer, after=after, most=most, limit=limit),
            self.prazos.send,
            Metodo.HISTORY,
        )
        if not isinstance(page, Historico):
            return page
        read, is_over = (
            row["lidas"] + len(page.mensagens),
            not page.has_more or row["lidas"] + len(page.mensagens) >= row["maximo"],
        )
        async with self.database.transaction() as transaction:
            await self._store(transaction, lease, conta, page)
        return Done() if is_over else Snooze(timedelta(0), NEXT_PAGE(lidas=read))

    async def _store(self, transaction: Transaction, lease: Lease, conta: str, page: Historico) -> None:
        new = await self.entrada.guardar_historico(transaction, conta, page.mensagens)
        key = {"id": lease.id, "fence": lease.fence}
        queries = task_queries(self.database.dialect)
        await transaction.run(queries.progress, **key, cursor=page.ate, lidas=len(page.mensagens), novas=new)

    async def agir(self, lease: Lease) -> Outcome:
        """Perform a queued action on a Telegram message: edit it, delete it, mark it as read, or queue it for
        forwarding.
        """
        row, conta, acao = lease.row, str(lease.row["conta_id"]), Acao(lease.row["acao"])
        linha = await self._ready(conta, _METODOS[acao])
        if isinstance(linha, Snooze):
            return linha
        entidade = await self._resolve(linha, row["chat"])
        if not isinstance(entidade, Entidade):
            return entidade
        peer, id = entidade.peer, row["mensagem"]
        if acao is Acao.ENCAMINHAR:
            return await self._forward(lease, linha, peer)
        calls: dict[Acao, Callable[[timedelta], Awaitable[Feito | Falha]]] = {
            Acao.EDITAR: lambda limit: linha.edit(peer, id, row["texto"], limit=limit),
            Acao.APAGAR: lambda limit: linha.delete(peer, [id], limit=limit),
            Acao.LER: lambda limit: linha.mark_read(peer, id, limit=limit),
        }
        done = await self._call(linha, calls[acao], self.prazos.send, _METODOS[acao])
        return Done() if isinstance(done, Feito) else done

    async def _forward(self, lease: Lease, linha: Linha, peer: Peer) -> Outcome:
        """Read the original of a message to forward, and queue the forward in the transaction that settles the action."""
        row, id = lease.row, lease.row["mensagem"]
        page = await self._call(
            linha,
            lambda limit: linha.history(peer, after=id - 1, most=1, limit=limit),
            self.prazos.send,
            Metodo.HISTORY,
        )
        if not isinstance(page, Historico):
            return page
        if (original := next((each for each in page.mensagens if each.id == id), None)) is None:
            return Failed(NO_ORIGINAL(mensagem=id), permanent=True)
        queries = task_queries(self.database.dialect)
        doctor = await self.database.one(queries.doctor, chave=None, quem=row["destino"])
        if doctor is None:
            return Failed(NO_DOCTOR(), permanent=True)
        message = NovaMensagem(
            tipo=Tipo.MANUAL,
            cliente_id=str(doctor["id"]),
            telefone=doctor["telefone"],
            texto=texto_de(original),
            chave=f"telegram:acao:{lease.id}",
            metadata={"por": row["pedida_por"], ENCAMINHA: {"chat": peer.chave, "mensagem": id}},
        )
        item = na_conta(message.item(now=self.clock.now()), linha.conta)

        async def queue(transaction: Transaction) -> None:
            (queued,) = await self.saida.put([item], within=transaction)
            await transaction.run(queries.forwarded, id=lease.id, mensagem_id=queued)

        return Done(effect=queue)

    async def _ready(self, conta: str, metodo: Metodo) -> Linha | Snooze:
        for each in (metodo, Metodo.RESOLVE):
            if (wait := await self.contas.espera(self.database, conta, each)) is not None:
                return Snooze(wait.ate, wait.motivo)
        linha = self.conexoes.linha(conta)
        return linha or Snooze(self.conexoes.retry_at(conta), OFFLINE(why=self.conexoes.why(conta)))

    async def _resolve(self, linha: Linha, destino: str) -> Entidade | Outcome:
        found = await self._call(
            linha, lambda limit: linha.resolve(destino, limit=limit), self.prazos.entity, Metodo.RESOLVE
        )
        if isinstance(found, Entidade):
            await self.entidades.keep(linha.conta, [found])
        return found

    async def _call(
        self, linha: Linha, call: Callable[[timedelta], Awaitable[T | Falha]], limit: timedelta, metodo: Metodo
    ) -> T | Outcome:
        """Call the Telegram client. If Telegram answers with a flood wait, store the wait for the account. If the
        connection fails, the queued item waits for a new connection.
        """
        result = await chamar(call, limit, self.clock, metodo.value)
        match result:
            case FloodWait(metodo=slow, wait=wait):
                until = await self.conexoes.esperar(linha.conta, slow, wait)
                return Snooze(until, FLOOD(metodo=slow.value, seconds=round(wait.total_seconds())))
            case PeerUnknown(why=why) | PeerBlocked(why=why) | Refused(why=why, permanent=True):
                return Failed(FAILED(why=why), permanent=True)
            case Refused(why=why):
                return Failed(FAILED(why=why))
            case _ if isinstance(result, Falha):
                await self.conexoes.handle_failure(linha, result)
                return Snooze(self.conexoes.retry_at(linha.conta), OFFLINE(why=reason_of(result)))
            case _:
                return result
