"""Interface of messages for other contexts: the queue, the types, the outcomes, the listeners, the limits, the sending
rules, and the reasons that prevent a message.
"""

from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.fila import FILA_MENSAGENS, EnvioEstado, StatusDaMensagem, na_conta
from app.contexts.mensagens.guardrails import (
    BETWEEN_CAMPAIGNS,
    BY_PERSON,
    CAMPAIGN_PAUSED,
    CONTACTS_IN_A_WEEK,
    LEAVES_WITHIN,
    TIMELY,
    TRIGGER_OFF,
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
from app.contexts.mensagens.impedimentos import IMPEDIMENTOS
from app.contexts.mensagens.interruptores import SAFE_MODE
from app.contexts.mensagens.limites import DIA, HORA, HORARIO, Limites, TipoDeMensagem
from app.contexts.mensagens.ouvintes import AoEnviar, MensagemEncerrada, Ouvintes
from app.contexts.mensagens.regras import PAUSES, Switches
from app.contexts.mensagens.tipos import TIPOS, NovaMensagem, Tipo, Trato, gatilho_de

__all__ = [
    "BETWEEN_CAMPAIGNS",
    "BY_PERSON",
    "CAMPAIGN_PAUSED",
    "CONTACTS_IN_A_WEEK",
    "DIA",
    "FILA_MENSAGENS",
    "HORA",
    "HORARIO",
    "IMPEDIMENTOS",
    "LEAVES_WITHIN",
    "PAUSES",
    "SAFE_MODE",
    "TIMELY",
    "TIPOS",
    "TRIGGER_OFF",
    "WITHOUT_LINE",
    "Adia",
    "AoEnviar",
    "Bloqueia",
    "DecisaoDeEnvio",
    "Desfecho",
    "EnvioEstado",
    "Libera",
    "Limites",
    "Medico",
    "MensagemEncerrada",
    "NovaMensagem",
    "Ouvintes",
    "PedidoDeEnvio",
    "RegrasDeEnvio",
    "StatusDaMensagem",
    "Switches",
    "Tipo",
    "TipoDeMensagem",
    "Trato",
    "decide",
    "gatilho_de",
    "na_conta",
    "open_time",
]
