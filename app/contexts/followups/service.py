"""Queue follow-ups, move a conversation to its next stage after a follow-up is sent, and end expired pauses.

The sending rules are checked again before each send. A follow-up is cancelled if its conversation has moved to another
stage, has a newer message or is paused.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from app.contexts.comum.fila import Fila
from app.contexts.comum.saude import report_count
from app.contexts.conversas.api import EstagioDaConversa, Estagios
from app.contexts.followups.model import (
    ESTAGIOS,
    ETAPAS,
    PAUSA,
    POR_ESTAGIO,
    POR_RODADA,
    POR_TIPO,
    TENTATIVAS,
    Etapa,
    FollowupsMudados,
    Impedimento,
    PausaNoPassado,
)
from app.contexts.followups.textos import followup
from app.contexts.mensagens.api import CONTACTS_IN_A_WEEK, MensagemEncerrada, NovaMensagem, Tipo
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.contexts.plantoes.api import Sugestoes, VagasAbertas
from batuta import Done, Outcome
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.queues import NewItem
from batuta.sql import AuditLog, Database, Query, Reading, Row, Transaction, load_queries

JULIA: Final = "julia"
NO_ANSWER: Final = "nao_respondeu"
EXPIRED: Final = "pausa_expirada"
WEEK: Final = timedelta(days=7)
# A follow-up that has been due for this long is reported as a health finding.
LATE: Final = timedelta(days=7)
# Maximum number of pauses that one transaction ends, and maximum number of transactions in one run.
PAGE, MOST_PAGES = 200, 1000


@dataclass(frozen=True, slots=True)
class FollowupQueries:
    considered: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class PartesDosFollowups:
    database: Database
    fila: Fila
    mensagens: Mensagens
    estagios: Estagios
    sugestoes: Sugestoes
    ids: Ids
    clock: Clock


class Followups:
    def __init__(self, parts: PartesDosFollowups) -> None:
        self._parts = parts
        self._database = parts.database
        self._clock = parts.clock
        self._estagios = parts.estagios
        self._eventos = Eventos(parts.database.dialect, parts.ids)
        self._audit = AuditLog(parts.database.dialect, parts.ids)
        file = Path(__file__).parent / "sql" / "followups.sql"
        self._queries = load_queries(FollowupQueries, file, parts.database.dialect)

    async def processar_followups(self, call: JobCall) -> Outcome:
        """Queue the follow-ups that are due, at most 50 in each stage. The conversations that have waited longest come
        first.

        The result counts the queued messages by type, and the conversations that must wait for the next run.
        """
        queued: dict[str, Json] = {}
        waiting: dict[str, Json] = {}
        for etapa in ETAPAS:
            queued[etapa.tipo.value], waiting[etapa.tipo.value] = await self._queue(etapa)
        count = sum(each for each in queued.values() if isinstance(each, int))
        return Done(items=count, result={"enfileirados": count, "por_tipo": queued, "restantes": waiting})

    async def processar_pausas_expiradas(self, call: JobCall) -> Outcome:
        """Move each conversation to the stage recontato (contact again) when its pause after the last follow-up has
        expired.
        """
        count = 0
        for _ in range(MOST_PAGES):
            ended = await self._end_pauses()
            count += ended
            if ended < PAGE:
                break
        return Done(items=count, result={"reativadas": count})

    async def enviada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Move the conversation to the next stage, unless the doctor has already answered. After the third follow-up,
        start the pause.
        """
        etapa, id = POR_TIPO[mensagem.tipo], mensagem.conversa_id
        if id is None or not await self._estagios.avancar(
            transaction, id, de=etapa.de, para=etapa.para, now=mensagem.em
        ):
            return
        await self._eventos.record(
            transaction,
            "followup_enviado",
            now=mensagem.em,
            dedupe_key=f"followup_enviado:{mensagem.id}",
            cliente_id=mensagem.cliente_id,
            conversation_id=id,
            props={"de": etapa.de.value, "para": etapa.para.value},
        )
        if etapa.para is EstagioDaConversa.NAO_RESPONDEU:
            until = mensagem.em + PAUSA
            await self._estagios.pausar(transaction, id, until, por=JULIA, motivo=NO_ANSWER, now=mensagem.em)

    async def encerrada(self, transaction: Transaction, mensagem: MensagemEncerrada) -> None:
        """Do nothing if a follow-up was not sent: the conversation keeps its stage, and the next run of the job decides
        again.
        """

    async def listar(
        self, *, estagio: EstagioDaConversa | None = None, devidos: bool = False, limite: int, pular: int = 0
    ) -> Sequence[Row]:
        """List conversations that are waiting for a follow-up or are paused after the last one, sorted by stage and
        then by age. With ``devidos``, list only conversations for which the next run queues a follow-up.
        """
        found: list[Row] = []
        for each in ESTAGIOS if estagio is None else [estagio]:
            etapa, now = POR_ESTAGIO.get(each), self._clock.now()
            if each in ESTAGIOS and not (devidos and etapa is None):
                until = now - etapa.espera if devidos and etapa is not None else now
                found += await self._read_candidates(
                    self._database, each, until, todas=not devidos, limite=limite + pular, now=now
                )
        return found[pular : pular + limite]

    async def pausar(self, id: str, ate: datetime, *, por: str, motivo: str) -> FollowupsMudados:
        """Pause the follow-ups of a conversation until ``ate``. A follow-up that is already queued is not sent."""
        now = self._clock.now()
        if ate <= now:
            raise PausaNoPassado(ate=ate)
        async with self._database.transaction() as transaction:
            before = await self._estagios.travar(transaction, self._parts.mensagens, id)
            await self._estagios.pausar(transaction, id, ate, por=por, motivo=motivo, now=now)
            await self._note(
                transaction, before, "followups.pausar", por, {"motivo": motivo, "ate": ate.isoformat()}, now
            )
        return FollowupsMudados(id=id, estagio=EstagioDaConversa(before["stage"]), ate=ate)

    async def retomar(self, id: str, *, por: str, motivo: str) -> FollowupsMudados:
        """End the pause of a conversation's follow-ups, and reset the count of failed attempts."""
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            before = await self._estagios.travar(transaction, self._parts.mensagens, id)
            await self._estagios.retomar(transaction, id, por=por, motivo=motivo, now=now)
            await self._note(transaction, before, "followups.retomar", por, {"motivo": motivo}, now)
        was = EstagioDaConversa(before["stage"])
        return FollowupsMudados(
            id=id, estagio=EstagioDaConversa.RECONTATO if was is EstagioDaConversa.NAO_RESPONDEU else was
        )

    async def ask(self) -> Report:
        """Report follow-ups that have been overdue for more than a week, because they were never queued or because they
        failed three times.
        """
        reports = [
            report_count(Severity.WARNING, "followups", what, *await self._late(why), lost=2)
            for what, why in (("atrasados", None), ("com_falhas", Impedimento.FALHAS))
        ]
        return Report(
            findings=tuple(each for report in reports for each in report.findings),
            lost=sum(report.lost for report in reports),
        )

    @property
    def check(self) -> Check:
        return Check(name="followups", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _late(self, why: Impedimento | None) -> tuple[int, datetime | None]:
        """Count the follow-ups that have been due for more than a week. If ``why`` is given, count only those that were
        not sent for this reason. Also return the instant at which the oldest of them became due.
        """
        now = self._clock.now()
        found = [
            row
            for etapa in ETAPAS
            for row in await self._read_candidates(
                self._database, etapa.de, now - etapa.espera - LATE, impedimento=why, limite=1, now=now
            )
        ]
        return sum(row["total"] for row in found), min((row["desde"] for row in found), default=None)

    async def _queue(self, etapa: Etapa) -> tuple[int, int]:
        """Queue the due follow-ups of one stage in one transaction. Return how many were queued and how many wait."""
        now, abertas = self._clock.now(), None
        if etapa.tipo is Tipo.FOLLOWUP_2:
            abertas = await self._parts.sugestoes.abertas(self._database, now=now)
        async with self._database.transaction() as transaction:
            until = now - etapa.espera
            rows = await self._read_candidates(transaction, etapa.de, until, limite=POR_RODADA, now=now)
            vacancies = {row["id"]: await self._vacancy(transaction, row, abertas) for row in rows}
            items = [_message(etapa, row, vacancies[row["id"]], now) for row in rows]
            ids = await self._parts.fila.put(items, within=transaction) if items else []
            for row, id in zip(rows, ids, strict=True):
                if id is not None and (vaga := vacancies[row["id"]]) is not None:
                    doctor = row["cliente_id"]
                    await self._parts.sugestoes.registrar(transaction, vaga, doctor, id, por=JULIA, now=now)
        total = rows[0]["total"] if rows else 0
        return sum(id is not None for id in ids), total - len(rows)

    async def _vacancy(self, reading: Reading, row: Row, abertas: VagasAbertas | None) -> Row | None:
        if abertas is None:
            return None
        return await self._parts.sugestoes.para(reading, abertas, row["cliente_id"], row["especialidade"])

    async def _read_candidates(
        self,
        reading: Reading,
        estagio: EstagioDaConversa,
        antes: datetime,
        *,
        limite: int,
        now: datetime,
        todas: bool = False,
        impedimento: Impedimento | None = None,
    ) -> list[Row]:
        """Read the conversations in one stage whose last message is older than ``antes``. If ``impedimento`` is given,
        read only the conversations in which this reason prevents a follow-up.
        """
        etapa = POR_ESTAGIO.get(estagio)
        return await reading.all(
            self._queries.considered,
            estagio=estagio.value,
            tipo="" if etapa is None else etapa.tipo.value,
            antes=antes,
            todas=todas,
            impedimento="" if impedimento is None else impedimento.value,
            contatos=CONTACTS_IN_A_WEEK,
            tentativas=TENTATIVAS,
            week_ago=now - WEEK,
            limite=limite,
            now=now,
        )

    async def _end_pauses(self) -> int:
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            ended = await self._estagios.retomar_vencidas(transaction, limite=PAGE, por=JULIA, motivo=EXPIRED, now=now)
        return len(ended)

    async def _note(
        self, transaction: Transaction, before: Row, action: str, por: str, after: dict[str, Json], now: datetime
    ) -> None:
        until = before["pausado_ate"]
        await self._audit.note(
            transaction,
            actor=por,
            action=action,
            subject=f"conversa:{before['id']}",
            before={"stage": before["stage"], "pausado_ate": None if until is None else until.isoformat()},
            after=after,
            now=now,
        )


def _message(etapa: Etapa, row: Row, vaga: Row | None, now: datetime) -> NewItem:
    conversa = str(row["id"])
    return NovaMensagem(
        tipo=etapa.tipo,
        cliente_id=row["cliente_id"],
        telefone=row["telefone"],
        texto=followup(etapa.tipo, conversa, row["primeiro_nome"], vaga),
        chave=f"{etapa.tipo.value}:{conversa}",
        conversa_id=conversa,
        metadata=None if vaga is None else {"vaga_id": str(vaga["id"])},
    ).item(now=now)
