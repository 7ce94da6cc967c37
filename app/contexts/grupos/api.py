"""Interface of groups for other contexts: the pipeline's queue, the reasons for discarding a message, and the authors
of offers.
"""

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
from app.contexts.grupos.pessoas import Pessoas
from app.contexts.grupos.recebidas import MotivoDoDescarte

__all__ = [
    "DESCARTADO",
    "ERRO",
    "FILA_GRUPOS",
    "RELEITURA",
    "Estagio",
    "MotivoDoDescarte",
    "Pessoas",
    "da_mensagem",
    "da_releitura",
    "da_vaga",
]
