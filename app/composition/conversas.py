"""Build the message queue, the record of conversations, and the services that act on conversations: the doctors'
register, the state of each doctor, and the follow-ups.
"""

from collections.abc import Mapping
from pathlib import Path

from app.contexts.conversas.atendimento import Atendimento, Estagios
from app.contexts.conversas.diario import Diario, Resumos
from app.contexts.conversas.duvidas import DuvidasDeOptout
from app.contexts.conversas.optout import OptoutManual
from app.contexts.conversas.pendencias import PendenciasAbertas
from app.contexts.conversas.service import Conversas
from app.contexts.envio.restauracao import Restauracao
from app.contexts.estado_medico.jobs import Manutencao
from app.contexts.estado_medico.service import EstadoDosMedicos, Estados
from app.contexts.followups.model import ETAPAS
from app.contexts.followups.service import Followups, PartesDosFollowups
from app.contexts.medicos.cadastro import Cadastro
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.mensagens.ouvintes import Ouvintes
from app.contexts.mensagens.service import Mensagens
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.operacao.service import Eventos
from app.contexts.plantoes.sugestoes import Sugestoes
from app.settings import Settings
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    eventos: Eventos
    ouvintes: Ouvintes  # listeners for outbound messages that were sent, or will never be sent
    mensagens: Mensagens
    conversas: Conversas
    resumos: Resumos
    diario: Diario | None  # None if the database is not SQLite and OPTOUT_JOURNAL is not set
    optout: OptoutManual
    duvidas: DuvidasDeOptout
    pendencias: PendenciasAbertas
    estagios: Estagios
    atendimento: Atendimento
    restauracao: Restauracao


def build_messages(work: Batuta, settings: Settings) -> Messages:
    dialect, ids = work.database.dialect, work.ids
    eventos, ouvintes, resumos = Eventos(dialect, ids), Ouvintes(), Resumos(dialect, ids)
    diario = journal(work, settings, resumos)
    mensagens = Mensagens(dialect, ouvintes)
    conversas = Conversas(dialect, ids, mensagens, eventos, diario)
    return Messages(
        eventos=eventos,
        ouvintes=ouvintes,
        mensagens=mensagens,
        conversas=conversas,
        resumos=resumos,
        diario=diario,
        optout=OptoutManual(work.database, conversas, ids, work.clock),
        duvidas=DuvidasDeOptout(work.database, conversas, ids, work.clock),
        pendencias=PendenciasAbertas(work.database, conversas.pendencias, ids, work.clock),
        estagios=Estagios(dialect, conversas.chamados),
        atendimento=Atendimento(work.database, mensagens, conversas.pendencias, ids, work.clock, conversas.chamados),
        restauracao=Restauracao(dialect, conversas, diario),
    )


def journal(work: Batuta, settings: Settings, resumos: Resumos) -> Diario | None:
    """Return the journal of opt-outs: the file that OPTOUT_JOURNAL names, or else a file next to the SQLite database.
    Return None if OPTOUT_JOURNAL is not set and the database is not SQLite.
    """
    named = settings.optout_journal
    if named is None and work.database.dialect != "sqlite":
        return None
    return Diario(Path(named or f"{work.database.where}.optouts"), resumos)


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctors:
    estado: EstadoDosMedicos  # listener for sent and received messages
    estados: Estados
    cadastro: Cadastro
    manutencao: Manutencao

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "doctor-state-manutencao-diaria": self.manutencao.diaria,
            "doctor-state-manutencao-semanal": self.manutencao.semanal,
        }


def build_doctors(work: Batuta) -> Doctors:
    return Doctors(
        estado=EstadoDosMedicos(work.database.dialect, work.ids),
        estados=Estados(work.database, work.ids, work.clock),
        cadastro=Cadastro(work.database, work.ids, work.clock),
        manutencao=Manutencao(work.database, work.ids, work.clock),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUps:
    followups: Followups

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {
            "processar-followups": self.followups.processar_followups,
            "processar-pausas-expiradas": self.followups.processar_pausas_expiradas,
        }


def add_followups(work: Batuta, messages: Messages, dicionario: Dicionario) -> FollowUps:
    """Build the follow-up service, and register its listener and its health check. The queue FILA_MENSAGENS must
    already be registered with ``work``.
    """
    followups = Followups(
        PartesDosFollowups(
            database=work.database,
            fila=work.queues[FILA_MENSAGENS.name],
            mensagens=messages.mensagens,
            estagios=messages.estagios,
            sugestoes=Sugestoes(work.database.dialect, dicionario, work.zone),
            ids=work.ids,
            clock=work.clock,
        )
    )
    messages.ouvintes.registrar([etapa.tipo for etapa in ETAPAS], followups)
    work.health.add(followups.check)
    return FollowUps(followups=followups)
