"""Convert a chip to a JSON object for commands and HTTP routes. The object shows only the last digits of the phone
number.
"""

from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.chips.jobs import last_digits
from batuta.sql import Row


def chip_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    rests = row["cooldown_until"]
    return {
        "instance": row["instance_name"],
        "telefone": last_digits(row["telefone"]),
        "tipo": row["tipo"],
        "status": row["status"],
        "connected": row["evolution_connected"],
        "trust": row["trust_score"],
        "nivel": row["trust_level"],
        "fase": row["fase_warmup"],
        "pode": [word for word in ("prospectar", "followup", "responder") if row[f"pode_{word}"]],
        "enviadas_hoje": row["msgs_enviadas_hoje"],
        "recebidas_hoje": row["msgs_recebidas_hoje"],
        "limite_hora": row["limite_hora"],
        "limite_dia": row["limite_dia"],
        "erros_24h": row["erros_ultimas_24h"],
        "descansa_ate": None if rests is None else rests.astimezone(zone).isoformat(timespec="seconds"),
    }
