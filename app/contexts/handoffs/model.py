"""States, results and errors of an external hand-off, and the rules that need no database.

pending ──first message sent──▶ contacted ──┬──▶ confirmed       the vacancy is reserved for the doctor
   └────────────────────────────────────────┼──▶ not_confirmed   the vacancy is offered again
                                            └──▶ expired         the vacancy is offered again
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias
from zoneinfo import ZoneInfo

from batuta import BatutaError
from batuta.guards import SwitchRule
from batuta.jobs import Window
from batuta.kernel import dataclass
from batuta.reasons import define

# While this switch is off, an acceptance opens no hand-off, and no reminders are sent. Hand-offs still expire.
SWITCH: Final = SwitchRule(key="external_handoff.enabled", hold_when=False, default=False)


@dataclass(frozen=True, slots=True)
class PrazosDoHandoff:
    """A hand-off's time limit, and how long after the first message each reminder is due."""

    lembretes: tuple[timedelta, ...]
    limite: timedelta

    @property
    def entre_lembretes(self) -> timedelta:
        """The shortest time between two messages to the person who posted the vacancy. If a reminder was sent late, the
        next one waits at least this long.
        """
        return self.lembretes[0]


REMINDERS: Final = (timedelta(hours=2), timedelta(hours=24), timedelta(hours=36))
PRAZOS: Final = PrazosDoHandoff(REMINDERS, timedelta(hours=48))
# Time limits for demonstrations with fictitious people: a minute for each hour.
PRAZOS_EM_MINUTOS: Final = PrazosDoHandoff(tuple(each / 60 for each in REMINDERS), PRAZOS.limite / 60)


class HandoffDesconhecido(BatutaError):
    sentence = "hand-off {id} does not exist: `batuta handoffs listar` lists the open ones"


class HandoffEncerrado(BatutaError):
    sentence = "hand-off {id} has already ended with another decision: `batuta handoffs ver {id}` shows its history"


class HandoffNaoAbre(BatutaError):
    sentence = "the hand-off cannot be opened: {porque}. `batuta vagas ver {vaga}` shows the vacancy"


class LinkRecusado(BatutaError):
    sentence = "the link is not valid, or it was used: ask the team for another one"


class Status(StrEnum):
    PENDING = "pending"
    CONTACTED = "contacted"
    CONFIRMED = "confirmed"
    NOT_CONFIRMED = "not_confirmed"
    EXPIRED = "expired"


ABERTOS: Final = (Status.PENDING, Status.CONTACTED)


class Via(StrEnum):
    """The ways in which a hand-off can be decided."""

    LINK = "link"
    RESPOSTA = "resposta"  # a message from the person who posted the vacancy
    PESSOA = "pessoa"  # an operator
    PRAZO = "prazo"  # the time limit
    VAGA = "vaga"  # the vacancy is no longer waiting for a confirmation


class Impedimento(StrEnum):
    """Reasons that prevent the opening of a hand-off."""

    DESLIGADO = "desligado"
    SEM_VAGA = "sem_vaga"
    VAGA_OCUPADA = "vaga_ocupada"
    SEM_MEDICO = "sem_medico"  # no doctor has this id
    SEM_CONTATO = "sem_contato"  # the poster has no usable number, opted out, is blocked, or is the doctor
    SEM_TEMPO = "sem_tempo"  # the shift begins before the poster can be asked
    REPETIDO = "repetido"  # the poster was already asked about this doctor


PORQUE: Final = {
    Impedimento.DESLIGADO: define("handoff_desligado", "the switch external_handoff.enabled is off"),
    Impedimento.SEM_VAGA: define("handoff_sem_vaga", "the vacancy does not exist"),
    Impedimento.VAGA_OCUPADA: define("handoff_vaga_ocupada", "the vacancy no longer needs a doctor"),
    Impedimento.SEM_MEDICO: define("handoff_sem_medico", "the doctor does not exist"),
    Impedimento.SEM_CONTATO: define("handoff_sem_contato", "Julia cannot write to the person who posted the vacancy"),
    Impedimento.SEM_TEMPO: define("handoff_sem_tempo", "the shift begins before the poster can be asked"),
    Impedimento.REPETIDO: define("handoff_repetido", "the poster was already asked about this doctor"),
}


@dataclass(frozen=True, slots=True)
class Aberto:
    """Result: the hand-off was opened. The vacancy is held until ``ate``, while the poster (the person who posted it)
    is asked.
    """

    id: str
    ate: datetime


Abertura: TypeAlias = Aberto | Impedimento


@dataclass(frozen=True, slots=True)
class Decidido:
    """The state of a hand-off after a decision. ``mudou`` is False if the hand-off had already ended."""

    id: str
    status: Status
    mudou: bool


def prazo(
    now: datetime, inicio: datetime, hours: Window, zone: ZoneInfo, limite: timedelta = PRAZOS.limite
) -> datetime | None:
    """Return a hand-off's deadline. The person who posted the vacancy is asked as soon as the sending hours allow it.
    The deadline is ``limite`` after that instant, but never later than the start of the shift. Return None if the shift
    begins before the person can be asked.
    """
    asked = hours.next_open(now, zone)
    return min(asked + limite, inicio) if asked < inicio else None


def lembrete_devido(
    now: datetime, *, contatado_em: datetime, ultimo_em: datetime | None, pedido: int, prazos: PrazosDoHandoff = PRAZOS
) -> int | None:
    """Return the number of the reminder that is due, or None if no reminder is due. ``pedido`` is the number of the
    reminder that was queued last. If several reminders were missed, only the latest is due.
    """
    number = sum(now - contatado_em >= age for age in prazos.lembretes)
    is_soon = now - (ultimo_em or contatado_em) < prazos.entre_lembretes
    return None if number <= pedido or is_soon else number
