"""Messages for other contexts: the queue, the outcomes, the limits and the rules that hold or block a message."""

from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.fila import FILA_MENSAGENS, EnvioEstado, StatusDaMensagem
from app.contexts.mensagens.guardrails import (
    BETWEEN_CAMPAIGNS,
    BY_PERSON,
    CONTACTS_IN_A_WEEK,
    LEAVES_WITHIN,
    TIMELY,
    WITHOUT_LINE,
    Adia,
    Bloqueia,
    DecisaoDeEnvio,
    Libera,
    Medico,
    PedidoDeEnvio,
    RegrasDeEnvio,
    decide,
    open_time,
)
from app.contexts.mensagens.limites import DIA, HORA, HORARIO, Limites, TipoDeMensagem
from app.contexts.mensagens.regras import PAUSES, SAFE_MODE

__all__ = [
    "BETWEEN_CAMPAIGNS",
    "BY_PERSON",
    "CONTACTS_IN_A_WEEK",
    "DIA",
    "FILA_MENSAGENS",
    "HORA",
    "HORARIO",
    "LEAVES_WITHIN",
    "PAUSES",
    "SAFE_MODE",
    "TIMELY",
    "WITHOUT_LINE",
    "Adia",
    "Bloqueia",
    "DecisaoDeEnvio",
    "Desfecho",
    "EnvioEstado",
    "Libera",
    "Limites",
    "Medico",
    "PedidoDeEnvio",
    "RegrasDeEnvio",
    "StatusDaMensagem",
    "TipoDeMensagem",
    "decide",
    "open_time",
]
