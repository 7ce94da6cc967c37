"""The three follow-ups of a conversation whose doctor does not answer, and the pause after the last follow-up.

    msg_enviada ──48 h──▶ followup_1_enviado ──5 d──▶ followup_2_enviado ──15 d──▶ nao_respondeu ──60 d──▶ recontato

The conversation moves to the next stage when the follow-up is sent, not when it is queued. An inbound message ends this
sequence at any stage.
"""

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from app.contexts.conversas.api import EstagioDaConversa
from app.contexts.mensagens.api import Tipo
from batuta import BatutaError
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Etapa:
    """One follow-up. It is due if the conversation is in the stage ``de`` and the last message is older than
    ``espera``.

    Sending the follow-up moves the conversation to the stage ``para``.
    """

    tipo: Tipo
    de: EstagioDaConversa
    espera: timedelta
    para: EstagioDaConversa


ETAPAS: Final = (
    Etapa(
        tipo=Tipo.FOLLOWUP_1,
        de=EstagioDaConversa.MSG_ENVIADA,
        espera=timedelta(hours=48),
        para=EstagioDaConversa.FOLLOWUP_1_ENVIADO,
    ),
    Etapa(
        tipo=Tipo.FOLLOWUP_2,
        de=EstagioDaConversa.FOLLOWUP_1_ENVIADO,
        espera=timedelta(days=5),
        para=EstagioDaConversa.FOLLOWUP_2_ENVIADO,
    ),
    Etapa(
        tipo=Tipo.FOLLOWUP_3,
        de=EstagioDaConversa.FOLLOWUP_2_ENVIADO,
        espera=timedelta(days=15),
        para=EstagioDaConversa.NAO_RESPONDEU,
    ),
)
POR_TIPO: Final = {etapa.tipo.value: etapa for etapa in ETAPAS}
POR_ESTAGIO: Final = {etapa.de: etapa for etapa in ETAPAS}
# Stages that operators see: those with a follow-up, and the pause after the last follow-up.
ESTAGIOS: Final = (*POR_ESTAGIO, EstagioDaConversa.NAO_RESPONDEU)
PAUSA: Final = timedelta(days=60)
# Maximum number of follow-ups that one run queues for each stage.
POR_RODADA: Final = 50
# After this many failed attempts in one stage, a conversation gets no follow-up until an operator resumes it.
TENTATIVAS: Final = 3


class Impedimento(StrEnum):
    """Reasons that prevent a follow-up now, in order of precedence. The first reason that applies is reported."""

    COM_PESSOA = "com_pessoa"
    PAUSADA = "pausada"
    CADASTRO_REMOVIDO = "cadastro_removido"
    OPTOUT = "optout"
    OPTOUT_PROVAVEL = "optout_provavel"
    TELEFONE_INVALIDO = "telefone_invalido"
    EM_DESCANSO = "em_descanso"
    PROXIMO_CONTATO = "proximo_contato"
    LIMITE_CONTATOS = "limite_contatos"
    NA_FILA = "na_fila"  # a message to the doctor is queued, in progress or in doubt
    FALHAS = "falhas"


class PausaNoPassado(BatutaError):
    sentence = "the end of the pause, {ate}, has passed: give an instant in the future"


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowupsMudados:
    """The result of a command that pauses or resumes follow-ups. ``ate`` is the end of the pause, or None if the
    follow-ups were resumed.
    """

    id: str
    estagio: EstagioDaConversa
    ate: datetime | None = None
