"""Daily and weekly updates of doctors' states. The jobs process all rows in pages, each page in one transaction.

    daily    lower temperatures, end rests whose time has passed, mark doctors who have not written for 90 days as churned
    weekly   the daily updates, and correct the time of every doctor's last message from the recorded messages

A repeated run changes nothing. The number of contacts in the last seven days needs no reset, because the rules count
the sent messages each time.
"""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final
from uuid import UUID

from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from app.contexts.estado_medico.model import DAY, LOST_AFTER, CicloDeVida, Permissao, Queda, queda_de
from app.contexts.estado_medico.service import state_queries
from app.contexts.operacao.service import Eventos
from batuta import Done, Outcome, Partial
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids
from batuta.sql import Database, Query, Row, Transaction

PAGE: Final = 500
# A step ends at the deadline of the job or after this many pages, whichever comes first.
MOST_PAGES: Final = 10_000
FIRST: Final = str(UUID(int=0))


class Manutencao:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._queries = state_queries(database.dialect)
        self._eventos = Eventos(database.dialect, ids)
        self._clock = clock

    async def diaria(self, call: JobCall) -> Outcome:
        return await self._run(call, self._daily())

    async def semanal(self, call: JobCall) -> Outcome:
        return await self._run(call, {**self._daily(), "reconciled": self._reconcile})

    def _daily(self) -> dict[str, "Step"]:
        return {"decayed": self._cool, "expired_cooling_off": self._end_rests, "churned": self._lose}

    async def _run(self, call: JobCall, steps: dict[str, "Step"]) -> Outcome:
        """Run the steps of a maintenance job. Each step processes one page of doctors and returns the position of the
        next page, or None after the last page.
        """
        counted = dict.fromkeys(steps, 0)
        for name, step in steps.items():
            after: str | None = FIRST
            for _ in range(MOST_PAGES):
                if must_stop(call, self._clock.now()):
                    return Partial(OUT_OF_TIME(), items=sum(counted.values()), result={**counted})
                changed, after = await step(after or FIRST, self._clock.now())
                counted[name] += changed
                if after is None:
                    break
        return Done(items=sum(counted.values()), result={**counted})

    async def _cool(self, after: str, now: datetime) -> tuple[int, str | None]:
        async with self._database.transaction() as transaction:
            rows = await transaction.all(self._queries.warm, antes=now - DAY, depois=after, limite=PAGE)
            changed = 0
            for row in rows:
                if (queda := queda_de(row["last_decay_at"], row["last_inbound_at"], now)) is not None:
                    changed += await self._lower(transaction, row, queda, now)
        return changed, _position(rows)

    async def _lower(self, transaction: Transaction, row: Row, queda: Queda, now: datetime) -> int:
        return await transaction.run(
            self._queries.cool,
            cliente_id=row["cliente_id"],
            quanto=queda.quanto,
            ate=queda.ate,
            desde=row["last_inbound_at"] or queda.ate,
            now=now,
        )

    async def _end_rests(self, _: str, now: datetime) -> tuple[int, str | None]:
        return await self._change(self._queries.end_rests, "medico_fim_do_descanso", now, {})

    async def _lose(self, _: str, now: datetime) -> tuple[int, str | None]:
        return await self._change(self._queries.lose, "medico_perdido", now, {"antes": now - LOST_AFTER})

    async def _change(
        self, query: Query, event: str, now: datetime, values: dict[str, object]
    ) -> tuple[int, str | None]:
        """Change one page of doctors with one statement, and record an event for each changed doctor. Return the number
        of changed doctors and the position of the next page.
        """
        async with self._database.transaction() as transaction:
            rows = await transaction.all(query, **values, limite=PAGE, now=now)
            for row in rows:
                id = str(row["cliente_id"])
                key = f"{event}:{id}:{now.isoformat()}"
                await self._eventos.record(transaction, event, now=now, dedupe_key=key, cliente_id=id)
        return len(rows), _position(rows)

    async def _reconcile(self, after: str, now: datetime) -> tuple[int, str | None]:
        """Correct doctors' states in which the time of the last inbound or outbound message is missing or too early,
        for example because a sender's phone number became known only after the message arrived.
        """
        async with self._database.transaction() as transaction:
            rows = await transaction.all(self._queries.recorded, depois=after, limite=PAGE)
            behind = [row for row in rows if _is_behind(row)]
            for row in behind:
                await transaction.run(self._queries.repair, **_derive_state(row), now=now)
        return len(behind), _position(rows)


Step = Callable[[str, datetime], Awaitable[tuple[int, str | None]]]


def _position(rows: list[Row]) -> str | None:
    """Return the id of a page's last row, or None if no page follows."""
    return str(rows[-1]["cliente_id"]) if len(rows) == PAGE else None


def _is_behind(row: Row) -> bool:
    pairs = ((row["entrada"], row["last_inbound_at"]), (row["saida"], row["last_outbound_at"]))
    return any(real is not None and (stored is None or stored < real) for real, stored in pairs)


def _derive_state(row: Row) -> dict[str, object]:
    wrote = row["entrada"] is not None
    permits = Permissao.ACTIVE if wrote else Permissao.INITIAL
    return {
        "cliente_id": row["cliente_id"],
        "permissao": (Permissao.OPTED_OUT if row["parou"] else permits).value,
        "ciclo": (CicloDeVida.ENGAGED if wrote else CicloDeVida.PROSPECTING).value,
        "entrada": row["entrada"],
        "saida": row["saida"],
    }
