"""Operators' actions on the pipeline: run the stages, retry dead rows, enqueue messages that were never queued, and
delete old rows.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import date, datetime, timedelta
from typing import Final, Protocol

from app.contexts.comum.fila import Fila
from app.contexts.esteira.esteira import Ritmo
from app.contexts.grupos.api import ERRO, RELEITURA, Estagio, da_mensagem, da_releitura
from batuta.kernel import Clock, Json, dataclass
from batuta.sql import AsJson, Database, Query, load_queries

BATCH: Final = 500
FICA: Final = timedelta(days=7)
CHAVE_FICA: Final = timedelta(days=60)
# Maximum time for which a vacancy without a day stays in review.
SEM_DIA_FICA: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class OperationQueries:
    counts: Query
    failed_since: Query
    dead: Query
    forgotten: Query
    past: Query
    drop_finished: Query
    prune: Query
    expire: Query
    free_expired: Query
    prune_keys: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Ciclo:
    por_estagio: dict[str, int]
    erros: int

    @property
    def processados(self) -> int:
        return sum(self.por_estagio.values())


class Queue(Fila, Protocol):
    async def revive(self, id: str, *, by: str | None = None) -> bool: ...


class Operacao:
    def __init__(
        self,
        database: Database,
        fila: Queue,
        releituras: Fila,
        work_once: Callable[[str, int, int | None], Awaitable[int]],
        ritmo: Ritmo,
        clock: Clock,
        *,
        pergunta_fora: bool,
    ) -> None:
        """Create the service for operators' actions on the pipeline. ``releituras`` is the extraction stage's queue, in
        which messages wait to be read again. ``work_once`` processes due rows of a stage; its arguments are the stage,
        the maximum number of rows, and the concurrency (None for the stage's default).
        """
        self._database = database
        self._fila = fila
        self._releituras = releituras
        self._work_once = work_once
        self._ritmo = ritmo
        self._clock = clock
        self._outside = {Estagio.CLASSIFICACAO, Estagio.EXTRACAO} if pergunta_fora else set()
        self._queries = load_queries(OperationQueries, "sql/operacao.sql", database.dialect)

    async def ciclo(self, lote: int | None = None, fora: int | None = None) -> Ciclo:
        """Run every stage once, from first to last, so that one call can move a row through all stages. Workers may run
        at the same time, because each row is claimed once.
        """
        began, ritmo = self._clock.now(), self._ritmo
        most, outside = lote or ritmo.lote_do_job, fora or ritmo.fora_do_job
        worked = {
            stage.value: await self._work_once(stage, most, outside if stage in self._outside else most)
            for stage in Estagio
        }
        failed = await self._database.one(self._queries.failed_since, since=began)
        return Ciclo(por_estagio=worked, erros=0 if failed is None else failed["items"])

    async def fila(self) -> dict[str, Json]:
        """Return the number of queue rows at each stage. ``erros_max_tentativas`` is the number of dead rows."""
        rows = await self._database.all(self._queries.counts)
        counts: dict[str, Json] = {stage.value: 0 for stage in Estagio}
        counts |= {row["estagio"]: row["items"] for row in rows}
        return {**counts, "erros_max_tentativas": counts.get(ERRO, 0)}

    async def mortas(self, estagio: Estagio | None, limite: int) -> list[str]:
        asked = {"estagio": "" if estagio is None else estagio.value, "todos": estagio is None, "limite": limite}
        return [row["id"] for row in await self._database.all(self._queries.dead, **asked)]

    async def reprocessar(self, ids: list[str], *, por: str | None = None) -> AsyncIterator[bool]:
        """Retry each row at the stage where it failed. Yield one value per row: True if the row is retried now, False
        if another process has already retried it.
        """
        for id in ids:
            yield await self._fila.revive(id, by=por)

    async def esquecidas(self, limite: int) -> list[str]:
        return [row["id"] for row in await self._database.all(self._queries.forgotten, limite=limite)]

    async def enfileirar(self, mensagens: list[str]) -> int:
        """Enqueue group messages for the pipeline. Return how many of them were not in the queue yet."""
        return sum(id is not None for id in await self._fila.put([da_mensagem(id) for id in mensagens]))

    async def passadas(self, desde: datetime, ate: datetime, limite: int) -> list[str]:
        """Return the ids of the messages that were processed in a given period, oldest first. Messages that were read
        again in the last week are skipped.
        """
        asked = {"desde": desde, "ate": ate, "releitura": f"{RELEITURA}%", "limite": limite}
        return [row["id"] for row in await self._database.all(self._queries.past, **asked)]

    async def reler(self, mensagens: list[str]) -> int:
        """Enqueue processed messages so that the extraction stage reads them again. Return the number of enqueued
        messages.
        """
        async with self._database.transaction() as transaction:
            await transaction.run(self._queries.drop_finished, ids=AsJson(mensagens))
            items = [da_releitura(id) for id in mensagens]
            return sum(id is not None for id in await self._releituras.put(items, within=transaction))

    async def vencer(self, hoje: date) -> int:
        """Discard vacancies in review whose day is past, or that name no day and have waited too long. ``hoje`` is
        today's date in São Paulo.
        """
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            expired = await transaction.run(self._queries.expire, hoje=hoje, before=now - SEM_DIA_FICA, now=now)
            await transaction.run(self._queries.free_expired, now=now)
        return expired

    async def limpar(self, hoje: date, until: datetime) -> int:
        """Delete finished rows that are older than a week. Stop at the instant ``until``, even if rows remain."""
        now, removed = self._clock.now(), 0
        for _ in range(1_000_000 // BATCH):
            gone = await self._database.run(self._queries.prune, before=now - FICA, limite=BATCH)
            removed += gone
            if gone < BATCH or self._clock.now() >= until:
                break
        long_ago = {"before": now - CHAVE_FICA, "day": hoje - CHAVE_FICA, "limite": 10 * BATCH}
        await self._database.run(self._queries.prune_keys, **long_ago)
        return removed
