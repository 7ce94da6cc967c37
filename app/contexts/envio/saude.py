"""Health of the send queue, for ``/health/fila`` and the health score.

For every queue, the engine already checks the backlog, its age, dead items and whether a consumer is alive. This module
also reports problems that only the send queue has: messages that are waiting for a gateway, and parked messages about
which an operator must decide.
"""

from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from app.contexts.comum.saude import report_count
from app.contexts.comum.whatsapp import NO_LINE
from app.contexts.mensagens.api import FILA_MENSAGENS, WITHOUT_LINE
from batuta.health import (
    FORGOTTEN_AFTER,
    QUEUES,
    Beats,
    Check,
    HealthPage,
    Now,
    Pulse,
    QueueLimits,
    Report,
    Severity,
    merge_reports,
)
from batuta.kernel import dataclass
from batuta.reasons import prefix_of
from batuta.sql import Database, Query, Row, load_queries

HOUR: Final = timedelta(hours=1)
CONSUMER: Final = f"worker:{FILA_MENSAGENS.name}"
THRESHOLDS: Final = {
    "backlog_warning": 100,
    "backlog_critical": 500,
    "travadas_warning": 1,
    "travadas_critical": 10,
    "erros_hora_warning": 10,
    "idade_warning_min": 60,
}
# Limits of the engine's check of this queue. The age limit is stricter than in THRESHOLDS: a due message that has
# waited for ten minutes is already a problem.
LIMITS: Final = QueueLimits(
    backlog_warning=THRESHOLDS["backlog_warning"],
    backlog_critical=THRESHOLDS["backlog_critical"],
    age_warning=timedelta(minutes=10),
    age_critical=HOUR,
    stuck_warning=THRESHOLDS["travadas_warning"],
    stuck_critical=THRESHOLDS["travadas_critical"],
)


@dataclass(frozen=True, slots=True)
class FilaQueries:
    metrics: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class MedidasDaFila:
    """Figures about the send queue.

    The backlog contains only messages that are due. A message that is waiting for the sending hours or for its retry is
    not late.
    """

    now: datetime
    pendentes: int = 0
    agendadas: int = 0
    mais_antiga: datetime | None = None
    processando: int = 0
    travadas: int = 0
    enviadas_ultima_hora: int = 0
    erros_ultima_hora: int = 0
    sem_gateway: int = 0  # messages postponed by a process without a configured gateway
    em_duvida: int = 0
    para_decisao: int = 0
    para_decisao_desde: datetime | None = None
    dlq: int = 0
    tem_consumidor: bool = True
    pausada: bool = False  # True if an operator paused the queue, so that no progress is expected

    @property
    def idade(self) -> timedelta:
        return timedelta(0) if self.mais_antiga is None else max(timedelta(0), self.now - self.mais_antiga)


def alertas(medidas: MedidasDaFila) -> Iterator[tuple[Severity, str]]:
    """Yield a severity and a text for each threshold of the send queue that is exceeded."""
    limits = THRESHOLDS
    if not medidas.pausada:
        yield from _backlog_alerts(medidas)
    if medidas.travadas > limits["travadas_critical"]:
        yield Severity.CRITICAL, f"travadas {medidas.travadas} > {limits['travadas_critical']}"
    elif medidas.travadas >= limits["travadas_warning"]:
        yield Severity.WARNING, f"travadas {medidas.travadas} >= {limits['travadas_warning']}"
    if medidas.erros_ultima_hora > limits["erros_hora_warning"]:
        yield Severity.WARNING, f"erros_ultima_hora {medidas.erros_ultima_hora} > {limits['erros_hora_warning']}"
    if medidas.sem_gateway:
        yield Severity.ERROR, f"sem_gateway {medidas.sem_gateway} > 0"
    if medidas.para_decisao:
        yield Severity.WARNING, f"para_decisao {medidas.para_decisao} > 0"


