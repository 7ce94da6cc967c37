"""Calls for a person of the team: a conversation, or the message of a stranger, that Julia's rules do not answer.

The listeners run in the transaction that opens the entry of the pending list or escalates the conversation.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from batuta.sql import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Chamado:
    """A call for a person. ``chave`` is the same for repeated calls about the same need."""

    chave: str
    motivo: str  # a value of MotivoDaPendencia, or the reason of an escalation
    conversa_id: str | None  # None if the sender is not a doctor
    pendencia_id: str | None


class AoChamar(Protocol):
    async def chamada(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        """React to a call for a person. Calls with the same ``chave`` may repeat."""


class Chamados:
    """The listeners of one process for calls. The composition registers all of them before the process starts."""

    def __init__(self) -> None:
        self._listeners: list[AoChamar] = []

    def ao_chamar(self, ouvinte: AoChamar) -> None:
        self._listeners.append(ouvinte)

    async def chamar(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        for each in self._listeners:
            await each.chamada(transaction, chamado, now=now)
