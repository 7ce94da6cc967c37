"""Build the group services: the pipeline that reads vacancies from messages, the operators' review, the jobs and the
health checks.
"""

from collections.abc import Mapping
from datetime import timedelta

from app.contexts.comum.disjuntor import Disjuntor
from app.contexts.conversas.service import Conversas
from app.contexts.esteira.esteira import Ritmo, esteira
from app.contexts.esteira.jobs import GroupJobs
from app.contexts.esteira.leituras import Leitor, LeitorPorRegras, Leituras
from app.contexts.esteira.llm import USO, LeitorComLlm
from app.contexts.esteira.metricas import Metricas
from app.contexts.esteira.operacao import Operacao
from app.contexts.esteira.saude import SaudeDosGrupos
from app.contexts.grupos.autores import Autores
from app.contexts.grupos.fila import Estagio
from app.contexts.grupos.nomes_dos_grupos import Line, NomesDosGrupos
from app.contexts.grupos.recebidas import Recebidas
from app.contexts.grupos.recuperacao import Recuperacao
from app.contexts.grupos.service import Grupos
from app.contexts.llm.service import Consulta, Custos
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.ensino import Ensino
from app.contexts.nomes.limpeza import Limpeza
from app.contexts.vagas.abertas import Abertas
from app.contexts.vagas.fechamentos import Fechamentos
from app.contexts.vagas.limiares import Limiares
from app.contexts.vagas.reajustes import Reajustes
from app.contexts.vagas.revisao import Revisao
from app.contexts.vagas.vagas import Vagas
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    limiares: Limiares
    dicionario: Dicionario  # one per process, because it caches names
    rules: LeitorPorRegras  # reads with the rules only, without the language model
    grupos: Grupos
    recebidas: Recebidas
    autores: Autores
    abertas: Abertas
    fechamentos: Fechamentos
    revisao: Revisao
    ensino: Ensino
    limpeza: Limpeza
    operacao: Operacao
    health: SaudeDosGrupos
    jobs: GroupJobs

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "processar-grupos": self.jobs.processar_grupos,
            "limpar-grupos-finalizados": self.jobs.limpar_grupos_finalizados,
            "verificar-alertas-grupos": self.jobs.verificar_alertas_grupos,
            "consolidar-metricas-grupos": self.jobs.consolidar_metricas_grupos,
            "canario-grupos": self.jobs.canario_grupos,
            "limpeza-hospitais": self.limpeza.limpeza_hospitais,
        }

    @property
    def manual_handlers(self) -> Mapping[str, JobHandler]:
        """Handlers for jobs that only operators start."""
        return {
            "status-grupos": self.jobs.status_grupos,
            "reprocessar-grupos-erro": self.jobs.reprocessar_grupos_erro,
            "backfill-fila-grupos": self.jobs.backfill_fila_grupos,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupContacts:
    """Services that request missing data: group names from the gateway, and missing offer fields from the offer's
    author.
    """

    nomes_dos_grupos: NomesDosGrupos
    recuperacao: Recuperacao

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "sincronizar-grupos": self.nomes_dos_grupos.sincronizar_grupos,
            "recovery-vagas-incompletas": self.recuperacao.recovery_vagas_incompletas,
        }


def add_groups(
    work: Batuta, settings: Settings, conversas: Conversas, llm: Consulta | None = None, leitor: Leitor | None = None
) -> Groups:
    """Register the pipeline and build the services that use its queues.

    ``llm`` is queried if the rules are uncertain. If ``llm`` is None, only the rules read messages. If ``leitor`` is
    given, it replaces both the rules and ``llm``.
    """
    database, ids, zone, clock = work.database, work.ids, work.zone, work.clock
    dicionario, limits, pace = Dicionario(database, clock), limiares(settings), ritmo(settings)
    rules, fechamentos = LeitorPorRegras(dicionario, zone), Fechamentos(database, dicionario, ids, clock)
    vagas = Vagas(database, dicionario, limits, ids, zone, clock)
    reajustes = Reajustes(database, dicionario, fechamentos, vagas, zone, clock)
    reads = leitor or (
        rules
        if llm is None
        else LeitorComLlm(rules, llm, dicionario, zone, limits, com_pessoas=settings.llm_personal_data)
    )
    reading = Leituras(database, dicionario, reads, fechamentos, reajustes, limits, clock)
    work.add_pipeline(esteira(reading, vagas, pace, pergunta_fora=asks_outside(settings)), look_every=pace.intervalo)
    queue = work.queues[Estagio.PENDENTE]
    grupos = Grupos(database.dialect, ids, conversas, queue)
    again = work.queues[Estagio.EXTRACAO]
    operacao = Operacao(database, queue, again, work.work_once, pace, clock, pergunta_fora=asks_outside(settings))
    custos = Custos(database, clock, USO)
    health = SaudeDosGrupos(database, operacao.fila, custos.desde, lambda instant: instant.astimezone(zone), clock)
    groups = Groups(
        limiares=limits,
        dicionario=dicionario,
        rules=rules,
        grupos=grupos,
        recebidas=Recebidas(database, zone, clock),
        autores=Autores(database, ids, clock),
        abertas=Abertas(database, zone, clock),
        fechamentos=fechamentos,
        revisao=Revisao(database, dicionario, vagas, ids, zone, clock),
        ensino=Ensino(database, dicionario, ids, clock),
        limpeza=Limpeza(database, dicionario, ids, clock),
        operacao=operacao,
        health=health,
        jobs=GroupJobs(database, operacao, health, Metricas(database, zone), grupos, custos, zone, clock),
    )
    work.health.add(health.check)
    work.health.add_page(health.page)
    for name, handler in groups.manual_handlers.items():
        work.endpoints.add(name, handler, manual=True)
    return groups


def build_group_contacts(work: Batuta, dicionario: Dicionario, line: Line | None) -> GroupContacts:
    """Build the services that request missing data about groups. The queue FILA_MENSAGENS must already be registered
    with ``work``. ``line`` is None if no gateway is configured.
    """
    queue = work.queues[FILA_MENSAGENS.name]
    return GroupContacts(
        nomes_dos_grupos=NomesDosGrupos(
            work.database, line, Disjuntor(work.circuits, work.clock), dicionario, work.clock
        ),
        recuperacao=Recuperacao(work.database, queue, work.ids, work.zone, work.clock),
    )


def limiares(settings: Settings) -> Limiares:
    return Limiares(
        heuristica=settings.grupos_limiar_heuristica,
        alta=settings.grupos_limiar_alta,
        classificacao=settings.grupos_limiar_classificacao,
        importacao=settings.grupos_limiar_importacao,
        revisao=settings.grupos_limiar_revisao,
        leitura=settings.grupos_limiar_leitura,
    )


def ritmo(settings: Settings) -> Ritmo:
    return Ritmo(
        lote=settings.grupos_batch_size,
        fora=settings.grupos_max_workers,
        intervalo=timedelta(seconds=settings.grupos_intervalo_segundos),
        lote_do_job=settings.grupos_job_batch_size,
        fora_do_job=settings.grupos_job_max_workers,
    )


def asks_outside(settings: Settings) -> bool:
    return settings.openai_api_key is not None
