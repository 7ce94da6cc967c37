"""Convert export and erasure requests, and the receipts for erasures, to JSON objects."""

from typing import Any
from zoneinfo import ZoneInfo

from app.contexts.lgpd.service import ReciboDoApagamento
from batuta.sql import Row


def recibo_em_palavras(recibo: ReciboDoApagamento) -> dict[str, Any]:
    return {
        "pedido": recibo.pedido,
        "completo": recibo.completo,
        "linhas": recibo.linhas,
        "contagens": dict(recibo.contagens),
        "restam": dict(recibo.restam),
        "na_central": [*recibo.na_central],
    }


def pedido_em_palavras(row: Row, zone: ZoneInfo) -> dict[str, Any]:
    done = row["concluido_em"]
    return {
        "pedido": str(row["id"]),
        "tipo": row["tipo"],
        "completo": done is not None,
        "por": row["por"],
        "motivo": row["motivo"],
        "contagens": row["contagens"],
        "restam": row["restam"],
        "criado_em": row["created_at"].astimezone(zone).isoformat(),
        "concluido_em": None if done is None else done.astimezone(zone).isoformat(),
    }
