"""The groups, put together: the pipeline that reads vacancies out of their chatter, its jobs and what is known of its health."""

from collections.abc import Mapping
from datetime import timedelta
from functools import partial

from app.composition.llm import model_of
from app.contexts.conversas.service import Conversas
from app.contexts.esteira.esteira import Ritmo, esteira
from app.contexts.esteira.jobs import GroupJobs
from app.contexts.esteira.leituras import Leitor, Leituras, Regras
from app.contexts.esteira.llm import USO, ComModelo
from app.contexts.esteira.metricas import Metricas
from app.contexts.esteira.operacao import Operacao
from app.contexts.esteira.saude import SaudeDosGrupos
from app.contexts.grupos.apresentacao import Apresentacao, Line
from app.contexts.grupos.autores import Autores
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.recebidas import Recebidas
from app.contexts.grupos.recuperacao import Recuperacao
from app.contexts.grupos.service import Grupos
from app.contexts.llm.service import Consulta, Custos
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.service import Mensagens
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.ensino import Ensino
from app.contexts.nomes.limpeza import Limpeza
from app.contexts.operacao.service import Eventos
from app.contexts.vagas.abertas import Abertas
from app.contexts.vagas.fechamentos import Fechamentos
from app.contexts.vagas.limiares import Limiares
from app.contexts.vagas.reajustes import Reajustes
from app.contexts.vagas.revisao import Revisao
from app.contexts.vagas.vagas import Vagas
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.receive.endpoints import Handler


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
    known, limits, pace = names(work), limiares(settings), ritmo(settings)
    closing = closings(work, known)
    vagas = Vagas(work.database, known, limits, work.ids, work.zone, work.clock)
    prices = Reajustes(work.database, known, closing, vagas, work.zone, work.clock)
    reads = leitor or reader(work, settings, known)
    reading = Leituras(work.database, known, reads, closing, prices, limits, work.clock)
    work.add_pipeline(esteira(reading, vagas, pace, pergunta_fora=asks_outside(settings)), look_every=pace.intervalo)
    jobs = group_jobs(work, settings)
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
        "verificar-alertas-grupos": jobs.verificar_alertas_grupos,
        "consolidar-metricas-grupos": jobs.consolidar_metricas_grupos,
        "canario-grupos": jobs.canario_grupos,
        "limpeza-hospitais": Limpeza(work.database, known, work.ids, work.clock).limpeza_hospitais,
    }


def group_line(work: Batuta, line: Line | None) -> Mapping[str, Handler]:
    """What is asked of the gateway about groups, and of people who post there. ``line``: None where none is set."""
    return {
        "sincronizar-grupos": Apresentacao(work.database, line, names(work), work.clock).sincronizar_grupos,
        "recovery-vagas-incompletas": recovery(work).recovery_vagas_incompletas,
    }


def recovery(work: Batuta) -> Recuperacao:
    return Recuperacao(work.database, work.queues[FILA_MENSAGENS.name], work.ids, work.zone, work.clock)


def group_jobs(work: Batuta, settings: Settings) -> GroupJobs:
    """How the pipeline is, is part of health too."""
    running, costs = operation(work, settings), Custos(work.database, work.clock, USO)
    health = SaudeDosGrupos(
        work.database, running.fila, costs.desde, lambda instant: instant.astimezone(work.zone), work.clock
    )
    work.health.add(health.check)
    work.health.add_page(health.page)
    metrics, rehearsal = Metricas(work.database, work.zone), partial(ingestion, work)
    return GroupJobs(work.database, running, health, metrics, rehearsal, costs, work.zone, work.clock)


def ingestion(work: Batuta) -> Grupos:
    dialect, ids = work.database.dialect, work.ids
    conversas = Conversas(dialect, ids, Mensagens(dialect), Eventos(dialect, ids))
    return Grupos(dialect, ids, conversas, work.queues[Estagio.PENDENTE])


def asks_outside(settings: Settings) -> bool:
    return settings.openai_api_key is not None


def reader(work: Batuta, settings: Settings, known: Dicionario) -> Leitor:
    """The rules; with a key, a model beside them."""
    asking = model_of(work, settings)
    return Regras(known, work.zone) if asking is None else with_model(work, known, Regras(known, work.zone), asking)


def with_model(work: Batuta, known: Dicionario, rules: Regras, asking: Consulta) -> Leitor:
    return ComModelo(rules, asking, known, work.zone)


def names(work: Batuta) -> Dicionario:
    return Dicionario(work.database, work.clock)


def closings(work: Batuta, known: Dicionario | None = None) -> Fechamentos:
    return Fechamentos(work.database, known or names(work), work.ids, work.clock)


def teaching(work: Batuta) -> Ensino:
    return Ensino(work.database, names(work), work.ids, work.clock)


def authors(work: Batuta) -> Autores:
    return Autores(work.database, work.ids, work.clock)


def review(work: Batuta, settings: Settings) -> Revisao:
    known = names(work)
    vagas = Vagas(work.database, known, limiares(settings), work.ids, work.zone, work.clock)
    return Revisao(work.database, known, vagas, work.ids, work.zone, work.clock)


def operation(work: Batuta, settings: Settings) -> Operacao:
    queue = work.queues[Estagio.PENDENTE]
    return Operacao(
        work.database, queue, work.work_once, ritmo(settings), work.clock, pergunta_fora=asks_outside(settings)
    )


def heard(work: Batuta) -> Recebidas:
    return Recebidas(work.database, work.zone, work.clock)


def rules(work: Batuta, known: Dicionario) -> Regras:
    """Whoever tries a text pays nobody for it: the rules alone."""
    return Regras(known, work.zone)


def vacancies(work: Batuta) -> Abertas:
    return Abertas(work.database, work.zone, work.clock)
