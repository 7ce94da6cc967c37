"""Build the services for vacancies, external hand-offs and answers to doctors, with their jobs and health checks."""

from collections.abc import Mapping
from functools import partial

from app.composition.conversas import Messages
from app.composition.envio import hours, is_demonstration
from app.contexts.handoffs.externos import TIPOS, Externos
from app.contexts.handoffs.jobs import ProcessarHandoffs
from app.contexts.handoffs.links import Links
from app.contexts.handoffs.model import PRAZOS, PRAZOS_EM_MINUTOS
from app.contexts.handoffs.service import Handoffs, PartesDoHandoff
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.saidas import Saidas
from app.contexts.mensagens.tipos import Tipo
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.plantoes.anuncios import Anuncios
from app.contexts.plantoes.candidatos import Candidatos
from app.contexts.plantoes.confirmacao import Confirmacao
from app.contexts.plantoes.service import Plantoes
from app.contexts.plantoes.urgencia import Urgencias
from app.contexts.respostas.retomadas import Retomadas
from app.contexts.respostas.service import PartesDaResposta, Respostas
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shifts:
    plantoes: Plantoes
    candidatos: Candidatos
    anuncios: Anuncios
    confirmacao: Confirmacao
    urgencias: Urgencias

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-confirmacao-plantao": self.confirmacao.processar_confirmacao_plantao}


def add_shifts(work: Batuta, dicionario: Dicionario) -> Shifts:
    """Register the vacancy services. The queue FILA_MENSAGENS must already be registered with ``work``."""
    database, ids, zone, clock = work.database, work.ids, work.zone, work.clock
    queue, wake = work.queues[FILA_MENSAGENS.name], partial(work.wakeups.wake, FILA_MENSAGENS.name)
    candidatos = Candidatos(database, dicionario, clock)
    shifts = Shifts(
        plantoes=Plantoes(database, dicionario, ids, zone, clock),
        candidatos=candidatos,
        anuncios=Anuncios(database, candidatos, queue, ids, zone, clock, wake),
        confirmacao=Confirmacao(database, ids, zone, clock),
        urgencias=Urgencias(database, dicionario, ids, zone, clock),
    )
    work.health.add(shifts.confirmacao.check)
    return shifts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalHandoffs:
    handoffs: Handoffs
    externos: Externos  # listener for sent and received messages
    jobs: ProcessarHandoffs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-handoffs": self.jobs.processar_handoffs}


def add_handoffs(work: Batuta, settings: Settings, messages: Messages, saidas: Saidas) -> ExternalHandoffs:
    """Build the services for hand-offs to the people who post vacancies. ``saidas`` chooses WhatsApp or Telegram for
    each message.
    """
    handoffs = Handoffs(
        PartesDoHandoff(
            database=work.database,
            ids=work.ids,
            clock=work.clock,
            zone=work.zone,
            hours=hours(settings),
            prazos=PRAZOS_EM_MINUTOS if is_demonstration(settings) else PRAZOS,
            fila=saidas,
            mensagens=messages.mensagens,
            pendencias=messages.conversas.pendencias,
            estagios=messages.estagios,
            switches=work.switches,
            links=_links(settings),
        )
    )
    external = ExternalHandoffs(handoffs=handoffs, externos=Externos(handoffs), jobs=ProcessarHandoffs(handoffs))
    messages.ouvintes.registrar(TIPOS, external.externos)
    work.health.add(external.jobs.check)
    return external


def _links(settings: Settings) -> Links | None:
    """Return the service that makes confirmation links, or None if the api has no public address or no secret key."""
    if settings.public_url is None or settings.secret_key is None:
        return None
    return Links(settings.public_url, settings.secret_key.get_secret_value())


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    respostas: Respostas
    retomadas: Retomadas

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"processar-retomadas": self.retomadas.processar_retomadas}


def add_answers(
    work: Batuta, settings: Settings, messages: Messages, shifts: Shifts, handoffs: Handoffs, saidas: Saidas
) -> Answers:
    """Build the services that answer doctors. ``saidas`` chooses WhatsApp or Telegram for each answer."""
    respostas = Respostas(
        PartesDaResposta(
            dialect=work.database.dialect,
            ids=work.ids,
            fila=saidas,
            plantoes=shifts.plantoes,
            handoffs=handoffs,
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
