"""Decide the answer to one inbound message from its class and the stored facts. This module does not access the
database.
"""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from app.contexts.comum.texto import chamado
from app.contexts.conversas.api import EstagioDaConversa, MotivoDaPendencia
from app.contexts.estado_medico.api import eh_grave
from app.contexts.handoffs.api import quando
from app.contexts.leitura_conversas.api import Classe, Leitura
from app.contexts.plantoes.api import Feita, Repetida, Resposta, fatos_da_vaga
from app.contexts.respostas import textos
from batuta.kernel import dataclass
from batuta.sql import Row

Vaga: TypeAlias = Row | Mapping[str, Any]
FROM_GROUP: Final = "grupo_whatsapp"
# Minimum confidence at which an acceptance reserves a vacancy. Below it, a person reads the message.
SURE: Final = 0.5
# Questions that the facts of a vacancy answer, with the column that must be known.
_ABOUT: Final = {
    "valor": re.compile(r"\b(valor|quanto|pagam?|preco|cache|remuneracao)\b"),
    "data": re.compile(r"\b(dia|data|quando)\b"),
    "hora_inicio": re.compile(r"\b(horas?|horarios?|turno|periodo|comeca|inicio|termina)\b"),
    "hospital": re.compile(r"\b(hospital|onde|local|lugar|cidade)\b"),
    "especialidade": re.compile(r"\b(especialidade|area)\b"),
}
# Questions that the facts of a vacancy do not answer.
_BEYOND: Final = re.compile(
    r"\b(pagamentos?|prazo|depositam?|recebo|nota|pj|pf|rpa|clt|contrato|endereco|rua|estacionamento|garagem|refeicao"
    r"|almoco|jantar|pacientes|atendimentos|equipe|outr[oa]s?|mais|negociar?|aumentar?|melhorar?|trocar?|transporte"
    r"|alojamento|dormir|documentos?|crm|rqe|experiencia)\b|\bquando\b.{0,200}\b(paga|recebe)"
)
# Words of a condition, which makes an acceptance uncertain: "aceito se for até as 7", "aceito, mas só até as 13h".
_CONDITION: Final = re.compile(r"\b(?:se|mas|porem|desde que|contanto que|dependendo|depende|caso|talvez)\b")
_IDENTITY: Final = re.compile(
    r"\b(robo|bot|robot|chatbot|ia|maquina|inteligencia artificial|automatic[oa])\b"
    r"|\b(quem e voce|voce e (uma )?(pessoa|gente|real))\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fatos:
    """Stored facts about the doctor who wrote. ``oferta`` is the vacancy that the last message to the doctor offers.
    ``abertas`` counts the offers that the doctor can still accept. ``reserva`` is the doctor's next reserved vacancy.
    ``a_confirmar`` is a vacancy that the doctor has accepted, but that the person who posted it has not yet confirmed.
    """

    nome: str | None = None
    oferta: Vaga | None = None
    oferta_aberta: bool = False
    abertas: int = 0
    reserva: Vaga | None = None
    a_confirmar: Vaga | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reacao:
    """Julia's answer and its effects. If ``motivo`` is set, the message is added to the pending list with
    this reason.
    """

    texto: str
    motivo: MotivoDaPendencia | None = None
    estagio: EstagioDaConversa | None = None
    # whether the conversation is escalated to a person after the answer was sent, or when it is certain that it never
    # will be
    escala: bool = False


@dataclass(frozen=True, slots=True)
class Reservar:
    """The decision to reserve the vacancy ``vaga`` for the doctor, who has accepted it."""

    vaga: Vaga


def decidir(leitura: Leitura, texto: str, fatos: Fatos) -> Reacao | Reservar | None:
    """Return the reaction to a doctor's message, or None if no rule answers the message."""
    plain = _fold(texto)
    if eh_grave(leitura, texto):
        return _say(textos.OBJECAO_GRAVE, fatos, motivo=MotivoDaPendencia.OBJECAO_GRAVE)
    if leitura.classe in (Classe.OBJECAO, Classe.PERGUNTA, Classe.OUTRO) and _IDENTITY.search(plain):
        return _say(textos.IDENTIDADE, fatos)
    match leitura.classe:
        case Classe.ACEITE if leitura.confianca < SURE or _CONDITION.search(plain):
            return _say(textos.ACEITE_INCERTO, fatos, motivo=MotivoDaPendencia.ACEITE_INCERTO)
        case Classe.ACEITE:
            return _accept(fatos)
        case Classe.RECUSA if fatos.a_confirmar is not None:
            return _say(textos.RECUSA_A_CONFIRMAR, fatos, motivo=MotivoDaPendencia.SEM_RESPOSTA)
        case Classe.RECUSA if fatos.reserva is not None:
            return _say(textos.RECUSA_COM_RESERVA, fatos, motivo=MotivoDaPendencia.SEM_RESPOSTA)
        case Classe.RECUSA:
            return _say(textos.RECUSA, fatos)
        case Classe.PERGUNTA:
            return _explain(plain, fatos)
        case Classe.HUMANO:
            return _say(textos.HUMANO, fatos, motivo=MotivoDaPendencia.PEDE_PESSOA, escala=True)
        case Classe.OBJECAO:
            return _say(
                textos.OBJECAO, fatos, motivo=MotivoDaPendencia.SEM_RESPOSTA, estagio=EstagioDaConversa.NEGOCIANDO
            )
        case Classe.CONFIRMACAO:
            return _confirm(fatos)
        case _:
            return None


def reservada(resposta: Resposta, vaga: Vaga, fatos: Fatos) -> Reacao:
    """Return the answer that tells a doctor the result of an attempt to reserve ``vaga``."""
    match resposta:
        case Feita() if vaga["origem"] == FROM_GROUP:
            reaction = _say(textos.RESERVADO_DE_GRUPO, fatos, vaga, motivo=MotivoDaPendencia.CONFIRMAR_VAGA)
        case Feita():
            reaction = _say(textos.RESERVADO, fatos, vaga, estagio=EstagioDaConversa.FECHOU)
        case Repetida():
            reaction = _say(textos.JA_RESERVADO, fatos, vaga)
        case _:
            reaction = _say(textos.OCUPADO, fatos)
    return reaction


def a_confirmar(vaga: Vaga, fatos: Fatos, *, ate: datetime) -> Reacao:
    """Return the answer to a doctor who accepted a vacancy from a group: the person who posted the vacancy has until
    the local time ``ate`` to confirm.
    """
    said = _say(textos.A_CONFIRMAR, fatos, vaga, estagio=EstagioDaConversa.NEGOCIANDO)
    return replace(said, texto=f"{said.texto} {textos.PRAZO.format(ate=quando(ate))}")


def recebimento(classe: Classe, fatos: Fatos) -> str:
    """Return the name of the text that acknowledges a message received outside the sending hours."""
    match classe:
        case Classe.ACEITE:
            return "aceite_vaga"
        case Classe.CONFIRMACAO:
            return "confirmacao"
        case Classe.PERGUNTA if fatos.oferta is not None:
            return "vaga"
        case _:
            return "generico"


def _accept(fatos: Fatos) -> Reacao | Reservar:
    """Decide what to do when a doctor accepts an offer. The vacancy is reserved only if the last message offers it, it
    is still available, and the doctor has no other open offer. If it is unclear which vacancy the doctor accepts, a
    person decides.
    """
    if fatos.oferta is not None and fatos.oferta_aberta and fatos.abertas == 1:
        return Reservar(fatos.oferta)
    if fatos.a_confirmar is not None and not fatos.abertas:
        return _say(textos.AINDA_A_CONFIRMAR, fatos, fatos.a_confirmar)
    if fatos.oferta is not None and not fatos.oferta_aberta and not fatos.abertas:
        mine = fatos.reserva is not None and fatos.reserva["id"] == fatos.oferta["id"]
        return _say(textos.JA_RESERVADO, fatos, fatos.reserva) if mine else _say(textos.OCUPADO, fatos)
    return _say(textos.ACEITE_SEM_OFERTA, fatos, motivo=MotivoDaPendencia.SEM_RESPOSTA)


def _explain(plain: str, fatos: Fatos) -> Reacao:
    vaga = fatos.oferta if fatos.oferta_aberta and fatos.abertas == 1 else None if fatos.oferta else fatos.reserva
    wanted = [column for column, words in _ABOUT.items() if words.search(plain)]
    if vaga is not None and wanted and not _BEYOND.search(plain) and all(_is_known(vaga, each) for each in wanted):
        return _say(textos.FATOS, fatos, vaga, estagio=EstagioDaConversa.NEGOCIANDO)
    return _say(textos.PERGUNTA_SEM_RESPOSTA, fatos, motivo=MotivoDaPendencia.SEM_RESPOSTA)


def _confirm(fatos: Fatos) -> Reacao:
    if fatos.oferta is not None and fatos.oferta_aberta and fatos.abertas == 1:
        return _say(textos.CONFIRMACAO_DA_OFERTA, fatos, fatos.oferta)
    if fatos.reserva is not None:
        return _say(textos.CONFIRMACAO, fatos, fatos.reserva)
    return _say(textos.RECEBIDO, fatos)


def _is_known(vaga: Vaga, column: str) -> bool:
    known = vaga[column] is not None
    return known and vaga["valor_tipo"] in (None, "fixo") if column == "valor" else known


def _say(
    texto: str,
    fatos: Fatos,
    vaga: Vaga | None = None,
    *,
    motivo: MotivoDaPendencia | None = None,
    estagio: EstagioDaConversa | None = None,
    escala: bool = False,
) -> Reacao:
    listed = "" if vaga is None else fatos_da_vaga(vaga)
    said = texto.format(nome=chamado(fatos.nome), fatos=listed)
    return Reacao(texto=said, motivo=motivo, estagio=estagio, escala=escala)


def _fold(texto: str) -> str:
    """Return the text in lower case, without accents."""
    apart = unicodedata.normalize("NFD", texto.lower())
    return "".join(each for each in apart if not unicodedata.combining(each))
