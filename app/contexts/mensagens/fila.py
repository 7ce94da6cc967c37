"""``fila_mensagens`` as a queue, and the words its rows use.

    pendente ──claim──▶ processando ──▶ enviada | bloqueada | erro | cancelada
        ▲                    │
        └── retry, snooze ◀──┘

Beside the status stands ``envio_estado``, for what is not known about a send. It is written before the message is handed to the
gateway and taken away when it is certain what became of it; while it stands there nobody claims the row, whatever its status
says and whoever wrote it. So a worker that dies in between leaves a doubt behind, and never a second message.
"""

from enum import StrEnum

from batuta.queues import QueueTable


class StatusDaMensagem(StrEnum):
    PENDENTE = "pendente"
    PROCESSANDO = "processando"
    ENVIADA = "enviada"
    BLOQUEADA = "bloqueada"  # a guardrail said no, for good; written by the effect of the settlement
    ERRO = "erro"
    CANCELADA = "cancelada"


class EnvioEstado(StrEnum):
    INTENT = "intent"  # about to be handed to the gateway
    UNKNOWN = "unknown"  # perhaps handed over: to be reconciled
    PARKED = "parked"  # nobody can tell: a person decides


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
