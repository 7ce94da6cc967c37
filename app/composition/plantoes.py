"""Builds the actions on vacancies and the answers to doctors, with their jobs, listeners and health checks."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from app.composition.envio import hours
from app.composition.mensagens import Messages
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.tipos import Tipo
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.plantoes.anuncios import Anuncios
from app.contexts.plantoes.candidatos import Candidatos
from app.contexts.plantoes.confirmacao import Confirmacao
from app.contexts.plantoes.service import Plantoes
from app.contexts.respostas.retomadas import Retomadas
from app.contexts.respostas.service import PartesDaResposta, Respostas
from app.settings import Settings
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    respostas: Respostas
    retomadas: Retomadas

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-retomadas": self.retomadas.processar_retomadas}


def add_answers(work: Batuta, settings: Settings, messages: Messages, shifts: Shifts) -> Answers:
    """Build the answers. ``work`` must have the queue FILA_MENSAGENS."""
    respostas = Respostas(
        PartesDaResposta(
            dialect=work.database.dialect,
            ids=work.ids,
            fila=work.queues[FILA_MENSAGENS.name],
            plantoes=shifts.plantoes,
            pendencias=messages.conversas.pendencias,
            estagios=messages.estagios,
            hours=hours(settings),
            zone=work.zone,
        )
    )
    answers = Answers(
        respostas=respostas, retomadas=Retomadas(work.database, respostas, messages.mensagens, work.clock)
    )
    messages.ouvintes.registrar([Tipo.RESPOSTA, Tipo.RECEBIMENTO, Tipo.RETOMADA], respostas)
    work.health.add(answers.retomadas.check)
    return answers
