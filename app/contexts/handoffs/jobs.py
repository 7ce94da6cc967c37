"""The hand-off job: end hand-offs whose time limit has passed at any hour, and remind the people who posted the
vacancies during the sending hours.

The job handles each hand-off in its own transaction, which checks the state again. Therefore two concurrent runs never
act on the same hand-off twice.
"""

from datetime import datetime, timedelta
from typing import Final

from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from app.contexts.comum.saude import report_count
from app.contexts.handoffs.model import PrazosDoHandoff, Status, Via, lembrete_devido
from app.contexts.handoffs.service import Handoffs
from batuta import Done, Outcome, Partial
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.jobs import JobCall
from batuta.kernel import Json
from batuta.sql import Row

SISTEMA: Final = "sistema"
EXPIRED_REASON: Final = "prazo_vencido"
VACANCY_REASON: Final = "vaga_nao_espera"
# Delay after which the job is considered not to run. It normally runs every 10 or 15 minutes.
LATE: Final = timedelta(hours=1)
FIGURES: Final = ("lembretes_enfileirados", "lembretes_pausados", "expirados", "encerrados")


class ProcessarHandoffs:
    def __init__(self, parts: Handoffs) -> None:
        self._handoffs = parts

    async def processar_handoffs(self, call: JobCall) -> Outcome:
        """Process open hand-offs, oldest first: remind the person who posted the vacancy, or end the hand-off. The
        result counts the hand-offs by action.
        """
        parts, queries = self._handoffs.parts, self._handoffs.queries
        rows = await parts.database.all(queries.pending)
        is_on, counted = await self._handoffs.is_on(parts.database), dict.fromkeys(FIGURES, 0)
        for row in rows:
            if must_stop(call, parts.clock.now()):
                return Partial(OUT_OF_TIME(), items=_items(counted), result=_figures(rows, counted))
            if (done := await self._process(row, is_on=is_on)) is not None:
                counted[done] += 1
        return Done(items=_items(counted), result=_figures(rows, counted))

    async def ask(self) -> Report:
        """Report hand-offs that are still open after their time limit, which means that the job did not run."""
        rows, now = (
            await self._handoffs.parts.database.all(self._handoffs.queries.pending),
            self._handoffs.parts.clock.now(),
        )
        late = [row["reserved_until"] for row in rows if row["reserved_until"] < now - LATE]
        return report_count(Severity.ERROR, "handoffs", "vencidos", len(late), min(late, default=None), lost=5)

    @property
    def check(self) -> Check:
        return Check(name="handoffs", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _process(self, row: Row, *, is_on: bool) -> str | None:
        """Handle one hand-off. Return the name of the action taken, or None if no action is due or another process has
        already acted.
        """
        now, id = self._handoffs.parts.clock.now(), str(row["id"])
        if not row["espera"]:
            return "encerrados" if await self._end(id, Status.NOT_CONFIRMED, Via.VAGA, VACANCY_REASON) else None
        if now >= row["reserved_until"]:
            return "expirados" if await self._end(id, Status.EXPIRED, Via.PRAZO, EXPIRED_REASON) else None
        number = None if row["contatado_em"] is None else _due(row, now, self._handoffs.parts.prazos)
        if number is None or not self._is_open(now):
            return None
        if not is_on:
            return "lembretes_pausados"
        return "lembretes_enfileirados" if await self._handoffs.lembrar(id, number) else None

    async def _end(self, id: str, status: Status, via: Via, motivo: str) -> bool:
        async with self._handoffs.parts.database.transaction() as transaction:
            done = await self._handoffs.decidir_em(transaction, id, status, via=via, por=SISTEMA, motivo=motivo)
        return done.mudou

    def _is_open(self, now: datetime) -> bool:
        parts = self._handoffs.parts
        return parts.hours.next_open(now, parts.zone) == now


def _due(row: Row, now: datetime, prazos: PrazosDoHandoff) -> int | None:
    return lembrete_devido(
        now,
        contatado_em=row["contatado_em"],
        ultimo_em=row["last_followup_at"],
        pedido=row["lembrete_pedido"],
        prazos=prazos,
    )


def _items(counted: dict[str, int]) -> int:
    return sum(counted.values()) - counted["lembretes_pausados"]


def _figures(rows: list[Row], counted: dict[str, int]) -> dict[str, Json]:
    return {"abertos": len(rows), **counted}
