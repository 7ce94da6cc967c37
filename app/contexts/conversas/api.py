"""Conversations for other contexts: listeners for inbound messages, the pending list of people, the journal of opt-outs."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.contexts.conversas.diario import Diario, digest
from app.contexts.conversas.pendencias import MotivoDaPendencia, Pendencias
from app.contexts.leitura_conversas.api import Leitura
from batuta.sql import Transaction

__all__ = [
    "AoReceber",
    "Diario",
    "MensagemRecebida",
    "MotivoDaPendencia",
    "Pendencias",
    "digest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MensagemRecebida:
    """A recorded inbound message. ``texto``, ``telefone`` and ``leitura.trechos`` are personal data: never for a log.

    ``feitos``: what Julia and the listeners before this one did about it, in order.
    """

    message_id: str
    cliente_id: str | None  # None: no row of ``clientes`` has the number
    tipo_cliente: str | None  # medico, divulgador
    conversa_id: str | None
    chip_id: str | None
    telefone: str | None  # None: a hidden address whose number is unknown
    texto: str  # empty: only media
    midia: str | None
    leitura: Leitura
    com_pessoa: bool  # a person of the team has the conversation: no listener answers
    em: datetime
    feitos: tuple[str, ...] = ()


class AoReceber(Protocol):
    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """Act on an inbound message, in the transaction that records it; called once for each message.

        Return a short name of what was done for the person who wrote (``reserva_pedida``, ``resposta``). None: nothing
        was, or only bookkeeping. If no listener acts, the message waits for a person.
        """
