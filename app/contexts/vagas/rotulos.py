"""Labelled messages from decisions of operators, in the format of the labelled data of the reader."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any, Final
from zoneinfo import ZoneInfo

from app.contexts.vagas.importacao import PERIODO_ID
from batuta.sql import Row

PERIODOS: Final = {id: str(periodo) for periodo, id in PERIODO_ID.items()}
REJEITADA: Final = "rejeitada"


def rotuladas(rows: Sequence[Row | Mapping[str, Any]], zone: ZoneInfo) -> list[dict[str, Any]]:
    """Return one label per message. ``rows`` has the reviewed vacancies, ordered by message.

    A message whose vacancies were all rejected is not an offer. Its category is unknown, because the operator does not
    state one.
    """
    return [_rotulo([*own], zone) for _, own in groupby(rows, key=lambda row: row["mensagem_id"])]


def _rotulo(rows: Sequence[Row | Mapping[str, Any]], zone: ZoneInfo) -> dict[str, Any]:
    message = rows[0]
    approved = [_vaga(row) for row in rows if row["status"] != REJEITADA]
    return {
        "id": str(message["mensagem_id"]),
        "texto": message["texto"],
        "enviado_em": message["timestamp_msg"].astimezone(zone).isoformat(),
        "grupo": message["grupo_nome"],
        "regiao": message["regiao"],
        "eh_oferta": bool(approved),
        "categoria": "oferta" if approved else None,
        "vagas": approved,
    }


def _vaga(row: Row | Mapping[str, Any]) -> dict[str, Any]:
    price = None if row["valor"] is None else float(row["valor"])
    return {
        "hospital": row["hospital_nome"],
        "cidade": row["cidade"],
        "uf": row["estado"],
        "especialidade": row["especialidade_nome"],
        "data": row["data"].isoformat(),
        "periodo": PERIODOS.get(row["periodo_id"]),
        "hora_inicio": row["hora_inicio"],
        "hora_fim": row["hora_fim"],
        "valor": int(price) if price is not None and price.is_integer() else price,
        "valor_tipo": row["valor_tipo"],
        "forma_pagamento": row["forma_pagamento_raw"],
        "contato_nome": row["contato_nome"],
        "contato_whatsapp": row["contato_whatsapp"],
    }
