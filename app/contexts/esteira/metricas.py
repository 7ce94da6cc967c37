"""Daily metrics of the groups, counted from the stored rows. Counting the same day again gives the same figures."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from app.contexts.llm.service import Gasto
from batuta.kernel import Json, dataclass
from batuta.sql import AsJson, Database, Query, load_queries


@dataclass(frozen=True, slots=True)
class MetricQueries:
    by_group: Query
    day: Query
    times: Query
    dead_by_stage: Query
    by_day: Query


class Metricas:
    def __init__(self, database: Database, zone: ZoneInfo) -> None:
        self._database = database
        self._zone = zone
        self._queries = load_queries(MetricQueries, "sql/metricas.sql", database.dialect)

    def dia(self, day: date) -> tuple[datetime, datetime]:
        """Return the instants at which a day starts and ends in the local time zone."""
        return tuple(datetime.combine(each, time(0), self._zone) for each in (day, day + timedelta(days=1)))  # type: ignore[return-value]

    async def consolidar(self, day: date, llm: Gasto) -> dict[str, Json]:
        since, until = self.dia(day)
        stretch = {"since": since, "until": until}
        groups = await self._database.run(self._queries.by_group, dia=day, **stretch)
        row = await self._database.one(self._queries.day, **stretch)
        assert row is not None
        counted: dict[str, Json] = {name: row[name] for name in row.keys()}  # noqa: SIM118 - a row is not a mapping
        took = sorted(
            (each["processado_em"] - each["created_at"]).total_seconds() * 1000
            for each in await self._database.all(self._queries.times, **stretch)
        )
        dead = {
            each["estagio"]: each["items"] for each in await self._database.all(self._queries.dead_by_stage, **stretch)
        }
        p50, p95, p99 = (percentil(took, share) for share in (0.5, 0.95, 0.99))
        await self._database.run(
            self._queries.by_day, dia=day, **counted, llm_classificou=llm.perguntas, p50=p50, p95=p95, p99=p99,
            custo=Decimal(f"{llm.custo:.4f}"), erros=sum(dead.values()), erros_por_estagio=AsJson(dead),
        )  # fmt: skip
        return {"data": day.isoformat(), "grupos": groups, **counted, "p50_ms": p50, "p95_ms": p95, "erros": dict(dead)}


def percentil(ordered: Sequence[float], share: float) -> float | None:
    """Return the value at the given fraction of a sorted sequence (0.5 is the median), or None if the sequence is
    empty.
    """
    return None if not ordered else round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
