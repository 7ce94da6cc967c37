"""Convert the result of reading a group message to a JSON object, in the format of the labelled messages for training
and tests.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from app.contexts.leitura_grupos.tipos import Campo, Leitura, VagaDita

CAMPOS = (
    "hospital",
    "cidade",
    "uf",
    "especialidade",
    "data",
    "periodo",
    "hora_inicio",
    "hora_fim",
    "valor",
    "valor_tipo",
    "forma_pagamento",
    "contato_nome",
    "contato_whatsapp",
)


def documento(leitura: Leitura) -> dict[str, Any]:
    return {
        "eh_oferta": leitura.eh_oferta,
        "categoria": str(leitura.categoria),
        "vagas": [{**vaga_documento(each), "confianca": each.confianca} for each in leitura.vagas],
    }


def vaga_documento(vaga: VagaDita) -> dict[str, Any]:
    return {name: _plain(getattr(vaga, name)) for name in CAMPOS}


def trechos(vaga: VagaDita) -> Mapping[str, tuple[int, int]]:
    """Return the position in the source text of each field of a vacancy. A default value has no position."""
    found = {name: getattr(vaga, name) for name in CAMPOS}
    return {name: each.trecho for name, each in found.items() if each is not None and each.trecho is not None}


def _plain(field: Campo[Any] | None) -> object:
    if field is None:
        return None
    value = field.valor
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, "strftime"):
        return value.strftime("%H:%M") if hasattr(value, "hour") else value.isoformat()
    return str(value)
