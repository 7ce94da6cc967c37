"""Interface of the context ``conversas`` for other contexts: the stages of a conversation, listeners for inbound
messages and for requests to the team, the list of messages that wait for a team member, and the journal of opt-outs.
"""

from datetime import datetime
from typing import Protocol

from app.contexts.conversas.atendimento import (
    Atendimento,
    ConversaComPessoa,
    ConversaSemPessoa,
    EstagioDaConversa,
    Estagios,
)
from app.contexts.conversas.chamados import AoChamar, AoMudar, Chamado, Chamados
from app.contexts.conversas.diario import Diario, Resumos, digest
from app.contexts.conversas.pendencias import MotivoDaPendencia, Pendencias
from app.contexts.leitura_conversas.api import Leitura
from batuta.kernel import dataclass
from batuta.sql import Transaction

__all__ = [
    "AoChamar",
    "AoMudar",
    "AoReceber",
    "Atendimento",
    "Chamado",
    "Chamados",
    "ConversaComPessoa",
    "ConversaSemPessoa",
    "Diario",
    "EstagioDaConversa",
    "Estagios",
    "MensagemRecebida",
    "MotivoDaPendencia",
    "Pendencias",
    "Resumos",
    "digest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class MensagemRecebida:
    """A recorded inbound message. ``texto``, ``telefone`` and ``leitura.trechos`` are personal data and never logged.

    ``feitos`` has the names of the actions that Julia and the listeners have already taken because of this message, in
    the order in which they were taken.
    """

    message_id: str
    cliente_id: str | None  # None if no row of ``clientes`` has the number
    tipo_cliente: str | None  # medico or divulgador
    conversa_id: str | None
    chip_id: str | None
    telefone: str | None  # None for a hidden address whose number is unknown
    texto: str  # empty if the message has only media
    midia: str | None
    leitura: Leitura
    com_pessoa: bool  # True if a team member is handling the conversation, so that no listener answers
    em: datetime
    feitos: tuple[str, ...] = ()


class AoReceber(Protocol):
    async def recebida(self, transaction: Transaction, mensagem: MensagemRecebida, *, now: datetime) -> str | None:
        """React to an inbound message, in the transaction that records the message. The method is called once for each
        message.

        Return a short name for the action taken (``reserva_pedida``, ``resposta``), or None if the sender of the
        message would not notice the action. If every listener returns None, the message goes to the team's pending
        list.
        """
