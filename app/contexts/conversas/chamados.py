"""Listeners for two events. In the first, a message needs a team member. In the second, a person takes over a
conversation, hands it back to Julia, or ends it.

The listeners run in the transaction that changes the pending list or the conversation.
"""

from datetime import datetime
from typing import Protocol

from batuta.kernel import dataclass
from batuta.sql import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Chamado:
    """A request for a team member to answer a conversation. Repeated requests for the same reason have the same
    ``chave``.
    """

    chave: str
    motivo: str  # a value of MotivoDaPendencia, or the reason of an escalation
    conversa_id: str | None  # None if the sender is not a doctor
    pendencia_id: str | None


class AoChamar(Protocol):
    async def chamada(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        """Handle a request for a person to answer a conversation. The same request may arrive twice, with the same
        ``chave``.
        """


class AoMudar(Protocol):
    async def mudada(self, transaction: Transaction, conversa_id: str, *, now: datetime) -> None:
        """React when a conversation ends, or passes between Julia and a person or from one person to another."""


class Chamados:
    """One process's listeners for requests to the team and for changes to conversations. They are registered when the
    process starts.
    """

    def __init__(self) -> None:
        self._listeners: list[AoChamar] = []
        self._of_changes: list[AoMudar] = []

    def ao_mudar(self, ouvinte: AoMudar) -> None:
        self._of_changes.append(ouvinte)

    async def mudar(self, transaction: Transaction, conversa_id: str, *, now: datetime) -> None:
        for each in self._of_changes:
            await each.mudada(transaction, conversa_id, now=now)

    def ao_chamar(self, ouvinte: AoChamar) -> None:
        self._listeners.append(ouvinte)

    async def chamar(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        for each in self._listeners:
            await each.chamada(transaction, chamado, now=now)
