"""Operators' actions and queries about campaigns. The audit log records each action and the operator."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, Final

from app.contexts.campanhas.inicio import Held, Inicio
from app.contexts.campanhas.lotes import Lotes, MensagensDeCampanha
from app.contexts.campanhas.model import (
    FROM,
    LONGEST_NAME,
    Acao,
    CampanhaInexistente,
    CampanhaNaoPode,
    CampanhaRecusada,
    DestinatarioDesconhecido,
    MedicosDesconhecidos,
    NomeRecusado,
    PublicoInexistente,
    PublicoVazio,
    StatusDaCampanha,
    TipoDeCampanha,
    depois,
    filtros_de,
)
from app.contexts.campanhas.repository import campaign_queries
from app.contexts.campanhas.texto import campos
from app.contexts.comum.telefone import chave, telefone_de
from app.contexts.mensagens.api import CAMPAIGN_PAUSED, StatusDaMensagem
from app.contexts.mensagens.service import CAMPAIGN_CANCELLED, Mensagens
from batuta.kernel import Clock, Ids, Json, dataclass, is_writable
from batuta.reasons import decode, encode
from batuta.sql import AsJson, AuditLog, Database, Reading, Row, Transaction

FARTHEST: Final = timedelta(days=3650)
BEYOND_ANY: Final = 2**62
NOT_SENT: Final = ("bloqueada", "cancelada", "erro")


@dataclass(frozen=True, slots=True, kw_only=True)
class NovaCampanha:
    nome: str
    tipo: TipoDeCampanha
    corpo: str
    audience_filters: Mapping[str, Json] = field(default_factory=dict)
    objetivo: str | None = None
    pode_ofertar: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Agendada:
    """A scheduled campaign with the predicted number of recipients. ``excluidos`` counts the excluded doctors by
    reason.
    """

    status: StatusDaCampanha
    destinatarios: int
    excluidos: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Causa:
    """A reason why messages of a campaign are waiting or were not sent, with the number of those messages."""

    status: str  # pendente, bloqueada, cancelada or erro
    outcome: str
    reason: str | None  # the stored reason, None if only the outcome is known
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progresso:
    """A campaign's progress: its messages by state, and the reasons why some were not sent."""

    campanha: Mapping[str, Any]
    enfileiradas: int  # all messages that were ever queued
    na_fila: int  # queued or being sent
    em_duvida: int
    bloqueadas: Mapping[str, int]
    canceladas: Mapping[str, int]
    erros: Mapping[str, int]
    causas: Sequence[Causa]  # why messages wait, were blocked, cancelled or failed
    excluidos: Mapping[str, int]
    espera: str | None  # why a due campaign does not start, or a started one does not continue


