"""Convert hand-offs to JSON objects for commands and HTTP routes. The phone number of the person who posted the vacancy
is reduced to its last digits.
"""

from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
from app.contexts.handoffs.model import Aberto, Decidido
from app.contexts.handoffs.service import VistaDoHandoff
from batuta.sql import Row

# Number of last digits of a phone number that an operator sees.
DIGITS: Final = 4


def handoff_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    return {
        "id": str(row["id"]),
        "status": row["status"],
        "vaga": str(row["vaga_id"]),
        "medico": str(row["cliente_id"]),
        "divulgador": str(row["divulgador_id"]),
        "telefone": f"…{row['telefone'][-DIGITS:]}",
        "hospital": row["hospital"],
        "data": row["data"].isoformat(),
        "lembretes": row["followup_count"],
        "via": row["decidido_via"],
        "por": row["decidido_por"],
        "aberto_em": local(row["created_at"], zone),
        "contatado_em": local(row["contatado_em"], zone),
        "ultimo_lembrete_em": local(row["last_followup_at"], zone),
        "ate": local(row["reserved_until"], zone),
        "decidido_em": local(row["decidido_em"], zone),
    }


def vista_do_handoff_em_palavras(vista: VistaDoHandoff, zone: ZoneInfo) -> dict[str, Any]:
    return {
        **handoff_em_palavras(vista.handoff, zone),
        "vaga_status": vista.vaga["status"],
        "historico": [
            {
                "de": row["de"],
                "para": row["para"],
                "por": row["por"],
                "motivo": row["motivo"],
                "em": local(row["em"], zone),
            }
            for row in vista.historico
        ],
    }


def aberto_em_palavras(aberto: Aberto, zone: ZoneInfo) -> dict[str, Any]:
    return {"id": aberto.id, "ate": local(aberto.ate, zone)}


def decidido_em_palavras(decidido: Decidido) -> dict[str, Any]:
    return {"id": decidido.id, "status": decidido.status.value, "repetida": not decidido.mudou}
