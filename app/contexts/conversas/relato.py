"""Convert conversations and pending messages to JSON objects for commands and HTTP routes. The objects contain personal
data: message texts and phone numbers.
"""

from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
from app.contexts.conversas.atendimento import Mudada, VistaDaConversa
from app.contexts.conversas.escrita import Respondida
from app.contexts.conversas.pendencias import Pendencia
from batuta.sql import Row

# Number of last digits of a phone number that an operator sees.
DIGITS: Final = 4
_INSTANTS: Final = ("ultima_mensagem_em", "pausado_ate", "created_at", "updated_at", "encerrada_em")


def conversa_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "medico": str(row["cliente_id"]),
        "status": row["status"],
        "com": row["controlled_by"],
        "responsavel": row["responsavel"],
        "estagio": row["stage"],
        "mensagens": row["message_count"],
        **{name: local(row[name], zone) for name in _INSTANTS},
    }


def vista_da_conversa_em_palavras(vista: VistaDaConversa, zone: ZoneInfo) -> dict[str, Any]:
    return {
        **conversa_em_palavras(vista.conversa, zone),
        "ultimas": [
            {
                "tipo": row["tipo"],
                "autor": row["autor_tipo"],
                "texto": row["conteudo"],
                "classe": row["classe"],
                "entrega": row["delivery_status"],
                "em": local(row["created_at"], zone),
            }
            for row in vista.mensagens
        ],
        "na_fila": [
            {
                "id": str(row["id"]),
                "tipo": row["tipo"],
                "status": row["status"],
                "para": local(row["agendar_para"], zone),
            }
            for row in vista.na_fila
        ],
        "historico": [
            {
                "acao": row["acao"],
                "por": row["por"],
                "motivo": row["motivo"],
                "mensagens": row["mensagens"],
                "em": local(row["em"], zone),
            }
            for row in vista.historico
        ],
    }


def mudada_em_palavras(mudada: Mudada) -> dict[str, Any]:
    return {
        "id": mudada.id,
        "acao": mudada.acao.value,
        "mensagens": mudada.mensagens,
        "repetida": mudada.repetida,
    }


def respondida_em_palavras(respondida: Respondida) -> dict[str, Any]:
    return {"id": respondida.id, "mensagem": respondida.mensagem_id, "assumida": respondida.assumida}


def pendencia_em_palavras(pendencia: Pendencia, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": pendencia.id,
        "telefone": None if pendencia.telefone is None else f"…{pendencia.telefone[-DIGITS:]}",
        "medico": pendencia.cliente_id,
        "conversa": pendencia.conversa_id,
        "motivo": pendencia.motivo,
        "classe": pendencia.classe,
        "mensagens": pendencia.mensagens,
        "texto": pendencia.texto,
        "desde": local(pendencia.desde, zone),
        "ultima_em": local(pendencia.ultima_em, zone),
    }
