"""Operations of the send queue for other contexts."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.contexts.mensagens.guardrails import CAMPAIGN_PAUSED
from batuta.queues import LONGEST_ERROR
from batuta.reasons import define, encode, prefix_of
from batuta.sql import Dialect, Query, Transaction, load_queries

CAMPAIGN_CANCELLED = define("campanha_cancelada", "its campaign was cancelled")


@dataclass(frozen=True, slots=True)
class MessageQueries:
    cancel_waiting: Query
    ask_to_stop: Query
    cancel_campaign: Query
    ask_campaign_to_stop: Query
    release_campaign: Query
    wake: Query


class Mensagens:
    def __init__(self, dialect: Dialect) -> None:
        self._queries = load_queries(MessageQueries, Path(__file__).parent / "mensagens.sql", dialect)

    async def cancelar(
        self, transaction: Transaction, cliente_id: str, *, outcome: str, reason: str, now: datetime
    ) -> int:
        """Cancel waiting messages for this doctor and ask those in progress to stop; return the number cancelled."""
        await transaction.run(self._queries.ask_to_stop, cliente_id=cliente_id)
        return await transaction.run(
            self._queries.cancel_waiting,
            cliente_id=cliente_id,
            outcome=outcome,
            reason=encode(reason, LONGEST_ERROR),
            now=now,
        )

    async def cancelar_campanha(self, transaction: Transaction, campanha_id: int, *, now: datetime) -> int:
        """Cancel waiting messages of this campaign and ask those in progress to stop; return the number cancelled."""
        await transaction.run(self._queries.ask_campaign_to_stop, campanha_id=campanha_id)
        return await transaction.run(
            self._queries.cancel_campaign,
            campanha_id=campanha_id,
            reason=encode(CAMPAIGN_CANCELLED(), LONGEST_ERROR),
            now=now,
        )

    async def soltar_campanha(self, transaction: Transaction, campanha_id: int, *, now: datetime) -> int:
        """Make messages due that waited because their campaign was paused."""
        released = await transaction.run(
            self._queries.release_campaign, campanha_id=campanha_id, paused=prefix_of(CAMPAIGN_PAUSED), now=now
        )
        await transaction.one(self._queries.wake)
        return released
