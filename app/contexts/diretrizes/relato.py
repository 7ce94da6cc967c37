"""Convert a directive to a JSON object for commands and HTTP routes."""

from typing import Any
from zoneinfo import ZoneInfo

from batuta.sql import Row


def diretriz_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    ended = row["encerrada_em"]
    return {
        **{name: row[name] for name in ("tipo", "versao", "prioridade", "documento", "conteudo")},
        "desde": row["created_at"].astimezone(zone).isoformat(),
        "ate": None if ended is None else ended.astimezone(zone).isoformat(),
    }
