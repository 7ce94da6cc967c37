"""Convert campaigns to JSON documents for operators and the API, without message texts and names."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.campanhas.model import ninguem_recebeu
from app.contexts.campanhas.service import Agendada, Progresso
from batuta.reasons import decode
from batuta.sql import Row

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
        **{name: _local(row[name], zone) for name in INSTANTS},
    }


def progresso_em_palavras(progresso: Progresso, zone: ZoneInfo) -> dict[str, Any]:
    row = progresso.campanha
    return {
        **campanha_em_palavras(row, zone),
        "corpo": row["corpo"],
        "audience_filters": row["audience_filters"],
        "espera": progresso.espera,
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


def agendada_em_palavras(id: int, agendada: Agendada) -> dict[str, Any]:
    return {
        "id": id,
        "status": agendada.status.value,
        "destinatarios": agendada.destinatarios,
        "excluidos": dict(agendada.excluidos),
    }


def _local(instant: datetime | None, zone: ZoneInfo) -> str | None:
    return None if instant is None else instant.astimezone(zone).isoformat(timespec="seconds")
