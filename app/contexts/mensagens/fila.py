"""``fila_mensagens`` as a queue, and the states of its rows.

    pendente ──claim──▶ processando ──▶ enviada | bloqueada | erro | cancelada
        ▲                    │
        └── retry, snooze ◀──┘

``envio_estado`` is the second state of a row, for a send whose result is not known. It is set before the message is
handed to the gateway and cleared when the result is certain. While it is set, no worker claims the row, regardless
of its status. A worker that dies during a send therefore leaves a doubt, never a second message.
"""

from enum import StrEnum

from batuta.queues import QueueTable


class StatusDaMensagem(StrEnum):
    PENDENTE = "pendente"
    PROCESSANDO = "processando"
    ENVIADA = "enviada"
    BLOQUEADA = "bloqueada"  # a rule forbids it for good; written by the effect of the settlement
    ERRO = "erro"
    CANCELADA = "cancelada"


class EnvioEstado(StrEnum):
    INTENT = "intent"  # about to be handed to the gateway
    UNKNOWN = "unknown"  # may have been handed to the gateway; to be reconciled
    PARKED = "parked"  # no proof: an operator decides


FILA_MENSAGENS = QueueTable(
    name="fila_mensagens",
    ready=(StatusDaMensagem.PENDENTE.value,),
    running=StatusDaMensagem.PROCESSANDO.value,
    done=StatusDaMensagem.ENVIADA.value,
    dead=StatusDaMensagem.ERRO.value,
    cancelled=StatusDaMensagem.CANCELADA.value,
    attempts="tentativas",
    crashes="quedas",
    available_at="agendar_para",
    error="erro",
    finished_at="finalizada_em",
    started_at="processando_desde",
    updated_at="updated_at",
    priority="prioridade",
    urgent_is_high=True,
    key="chave",
    cancel_requested="cancelamento_pedido",
    doubt="envio_estado",
)
