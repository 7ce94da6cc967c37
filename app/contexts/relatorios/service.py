"""Count a period's figures, store its report once, and send the report to each destination at most once.

no row ──▶ enviando ──▶ enviado
               │ ├────▶ recusado: the next run sends it
               │ └────▶ incerto: it may have arrived; only a person sends it again
               └ the process died: treated as incerto after ABANDONED
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from app.contexts.comum.entrega import Entrega, Entregue
from app.contexts.comum.saude import report_count
from app.contexts.relatorios.periodos import Periodo, TipoDeRelatorio
from batuta import BatutaError
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import AsJson, Database, Query, Reading, Row, load_queries

SISTEMA: Final = "sistema"
DESTINOS: Final = ("slack", "webhook")
MOST_HIGHLIGHTS: Final = 5
ABANDONED: Final = timedelta(minutes=5)
# Period in which later runs send a refused report again. After that the figures are outdated.
RETRY_FOR: Final = timedelta(hours=24)
LONGEST_ERROR: Final = 500


class RelatorioDesconhecido(BatutaError):
    sentence = "report {id} does not exist: `batuta relatorios listar` lists the existing ones"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relatorio:
    """A stored report. ``envios`` maps each destination to the state of its delivery. ``erros`` maps each destination
    to its error.
    """

    id: str
    periodo: Periodo
    metricas: Mapping[str, Any]
    destaques: Sequence[Mapping[str, Any]]
    por: str
    feito_em: datetime
    envios: Mapping[str, str]
    erros: Mapping[str, str]


class Destino(Protocol):
    """A destination for reports. ``nome`` is one of DESTINOS."""

    @property
    def nome(self) -> str: ...
    async def enviar(self, relatorio: Relatorio) -> Entrega: ...


@dataclass(frozen=True, slots=True)
class ReportQueries:
    counted: Query
    groups: Query
    classes: Query
    highlights: Query
    make: Query
    of_period: Query
    one: Query
    listed: Query
    unsent: Query
    claim: Query
    settle: Query
    undelivered: Query


class Relatorios:
    def __init__(self, database: Database, destinos: Sequence[Destino], ids: Ids, clock: Clock) -> None:
        self.destinos = tuple(destinos)
        self._database = database
        self._ids = ids
        self._clock = clock
        self._queries = load_queries(ReportQueries, "sql/relatorios.sql", database.dialect)

    async def contar(self, periodo: Periodo) -> dict[str, Json]:
        """Count a period's figures without storing a report."""
        async with self._database.snapshot() as reading:
            return await self._count(reading, periodo)

    async def fazer(self, periodo: Periodo, *, por: str) -> Relatorio:
        """Return the period's report. The first call computes and stores the report. Later calls return the stored
        report.
        """
        wanted = {"tipo": periodo.tipo.value, "inicio": periodo.inicio}
        if (row := await self._database.one(self._queries.of_period, **wanted)) is not None:
            return _relatorio(row)
        async with self._database.snapshot() as reading:
            counted, best = await self._count(reading, periodo), await self._highlights(reading, periodo)
        await self._database.run(
            self._queries.make, id=self._ids.new(), **wanted, fim=periodo.fim, metricas=AsJson(counted),
            destaques=AsJson(best), por=por, now=self._clock.now(),
        )  # fmt: skip
        row = await self._database.one(self._queries.of_period, **wanted)
        assert row is not None
        return _relatorio(row)

    async def entregar(self, relatorio: Relatorio, *, de_novo: bool = False) -> Relatorio:
        """Send the report to every destination that has not received it. If ``de_novo`` is set, which only a person may
        do, also repeat deliveries that arrived or whose result is unknown.
        """
        for destino in self.destinos:
            await self._deliver(destino, relatorio, de_novo)
        return await self.ver(relatorio.id)

    async def entregar_recusados(self, *, exceto: str) -> None:
        """Resend the reports that a destination refused in the last 24 hours. The report ``exceto`` is skipped, because
        the caller sends it.
        """
        since = self._clock.now() - RETRY_FOR
        for destino in self.destinos:
            rows = await self._database.all(self._queries.unsent, destino=destino.nome, desde=since, exceto=exceto)
            for row in rows:
                await self._deliver(destino, await self.ver(row["id"]), de_novo=False)

    async def reenviar(self, id: str) -> Relatorio:
        return await self.entregar(await self.ver(id), de_novo=True)

    async def ver(self, id: str) -> Relatorio:
        row = await self._database.one(self._queries.one, id=id)
        if row is None:
            raise RelatorioDesconhecido(id=id)
        return _relatorio(row)

    async def listar(self, tipo: TipoDeRelatorio | None = None, *, limite: int, pular: int = 0) -> list[Relatorio]:
        """List the reports, newest period first."""
        wanted = None if tipo is None else tipo.value
        rows = await self._database.all(self._queries.listed, tipo=wanted, limite=limite, pular=pular)
        return [_relatorio(row) for row in rows]

    async def nao_entregues(self) -> Row:
        """Return the number of deliveries in the last day (``items``) that were refused or are uncertain, and the time
        of the oldest of them (``desde``).
        """
        now = self._clock.now()
        row = await self._database.one(self._queries.undelivered, depois=now - RETRY_FOR, abandonado=now - ABANDONED)
        assert row is not None
        return row

    async def ask(self) -> Report:
        row = await self.nao_entregues()
        return report_count(
            Severity.WARNING, "relatorios", "nao_entregues", row["items"], row["desde"], lost=1 if row["items"] else 0
        )

    @property
    def check(self) -> Check:
        return Check(name="relatorios", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _deliver(self, destino: Destino, relatorio: Relatorio, de_novo: bool) -> None:
        """Send the report to one destination, unless it has already received the report. The intent to send it is
        stored before the request is made.
        """
        now, key = self._clock.now(), {"id": relatorio.id, "destino": destino.nome}
        claimed = await self._database.run(
            self._queries.claim, **key, de_novo=de_novo, now=now, abandonado=now - ABANDONED
        )
        if not claimed:
            return
        entrega = await destino.enviar(relatorio)
        why = None if isinstance(entrega, Entregue) else entrega.why[:LONGEST_ERROR]
        estado = type(entrega).__name__.lower() if why is not None else "enviado"
        await self._database.run(self._queries.settle, **key, estado=estado, erro=why, now=self._clock.now())

    async def _count(self, reading: Reading, periodo: Periodo) -> dict[str, Json]:
        limits = {"inicio": periodo.inicio, "fim": periodo.fim}
        made: dict[str, Json] = {"periodo": await self._figures(reading, self._queries.counted, limits)}
        day = {**limits, "inicio": periodo.dia_inteiro}
        if periodo.tipo is TipoDeRelatorio.FIM_DIA:
            made["dia"] = await self._figures(reading, self._queries.counted, day)
        if periodo.tipo in (TipoDeRelatorio.FIM_DIA, TipoDeRelatorio.SEMANAL):
            made["grupos"] = await self._figures(reading, self._queries.groups, day)
        if periodo.tipo is TipoDeRelatorio.SEMANAL:
            classes = await reading.all(self._queries.classes, **limits)
            made["classes"] = {row["classe"]: int(row["items"]) for row in classes}
        return made

    async def _figures(self, reading: Reading, query: Query, limits: Mapping[str, datetime]) -> dict[str, Json]:
        row = await reading.one(query, **limits)
        assert row is not None
        return {name: int(row[name]) for name in row.keys()}  # noqa: SIM118 - a row is not a mapping

    async def _highlights(self, reading: Reading, periodo: Periodo) -> list[Json]:
        rows = await reading.all(
            self._queries.highlights, inicio=periodo.inicio, fim=periodo.fim, limite=MOST_HIGHLIGHTS
        )
        plain = ("hospital", "especialidade", "periodo")
        return [
            {"vaga": str(row["id"]), "data": row["data"].isoformat(), **{name: row[name] for name in plain}}
            for row in rows
        ]


def taxa_de_resposta(figuras: Mapping[str, Any]) -> float | None:
    """Return the percentage of the contacted doctors who answered, or None if no doctor was contacted."""
    contacted = figuras["medicos_contatados"]
    return None if not contacted else round(100 * figuras["medicos_que_responderam"] / contacted, 1)


def _relatorio(row: Row) -> Relatorio:
    return Relatorio(
        id=str(row["id"]),
        periodo=Periodo(TipoDeRelatorio(row["tipo"]), row["inicio"], row["fim"]),
        metricas=row["metricas"],
        destaques=row["destaques"],
        por=row["por"],
        feito_em=row["created_at"],
        envios={name: row[name] for name in DESTINOS if row[name] is not None},
        erros={name: row[f"{name}_erro"] for name in DESTINOS if row[f"{name}_erro"] is not None},
    )
