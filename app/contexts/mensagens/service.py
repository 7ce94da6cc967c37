"""Operations on the send queue for other contexts.

The transaction that records a sent message locks rows in this order: the message, the doctor's state, the conversation,
the campaign, the chip. A transaction that changes messages in progress uses the same order, because two transactions
with different orders may wait for each other (a deadlock).
"""

from datetime import datetime
from enum import StrEnum
from typing import assert_never

from app.contexts.mensagens.desfecho import Desfecho
from app.contexts.mensagens.guardrails import CAMPAIGN_PAUSED, WITH_PERSON
from app.contexts.mensagens.ouvintes import Ouvintes
from batuta.kernel import dataclass
from batuta.queues import LONGEST_ERROR
from batuta.reasons import define, encode, prefix_of
from batuta.sql import Dialect, Query, Transaction, load_queries

CAMPAIGN_CANCELLED = define("campanha_cancelada", "the campaign was cancelled")
CANCELLED_BY_PERSON = define("cancelada_na_devolucao", "the person who handled the conversation cancelled the message")


class NaDevolucao(StrEnum):
    """A person's decision about messages that were held back while the person handled the conversation."""

    CONTINUAR = "continuar"
    CANCELAR = "cancelar"


@dataclass(frozen=True, slots=True)
class MessageQueries:
    alone: Query
    hold_campaign: Query
    cancel_waiting: Query
    ask_to_stop: Query
    cancel_campaign: Query
    ask_campaign_to_stop: Query
    release_campaign: Query
    cancel_held: Query
    ask_held_to_stop: Query
    release_held: Query
    wake: Query


class Mensagens:
    def __init__(self, dialect: Dialect, ouvintes: Ouvintes | None = None) -> None:
        """Create the service for the send queue. ``ouvintes`` is called for each message that this service cancels."""
        self.ouvintes = ouvintes or Ouvintes()
        self._queries = load_queries(MessageQueries, "sql/mensagens.sql", dialect)

    async def travar(self, transaction: Transaction, cliente_id: str) -> None:
        """Lock the doctor until the transaction ends, so that decisions about the doctor cannot overlap.

        A transaction that forbids messages to the doctor must lock the doctor first. Once it has committed, only a
        message whose intent was already stored can still be sent.
        """
        await transaction.one(self._queries.alone, cliente_id=cliente_id)

    async def cancelar(
        self, transaction: Transaction, cliente_id: str, *, outcome: str, reason: str, now: datetime
    ) -> int:
        """Cancel a doctor's queued messages. Request a stop for messages to the doctor that are being sent. Return the
        number of cancelled messages.
        """
        await transaction.run(self._queries.ask_to_stop, cliente_id=cliente_id)
        cancelled = await transaction.all(
            self._queries.cancel_waiting,
            cliente_id=cliente_id,
            outcome=outcome,
            reason=encode(reason, LONGEST_ERROR),
            now=now,
        )
        await self.ouvintes.encerradas(transaction, cancelled, Desfecho(outcome), now=now)
        return len(cancelled)

    async def travar_campanha(self, transaction: Transaction, campanha_id: int) -> None:
        """Lock a campaign's messages that have not ended. A transaction that cancels the campaign calls this method
        before it changes the campaign.
        """
        await transaction.one(self._queries.hold_campaign, campanha_id=campanha_id)

    async def cancelar_campanha(self, transaction: Transaction, campanha_id: int, *, now: datetime) -> int:
        """Cancel a campaign's queued messages. Request a stop for the campaign's messages that are being sent. Return
        the number of cancelled messages.
        """
        await transaction.run(self._queries.ask_campaign_to_stop, campanha_id=campanha_id)
        cancelled = await transaction.all(
            self._queries.cancel_campaign,
            campanha_id=campanha_id,
            reason=encode(CAMPAIGN_CANCELLED(), LONGEST_ERROR),
            now=now,
        )
        await self.ouvintes.encerradas(transaction, cancelled, Desfecho.FAILED_EXPIRED, now=now)
        return len(cancelled)

    async def soltar_campanha(self, transaction: Transaction, campanha_id: int, *, now: datetime) -> int:
        """Release the messages that were waiting because their campaign was paused, so that workers can send them
        immediately.
        """
        released = await transaction.run(
            self._queries.release_campaign, campanha_id=campanha_id, paused=prefix_of(CAMPAIGN_PAUSED), now=now
        )
        await transaction.one(self._queries.wake)
        return released

    async def devolver(self, transaction: Transaction, cliente_id: str, decisao: NaDevolucao, *, now: datetime) -> int:
        """Release or cancel Julia's queued messages to a doctor, as decided by the person who hands the conversation
        back to Julia or ends it. Call this method in the transaction that changes the conversation. Return the number
        of messages that were released or cancelled.
        """
        match decisao:
            case NaDevolucao.CONTINUAR:
                released = await transaction.run(
                    self._queries.release_held, cliente_id=cliente_id, held=prefix_of(WITH_PERSON), now=now
                )
                await transaction.one(self._queries.wake)
                return released
            case NaDevolucao.CANCELAR:
                await transaction.run(self._queries.ask_held_to_stop, cliente_id=cliente_id)
                reason = encode(CANCELLED_BY_PERSON(), LONGEST_ERROR)
                held = await transaction.all(self._queries.cancel_held, cliente_id=cliente_id, reason=reason, now=now)
                await self.ouvintes.encerradas(transaction, held, Desfecho.FAILED_EXPIRED, now=now)
                return len(held)
            case _:
                assert_never(decisao)
