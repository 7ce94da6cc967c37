"""Convert vacancies and the results of actions to JSON objects for commands and HTTP routes. The objects contain
doctors' ids, but no names or phone numbers.
"""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.comum.texto import local
from app.contexts.plantoes.anuncios import Anuncio
from app.contexts.plantoes.candidatos import Candidato
from app.contexts.plantoes.model import Feita, Repetida
from app.contexts.plantoes.service import Vista
from batuta.sql import Row

PLAIN = (
    "id", "status", "origem", "hospital", "cidade", "uf", "especialidade", "periodo", "hora_inicio", "hora_fim", "valor",
    "valor_tipo",
)  # fmt: skip


def vaga_em_palavras(row: Row | Mapping[str, Any], zone: ZoneInfo) -> dict[str, Any]:
    return {
        **{name: row[name] for name in PLAIN},
        "data": row["data"].isoformat(),
        "medico": row["cliente_id"],
        "criada_por": row["criada_por"],
        "cancelada_motivo": row["cancelada_motivo"],
        "created_at": local(row["created_at"], zone),
        "updated_at": local(row["updated_at"], zone),
    }


def vista_em_palavras(vista: Vista, zone: ZoneInfo) -> dict[str, Any]:
    return {
        **vaga_em_palavras(vista.vaga, zone),
        "historico": [
            {
                **{name: row[name] for name in ("ordem", "de", "para", "por", "motivo")},
                "medico": row["cliente_id"],
                "em": local(row["em"], zone),
            }
            for row in vista.historico
        ],
        "ofertas": [
            {
                "medico": row["cliente_id"],
                "por": row["por"],
                "em": local(row["created_at"], zone),
                "mensagem": row["mensagem"],
                "enviada_em": local(row["enviada_em"], zone),
            }
            for row in vista.ofertas
        ],
        "interesses": [
            {"medico": row["cliente_id"], "por": row["por"], "em": local(row["created_at"], zone)}
            for row in vista.interesses
        ],
    }


def resposta_em_palavras(resposta: Feita | Repetida) -> dict[str, Any]:
    """Describe the result of an action on a vacancy. ``repetida`` means that the vacancy already had this state and
    nothing was written.
    """
    return {"id": resposta.id, "status": resposta.status.value, "repetida": isinstance(resposta, Repetida)}


def anuncio_em_palavras(anuncio: Anuncio) -> dict[str, Any]:
    return {
        "id": anuncio.id,
        "status": anuncio.status.value,
        "oferecidas": list(anuncio.oferecidas),
        "recusadas": {cliente: why.value for cliente, why in anuncio.recusadas.items()},
    }


def candidato_em_palavras(candidato: Candidato) -> dict[str, Any]:
    return {"medico": candidato.cliente_id, "pontos": round(candidato.pontos, 1)}
