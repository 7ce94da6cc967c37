"""Build the services that act on conversations: the doctors' register, the state of each doctor, and the follow-ups."""

from collections.abc import Mapping

from app.composition.mensagens import Messages
from app.contexts.estado_medico.jobs import Manutencao
from app.contexts.estado_medico.service import EstadoDosMedicos, Estados
from app.contexts.followups.model import ETAPAS
from app.contexts.followups.service import Followups, PartesDosFollowups
from app.contexts.medicos.cadastro import Cadastro
from app.contexts.mensagens.fila import FILA_MENSAGENS
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.plantoes.sugestoes import Sugestoes
from batuta import Batuta
from batuta.jobs import JobHandler
from batuta.kernel import dataclass


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
