"""The types of queued messages (the values of ``fila_mensagens.tipo``), and how the sending rules treat each type.

A type that is not declared here is never sent. To add a type, add one line to ``Tipo`` and one to ``TIPOS``.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Final

from app.contexts.mensagens.limites import TipoDeMensagem
from batuta.kernel import Json, dataclass
from batuta.queues import NewItem
from batuta.sql import AsJson

# Metadata key for the switch that belongs to the message's trigger. While the switch is off, the message is held back.
GATILHO: Final = "gatilho"
# Metadata key of the inbound message that an answer refers to.
INBOUND: Final = "inbound_message_id"


class Tipo(StrEnum):
    CAMPANHA = "campanha"
    # messages that Julia initiates
    PROSPECCAO = "prospeccao"
    DISCOVERY = "discovery"
    OFERTA = "oferta"
    REATIVACAO = "reativacao"
    RECUPERACAO = "recuperacao"  # a question to the author of an incomplete offer
    FEEDBACK = "feedback"
    FOLLOWUP = "followup"
    FOLLOWUP_1 = "followup_1"
    FOLLOWUP_2 = "followup_2"
    FOLLOWUP_3 = "followup_3"
    LEMBRETE = "lembrete"
    CONFIRMACAO = "confirmacao"  # to a doctor, about a shift of that doctor
    HANDOFF = "handoff"  # to the person who posted a vacancy, because a doctor wants it
    LEMBRETE_HANDOFF = "lembrete_handoff"
    # answers, which must name their inbound message
    RESPOSTA = "resposta"
    RECEBIMENTO = "recebimento"  # sent outside the sending hours: confirms that an inbound message was received
    RETOMADA = "retomada"  # sent in the morning: answers an inbound message that arrived at night
    # messages that people or the system write
    MANUAL = "manual"
    SISTEMA = "sistema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trato:
    """The treatment of one type of message by the sending rules.

    ``como`` is the type whose limits, hours and chips apply. A message with a higher ``prioridade`` is sent first.
    ``gatilho`` is the switch for the trigger that queues this type; it is set only if a single trigger queues this
    type.
    """

    como: TipoDeMensagem
    prioridade: int
    responde: bool = False  # counts as an answer if it names its inbound message, otherwise as ``como``
    gatilho: str | None = None
    sem_teto: bool = False  # concerns a vacancy that the person took or posted, so the weekly limit does not apply


TIPOS: Final[Mapping[str, Trato]] = {
    Tipo.CAMPANHA: Trato(como=TipoDeMensagem.CAMPANHA, prioridade=3),
    Tipo.PROSPECCAO: Trato(como=TipoDeMensagem.PROSPECCAO, prioridade=4),
    Tipo.DISCOVERY: Trato(como=TipoDeMensagem.PROSPECCAO, prioridade=4, gatilho="discovery_automatico_enabled"),
    # Operators offer vacancies too, so an offer from a trigger names the trigger in its metadata.
    Tipo.OFERTA: Trato(como=TipoDeMensagem.PROSPECCAO, prioridade=4),
    Tipo.REATIVACAO: Trato(como=TipoDeMensagem.PROSPECCAO, prioridade=4, gatilho="reativacao_automatica_enabled"),
    Tipo.RECUPERACAO: Trato(como=TipoDeMensagem.PROSPECCAO, prioridade=3, gatilho="recuperacao_automatica_enabled"),
    Tipo.FEEDBACK: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5, gatilho="feedback_automatico_enabled"),
    Tipo.FOLLOWUP: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5),
    Tipo.FOLLOWUP_1: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5),
    Tipo.FOLLOWUP_2: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5),
    Tipo.FOLLOWUP_3: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5),
    Tipo.LEMBRETE: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=5),
    Tipo.CONFIRMACAO: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=6, sem_teto=True),
    # Operators open hand-offs too, so a first message from a trigger names the trigger in its metadata.
    Tipo.HANDOFF: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=6, sem_teto=True),
    Tipo.LEMBRETE_HANDOFF: Trato(
        como=TipoDeMensagem.FOLLOWUP, prioridade=6, gatilho="external_handoff.enabled", sem_teto=True
    ),
    Tipo.RESPOSTA: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=8, responde=True),
    Tipo.RECEBIMENTO: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=8, responde=True),
    Tipo.RETOMADA: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=7, responde=True),
    Tipo.MANUAL: Trato(como=TipoDeMensagem.FOLLOWUP, prioridade=8),
    Tipo.SISTEMA: Trato(como=TipoDeMensagem.SISTEMA, prioridade=9),
}


def gatilho_de(tipo: str, metadata: Mapping[str, object], *, is_campaign: bool) -> str | None:
    """Return the switch for the trigger that queued a message, or None if no trigger queued it."""
    named = metadata.get(GATILHO)
    if isinstance(named, str):
        return named
    trato = TIPOS.get(tipo)
    return None if trato is None or is_campaign else trato.gatilho


@dataclass(frozen=True, slots=True, kw_only=True)
class NovaMensagem:
    """A message for the queue. While a message with the same ``chave`` is queued, no second message is added.

    ``gatilho`` names the switch of the trigger that queues the message. ``responde_a`` is the id of the inbound message
    that it answers. ``em`` is the earliest time at which it may be sent; None means immediately.
    """

    tipo: Tipo
    cliente_id: str
    telefone: str
    texto: str
    chave: str
    conversa_id: str | None = None
    gatilho: str | None = None
    responde_a: str | None = None
    em: datetime | None = None
    metadata: Mapping[str, Json] | None = None

    def item(self, *, now: datetime) -> NewItem:
        """Return the message's row for ``fila_mensagens``, with the priority of its type."""
        own = {GATILHO: self.gatilho or TIPOS[self.tipo].gatilho, INBOUND: self.responde_a}
        metadata = {**(self.metadata or {}), **{key: value for key, value in own.items() if value is not None}}
        return NewItem(
            values={
                "cliente_id": self.cliente_id,
                "telefone_destino": self.telefone,
                "conteudo": self.texto,
                "conversa_id": self.conversa_id,
                "tipo": self.tipo.value,
                "devida_em": self.em or now,
                "metadata": AsJson(metadata),
            },
            key=self.chave,
            priority=TIPOS[self.tipo].prioridade,
            available_at=self.em,
        )
