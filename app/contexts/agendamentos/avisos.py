"""What a person should look at in an appointment that was read: the reading itself stays empty where nothing could be read."""

from collections.abc import Mapping
from typing import Any, Final

from app.contexts.agendamentos.documento import documento_de
from app.contexts.agendamentos.model import Status
from app.contexts.agendamentos.normalizacao import endereco_lido
from batuta.stores.sql.database import Row

SEM_LOGRADOURO: Final = "endereco_sem_logradouro"
SEM_DOCUMENTO: Final = "documento_nao_encontrado"


def avisos_da_leitura(row: Row | Mapping[str, Any]) -> list[str]:
    """Of one whose address or documents are not read by choice (a switch) nothing is said."""
    if row["normalization_status"] != Status.COMPLETED:
        return []
    return list(dict.fromkeys([*_do_endereco(row), *_do_documento(row)]))


def _do_endereco(row: Row | Mapping[str, Any]) -> list[str]:
    text, read = row["endereco_completo"], row["endereco_normalizado"]
    if isinstance(read, dict):
        told = [str(each) for each in read.get("avisos", ())]
        return told if read.get("logradouro") or not text else [*told, SEM_LOGRADOURO]
    return [SEM_LOGRADOURO] if text and not endereco_lido(text, row["cep"]).diz_algo else []


def _do_documento(row: Row | Mapping[str, Any]) -> list[str]:
    text, read = row["documento_completo"], row["documento_normalizado"]
    if isinstance(read, dict):
        return [str(each) for each in read.get("avisos", ())]
    found = documento_de(text or "")
    return [] if not text or found.diz_algo else [*found.avisos] or [SEM_DOCUMENTO]
