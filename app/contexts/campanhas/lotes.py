"""Connect each campaign to an engine batch, which counts and cancels the campaign's messages.

The batch is created when the campaign starts. It stores no counts, because they are computed from the messages' rows.
When the batch ends, the campaign ends in the same transaction.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from app.contexts.campanhas.publico import MotivoDaExclusao
from app.contexts.campanhas.repository import list_expression
from app.contexts.mensagens.api import StatusDaMensagem
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from batuta import Batch, BatchProgress
from batuta.kernel import Clock, dataclass
from batuta.queues import BatchMembers, MemberCounts
from batuta.sql import AsJson, Dialect, Query, Reading, Transaction, load_text

# The state under which a batch counts a message. A message that a rule forbids counts as cancelled and not as failed.
COUNTED_AS: Final[Mapping[str, str]] = {
    "selecionado": "waiting",
    StatusDaMensagem.PENDENTE: "waiting",
    StatusDaMensagem.PROCESSANDO: "running",
    StatusDaMensagem.ENVIADA: "succeeded",
    StatusDaMensagem.ERRO: "failed",
    StatusDaMensagem.BLOQUEADA: "cancelled",
    StatusDaMensagem.CANCELADA: "cancelled",
}


class Lotes(Protocol):
    """The engine's batch operations that campaigns use."""

    def handle(self, id: str) -> Batch: ...

    async def create(
        self, name: str, *, members: BatchMembers | None = None, id: str | None = None, within: Any | None = None
    ) -> Batch: ...


@dataclass(frozen=True, slots=True)
class BatchQueries:
    unfinished: Query
    counts: Query
    campaigns: Query
    cancel: Query
    leave_out: Query
    conclude: Query


def batch_queries(dialect: Dialect) -> BatchQueries:
    file = Path(__file__).parent / "sql" / "lotes.sql"
    text = file.read_text(encoding="utf-8").replace("{lotes}", list_expression("lotes", dialect, "uuid"))
    return load_text(BatchQueries, text, file.name, dialect)


class MensagensDeCampanha:
    """Makes a campaign's messages the members of a batch: the batch counts and cancels the messages through this class.
    The campaign ends when its batch ends.
    """

    name = "campanhas"

    def __init__(self, dialect: Dialect, mensagens: Mensagens, eventos: Eventos, clock: Clock) -> None:
        self._mensagens = mensagens
        self._eventos = eventos
        self._clock = clock
        self._queries = batch_queries(dialect)

    async def find_unfinished(self, reading: Reading, ids: Sequence[str]) -> Collection[str]:
        rows = await reading.all(self._queries.unfinished, lotes=AsJson(list(ids)))
        return {str(row["lote_id"]) for row in rows}

    async def count(self, reading: Reading, ids: Sequence[str]) -> Mapping[str, MemberCounts]:
        found: dict[str, dict[str, int]] = {id: {} for id in ids}
        for row in await reading.all(self._queries.counts, lotes=AsJson(list(ids))):
            counts, state = found[str(row["lote_id"])], COUNTED_AS[row["status"]]
            counts[state] = counts.get(state, 0) + row["quantas"]
        return {id: MemberCounts(**counts) for id, counts in found.items()}

    async def cancel(self, transaction: Transaction, id: str, reason: str) -> None:
        for row in await transaction.all(self._queries.campaigns, lote=id):
            await self._mensagens.travar_campanha(transaction, row["id"])
        for row in await transaction.all(self._queries.cancel, lote=id, now=self._clock.now()):
            await self.cancel_messages(transaction, row["id"])

    async def cancel_messages(self, transaction: Transaction, campanha_id: int) -> None:
        """Cancel a campaign's queued messages, and request a stop for messages that are being sent. If a recipient's
        message is not queued yet, mark the recipient as excluded.
        """
        now, motivo = self._clock.now(), MotivoDaExclusao.CAMPANHA_CANCELADA.value
        await transaction.run(self._queries.leave_out, id=campanha_id, motivo=motivo, now=now)
        await self._mensagens.cancelar_campanha(transaction, campanha_id, now=now)

    async def end(self, transaction: Transaction, progress: BatchProgress) -> None:
        now = self._clock.now()
        for row in await transaction.all(self._queries.conclude, lote=progress.id, now=now):
            await self._eventos.record(
                transaction,
                "campanha_concluida",
                now=now,
                dedupe_key=f"campanha_concluida:{row['id']}",
                source="ops",
                props={"campanha_id": row["id"], "enviados": row["enviados"]},
            )
