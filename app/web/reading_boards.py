"""What the first page shows of what comes in: what groups said today and what waits for a person, and how appointments are read."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from app.contexts.agendamentos.importacao import Importacao
from app.contexts.agendamentos.model import Status
from app.contexts.agendamentos.service import Agendamentos
from app.contexts.grupos.recebidas import Recebidas
from app.contexts.vagas.abertas import Abertas
from batuta.engine.extension import Board, Course, Figure, Tone
from batuta.stores.sql.database import Row

MOST_IMPORTS: Final = 3
COLUMNS: Final = ("arquivo", "situacao", "lidas", "novas", "com_erro")
TONES: Final[Mapping[str, Tone]] = {
    "recebendo": Tone.RUNNING,
    "em_andamento": Tone.RUNNING,
    "concluida": Tone.OK,
    "falhou": Tone.FAILING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadroDosGrupos:
    recebidas: Recebidas
    abertas: Abertas
    revisao: Callable[[], Awaitable[int]]

    async def __call__(self) -> Board:
        today, waiting = await self.recebidas.hoje(), await self.revisao()
        return Board(
            says="quadro.grupos.titulo",
            figures=[
                Figure(says="quadro.grupos.descartadas", value=today.descartadas, of=today.recebidas),
                Figure(says="quadro.grupos.para_revisao", value=waiting, tone=_asks(waiting)),
                Figure(says="quadro.grupos.avisos", value=today.avisos, tone=_asks(today.avisos)),
                Figure(says="quadro.grupos.abertas", value=await self.abertas.quantas(), tone=Tone.OK),
            ],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QuadroDosAgendamentos:
    agendamentos: Agendamentos
    importacao: Importacao

    async def __call__(self) -> Board:
        counts = await self.agendamentos.contagem()
        tones = {
            Status.PENDING: _moves(counts[Status.PENDING]),
            Status.PROCESSING: _moves(counts[Status.PROCESSING]),
            Status.COMPLETED: Tone.OK,
            Status.FAILED: Tone.DEGRADED if counts[Status.FAILED] else Tone.WAITING,
        }
        return Board(
            says="quadro.agendamentos.titulo",
            figures=[
                Figure(says=f"quadro.agendamentos.{status}", value=counts[status], tone=tone)
                for status, tone in tones.items()
            ],
            columns=[f"quadro.agendamentos.coluna_{each}" for each in COLUMNS],
            courses=[_course(row) for row in await self.importacao.recentes(MOST_IMPORTS)],
        )


def _course(row: Row) -> Course:
    return Course(
        name=row["arquivo"],
        state=f"quadro.agendamentos.importacao_{row['status']}",
        tone=TONES[row["status"]],
        done=row["valid_rows"] + row["invalid_rows"] + row["skipped"],
        of=row["total_rows"],
        besides=[row["imported"], row["invalid_rows"]],
    )


def _moves(count: int) -> Tone:
    return Tone.RUNNING if count else Tone.WAITING


def _asks(count: int) -> Tone:
    """Somebody has to decide."""
    return Tone.HELD if count else Tone.WAITING
