"""Convert campaigns to JSON objects for commands and the API, without message texts and names."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.campanhas.model import ninguem_recebeu
from app.contexts.campanhas.service import Agendada, Progresso
from app.contexts.comum.texto import local
from batuta.extension import Texts
from batuta.reasons import decode
from batuta.sql import Row

WAITS, WAITS_BECAUSE = "pendente", "pendente_com_motivo"
INSTANTS = ("agendar_para", "iniciada_em", "concluida_em", "created_at", "updated_at")


def campanha_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": row["id"],
        "nome_template": row["nome_template"],
        "tipo_campanha": row["tipo_campanha"],
        "status": row["status"],
        "total_destinatarios": row["total_destinatarios"],
        "enviados": row["enviados"],
        "entregues": row["entregues"],
        "respondidos": row["respondidos"],
        "created_by": row["created_by"],
        "erro": decode(row["erro"]),
        "ninguem_recebeu": ninguem_recebeu(row["status"], row["total_destinatarios"]),
        **{name: local(row[name], zone, "seconds") for name in INSTANTS},
    }


def progresso_em_palavras(progresso: Progresso, zone: ZoneInfo) -> dict[str, Any]:
    row = progresso.campanha
    return {
        **campanha_em_palavras(row, zone),
        "corpo": row["corpo"],
        "audience_filters": row["audience_filters"],
        "espera": progresso.espera,
        "lote": None if row["lote_id"] is None else str(row["lote_id"]),
        "progresso": {
            "destinatarios": row["total_destinatarios"],
            "enfileiradas": progresso.enfileiradas,
            "na_fila": progresso.na_fila,
            "enviados": row["enviados"],
            "entregues": row["entregues"],
            "respostas": row["respondidos"],
            "em_duvida": progresso.em_duvida,
            "bloqueadas": dict(progresso.bloqueadas),
            "canceladas": dict(progresso.canceladas),
            "erros": dict(progresso.erros),
            "excluidos": dict(progresso.excluidos),
        },
    }


def situacao_em_palavras(row: Row) -> dict[str, Any]:
    """Return a JSON object that describes a doctor's situation in a campaign. If the doctor received no message, the
    object has the code of the reason.
    """
    if row["situacao"] is None:
        return {"medico": str(row["cliente_id"]), "situacao": "fora_do_publico", "motivo": None}
    if row["situacao"] == "excluido":
        return {"medico": str(row["cliente_id"]), "situacao": "excluido", "motivo": row["motivo"]}
    situation = row["status"] or row["situacao"]
    has_ended = situation in ("bloqueada", "cancelada", "erro")
    return {
        "medico": str(row["cliente_id"]),
        "situacao": situation,
        "motivo": row["outcome"] if has_ended else None,
        "porque": decode(row["porque"]) if has_ended or situation == WAITS else None,
    }


def situacao_em_texto(texts: Texts, document: Mapping[str, Any]) -> str:
    """Return a sentence that says whether a doctor received a campaign's message, and if not, why."""
    motivo, reason = document["motivo"], document.get("porque")
    if reason is not None:
        key = WAITS_BECAUSE if document["situacao"] == WAITS else document["situacao"]
        return texts(f"campanhas.situacao.{key}", motivo=texts.reason(reason))
    kind = "exclusao" if document["situacao"] == "excluido" else "desfecho"
    why = "–" if motivo is None else texts.get(f"estado.{kind}.{motivo}", motivo)
    return texts(f"campanhas.situacao.{document['situacao']}", motivo=why)


def agendada_em_palavras(id: int, agendada: Agendada) -> dict[str, Any]:
    return {
        "id": id,
        "status": agendada.status.value,
        "destinatarios": agendada.destinatarios,
        "excluidos": dict(agendada.excluidos),
    }
