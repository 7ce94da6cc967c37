"""Hourly job for shifts that have ended, and for vacancies that still have no doctor when the shift starts.

    reservada            ── end + buffer has passed ──▶ pendente_confirmacao: an operator confirms the shift
    aberta | anunciada   ── start has passed ─────────▶ cancelada (vencida)

Before the job changes a vacancy, it locks the vacancy and checks it again. Two concurrent runs therefore change it only
once.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from app.contexts.comum.prazo import OUT_OF_TIME, must_stop
from app.contexts.comum.saude import report_count
from app.contexts.plantoes.horario import Turno, turno_de
from app.contexts.plantoes.model import VENCIDA
from app.contexts.vagas.api import PROCURA, StatusDaVaga, Transicoes
from batuta import Done, Failed, Outcome, Partial
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity, merge_reports
from batuta.jobs import JobCall
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.reasons import define
from batuta.sql import Database, Query, load_queries

BUFFER_WANTED = define("buffer_horas", "buffer_horas must be a whole number from 0 to {most}")
SISTEMA: Final = "sistema"
BUFFER: Final = timedelta(hours=2)
MOST_BUFFER_HOURS: Final = 168
PAGE: Final = 500
MOST_PAGES: Final = 1000
# Maximum number of ids in the job's result. The count has no limit.
SHOWN: Final = 200
# Time in which an operator should confirm a shift.
ANSWER_WITHIN: Final = timedelta(hours=24)
# A shift that the job has not changed within this time is reported. The job runs every hour, so one missed run is
# tolerated.
JOB_WITHIN: Final = timedelta(hours=2)


@dataclass(frozen=True, slots=True)
class ConfirmationQueries:
    past: Query
    unconfirmed: Query


@dataclass(frozen=True, slots=True)
class Passo:
    """A change of a vacancy's state that becomes due at a certain time, such as the start of the shift. ``vence``
    returns that time.
    """

    de: tuple[StatusDaVaga, ...]
    para: StatusDaVaga
    motivo: str
    vence: Callable[[Turno], datetime]


class Confirmacao:
    def __init__(self, database: Database, ids: Ids, zone: ZoneInfo, clock: Clock) -> None:
        self._database = database
        self._zone = zone
        self._clock = clock
        self._transicoes = Transicoes(database.dialect, ids)
        self._queries = load_queries(ConfirmationQueries, "sql/confirmacao.sql", database.dialect)

    async def processar_confirmacao_plantao(self, call: JobCall) -> Outcome:
        """Change the state of every vacancy for which a change is due. A shift needs a confirmation ``buffer_horas``
        hours after its end. The result counts the changes made by this run.
        """
        if (buffer := _buffer(call.params.get("buffer_horas"))) is None:
            return Failed(BUFFER_WANTED(most=MOST_BUFFER_HOURS), permanent=True)
        changed: dict[StatusDaVaga, list[str]] = {}
        for step in _passos(buffer):
            made = changed.setdefault(step.para, [])
            for id in await self._list_due(step):
                if must_stop(call, self._clock.now()):
                    return Partial(OUT_OF_TIME(), items=_count(changed), result=_figures(changed))
                if await self._take(id, step):
                    made.append(id)
        return Done(items=_count(changed), result=_figures(changed))

    async def ask(self) -> Report:
        """Report shifts that have been waiting too long for a confirmation, and ended shifts that are still reserved
        although the job should have changed them.
        """
        now = self._clock.now()
        row = await self._database.one(self._queries.unconfirmed, antes=now - ANSWER_WITHIN)
        waiting, since = (0, None) if row is None else (int(row["items"]), row["desde"])
        overdue = await self._list_due(_passos(BUFFER + JOB_WITHIN)[0])
        return merge_reports(
            [
                report_count(Severity.WARNING, "plantoes", "sem_confirmacao", waiting, since, lost=3),
                report_count(Severity.ERROR, "plantoes", "reservada_passada", len(overdue), lost=10),
            ]
        )

    @property
    def check(self) -> Check:
        return Check(name="plantoes", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _list_due(self, step: Passo) -> list[str]:
        """Return the ids of all vacancies whose state change is due, oldest day first."""
        now, found = self._clock.now(), []
        today = now.astimezone(self._zone).date()
        for status in step.de:
            day, after = date.min, str(UUID(int=0))
            for _ in range(MOST_PAGES):
                rows = await self._database.all(
                    self._queries.past, status=status.value, hoje=today, depois=day, depois_id=after, limite=PAGE
                )
                found += [str(row["id"]) for row in rows if step.vence(turno_de(row, self._zone)) <= now]
                if len(rows) < PAGE:
                    break
                day, after = rows[-1]["data"], str(rows[-1]["id"])
        return found

    async def _take(self, id: str, step: Passo) -> bool:
        """Change the state of one vacancy if the change is still due. Returns False if another process or an operator
        has already made a change to the vacancy.
        """
        async with self._database.transaction() as transaction:
            vaga, now = await self._transicoes.travar(transaction, id), self._clock.now()
            if vaga is None or vaga["status"] not in step.de or step.vence(turno_de(vaga, self._zone)) > now:
                return False
            return await self._transicoes.mudar(transaction, vaga, step.para, por=SISTEMA, motivo=step.motivo, now=now)


def _passos(buffer: timedelta) -> tuple[Passo, Passo]:
    return (
        Passo(
            (StatusDaVaga.RESERVADA,),
            StatusDaVaga.PENDENTE_CONFIRMACAO,
            "plantao_terminou",
            lambda turno: turno.fim + buffer,
        ),
        Passo(PROCURA, StatusDaVaga.CANCELADA, VENCIDA, lambda turno: turno.inicio),
    )


def _buffer(written: str | None) -> timedelta | None:
    """Parse the parameter ``buffer_horas``. Return None if the text is not a valid number of hours."""
    if written is None:
        return BUFFER
    hours = int(written) if written.isascii() and written.isdigit() and len(written) <= 3 else MOST_BUFFER_HOURS + 1
    return timedelta(hours=hours) if hours <= MOST_BUFFER_HOURS else None


def _count(changed: Mapping[StatusDaVaga, Sequence[str]]) -> int:
    return sum(map(len, changed.values()))


def _figures(changed: Mapping[StatusDaVaga, Sequence[str]]) -> dict[str, Json]:
    due = changed.get(StatusDaVaga.PENDENTE_CONFIRMACAO, ())
    return {
        "processadas": len(due),
        "vencidas": len(changed.get(StatusDaVaga.CANCELADA, ())),
        "vagas": [*due[:SHOWN]],
    }
