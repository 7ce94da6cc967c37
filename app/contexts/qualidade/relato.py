"""Convert evaluations and versions of the guidance to JSON objects for commands and HTTP routes."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.qualidade.notas import LISTAS, NOTAS
from batuta.sql import Row

PLAIN = (
    "avaliador",
    "modelo",
    *NOTAS,
    "score_geral",
    *LISTAS,
    "mensagens",
    "prompt_versao",
    "nota_corrigida",
    "correcao",
)


def avaliacao_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "conversa": str(row["conversa_id"]),
        **{name: row[name] for name in PLAIN},
        "corrigida_por": row["corrigida_por"],
        "corrigida_em": _local(row["corrigida_em"], zone),
        "em": _local(row["created_at"], zone),
    }


def orientacao_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    """Describe one version of the guidance. ``ate`` is None for the active version."""
    return {
        **{name: row[name] for name in ("versao", "conteudo", "base", "por")},
        "desde": _local(row["created_at"], zone),
        "ate": _local(row["encerrado_em"], zone),
    }


def _local(at: datetime | None, zone: ZoneInfo) -> str | None:
    return None if at is None else at.astimezone(zone).isoformat()
