"""Count a campaign's reach: the doctors to whom a message was sent, who received it, and who answered.

Each doctor counts at most once in each of these numbers, even if events repeat or arrive out of order. All writes
happen in the caller's transaction.
"""

from datetime import datetime, timedelta
from typing import Final

from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, Transaction, load_queries

# An inbound message counts as an answer if it arrives at most this long after the campaign's message.
ANSWER_COUNTS: Final = timedelta(days=7)
# Tolerance between our clock and the gateway's clock, which has whole seconds.
CLOCKS_DIFFER: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class ReachQueries:
    reached: Query
    count_sent: Query
    delivered: Query
    count_delivered: Query
    last: Query
    wrote: Query
    answered: Query
    count_answered: Query


class Alcance:
    def __init__(self, dialect: Dialect) -> None:
        self._queries = load_queries(ReachQueries, "sql/alcance.sql", dialect)

    async def enviada(
        self,
        transaction: Transaction,
        campanha_id: int,
        cliente_id: str,
        message_id: str,
        *,
        em: datetime,
        now: datetime,
    ) -> None:
        """Count a message as sent. If its delivery receipt or the doctor's answer has already arrived,
        count that too.
        """
        await transaction.run(self._queries.count_sent, campanha_id=campanha_id, now=now)
        await transaction.run(self._queries.reached, cliente_id=cliente_id, campanha_id=campanha_id, em=em)
        await self.entregue(transaction, message_id, now=now)
        wrote = await transaction.one(self._queries.wrote, cliente_id=cliente_id, since=em - CLOCKS_DIFFER)
        if wrote is not None:
            await self.respondeu(transaction, cliente_id, em=wrote["created_at"], now=now)

    async def entregue(self, transaction: Transaction, message_id: str, *, now: datetime) -> None:
        if await transaction.run(self._queries.delivered, message_id=message_id, now=now):
            await transaction.run(self._queries.count_delivered, message_id=message_id, now=now)

    async def respondeu(self, transaction: Transaction, cliente_id: str, *, em: datetime, now: datetime) -> int | None:
        """Count an inbound message as the answer to a campaign. Return the id of that campaign, or None if the message
        answers no campaign.
        """
        last = await transaction.one(
            self._queries.last, cliente_id=cliente_id, since=em - ANSWER_COUNTS, until=em + CLOCKS_DIFFER
        )
        if last is None:
            return None
        campanha_id = int(last["campaign_id"])
        if await transaction.run(self._queries.answered, cliente_id=cliente_id, campanha_id=campanha_id, em=em):
            await transaction.run(self._queries.count_answered, campanha_id=campanha_id, now=now)
        return campanha_id
