"""Reads what groups say: pure rules over Portuguese, no I/O, no model.

    tokens (texto, marcas) → lines and sections (linhas) → vagas (montagem); beside them: is it an offer (intencao)

Words live in ``dados/``; ``docs/grupos.md`` says how to add one.
"""

from app.contexts.leitura_grupos.juizo.heuristica import heuristica
from app.contexts.leitura_grupos.leitor import ler
from app.contexts.leitura_grupos.texto.vocabulario import Hospital, Vocabulario
from app.contexts.leitura_grupos.tipos import (
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
