"""Health of the groups pipeline, for ``/health/grupos`` and its alerts.

For every stage, the engine already checks the backlog, its age, dead rows and workers. This module checks for problems
that only the pipeline has: no vacancies, the same price everywhere, a sudden change in the share of discarded messages,
a lost canary message.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from app.contexts.vagas.api import CANARIO
from batuta.health import QUEUES, Check, Finding, HealthPage, Report, Severity
from batuta.kernel import Clock, Json, dataclass
from batuta.sql import Database, Query, Row, load_queries

HOUR: Final = timedelta(hours=1)
DEGRADED, UNHEALTHY = 100, 500
DEAD_ROWS, OLD_ROWS = 10, 5
# Raise an alert if at least this many messages passed the heuristic in this period and none became a usable vacancy.
SECO_APOS, SECO_MENSAGENS = timedelta(hours=6), 20
# Raise an alert about a probable misreading if one price occurs in at least this many vacancies, in this share of all
# vacancies, and at this many places.
REPETIDO_VEZES, REPETIDO_PARTE, REPETIDO_LUGARES = 30, 0.5, 3
# Raise an alert if today's share of discards differs by at least DESVIO from the week's mean. The shares are compared
# only if today and the week have at least DESVIO_HOJE and DESVIO_SEMANA items.
DESVIO, DESVIO_HOJE, DESVIO_SEMANA = 0.25, 40, 200
CANARIO_APOS: Final = timedelta(minutes=30)
CUSTO_DIA_USD: Final = 1.0


@dataclass(frozen=True, slots=True)
class GroupHealthQueries:
    metrics: Query
    flow: Query
    commonest: Query
    canary: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class MedidasDosGrupos:
    now: datetime
    pendentes: int = 0
    travados: int = 0
    erros: int = 0
    erros_24h: int = 0
    antigos: int = 0
    em_revisao: int = 0
    em_revisao_desde: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fluxo:
    """The numbers of messages and vacancies in a given period, by result."""

    mensagens: int = 0
    passaram: int = 0
    recusadas: int = 0
    vagas: int = 0
    vagas_descartadas: int = 0
    aproveitadas: int = 0

    def partes(self) -> Iterator[tuple[str, int, float]]:
        """Yield the name of each pipeline stage, the number of items that entered it, and the share of items that it
        discarded.
        """
        if self.mensagens:
            yield "heuristica", self.mensagens, 1 - self.passaram / self.mensagens
        if self.passaram:
            yield "extracao", self.passaram, self.recusadas / self.passaram
        if self.vagas:
            yield "importacao", self.vagas, self.vagas_descartadas / self.vagas


@dataclass(frozen=True, slots=True, kw_only=True)
class Sinais:
    """The figures of the groups pipeline that decide which alerts are raised."""

    medidas: MedidasDosGrupos
    seco: Fluxo = Fluxo()
    hoje: Fluxo = Fluxo()
    semana: Fluxo = Fluxo()
    valor: float | None = None
    valor_vezes: int = 0
    valor_todas: int = 0
    valor_lugares: int = 0
    custo_hoje: float = 0.0
    canario_em: datetime | None = None
    canario_chegou: bool = True

    @property
    def canario_perdido(self) -> bool:
        """True if the latest canary message (a synthetic offer) should have reached the end of the pipeline by now, but
        has not.
        """
        since = self.canario_em
        return since is not None and not self.canario_chegou and self.medidas.now - since > CANARIO_APOS


def status_de(medidas: MedidasDosGrupos) -> str:
    return "unhealthy" if medidas.travados > UNHEALTHY else "degraded" if medidas.travados > DEGRADED else "healthy"


def documento(medidas: MedidasDosGrupos, fila: dict[str, Json], alertas: tuple[Finding, ...]) -> dict[str, Any]:
    """Build the response from ``/health/grupos``. Some figures occur twice, because the response combines two published
    formats.
    """
    status = status_de(medidas)
    if status == "healthy" and any(each.severity is not Severity.INFO for each in alertas):
        status = "degraded"
    return {
        "status": status,
        "metrics": {
            "pendentes": medidas.pendentes,
            "travados": medidas.travados,
            "erros_24h": medidas.erros_24h,
            "em_revisao": medidas.em_revisao,
        },
        "fila": fila,
        "travados": {"count": medidas.travados, "threshold_degraded": DEGRADED, "threshold_unhealthy": UNHEALTHY},
        "alertas": [each.cause.removeprefix("grupos.") for each in alertas],
        "timestamp": medidas.now.isoformat(),
    }


def julgar(sinais: Sinais) -> tuple[Finding, ...]:
    return tuple(_findings(sinais))


def _findings(sinais: Sinais) -> Iterator[Finding]:
    medidas = sinais.medidas
    if medidas.travados > DEGRADED:
        is_worse = medidas.travados > UNHEALTHY
        limit = UNHEALTHY if is_worse else DEGRADED
        yield _finding(Severity.CRITICAL if is_worse else Severity.WARNING, "travados", medidas.travados, limit)
    if medidas.erros > DEAD_ROWS:
        yield _finding(Severity.ERROR, "fila_travada", medidas.erros, DEAD_ROWS)
    if medidas.antigos > OLD_ROWS:
        yield _finding(Severity.WARNING, "itens_pendentes_antigos", medidas.antigos, OLD_ROWS)
    if sinais.custo_hoje > CUSTO_DIA_USD:
        yield _finding(Severity.WARNING, "custo_alto", round(sinais.custo_hoje, 2), CUSTO_DIA_USD)
    if sinais.seco.passaram >= SECO_MENSAGENS and not sinais.seco.aproveitadas:
        yield _finding(Severity.CRITICAL, "conversao_zero", sinais.seco.passaram, SECO_MENSAGENS)
    share = sinais.valor_vezes / sinais.valor_todas if sinais.valor_todas else 0.0
    is_everywhere = sinais.valor_lugares >= REPETIDO_LUGARES
    if sinais.valor_vezes >= REPETIDO_VEZES and share >= REPETIDO_PARTE and is_everywhere:
        yield _finding(Severity.WARNING, "valor_repetido", sinais.valor_vezes, REPETIDO_VEZES, valor=sinais.valor)
    yield from _drifting(sinais)
    if sinais.canario_perdido:
        yield _finding(Severity.CRITICAL, CANARIO, 0, 1, since=sinais.canario_em)


def _drifting(sinais: Sinais) -> Iterator[Finding]:
    usual = {name: share for name, seen, share in sinais.semana.partes() if seen >= DESVIO_SEMANA}
    for name, seen, share in sinais.hoje.partes():
        if name in usual and seen >= DESVIO_HOJE and abs(share - usual[name]) > DESVIO:
            today, week = f"{share:.0%}", f"{usual[name]:.0%}"
            found = _finding(
                Severity.WARNING,
                "descarte_desvia",
                round(share, 3),
                round(usual[name], 3),
                estagio=name,
                hoje=today,
                semana=week,
            )
            yield replace(found, cause=f"{found.cause}.{name}")


def _finding(
    severity: Severity, what: str, value: float, threshold: float, *, since: datetime | None = None, **facts: object
) -> Finding:
    return Finding(
        severity=severity,
        source="grupos",
        cause=f"grupos.{what}",
        says=f"grupos_{what}",
        facts={"count": value, **facts},
        value=value,
        threshold=threshold,
        since=since,
    )


class SaudeDosGrupos:
    def __init__(
        self,
        database: Database,
        fila: Callable[[], Awaitable[dict[str, Json]]],
        custo: Callable[[datetime], Awaitable[float]],
        local: Callable[[datetime], datetime],
        clock: Clock,
    ) -> None:
        """Create the health check of the groups pipeline. ``custo`` returns what the language model has cost since a
        given time, in dollars. ``local`` converts an instant to local time.
        """
        self._database = database
        self._fila = fila
        self._custo = custo
        self._local = local
        self._clock = clock
        self._queries = load_queries(GroupHealthQueries, "sql/saude.sql", database.dialect)

    async def medidas(self) -> MedidasDosGrupos:
        now = self._clock.now()
        row = await self._database.one(
            self._queries.metrics,
            hour_ago=now - HOUR,
            four_hours_ago=now - 4 * HOUR,
            day_ago=now - 24 * HOUR,
        )
        assert row is not None
        return MedidasDosGrupos(now=self._local(now), **{name: row[name] for name in _COUNTED})

    async def sinais(self) -> Sinais:
        now, day = self._clock.now(), timedelta(days=1)
        commonest = await self._database.one(self._queries.commonest, since=now - day)
        canary = await self._database.one(self._queries.canary)
        midnight = self._local(now).replace(hour=0, minute=0, second=0, microsecond=0)
        return Sinais(
            medidas=await self.medidas(),
            seco=await self._flow(now - SECO_APOS, now - HOUR / 4),
            hoje=await self._flow(now - day, now),
            semana=await self._flow(now - 8 * day, now - day),
            custo_hoje=await self._custo(midnight),
            canario_em=None if canary is None else canary["created_at"],
            canario_chegou=canary is None or canary["vagas"] > 0,
            **_commonest(commonest),
        )

    async def achados(self) -> tuple[Finding, ...]:
        return julgar(await self.sinais())

    async def documento(self) -> dict[str, Any]:
        sinais = await self.sinais()
        return documento(sinais.medidas, await self._fila(), julgar(sinais))

    async def _flow(self, since: datetime, until: datetime) -> Fluxo:
        row = await self._database.one(self._queries.flow, since=since, until=until)
        assert row is not None
        return Fluxo(**{name: row[name] for name in row.keys()})  # noqa: SIM118 - a row is not a mapping

    async def ask(self) -> Report:
        found = await self.achados()
        lost = {Severity.CRITICAL: 5, Severity.ERROR: 3, Severity.WARNING: 2, Severity.INFO: 0}
        return Report(findings=found, lost=sum(lost[each.severity] for each in found))

    @property
    def page(self) -> HealthPage:
        return HealthPage(
            name="grupos", ask=self.documento, aliases=("grupos-worker",), about="the pipeline that reads the groups"
        )

    @property
    def check(self) -> Check:
        return Check(name="grupos", section=QUEUES, ask=self.ask)


_COUNTED: Final = ("pendentes", "travados", "erros", "erros_24h", "antigos", "em_revisao", "em_revisao_desde")


def _commonest(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {}
    return {
        "valor": row["valor"],
        "valor_vezes": row["vezes"],
        "valor_todas": row["todas"],
        "valor_lugares": row["lugares"],
    }
