"""Convert follow-ups to JSON objects for commands and HTTP routes, without names and telephone numbers."""

from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
from app.contexts.conversas.api import EstagioDaConversa
from app.contexts.followups.model import POR_ESTAGIO, FollowupsMudados
from batuta.sql import Row


def followup_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    """Convert a conversation that is waiting for a follow-up to a JSON object. ``devido_em`` is null if all follow-ups
    have been sent.
    """
    etapa = POR_ESTAGIO.get(EstagioDaConversa(row["stage"]))
    return {
        "conversa": str(row["id"]),
        "medico": str(row["cliente_id"]),
        "estagio": row["stage"],
        "desde": local(row["desde"], zone),
        "devido_em": None if etapa is None else local(row["desde"] + etapa.espera, zone),
        "pausado_ate": local(row["pausado_ate"], zone),
        "impedimento": row["impedimento"],
    }


def followups_mudados_em_palavras(mudados: FollowupsMudados, zone: ZoneInfo) -> dict[str, Any]:
    return {"conversa": mudados.id, "estagio": mudados.estagio.value, "pausado_ate": local(mudados.ate, zone)}
