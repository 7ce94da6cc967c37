"""What the first page shows of the sending: how the queue is, what left today, the chips, and how far each campaign got."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from app.contexts.campanhas.model import Status, ninguem_recebeu
from app.contexts.campanhas.service import Campanhas
from app.contexts.envio.saude import LIMITS, Medidas
from app.contexts.mensagens.limites import Limites
from batuta.engine.extension import Board, Course, Figure, Tone
from batuta.guard.rate import Rates
from batuta.stores.sql.database import Row

MOST_CAMPAIGNS: Final = 5
COLUMNS: Final = ("campanha", "situacao", "enviadas", "entregues", "respostas")
TONES: Final[Mapping[Status, Tone]] = {
    Status.RASCUNHO: Tone.WAITING,
    Status.AGENDADA: Tone.WAITING,
    Status.ATIVA: Tone.RUNNING,
    Status.PAUSADA: Tone.HELD,
    Status.CONCLUIDA: Tone.OK,
    Status.CANCELADA: Tone.WAITING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Quadro:
    fila: Callable[[], Awaitable[Medidas]]
    chips: Callable[[], Awaitable[Mapping[str, Any]]]
    campanhas: Campanhas
    rates: Rates
    limites: Limites

    async def __call__(self) -> Board:
        medidas, chips = await self.fila(), (await self.chips())["summary"]
        used = await self.rates.used([self.limites.hora, self.limites.dia])
        return Board(
            says="quadro.titulo",
            figures=[*_queue(medidas), *_sent(used, self.limites), *_unknown(medidas), _chips(chips)],
            columns=[f"quadro.coluna.{each}" for each in COLUMNS],
            courses=[_course(row) for row in await self.campanhas.todas(limit=MOST_CAMPAIGNS)],
        )


def _queue(medidas: Medidas) -> Sequence[Figure]:
    moves = Tone.RUNNING if medidas.pendentes else Tone.WAITING
    is_old = medidas.idade > LIMITS.age_warning
    return (
        Figure(says="quadro.na_fila", value=medidas.pendentes, tone=Tone.HELD if medidas.pausada else moves),
        Figure(says="quadro.agendadas", value=medidas.agendadas),
        Figure(
            says="quadro.mais_antiga",
            value=medidas.idade if medidas.mais_antiga else timedelta(0),
            tone=Tone.DEGRADED if is_old and not medidas.pausada else Tone.WAITING,
        ),
    )


def _sent(used: Mapping[str, int], limites: Limites) -> Sequence[Figure]:
    return tuple(
        Figure(says=says, value=used[limit.name], of=limit.most, tone=Tone.OK)
        for says, limit in (("quadro.na_hora", limites.hora), ("quadro.no_dia", limites.dia))
    )


def _unknown(medidas: Medidas) -> Sequence[Figure]:
    return (
        Figure(says="quadro.em_duvida", value=medidas.em_duvida, tone=_wrong(medidas.em_duvida)),
        Figure(says="quadro.para_decisao", value=medidas.para_decisao, tone=_wrong(medidas.para_decisao)),
    )


def _chips(summary: Mapping[str, int]) -> Figure:
    able, total = summary["disponiveis"], summary["total"]
    tone = Tone.OK if able == total else Tone.DEGRADED if able else Tone.FAILING
    return Figure(says="quadro.chips", value=able, of=total, tone=tone if total else Tone.WAITING)


def _course(row: Row) -> Course:
    status = Status(row["status"])
    nobody = ninguem_recebeu(status, row["total_destinatarios"])
    return Course(
        name=row["nome_template"] or str(row["id"]),
        state="quadro.campanha.ninguem" if nobody else f"quadro.campanha.{status}",
        tone=Tone.DEGRADED if row["erro"] or nobody else TONES[status],
        done=row["enviados"],
        of=row["total_destinatarios"],
        besides=[row["entregues"], row["respondidos"]],
    )


def _wrong(count: int) -> Tone:
    return Tone.DEGRADED if count else Tone.WAITING
