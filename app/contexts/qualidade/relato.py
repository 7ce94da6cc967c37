"""Convert evaluations and versions of the guidance to JSON objects for commands and HTTP routes."""

from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
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
        "corrigida_em": local(row["corrigida_em"], zone),
        "em": local(row["created_at"], zone),
    }


def orientacao_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    """Convert one version of the guidance to a JSON object. ``ate``, the time at which a newer version replaced it, is
    null for the active version.
    """
    return {
        **{name: row[name] for name in ("versao", "conteudo", "base", "por")},
        "desde": local(row["created_at"], zone),
        "ate": local(row["encerrado_em"], zone),
    }