class Campanhas:
    def __init__(
        self,
        database: Database,
        mensagens: Mensagens,
        inicio: Inicio,
        lotes: Lotes,
        de_campanha: MensagensDeCampanha,
        held: Held,
        ids: Ids,
        clock: Clock,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the service for operators' actions on campaigns. ``held`` returns the campaign types whose job is
        paused. ``wake`` is called when messages that were held back may be sent again.
        """
        self._database = database
        self._mensagens = mensagens
        self._inicio = inicio
        self._lotes = lotes
        self._de_campanha = de_campanha
        self._held = held
        self._audit = AuditLog(database.dialect, ids)
        self._clock = clock
        self._wake = wake
        self._queries = campaign_queries(database.dialect)

    async def criar(self, nova: NovaCampanha, *, by: str) -> int:
        """Create a campaign draft. An invalid text or filter raises an error immediately rather than when the campaign
        is due.
        """
        await self._check(nova)
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            (row,) = await transaction.all(
                self._queries.create,
                nome=nova.nome.strip(),
                tipo=nova.tipo.value,
                corpo=nova.corpo,
                filtros=AsJson(dict(nova.audience_filters)),
                pode_ofertar=nova.pode_ofertar,
                objetivo=nova.objetivo,
                by=by,
                now=now,
            )
            id = int(row["id"])
            await self._note(transaction, by, "criar", id, None, {"status": StatusDaCampanha.RASCUNHO.value}, now)
        return id

    async def avisos(self, audience_filters: Mapping[str, Json]) -> tuple[str, ...]:
        """Return the specialities and regions in the filters that match no doctor."""
        return await self._inicio.de_ninguem(filtros_de(audience_filters))

    async def agendar(self, id: int, para: datetime | None, *, by: str) -> Agendada:
        """Schedule a campaign for ``para``, which may be at most ten years ahead. If ``para`` is None or in the past,
        the campaign starts as soon as possible.

        A campaign without recipients is refused, because it would end immediately and could not be scheduled again.
        """
        row = await self._row(self._database, id)
        campos(row["corpo"])
        filtros_de(row["audience_filters"])
        now = self._clock.now()
        then = now if para is None else min(max(para, now), now + FARTHEST)
        counts = await self._inicio.previsto(row, then)
        excluidos = {why.value: count for why, count in counts.items() if why is not None}
        if StatusDaCampanha(row["status"]) in FROM[Acao.AGENDAR] and not counts.get(None):
            raise _no_recipients(id, excluidos)
        status = await self._do(Acao.AGENDAR, id, by, para=then)
        return Agendada(status=status, destinatarios=counts.get(None, 0), excluidos=excluidos)

    async def pausar(self, id: int, *, by: str) -> StatusDaCampanha:
        """Hold back all of the campaign's messages. Queued messages stay in the queue."""
        return await self._do(Acao.PAUSAR, id, by)

    async def retomar(self, id: int, *, by: str) -> StatusDaCampanha:
        row = await self._row(self._database, id)
        campos(row["corpo"])
        filtros_de(row["audience_filters"])
        after = await self._do(Acao.RETOMAR, id, by)
        self._wake()
        return after

    async def cancelar(self, id: int, *, by: str) -> StatusDaCampanha:
        """Cancel the campaign permanently. Queued messages are cancelled; for messages that are being sent, a stop is
        requested.
        """
        return await self._do(Acao.CANCELAR, id, by)

    async def todas(
        self, *, status: StatusDaCampanha | None = None, before: int | None = None, limit: int = 50
    ) -> Sequence[Row]:
        word = None if status is None else status.value
        return await self._database.all(self._queries.campaigns, status=word, before=before or BEYOND_ANY, limit=limit)

    async def progresso(self, id: int) -> Progresso:
        async with self._database.snapshot() as reading:
            row = await self._row(reading, id)
            people = await reading.all(self._queries.recipients, id=id)
            messages = await reading.all(self._queries.messages, id=id, held=_held_by(row))
            doubts = await reading.one(self._queries.doubts, id=id)
        na_fila = sum(each["quantas"] for each in messages if each["status"] in ("pendente", "processando"))
        return Progresso(
            campanha=dict(row),
            enfileiradas=sum(each["quantas"] for each in messages),
            na_fila=na_fila,
            em_duvida=0 if doubts is None else doubts["quantas"],
            bloqueadas=_count_by_outcome(messages, "bloqueada"),
            canceladas=_count_by_outcome(messages, "cancelada"),
            erros=_count_by_outcome(messages, "erro"),
            causas=[_cause(each) for each in messages if each["status"] in NOT_SENT or _waits(each)],
            excluidos={each["motivo"]: each["quantos"] for each in people if each["situacao"] == "excluido"},
            espera=await self._why_it_waits(row, na_fila),
        )

    async def _why_it_waits(self, row: Row, na_fila: int) -> str | None:
        match row["status"]:
            case StatusDaCampanha.AGENDADA if row["agendar_para"] <= self._clock.now():
                pass
            case StatusDaCampanha.ATIVA if na_fila:
                pass
            case _:
                return None
        return await self._inicio.por_que_espera(row["tipo_campanha"], await self._held())

    async def destinatarios(
        self, id: int, *, situacao: str | None, motivo: str | None, after: int, limit: int
    ) -> Sequence[Row]:
        """List a campaign's recipients and excluded doctors, with the reason for each exclusion."""
        held = _held_by(await self._row(self._database, id))
        return await self._database.all(
            self._queries.people, id=id, held=held, situacao=situacao, motivo=motivo, after=after, limit=limit
        )

    async def situacao_de(self, id: int, quem: str) -> Row:
        """Return the row that describes a doctor's situation in a campaign. ``quem`` is the doctor's phone number or
        id. In the row, ``situacao`` is None if the doctor is outside the audience.
        """
        held = _held_by(await self._row(self._database, id))
        telefone = telefone_de(quem)
        key = None if telefone is None else chave(telefone)
        row = await self._database.one(self._queries.person, id=id, held=held, chave=key, quem=quem.strip().lower())
        if row is None:
            raise DestinatarioDesconhecido
        return row

    async def _check(self, nova: NovaCampanha) -> None:
        nome = nova.nome.strip()
        if not 0 < len(nome) <= LONGEST_NAME or not is_writable(nome) or not is_writable(nova.objetivo or ""):
            raise NomeRecusado(longest=LONGEST_NAME)
        campos(nova.corpo)
        filtros = filtros_de(nova.audience_filters)
        wanted = filtros.clientes_especificos
        if wanted and (missing := len(wanted) - await self._inicio.conhecidos(wanted)):
            raise MedicosDesconhecidos(quantos=missing)

    async def _do(self, acao: Acao, id: int, by: str, *, para: datetime | None = None) -> StatusDaCampanha:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            row = await self._row(transaction, id)
            before = StatusDaCampanha(row["status"])
            after = depois(acao, before, began=row["iniciada_em"] is not None)
            cancelled = await self._count_cancelled(transaction, id)
            if after is None or not await self._change(transaction, acao, row, after, para, now):
                allowed = ", ".join(sorted(FROM[acao]))
                raise CampanhaNaoPode(id=id, status=before.value, acao=acao.value, de=allowed)
            released = await self._mensagens.soltar_campanha(transaction, id, now=now) if acao is Acao.RETOMAR else 0
            changes = {
                "status": after.value,
                "mensagens": released + await self._count_cancelled(transaction, id) - cancelled,
                "agendar_para": None if para is None else para.isoformat(),
            }
            await self._note(transaction, by, acao.value, id, {"status": before.value}, changes, now)
        return after

    async def _change(
        self,
        transaction: Transaction,
        acao: Acao,
        row: Row,
        after: StatusDaCampanha,
        para: datetime | None,
        now: datetime,
    ) -> bool:
        """Change a campaign's status. Returns False if the status has changed since ``row`` was read. A campaign that
        has a batch is cancelled by cancelling the batch.
        """
        if acao is Acao.CANCELAR and row["lote_id"] is not None:
            return await self._lotes.handle(str(row["lote_id"])).cancel(CAMPAIGN_CANCELLED(), within=transaction)
        if acao is Acao.CANCELAR:
            await self._mensagens.travar_campanha(transaction, row["id"])
        values = {"before": row["status"], "after": after.value, "agendar_para": para}
        is_changed = bool(await transaction.run(self._queries.change, id=row["id"], now=now, **values))
        if is_changed and acao is Acao.CANCELAR:
            await self._de_campanha.cancel_messages(transaction, row["id"])
        return is_changed

    async def _count_cancelled(self, reading: Reading, id: int) -> int:
        messages = await reading.all(self._queries.messages, id=id, held=None)
        return sum(each["quantas"] for each in messages if each["status"] == StatusDaMensagem.CANCELADA)

    async def _row(self, reading: Reading, id: int) -> Row:
        row = await reading.one(self._queries.campaign, id=id)
        if row is None:
            raise CampanhaInexistente(id=id)
        return row

    async def _note(
        self, transaction: Transaction, by: str, action: str, id: int, before: Json, after: Json, now: datetime
    ) -> None:
        await self._audit.note(
            transaction,
            actor=by,
            action=f"campanha.{action}",
            subject=f"campanha:{id}",
            before=before,
            after=after,
            now=now,
        )


def _no_recipients(id: int, excluidos: Mapping[str, int]) -> CampanhaRecusada:
    if not excluidos:
        return PublicoInexistente(id=id)
    return PublicoVazio(id=id, motivos=", ".join(f"{why} {count}" for why, count in sorted(excluidos.items())))


def _count_by_outcome(messages: Sequence[Row], status: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for each in messages:
        if each["status"] == status:
            counts[each["outcome"] or status] += each["quantas"]
    return dict(counts)


def _waits(row: Row) -> bool:
    return row["status"] == StatusDaMensagem.PENDENTE and row["motivo"] is not None


def _held_by(row: Row) -> str | None:
    """Return the reason why a paused campaign's messages wait, encoded as in the database. Return None if the campaign
    is not paused.
    """
    return encode(CAMPAIGN_PAUSED()) if row["status"] == StatusDaCampanha.PAUSADA else None


def _cause(row: Row) -> Causa:
    return Causa(
        status=row["status"],
        outcome=row["outcome"] or row["status"],
        reason=decode(row["motivo"]),
        messages=row["quantas"],
    )