def _backlog_alerts(medidas: MedidasDaFila) -> Iterator[tuple[Severity, str]]:
    limits, minutes = THRESHOLDS, medidas.idade // timedelta(minutes=1)
    if not medidas.tem_consumidor and medidas.idade > LIMITS.deserted_after:
        yield Severity.CRITICAL, "consumidores 0 < 1"
    if medidas.pendentes > limits["backlog_critical"]:
        yield Severity.CRITICAL, f"pendentes {medidas.pendentes} > {limits['backlog_critical']}"
    elif medidas.pendentes > limits["backlog_warning"]:
        yield Severity.WARNING, f"pendentes {medidas.pendentes} > {limits['backlog_warning']}"
    if minutes > limits["idade_warning_min"]:
        yield Severity.WARNING, f"mensagem_mais_antiga_min {minutes} > {limits['idade_warning_min']}"


def documento(medidas: MedidasDaFila) -> dict[str, Any]:
    found = list(alertas(medidas))
    severities = {severity for severity, _ in found}
    # The worst severity decides the status.
    status = "critical" if Severity.CRITICAL in severities else "degraded" if severities else "healthy"
    return {
        "status": status,
        "alerts": [text for _, text in found],
        "metrics": {
            "pendentes": medidas.pendentes,
            "processando": medidas.processando,
            "enviadas_ultima_hora": medidas.enviadas_ultima_hora,
            "erros_ultima_hora": medidas.erros_ultima_hora,
            "mensagem_mais_antiga_min": medidas.idade // timedelta(minutes=1),
            "travadas": medidas.travadas,
            "agendadas": medidas.agendadas,
            "sem_gateway": medidas.sem_gateway,
            "em_duvida": medidas.em_duvida,
            "para_decisao": medidas.para_decisao,
            "dlq": medidas.dlq,
            "tem_consumidor": medidas.tem_consumidor,
            "pausada": medidas.pausada,
        },
        "thresholds": dict(THRESHOLDS),
        "timestamp": medidas.now.isoformat(),
    }


def judge(medidas: MedidasDaFila) -> Report:
    return merge_reports(
        [
            report_count(Severity.ERROR, "fila", "sem_gateway", medidas.sem_gateway, lost=10),
            report_count(
                Severity.WARNING, "fila", "para_decisao", medidas.para_decisao, medidas.para_decisao_desde, lost=3
            ),
        ]
    )


class SaudeDaFila:
    def __init__(
        self,
        database: Database,
        beats: Beats,
        pulse: Callable[[], Awaitable[Pulse]],
        now: Now,
        local: Callable[[datetime], datetime],
    ) -> None:
        """Build the health check of the send queue. ``pulse`` reads the engine's measures of the queue. ``local``
        converts an instant to the local time zone.
        """
        self._pulse = pulse
        self._database = database
        self._beats = beats
        self._now = now
        self._local = local
        self._queries = load_queries(FilaQueries, "sql/saude.sql", database.dialect)

    async def medidas(self) -> MedidasDaFila:
        signs = await self._beats.read_signs(within=FORGOTTEN_AFTER, now=self._now())
        row = await self._database.one(self._queries.metrics, **query_values(signs.now))
        assert row is not None
        measured = _measures(row, self._local(signs.now), signs.living_loops)
        return replace(measured, pausada=(await self._pulse()).is_held)

    async def documento(self) -> dict[str, Any]:
        return documento(await self.medidas())

    async def ask(self) -> Report:
        return judge(await self.medidas())

    @property
    def page(self) -> HealthPage:
        return HealthPage(name="fila", ask=self.documento, about="the queue of messages")

    @property
    def check(self) -> Check:
        return Check(name="fila", section=QUEUES, ask=self.ask)


def query_values(now: datetime) -> dict[str, object]:
    return {"now": now, "hour_ago": now - HOUR, "soon": now + WITHOUT_LINE, "no_line": prefix_of(NO_LINE)}


def _measures(row: Row, now: datetime, loops: Collection[str]) -> MedidasDaFila:
    return MedidasDaFila(
        now=now,
        pendentes=row["pendentes"],
        agendadas=row["agendadas"],
        mais_antiga=row["mais_antiga"],
        processando=row["processando"],
        travadas=row["travadas"],
        enviadas_ultima_hora=row["enviadas_ultima_hora"],
        erros_ultima_hora=row["erros_ultima_hora"],
        sem_gateway=row["sem_gateway"],
        em_duvida=row["em_duvida"],
        para_decisao=row["para_decisao"],
        para_decisao_desde=row["para_decisao_desde"],
        dlq=row["dlq"],
        tem_consumidor=CONSUMER in loops,
    )
