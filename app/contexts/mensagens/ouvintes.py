"""Listeners for messages that were sent, or that ended without being sent. They are called in the transaction that
settles the message.

A listener changes a conversation's stage, a counter or a flag after the message was sent. Code that queues a message
must not change them, because the message may never be sent.

If a listener raises an error, the settlement is rolled back: the message is recorded as neither sent nor ended until a
later call of the listener succeeds. Each call reports one outcome. An operator may retry an ended message, so
``enviada`` may follow ``encerrada``.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.tipos import Tipo
from batuta.kernel import dataclass
from batuta.sql import Row, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class MensagemEncerrada:
    """A message that was sent or will never be sent. ``em`` is the time at which it was sent, or at which a rule or an
    error decided that it will not be sent.
    """

    id: str
    tipo: str
    cliente_id: str
    conversa_id: str | None
    metadata: Mapping[str, Any]
    desfecho: Desfecho
    em: datetime


class AoEnviar(Protocol):
    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """React to a message that was sent."""

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """React to a message that will not be sent, because a rule blocked it, or because it was cancelled, failed or
        expired.
        """


class Ouvintes:
    """One process's listeners, by type of message. They are registered when the process starts."""

    def __init__(self) -> None:
        self._by_type: dict[str, list[AoEnviar]] = {}

    def registrar(self, tipos: Sequence[Tipo], ouvinte: AoEnviar) -> None:
        for tipo in tipos:
            self._by_type.setdefault(tipo.value, []).append(ouvinte)

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        for each in self._by_type.get(mensagem.tipo, ()):
            await each.enviada(transaction, mensagem)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        for each in self._by_type.get(mensagem.tipo, ()):
            await each.encerrada(transaction, mensagem)

    async def encerradas(
        self, transaction: Transaction, rows: Sequence[Row], desfecho: Desfecho, *, now: datetime
    ) -> None:
        """Call the listeners for messages that ended without being sent. The rows have the columns id, tipo,
        cliente_id, conversa_id and metadata.
        """
        for row in rows:
            await self.encerrada(
                transaction,
                MensagemEncerrada(
                    id=str(row["id"]),
                    tipo=row["tipo"],
                    cliente_id=row["cliente_id"],
                    conversa_id=row["conversa_id"],
                    metadata=row["metadata"] or {},
                    desfecho=desfecho,
                    em=now,
                ),
            )
