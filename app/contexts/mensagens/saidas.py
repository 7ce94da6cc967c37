"""Choose a message's channel. An answer uses the channel of the message that it answers. A message that a person wrote
uses the channel on which the doctor wrote last. All other messages use WhatsApp.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from app.contexts.comum.fila import Fila
from app.contexts.comum.telegram import conta_de
from app.contexts.mensagens.fila import na_conta
from app.contexts.mensagens.tipos import INBOUND, Tipo
from batuta.kernel import dataclass
from batuta.queues import NewItem
from batuta.sql import AsJson, Database, Query, Transaction, load_queries


@dataclass(frozen=True, slots=True)
class OutboundQueries:
    last_inbound: Query


class Saidas:
    def __init__(self, database: Database, whatsapp: Fila, telegram: Fila) -> None:
        self._database = database
        self._whatsapp = whatsapp
        self._telegram = telegram
        self._queries = load_queries(OutboundQueries, "sql/saidas.sql", database.dialect)

    async def put(
        self, items: Sequence[NewItem], within: Transaction | None = None, shared: Mapping[str, object] | None = None
    ) -> list[str | None]:
        """Queue messages, each on its channel, and return their ids. If a message with the same key is already queued,
        its id is None.
        """
        ids: list[str | None] = []
        for item in items:
            conta = await self._account(item, within or self._database)
            if conta is None:
                ids += await self._whatsapp.put([item], within=within, shared=shared)
            else:
                on_telegram = na_conta(item, conta)
                ids += await self._telegram.put([on_telegram], within=within, shared=shared)
        return ids

    async def _account(self, item: NewItem, reading: Transaction | Database) -> str | None:
        answered = _inbound(item)
        if answered is None and item.values.get("tipo") == Tipo.MANUAL:
            row = await reading.one(self._queries.last_inbound, cliente_id=item.values["cliente_id"])
            answered = None if row is None else row["provider_message_id"]
        return None if answered is None else conta_de(answered)


def _inbound(item: NewItem) -> str | None:
    metadata: Any = item.values.get("metadata")
    value = metadata.value.get(INBOUND) if isinstance(metadata, AsJson) and isinstance(metadata.value, dict) else None
    return value if isinstance(value, str) else None
