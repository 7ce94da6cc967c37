"""Interface of groups for other contexts: the queue of the pipeline and the reasons for discarding a message."""

from app.contexts.grupos.fila import (
    DESCARTADO,
    ERRO,
    FILA_GRUPOS,
    RELEITURA,
    Estagio,
    da_mensagem,
    da_releitura,
    da_vaga,
)
from app.contexts.grupos.recebidas import MotivoDoDescarte

__all__ = [
    "DESCARTADO",
    "ERRO",
    "FILA_GRUPOS",
    "RELEITURA",
    "Estagio",
    "MotivoDoDescarte",
    "da_mensagem",
    "da_releitura",
    "da_vaga",
]
