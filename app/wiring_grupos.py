"""The groups, put together: the pipeline that reads vacancies out of their chatter, its jobs and what is known of its health."""

from collections.abc import Mapping
from datetime import timedelta

from app.contexts.grupos.dicionario import Dicionario
from app.contexts.grupos.esteira import Ritmo, esteira
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.jobs import GroupJobs
from app.contexts.grupos.leituras import Leitor, Leituras, Regras
from app.contexts.grupos.limiares import Limiares
from app.contexts.grupos.operacao import Operacao
from app.contexts.grupos.vagas import Vagas
from app.settings import Settings
from batuta.dispatch.endpoints import Handler
from batuta.engine import Batuta


def limiares(settings: Settings) -> Limiares:
    return Limiares(
        heuristica=settings.grupos_limiar_heuristica,
        alta=settings.grupos_limiar_alta,
        classificacao=settings.grupos_limiar_classificacao,
        importacao=settings.grupos_limiar_importacao,
        revisao=settings.grupos_limiar_revisao,
    )


def ritmo(settings: Settings) -> Ritmo:
    return Ritmo(
        lote=settings.grupos_batch_size,
        fora=settings.grupos_max_workers,
        intervalo=timedelta(seconds=settings.grupos_intervalo_segundos),
        lote_do_job=settings.grupos_job_batch_size,
        fora_do_job=settings.grupos_job_max_workers,
    )


def add_groups(work: Batuta, settings: Settings, leitor: Leitor | None = None) -> Mapping[str, Handler]:
    """The worker serves each stage; the job does the same by schedule. ``leitor``: who reads; None: as the settings say."""
    names, limits, pace = Dicionario(work.database, work.clock), limiares(settings), ritmo(settings)
    reading = Leituras(work.database, names, leitor or Regras(names, work.zone), limits, work.clock)
    vagas = Vagas(work.database, names, limits, work.zone, work.clock)
    work.add_pipeline(esteira(reading, vagas, pace, pergunta_fora=False), look_every=pace.intervalo)
    jobs = GroupJobs(operation(work, settings), work.zone, work.clock)
    manual: dict[str, Handler] = {
        "status-grupos": jobs.status_grupos,
        "reprocessar-grupos-erro": jobs.reprocessar_grupos_erro,
        "backfill-fila-grupos": jobs.backfill_fila_grupos,
    }
    for name, handler in manual.items():
        work.endpoints.add(name, handler, manual=True)
    return {
        "processar-grupos": jobs.processar_grupos,
        "limpar-grupos-finalizados": jobs.limpar_grupos_finalizados,
    }


def operation(work: Batuta, settings: Settings) -> Operacao:
    queue = work.queues[Estagio.PENDENTE]
    return Operacao(work.database, queue, work.work_once, ritmo(settings), work.clock, pergunta_fora=False)
