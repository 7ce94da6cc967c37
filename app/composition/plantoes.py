"""Builds the actions on vacancies: the services for operators and jobs, the hourly job, and its health check."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.plantoes.anuncios import Anuncios
from app.contexts.plantoes.candidatos import Candidatos
from app.contexts.plantoes.confirmacao import Confirmacao
from app.contexts.plantoes.service import Plantoes
from batuta import Batuta
from batuta.jobs import JobHandler


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    plantoes: Plantoes
    candidatos: Candidatos
    anuncios: Anuncios
    confirmacao: Confirmacao

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-confirmacao-plantao": self.confirmacao.processar_confirmacao_plantao}


def add_shifts(work: Batuta, dicionario: Dicionario) -> Shifts:
    """Register the services of vacancies. ``work`` must have the queue FILA_MENSAGENS."""
    database, ids, zone, clock = work.database, work.ids, work.zone, work.clock
    queue, wake = work.queues[FILA_MENSAGENS.name], partial(work.wakeups.wake, FILA_MENSAGENS.name)
    candidatos = Candidatos(database, dicionario, clock)
    shifts = Shifts(
        plantoes=Plantoes(database, dicionario, ids, zone, clock),
        candidatos=candidatos,
        anuncios=Anuncios(database, candidatos, queue, ids, zone, clock, wake),
        confirmacao=Confirmacao(database, ids, zone, clock),
    )
    work.health.add(shifts.confirmacao.check)
    return shifts
