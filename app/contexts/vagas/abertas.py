"""List open and closed vacancies for operators.

Each row has two ids. ``vaga_id`` is the id of the vacancy itself. ``revisao_id`` is the id of the extracted vacancy
from which the vacancy was imported.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any
from zoneinfo import ZoneInfo

from batuta.kernel import Clock, dataclass
from batuta.sql import Database, Query, Row, load_queries


@dataclass(frozen=True, slots=True)
class VacancyQueries:
    open: Query
    closed: Query
    count: Query


class Abertas:
    def __init__(self, database: Database, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._queries = load_queries(VacancyQueries, "sql/abertas.sql", database.dialect)

    async def lista(
        self, *, limite: int, pular: int = 0, dia: date | None = None, fechadas: bool = False
    ) -> Sequence[Row]:
        """List the open vacancies on one day, or from today on. With ``fechadas``, list closed vacancies on any day
        instead.
        """
        first = dia or (date.min if fechadas else self._today())
        query = self._queries.closed if fechadas else self._queries.open
        return await self._database.all(query, de=first, ate=dia or date.max, limite=limite, pular=pular)

    async def quantas(self) -> int:
        row = await self._database.one(self._queries.count, de=self._today())
        return 0 if row is None else int(row["items"])

    def _today(self) -> date:
        return self._clock.now().astimezone(self._zone).date()


def aberta_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo, *, com_contato: bool) -> dict[str, Any]:
    closed = row["fechada_em"]
    document = {
        "vaga_id": row["id"],
        "revisao_id": row["vaga_grupo_id"],
        "status": row["status"],
        "hospital": row["hospital"],
        "cidade": row["cidade"],
        "uf": row["uf"],
        "especialidade": row["especialidade"],
        "data": row["data"].isoformat(),
        "periodo": row["periodo"],
        "hora_inicio": row["hora_inicio"],
        "hora_fim": row["hora_fim"],
        "valor": row["valor"],
        "valor_tipo": row["valor_tipo"],
        "fechada_em": None if closed is None else closed.astimezone(zone).isoformat(),
    }
    if not com_contato:
        return document
    return {**document, "contato_nome": row["contato_nome"], "contato_whatsapp": row["contato_whatsapp"]}
