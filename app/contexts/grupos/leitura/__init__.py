"""Reads what groups say: pure rules over Portuguese, no I/O, no model.

    tokens (texto, marcas) → lines and sections (linhas) → vagas (montagem); beside them: is it an offer (intencao)

Words live in ``dados/``; ``docs/grupos.md`` says how to add one.
"""

from app.contexts.grupos.leitura.heuristica import heuristica
from app.contexts.grupos.leitura.leitor import ler
from app.contexts.grupos.leitura.tipos import (
    Campo,
    Categoria,
    Fechamento,
    Leitura,
    Nota,
    Periodo,
    VagaDita,
    VagaLida,
    ValorTipo,
)
from app.contexts.grupos.leitura.vocabulario import Hospital, Vocabulario

__all__ = [
    "Campo",
    "Categoria",
    "Fechamento",
    "Hospital",
    "Leitura",
    "Nota",
    "Periodo",
    "VagaDita",
    "VagaLida",
    "ValorTipo",
    "Vocabulario",
    "heuristica",
    "ler",
]
