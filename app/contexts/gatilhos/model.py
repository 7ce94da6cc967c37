"""The triggers (automatic messages to doctors) with their limits, and the result of selecting their recipients."""

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from app.contexts.mensagens.api import Tipo
from batuta.kernel import dataclass
from batuta.sql import Row

# A vacancy is offered in this period before its shift.
OFFER_AHEAD: Final = timedelta(days=20)
DOCTORS_PER_VACANCY: Final = 5
# A doctor with whom no message was exchanged for this long is asked whether offers are still wanted.
SILENT_FOR: Final = timedelta(days=60)
# A doctor is asked about a shift at most this long after an operator confirmed the shift.
ASK_WITHIN: Final = timedelta(days=2)
# Maximum number of times that an unsent message is queued, and the pause between two attempts.
ATTEMPTS: Final = 3
RETRY_AFTER: Final = timedelta(days=7)
# A doctor who wrote within this time is in a conversation.
TALKING: Final = timedelta(minutes=30)


class Gatilho(StrEnum):
    """The automatic triggers. Each trigger's value is the name of the job that runs it."""

    DISCOVERY = "discovery_autonomo"
    OFERTA = "oferta_autonoma"
    REATIVACAO = "reativacao_autonoma"
    FEEDBACK = "feedback_autonomo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regra:
    """The limits of a trigger. ``chave`` is the switch that must be on. ``limite`` is the maximum number of doctors per
    run, or of vacancies if the trigger offers vacancies. ``cada`` is the number of messages for each doctor or vacancy.
    """

    tipo: Tipo
    chave: str
    limite: int
    cada: int = 1


REGRAS: Final[Mapping[Gatilho, Regra]] = {
    Gatilho.DISCOVERY: Regra(tipo=Tipo.DISCOVERY, chave="discovery_automatico_enabled", limite=50),
    Gatilho.OFERTA: Regra(tipo=Tipo.OFERTA, chave="oferta_automatica_enabled", limite=30, cada=DOCTORS_PER_VACANCY),
    Gatilho.REATIVACAO: Regra(tipo=Tipo.REATIVACAO, chave="reativacao_automatica_enabled", limite=20),
    Gatilho.FEEDBACK: Regra(tipo=Tipo.FEEDBACK, chave="feedback_automatico_enabled", limite=20),
}


class SemSelecao(StrEnum):
    """Reasons why a run of a trigger selects no doctor."""

    SEM_CANDIDATOS = "sem_candidatos"  # no doctor or vacancy meets the trigger's criteria
    TODOS_IMPEDIDOS = "todos_impedidos"  # every candidate has a reason that prevents a message
    FILA_CHEIA = "fila_cheia"  # enough messages of this trigger are still queued


@dataclass(frozen=True, slots=True, kw_only=True)
class Selecao:
    """The doctors that a trigger selected, or the vacancies if the trigger offers vacancies. ``escolhidos`` has one row
    for each. ``aptos`` counts all candidates who may receive a message. ``impedidos`` counts the other candidates by
    reason, and ``exemplos`` has some of their ids.
    """

    escolhidos: tuple[Row, ...] = ()
    aptos: int = 0
    impedidos: Mapping[str, int] = field(default_factory=dict)
    exemplos: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def encontrados(self) -> int:
        return self.aptos + sum(self.impedidos.values())

    @property
    def restantes(self) -> int:
        """The number of candidates who may receive a message but were not selected, and must wait for a later run."""
        return self.aptos - len(self.escolhidos)

    @property
    def sem_selecao(self) -> SemSelecao | None:
        if self.escolhidos:
            return None
        if not self.encontrados:
            return SemSelecao.SEM_CANDIDATOS
        return SemSelecao.FILA_CHEIA if self.aptos else SemSelecao.TODOS_IMPEDIDOS


@dataclass(frozen=True, slots=True, kw_only=True)
class OfertaSimulada:
    """A vacancy with the doctors to whom the next run would offer it. ``impedidos`` counts the other doctors by the
    reason that prevents an offer.
    """

    vaga_id: str
    medicos: tuple[str, ...]
    impedidos: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulacao:
    """The selection that a run of a trigger would make now. ``ofertas`` is filled only for the trigger that offers
    vacancies.
    """

    gatilho: Gatilho
    suspenso_por: str | None  # the switch that currently stops the trigger, or None
    selecao: Selecao
    ofertas: tuple[OfertaSimulada, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SituacaoDoGatilho:
    """A trigger with the figures for its messages in the last seven days. ``suspenso_por`` is the switch that currently
    stops the trigger, or None.
    """

    gatilho: Gatilho
    suspenso_por: str | None
    na_fila: int = 0
    enfileiradas: int = 0
    enviados: int = 0
    respondidos: int = 0
    avaliacoes: Mapping[str, int] = field(default_factory=dict)  # answers to feedback, by class
