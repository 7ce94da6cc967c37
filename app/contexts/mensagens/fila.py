"""``fila_mensagens`` as the queues of both channels, and the states of its rows.

    pendente ──claim──▶ processando ──▶ enviada | bloqueada | erro | cancelada
        ▲                    │
        └── retry, snooze ◀──┘

``envio_estado`` is the second state of a row, for a send whose result is not known. It is set before the message is
handed to the gateway and cleared when the result is certain. While it is set, no worker claims the row, regardless
of its status. A worker that dies during a send therefore leaves a doubt, never a second message.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final

from batuta.queues import NewItem, QueueTable


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
    queue="fila",
)
# The queue of messages on Telegram, in the same table. One message of an account is sent at a time, so that an account
# that hangs holds one place only.
TELEGRAM_SAIDA: Final = "telegram_saida"
# Every attempt on Telegram has the same random_id, so a retry cannot send a message twice.
TRIES_ON_TELEGRAM: Final = 8
FILA_TELEGRAM = replace(
    FILA_MENSAGENS, group="conta_id", ready_index="telegram_saida_ready", crash_cap=TRIES_ON_TELEGRAM
)


def na_conta(item: NewItem, conta: str) -> NewItem:
    """Return a message as a row of the Telegram queue, to be sent by this account."""
    return replace(item, values={**item.values, "conta_id": conta, "max_tentativas": TRIES_ON_TELEGRAM})
