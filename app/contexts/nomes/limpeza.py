"""Delete hospitals that the pipeline created by mistake: their text is not a name, and no row refers to them."""

from datetime import datetime
from typing import Final
from uuid import UUID

from app.contexts.comum.prazo import must_stop
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.nomes import pode_ser_nome
from batuta import Done, Outcome, Partial
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.reasons import define
from batuta.sql import AuditLog, Database, Query, load_queries

OUT_OF_TIME = define("faltou_tempo", "the time limit was reached before all names were examined")

PAGE: Final = 200
MOST_PAGES: Final = 500
ACTOR: Final = "limpeza_hospitais"


@dataclass(frozen=True, slots=True)
class CleaningQueries:
    suspects: Query
    forget_names: Query
    delete_hospital: Query


class Limpeza:
    def __init__(self, database: Database, dicionario: Dicionario, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(CleaningQueries, "sql/limpeza.sql", database.dialect)

    async def limpeza_hospitais(self, call: JobCall) -> Outcome:
        """Delete hospitals that the pipeline created from a text that cannot be a name, and to which no row refers."""
        areas = (await self._dicionario.nomes()).vocabulario.especialidades
        looked, deleted, after = 0, 0, str(UUID(int=0))
        for _ in range(MOST_PAGES):
            rows = await self._database.all(self._queries.suspects, depois=after, limite=PAGE)
            for row in rows:
                is_area = areas.valor(row["nome"]) is not None
                if not pode_ser_nome(row["nome"], eh_especialidade=is_area)[0]:
                    deleted += await self._delete(row["id"], self._clock.now())
            looked += len(rows)
            if len(rows) < PAGE:
                break
            after = rows[-1]["id"]
            if must_stop(call, self._clock.now()):
                return Partial(OUT_OF_TIME(), items=deleted, result=_counts(looked, deleted))
        return Done(items=deleted, result=_counts(looked, deleted))

    async def _delete(self, id: str, now: datetime) -> bool:
        """Delete a hospital that was created by mistake. Returns False if a new row refers to the hospital."""
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.forget_names, id=id)
            gone = bool(await transaction.run(self._queries.delete_hospital, id=id))
            if gone:
                await transaction.run(self._dicionario.queries.bump)
                subject = f"hospital:{id}"
                await self._audit.note(
                    transaction, actor=ACTOR, action="hospital.apagar", subject=subject, before=None, after=None, now=now
                )  # fmt: skip
        return gone


def _counts(looked: int, deleted: int) -> dict[str, Json]:
    return {"candidatos": looked, "deletados": deleted}
