"""Build the message queue and the record of conversations, which all other Julia services use."""

from pathlib import Path

from app.contexts.conversas.atendimento import Atendimento, Estagios
from app.contexts.conversas.diario import Diario, Resumos
from app.contexts.conversas.duvidas import DuvidasDeOptout
from app.contexts.conversas.optout import OptoutManual
from app.contexts.conversas.pendencias import PendenciasAbertas
from app.contexts.conversas.service import Conversas
from app.contexts.envio.restauracao import Restauracao
from app.contexts.mensagens.ouvintes import Ouvintes
from app.contexts.mensagens.service import Mensagens
from app.contexts.operacao.service import Eventos
from app.settings import Settings
from batuta import Batuta
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    eventos: Eventos
    ouvintes: Ouvintes  # listeners for sent and ended messages
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
    """Return the journal of opt-outs: the file OPTOUT_JOURNAL, if set, or a file next to the SQLite database. Return
    None if OPTOUT_JOURNAL is not set and the database is not SQLite.
    """
    named = settings.optout_journal
    if named is None and work.database.dialect != "sqlite":
        return None
    return Diario(Path(named or f"{work.database.where}.optouts"), resumos)
