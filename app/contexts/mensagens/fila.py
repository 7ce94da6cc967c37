"""The send queues for WhatsApp and Telegram, which share the table ``fila_mensagens``, and the states of its rows.

    pendente ──claim──▶ processando ──▶ enviada | bloqueada | erro | cancelada
        ▲                    │
        └── retry, snooze ◀──┘

``envio_estado`` is a second state of a row, for a send whose result is unknown. The worker sets it before the request
to the gateway and clears it when the result is certain. While it is set, no worker claims the row. Therefore, if a
worker dies during a send, the message is not sent twice: its result stays unknown until Julia finds out or an operator
decides.
"""

from dataclasses import replace
from enum import StrEnum
from typing import Final

from batuta.queues import NewItem, QueueTable


class StatusDaMensagem(StrEnum):
    PENDENTE = "pendente"
    PROCESSANDO = "processando"
    ENVIADA = "enviada"
    BLOQUEADA = "bloqueada"  # a rule forbids the message permanently; set in the transaction that settles it
    ERRO = "erro"
    CANCELADA = "cancelada"


class EnvioEstado(StrEnum):
    INTENT = "intent"  # the request to the gateway is about to be made
    UNKNOWN = "unknown"  # the gateway may have received the message; a loop finds out
    PARKED = "parked"  # no proof was found; an operator decides


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
# Queue for Telegram messages, in the same table. Each account sends one message at a time, so that an account that
# hangs blocks only one message.
TELEGRAM_SAIDA: Final = "telegram_saida"
# Maximum number of attempts on Telegram. Every attempt has the same random_id, so a retry cannot send a message twice.
TRIES_ON_TELEGRAM: Final = 8
FILA_TELEGRAM = replace(
    FILA_MENSAGENS, group="conta_id", ready_index="telegram_saida_ready", crash_cap=TRIES_ON_TELEGRAM
)


def na_conta(item: NewItem, conta: str) -> NewItem:
    """Return a message as a row of the Telegram queue, to be sent by the given account."""
    return replace(item, values={**item.values, "conta_id": conta, "max_tentativas": TRIES_ON_TELEGRAM})
