"""Keep the records of sent messages, opt-outs and removals when an older backup replaces the database.

If the replaced database can be read, its records take precedence. Otherwise, opt-outs and removals come from the
journal, and before each queued message is sent, Julia searches the gateway for it (``envio``).
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from app.contexts.conversas.api import Diario, digest
from app.contexts.conversas.service import Conversas
from batuta.kernel import dataclass
from batuta.sql import (
    DatabaseId,
    Dialect,
    Query,
    Reading,
    Restored,
    Row,
    Transaction,
    as_values,
    insert_rows,
    load_queries,
)

_CHANGED = (
    "id", "status", "tentativas", "erro", "enviada_em", "finalizada_em", "outcome", "outcome_reason_code", "outcome_at", "chip_id",
    "conta_id", "provider_message_id", "envio_estado", "envio_desde", "envio_hash", "cancelamento_pedido", "updated_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RestoreQueries:
    messages: Query
    people: Query
    phones: Query
    externals: Query
    contacts: Query
    echoes: Query
    doctors: Query
    campaigns: Query
    chips: Query
    accounts: Query
    take_over: Query
    unmatched: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterFacts:
    """Records of sent messages, opt-outs and removals in the replaced database that are newer than the restored backup."""

    messages: Sequence[Row]
    people: Sequence[Row]
    externals: Sequence[Row]
    contacts: Sequence[Row]
    echoes: Sequence[Row]


class Restauracao:
    def __init__(self, dialect: Dialect, conversas: Conversas, diario: Diario | None) -> None:
        self._dialect = dialect
        self._conversas = conversas
        self._diario = diario
        self._queries = load_queries(RestoreQueries, "sql/restauracao.sql", dialect)

    async def collect(self, old: Reading, since: datetime) -> LaterFacts:
        return LaterFacts(
            messages=await old.all(self._queries.messages, since=since),
            people=await old.all(self._queries.people),
            externals=await old.all(self._queries.externals),
            contacts=await old.all(self._queries.contacts, since=since),
            echoes=await old.all(self._queries.echoes, since=since),
        )

    async def apply(self, new: Transaction, collected: LaterFacts | None, restored: Restored) -> Mapping[str, int]:
        counts = {"messages": 0, "optouts": 0, "removals": 0}
        if collected is not None:
            counts["messages"] = await self._carry_over(new, collected)
            for person in collected.people:
                if person["parou"]:
                    counts["optouts"] += await self._stop(new, person["telefone"], restored)
                if person["deleted_at"] is not None:
                    counts["removals"] += await self._remove(new, person["id"], restored)
            for external in collected.externals:
                counts["optouts"] += await self._stop(new, external["telefone"], restored)
        return await self._replay(new, restored, counts)

    async def _carry_over(self, new: Transaction, old: LaterFacts) -> int:
        """Copy the outcomes of messages from the replaced database.

        A message that is missing from the backup is copied only if it was sent, or may have been sent.
        """
        there = {name: await self._ids(new, query) for name, query in self._parents.items()}
        known = 0
        for row in old.messages:
            values = dict(row)
            values |= {name: None for name, ids in there.items() if values[name] not in ids}
            if values["envio_estado"] is not None:
                values["status"] = "pendente"  # the lease in the replaced database is void
            if await new.run(self._queries.take_over, **{name: values[name] for name in _CHANGED}):
                known += 1
            elif values["cliente_id"] is not None and (values["status"] == "enviada" or values["envio_estado"]):
                known += await insert_rows(new, self._dialect, "fila_mensagens", as_values([values], ("metadata",)))
        contacts = [row for row in old.contacts if self._is_there(row, there)]
        await insert_rows(new, self._dialect, "campaign_contact_history", as_values(contacts))
        await insert_rows(new, self._dialect, "provedor_mensagens", as_values(old.echoes))
        return known

    @property
    def _parents(self) -> dict[str, Query]:
        return {
            "cliente_id": self._queries.doctors,
            "campanha_id": self._queries.campaigns,
            "chip_id": self._queries.chips,
            "conta_id": self._queries.accounts,
        }

    async def _ids(self, new: Transaction, query: Query) -> set[object]:
        return {None, *(row["id"] for row in await new.all(query))}

    def _is_there(self, contact: Row, there: Mapping[str, set[object]]) -> bool:
        return contact["cliente_id"] in there["cliente_id"] and contact["campaign_id"] in there["campanha_id"]

    async def _replay(self, new: Transaction, restored: Restored, counts: dict[str, int]) -> dict[str, int]:
        """Apply the opt-outs and removals in the journal to the restored database, even if the replaced database could
        be read.
        """
        entries = [] if self._diario is None else self._diario.entries()
        key = await DatabaseId(self._dialect).read(new)
        if not entries or key is None:
            return counts
        people = {digest(key, row["telefone"]): row for row in await new.all(self._queries.phones)}
        externals = {digest(key, row["telefone"]) for row in await new.all(self._queries.externals)}
        for entry in entries:
            person = people.get(entry.digest)
            if person is None and entry.digest in externals:
                continue
            if person is None:
                counts["optouts"] += await new.run(
                    self._queries.unmatched, digest=entry.digest, now=restored.restored_at
                )
                continue
            counts["optouts"] += await self._stop(new, person["telefone"], restored)
            if entry.kind != "optout":
                counts["removals"] += await self._remove(new, person["id"], restored)
        return counts

    async def _stop(self, new: Transaction, telefone: str, restored: Restored) -> int:
        origem = f"restauracao:{restored.restored_at.isoformat()}"
        return int(await self._conversas.parar_de_novo(new, telefone, origem=origem, now=restored.restored_at))

    async def _remove(self, new: Transaction, cliente_id: str, restored: Restored) -> int:
        return int(await self._conversas.remover(new, cliente_id, now=restored.restored_at))
