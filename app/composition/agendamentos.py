"""Build the appointments services: the file import, the task that parses each row, and the loops that recover the work
of dead processes.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from app.contexts.agendamentos import importacao, tasks
from app.contexts.agendamentos.importacao import Importacao, ImportLoop
from app.contexts.agendamentos.llm import LlmDeAgendamentos
from app.contexts.agendamentos.planilha.processo import LeitorDeArquivos
from app.contexts.agendamentos.saude import SaudeDosAgendamentos
from app.contexts.agendamentos.service import QUEUE, Agendamentos, Ligado
from app.contexts.agendamentos.tasks import Conferente, Normalizador, waits
from app.contexts.llm.service import Consulta
from app.settings import Settings
from batuta import Batuta
from batuta.kernel import dataclass
from batuta.loops import Loop, LoopPolicy
from batuta.queues import ARQ_RUNNER

RECOVERING = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=5), max_failures=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Appointments:
    leitura: LeitorDeArquivos  # one per process, because it limits how many files are read concurrently
    agendamentos: Agendamentos
    importacao: Importacao
    normalizador: Normalizador
    health: SaudeDosAgendamentos
    # Loops that resume interrupted imports and find appointments without a task. Several processes may run these loops.
    recovery: Sequence[tuple[Loop, LoopPolicy]]


def add_appointments(work: Batuta, settings: Settings, llm: Consulta | None) -> Appointments:
    """Register the task that parses an appointment, and build the services that use its queue.

    If the settings allow it, ``llm`` parses the cells that the rules cannot parse. If ``llm`` is None, only the rules
    parse cells.
    """
    wake, leitura = partial(work.wakeups.wake, QUEUE), LeitorDeArquivos(work.clock)
    agendamentos = Agendamentos(
        work.database, work.tasks, work.batches, read_of(settings), work.ids, work.clock, wake, work.encryption
    )
    importing = Importacao(work.database, leitura, agendamentos, work.batches, work.ids, work.clock, wake)
    normalizador = Normalizador(
        work.database,
        read_of(settings),
        work.clock,
        llm=None if llm is None or not asks(settings) else LlmDeAgendamentos(llm),
        perguntavel=model_uses(settings),
        max_tries=settings.arq_max_tries,
        timeout=timedelta(seconds=settings.arq_job_timeout),
        cifra=work.encryption,
    )
    work.task(
        retry=waits(settings.arq_max_tries),
        timeout=settings.arq_job_timeout,
        keep_result=settings.arq_keep_result,
        queue=QUEUE,
    )(normalizador.normalize_appointment)
    appointments = Appointments(
        leitura=leitura,
        agendamentos=agendamentos,
        importacao=importing,
        normalizador=normalizador,
        health=_health(work, settings, agendamentos),
        recovery=(
            (ImportLoop(importing), replace(RECOVERING, every=importacao.LOOK_EVERY)),
            (Conferente(work.database, agendamentos, work.clock), replace(RECOVERING, every=tasks.LOOK_EVERY)),
        ),
    )
    work.health.add_page(appointments.health.page)
    for loop, policy in appointments.recovery:
        work.add_loop(loop, policy)
    return appointments


def read_of(settings: Settings) -> Ligado:
    return Ligado(endereco=settings.address_normalization_enabled, documento=settings.document_normalization_enabled)


def model_uses(settings: Settings) -> Ligado:
    return Ligado(endereco=settings.address_model_enabled, documento=settings.document_model_enabled)


def asks(settings: Settings) -> bool:
    return settings.address_model_enabled or settings.document_model_enabled


def _health(work: Batuta, settings: Settings, agendamentos: Agendamentos) -> SaudeDosAgendamentos:
    queue, is_handed_over = work.queues[QUEUE], settings.tasks_backend == "arq"
    return SaudeDosAgendamentos(
        work.database,
        queue.depth,
        agendamentos.contagem,
        work.beats,
        ARQ_RUNNER if is_handed_over else f"worker:{QUEUE}",
        work.now,
        work.zone,
        is_handed_over=is_handed_over,
    )
