"""Notify the team once that a conversation needs a person, or that the briefing changed.

    a person is needed ──▶ one row of ``avisos_equipe`` for each destination ──▶ enviado
                                                                           ├──▶ cancelado: a person has the conversation
                                                                           └──▶ erro: refused too often, or uncertain

The notice is queued in the transaction that records the need. If a request gets no answer, the notice is repeated only
if the destination recognises repetitions. Otherwise an operator repeats it with ``batuta queue retry``.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from app.contexts.comum.entrega import Entrega, Entregue, Recusado
from app.contexts.comum.fila import Fila
from app.contexts.comum.saude import report_count
from app.contexts.conversas.api import Chamado
from app.contexts.diretrizes.service import Aplicado
from batuta import Cancelled, Done, Failed, Outcome
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.kernel import Clock, dataclass
from batuta.queues import ItemHandler, Lease, NewItem, QueueTable, after_seconds
from batuta.reasons import define
from batuta.sql import Database, Query, Row, Transaction, load_queries

AVISOS: Final = QueueTable(
    name="avisos_equipe",
    ready=("pendente",),
    running="enviando",
    done="enviado",
    dead="erro",
    cancelled="cancelado",
    attempts="tentativas",
    crashes="quedas",
    error="erro",
    key="chave",
    result="resultado",
)
TIMEOUT: Final = timedelta(seconds=60)
# Waits between attempts, about ten hours in total. Later the notice is useless. The health check reports a notice that
# waits longer than LATE.
RETRY: Final = after_seconds([30, 120, 600, 1800, 3600, 7200, 10_800, 10_800])
LATE: Final = timedelta(minutes=10)
RECENT: Final = timedelta(hours=24)
LONGEST_MOTIVO: Final = 100
LONGEST_DETAIL: Final = 500
# ``motivo`` of the notice that the briefing changed.
BRIEFING: Final = "briefing"

NOT_NEEDED = define("aviso_desnecessario", "a person has taken over the conversation, or the message was answered")
NO_DESTINATION = define("aviso_sem_destino", "{destino} is no longer configured")
REFUSED = define("aviso_recusado", "{destino} did not accept the notice ({why}): check its address")
UNCERTAIN = define(
    "aviso_incerto",
    "{destino} may have the notice ({why}): look there, then `batuta queue retry avisos_equipe {id}` if it is missing",
)
DIED = define("aviso_interrompido", "the process stopped during the request")


@dataclass(frozen=True, slots=True, kw_only=True)
class Aviso:
    """A notice to the team, without personal data. ``conversa_id`` is None if the notice concerns no conversation: a
    stranger wrote, or the briefing changed.
    """

    id: str
    motivo: str
    conversa_id: str | None
    desde: datetime
    detalhe: str | None = None  # names of the directives that the briefing changed


class Canal(Protocol):
    """A destination for notices to the team."""

    @property
    def nome(self) -> str: ...
    @property
    def repete(self) -> bool:
        """True if the destination recognises a repeated notice by its id."""
        ...

    async def avisar(self, aviso: Aviso) -> Entrega: ...


@dataclass(frozen=True, slots=True)
class NoticeQueries:
    needed: Query
    begin: Query
    withdraw: Query
    unsent: Query


class Avisos:
    """Queues notices to the team when a conversation needs a person (listener ``AoChamar``) or when the briefing
    changes, and sends the queued notices.
    """

    def __init__(self, database: Database, canais: Sequence[Canal], clock: Clock) -> None:
        self.canais = {each.nome: each for each in canais}
        self._database = database
        self._clock = clock
        self._queries = load_queries(NoticeQueries, "sql/avisos.sql", database.dialect)
        self.fila: Fila | None = None  # set when the queue is registered

    async def chamada(self, transaction: Transaction, chamado: Chamado, *, now: datetime) -> None:
        """Queue a notice that a conversation needs a person, one for each destination. Skip a destination for which a
        notice with the same key was already queued.
        """
        if not self.canais or self.fila is None:
            return
        values = {
            "motivo": chamado.motivo[:LONGEST_MOTIVO],
            "conversa_id": chamado.conversa_id,
            "pendencia_id": chamado.pendencia_id,
        }
        items = [NewItem(values={**values, "destino": nome}, key=f"{nome}:{chamado.chave}") for nome in self.canais]
        await self.fila.put(items, within=transaction)

    async def aplicado(self, transaction: Transaction, aplicado: Aplicado) -> None:
        """If the new version of the briefing changed a directive, queue a notice about it for each destination."""
        if aplicado.documento != BRIEFING or not aplicado.mudou or self.fila is None:
            return
        detail = f"{', '.join(aplicado.mudou)} (avisos: {len(aplicado.avisos)})"
        values = {"motivo": BRIEFING, "detalhe": detail[:LONGEST_DETAIL]}
        items = [
            NewItem(values={**values, "destino": nome}, key=f"{nome}:{BRIEFING}:{aplicado.id}") for nome in self.canais
        ]
        await self.fila.put(items, within=transaction)

    def handler(self) -> ItemHandler:
        return ItemHandler(handle=self.handle, timeout=TIMEOUT, retry=RETRY, retry_timeout=True)

    async def handle(self, lease: Lease) -> Outcome:
        """Send one notice, unless it is no longer needed. The intent to send it is stored before the
        request is made.
        """
        destino = str(lease.row["destino"])
        if (canal := self.canais.get(destino)) is None:
            return Cancelled(NO_DESTINATION(destino=destino))
        if await self._database.one(self._queries.needed, id=lease.id) is None:
            return Cancelled(NOT_NEEDED())
        began = await self._database.run(self._queries.begin, id=lease.id, now=self._clock.now())
        if not began and not canal.repete:
            return await self._give_up(lease.id, destino, DIED())
        entrega = await canal.avisar(_notice(lease))
        if isinstance(entrega, Entregue):
            return Done()
        if isinstance(entrega, Recusado) or canal.repete:
            await self._database.run(self._queries.withdraw, id=lease.id)
            return Failed(REFUSED(destino=destino, why=entrega.why))
        return await self._give_up(lease.id, destino, entrega.why)

    async def nao_entregues(self) -> Row:
        """Return the number of notices (``items``) that failed in the last day or have been waiting too long, and the
        time of the oldest of them (``desde``).
        """
        now = self._clock.now()
        row = await self._database.one(self._queries.unsent, depois=now - RECENT, atrasado=now - LATE)
        assert row is not None
        return row

    async def ask(self) -> Report:
        row = await self.nao_entregues()
        return report_count(Severity.WARNING, "equipe", "avisos", row["items"], row["desde"], lost=2)

    @property
    def check(self) -> Check:
        return Check(name="avisos_equipe", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _give_up(self, id: str, destino: str, why: str) -> Failed:
        await self._database.run(self._queries.withdraw, id=id)
        return Failed(UNCERTAIN(destino=destino, why=why, id=id), permanent=True)


def _notice(lease: Lease) -> Aviso:
    row = lease.row
    conversa = row["conversa_id"]
    return Aviso(
        id=lease.id,
        motivo=row["motivo"],
        conversa_id=None if conversa is None else str(conversa),
        desde=row["created_at"],
        detalhe=row["detalhe"],
    )
