"""Choose a campaign's recipients in a fixed order, and give the reason for each excluded doctor."""

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from app.contexts.campanhas.model import Filtros
from app.contexts.mensagens.api import BETWEEN_CAMPAIGNS, CONTACTS_IN_A_WEEK
from batuta.kernel import dataclass

# A doctor who wrote within this time is in a conversation.
TALKING: Final = timedelta(minutes=30)
ANSWERED_LATELY: Final = timedelta(days=7)
WRITTEN_TO_LATELY: Final = timedelta(days=7)
CAMPAIGNS_WITHOUT_ANSWER: Final = 2


class MotivoDaExclusao(StrEnum):
    """Reasons to exclude a doctor from a campaign, in order of precedence. The first reason that applies is stored."""

    CADASTRO_REMOVIDO = "cadastro_removido"
    OPTOUT = "optout"
    TELEFONE_INVALIDO = "telefone_invalido"
    CONVERSA_HUMANA = "conversa_humana"
    CONVERSA_AGORA = "conversa_agora"
    ESFRIANDO = "esfriando"
    PROXIMO_CONTATO = "proximo_contato"
    LIMITE_CONTATOS = "limite_contatos"
    OUTRA_CAMPANHA = "outra_campanha"
    CONTATADO_HA_POUCO = "contatado_ha_pouco"
    RESPONDEU_HA_POUCO = "respondeu_ha_pouco"
    NUNCA_RESPONDEU = "nunca_respondeu"
    PRESSAO_ALTA = "pressao_alta"
    SEM_NOME = "sem_nome"
    SEM_ESPECIALIDADE = "sem_especialidade"
    ACIMA_DO_LIMITE = "acima_do_limite"
    CAMPANHA_CANCELADA = "campanha_cancelada"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidato:
    """Facts about a doctor that are read when a campaign's recipients are chosen."""

    id: str
    nome: str | None = None
    especialidade: str | None = None
    removido: bool = False
    optout: bool = False
    telefone_invalido: bool = False
    pressao: int = 0
    conversa_humana: bool = False
    esfriando: bool = False
    esfriando_ate: datetime | None = None
    proximo_contato: datetime | None = None
    ultima_entrada: datetime | None = None
    ultima_saida: datetime | None = None
    contatos_7d: int = 0
    outra_campanha_em: datetime | None = None
    na_fila_de_outra: bool = False
    campanhas_recebidas: int = 0
    ja_respondeu: bool = False


@dataclass(frozen=True, slots=True)
class Escolha:
    """The decision whether a doctor receives a campaign's message. ``motivo`` is None for a recipient."""

    cliente_id: str
    motivo: MotivoDaExclusao | None


def ate(quem: Candidato, now: datetime, then: datetime) -> Candidato:
    """Predict the facts about a doctor at the instant ``then``. If a message from another campaign is queued for the
    doctor, the prediction assumes that the message is sent now. The message therefore counts only until the minimum
    interval between two campaigns has passed.
    """
    return replace(quem, na_fila_de_outra=quem.na_fila_de_outra and then - now <= BETWEEN_CAMPAIGNS)


def motivo(quem: Candidato, filtros: Filtros, campos: Collection[str], now: datetime) -> MotivoDaExclusao | None:
    """Return the reason why a doctor is excluded from a campaign, or None if the doctor receives the campaign's
    message.
    """
    reasons = (
        (MotivoDaExclusao.CADASTRO_REMOVIDO, quem.removido),
        (MotivoDaExclusao.OPTOUT, quem.optout),
        (MotivoDaExclusao.TELEFONE_INVALIDO, quem.telefone_invalido),
        (MotivoDaExclusao.CONVERSA_HUMANA, quem.conversa_humana),
        (MotivoDaExclusao.CONVERSA_AGORA, _is_within(quem.ultima_entrada, TALKING, now)),
        (MotivoDaExclusao.ESFRIANDO, quem.esfriando and (quem.esfriando_ate is None or quem.esfriando_ate > now)),
        (MotivoDaExclusao.PROXIMO_CONTATO, quem.proximo_contato is not None and quem.proximo_contato > now),
        (MotivoDaExclusao.LIMITE_CONTATOS, quem.contatos_7d >= CONTACTS_IN_A_WEEK),
        (
            MotivoDaExclusao.OUTRA_CAMPANHA,
            quem.na_fila_de_outra or _is_within(quem.outra_campanha_em, BETWEEN_CAMPAIGNS, now),
        ),
        (MotivoDaExclusao.CONTATADO_HA_POUCO, _is_within(quem.ultima_saida, WRITTEN_TO_LATELY, now)),
        (MotivoDaExclusao.RESPONDEU_HA_POUCO, _is_within(quem.ultima_entrada, ANSWERED_LATELY, now)),
        (
            MotivoDaExclusao.NUNCA_RESPONDEU,
            quem.campanhas_recebidas >= CAMPAIGNS_WITHOUT_ANSWER and not quem.ja_respondeu,
        ),
        (MotivoDaExclusao.PRESSAO_ALTA, quem.pressao > filtros.pressure_score_max),
        (MotivoDaExclusao.SEM_NOME, "nome" in campos and not (quem.nome or "").strip()),
        (MotivoDaExclusao.SEM_ESPECIALIDADE, "especialidade" in campos and not (quem.especialidade or "").strip()),
    )
    return next((reason for reason, holds in reasons if holds), None)


def escolher(
    candidatos: Iterable[Candidato],
    filtros: Filtros,
    campos: Collection[str],
    *,
    campanha_id: int,
    ja_escolhidos: int,
    now: datetime,
) -> list[Escolha]:
    """Choose the recipients from the candidates in a reproducible order, so that an interrupted run can continue.
    ``ja_escolhidos`` is the number of recipients that the interrupted run had chosen.
    """
    places, chosen = filtros.quantidade_alvo - ja_escolhidos, []
    for quem in sorted(candidatos, key=lambda each: _place(each, campanha_id if filtros.aleatorio else None)):
        why = motivo(quem, filtros, campos, now)
        if why is None and places <= 0:
            why = MotivoDaExclusao.ACIMA_DO_LIMITE
        places -= why is None
        chosen.append(Escolha(quem.id, why))
    return chosen


def _place(quem: Candidato, drawn_for: int | None) -> tuple[object, ...]:
    if drawn_for is not None:
        return (hashlib.sha256(f"{drawn_for}:{quem.id}".encode()).hexdigest(),)
    last = quem.ultima_saida
    return (last is not None, 0.0 if last is None else last.timestamp(), quem.id)


def _is_within(instant: datetime | None, span: timedelta, now: datetime) -> bool:
    return instant is not None and now - instant <= span
