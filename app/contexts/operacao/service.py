"""Store business events for operators and reports."""

from collections.abc import Mapping
from datetime import datetime

from batuta.kernel import Ids, Json, dataclass
from batuta.sql import AsJson, Dialect, Query, Transaction, load_queries


@dataclass(frozen=True, slots=True)
class EventQueries:
    record: Query


class Eventos:
    def __init__(self, dialect: Dialect, ids: Ids) -> None:
        self._queries = load_queries(EventQueries, "sql/eventos.sql", dialect)
        self._ids = ids

    async def record(
        self,
        transaction: Transaction,
        event_type: str,
        *,
        now: datetime,
        dedupe_key: str | None,
        source: str = "backend",
        cliente_id: str | None = None,
        vaga_id: str | None = None,
        hospital_id: str | None = None,
        conversation_id: str | None = None,
        props: Mapping[str, Json] | None = None,
    ) -> bool:
        """Store a business event in the transaction that makes the change reported by the event. Returns False if the
        event is already stored. ``props`` must not contain personal data.
        """
        return bool(
            await transaction.run(
                self._queries.record,
                id=self._ids.new(),
                now=now,
                event_type=event_type,
                source=source,
                cliente_id=cliente_id,
                vaga_id=vaga_id,
                hospital_id=hospital_id,
                conversation_id=conversation_id,
                props=AsJson(dict(props or {})),
                dedupe_key=dedupe_key,
            )
        )
