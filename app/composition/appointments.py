"""Appointments put together: who takes them, who reads them, who looks after those left behind."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

from app.composition.demo import planilha_de_demonstracao
from app.composition.llm import model_of
from app.contexts.agendamentos import importacao, tasks
from app.contexts.agendamentos.importacao import Importacao, ImportLoop
from app.contexts.agendamentos.llm import ModeloDeAgendamentos
from app.contexts.agendamentos.planilha.processo import Leitura
from app.contexts.agendamentos.saude import SaudeDosAgendamentos
from app.contexts.agendamentos.service import QUEUE, Agendamentos, Ligado
from app.contexts.agendamentos.tasks import Conferente, Modelo, Normalizador, waits
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.stores.arq.runner import RUNNER
from batuta.supervise.loop import Loop, LoopPolicy

SEEING = LoopPolicy(every=timedelta(seconds=15), stuck_after=timedelta(minutes=5), max_failures=20)


def appointments_of(work: Batuta, settings: Settings) -> tuple[Agendamentos, Importacao]:
    wake, leitura = partial(work.ears.ring, QUEUE), Leitura(work.clock)
    agendamentos = Agendamentos(work.database, work.tasks, read_of(settings), work.ids, work.clock, wake)
    return agendamentos, Importacao(work.database, leitura, agendamentos, work.ids, work.clock, wake)


def read_of(settings: Settings) -> Ligado:
    return Ligado(endereco=settings.address_normalization_enabled, documento=settings.document_normalization_enabled)


def asked_of(settings: Settings) -> Ligado:
    return Ligado(endereco=settings.address_model_enabled, documento=settings.document_model_enabled)


def reader(work: Batuta, settings: Settings) -> Modelo | None:
    """With a key, a model beside the rules."""
    asks = settings.address_model_enabled or settings.document_model_enabled
    asking = model_of(work, settings) if asks else None
    return None if asking is None else ModeloDeAgendamentos(asking)


def add_appointments(work: Batuta, settings: Settings, modelo: Modelo | None = None) -> None:
    """Register the task that reads an appointment, and the loops that recover what a dead process left.

    ``modelo``: reads what the rules cannot; None: as the settings say.
    """
    timeout = timedelta(seconds=settings.arq_job_timeout)
    normalizador = Normalizador(
        work.database,
        read_of(settings),
        work.clock,
        modelo=modelo or reader(work, settings),
        perguntavel=asked_of(settings),
        max_tries=settings.arq_max_tries,
        timeout=timeout,
    )
    work.task(
        retry=waits(settings.arq_max_tries),
        timeout=settings.arq_job_timeout,
        keep_result=settings.arq_keep_result,
        queue=QUEUE,
    )(normalizador.normalize_appointment)
    work.health.add_page(health_of(work, settings).page)
    for loop, policy in recovery_loops(work, settings):
        work.add_loop(loop, policy)


def recovery_loops(work: Batuta, settings: Settings) -> Iterator[tuple[Loop, LoopPolicy]]:
    """Continue interrupted imports, and find appointments whose task is gone. Any number of processes may run them."""
    agendamentos, imports = appointments_of(work, settings)
    yield ImportLoop(imports), replace(SEEING, every=importacao.LOOK_EVERY)
    yield Conferente(work.database, agendamentos, work.clock), replace(SEEING, every=tasks.LOOK_EVERY)


def health_of(work: Batuta, settings: Settings) -> SaudeDosAgendamentos:
    agendamentos, _ = appointments_of(work, settings)
    queue, is_handed_over = work.queues[QUEUE], settings.tasks_backend == "arq"
    return SaudeDosAgendamentos(
        work.database,
        queue.depth,
        agendamentos.contagem,
        work.beats,
        RUNNER if is_handed_over else f"worker:{QUEUE}",
        work.now,
        work.zone,
        is_handed_over=is_handed_over,
    )


async def demonstrate(work: Batuta, settings: Settings) -> None:
    """A small sheet of people who do not exist, taken as any other."""
    _, imports = appointments_of(work, settings)
    await imports.importar(planilha_de_demonstracao(), "demonstracao.csv", by="demo")
