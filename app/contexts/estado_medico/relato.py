"""Convert a doctor's state to a JSON object for commands and HTTP routes, without names, numbers or message texts."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
from batuta.sql import Row

INSTANTS = {
    "descanso_ate": "cooling_off_until",
    "proximo_contato": "next_allowed_at",
    "ultima_entrada": "last_inbound_at",
    "ultima_saida": "last_outbound_at",
}


def estado_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    return {
        "medico": str(row["cliente_id"]),
        "permissao": row["permission_state"],
        "temperatura": round(float(row["temperature"]), 2),
        "faixa": row["temperature_band"],
        "tendencia": row["temperature_trend"],
        "ciclo": row["lifecycle_stage"],
        "contatos_7d": int(row["contatos_7d"]),
        **{name: local(row[column], zone, "seconds") for name, column in INSTANTS.items()},
        "objecao": row["objection_severity"] if row["active_objection"] is not None else None,
    }
