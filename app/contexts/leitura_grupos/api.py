"""Functions and types with which other contexts read group messages: the function that reads a message, the types of
its result, and helpers for texts. The reader itself is imported on first use, because most processes never read a
message.
"""

from typing import TYPE_CHECKING

from app.contexts.leitura_grupos.documento import trechos, vaga_documento
from app.contexts.leitura_grupos.marcas.folha import Folha, folha
from app.contexts.leitura_grupos.marcas.horas import periodo_das_horas
from app.contexts.leitura_grupos.marcas.lugares import UFS, cidades
from app.contexts.leitura_grupos.marcas.marca import Turno, apagar
from app.contexts.leitura_grupos.texto.texto import Texto, chave
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, palavras, palavras_soltas, vale_em
from app.contexts.leitura_grupos.tipos import (
    Campo,
    Categoria,
    Fechamento,
    Leitura,
    Nota,
    Periodo,
    Trecho,
    VagaDita,
    VagaLida,
    ValorTipo,
)

if TYPE_CHECKING:
    from app.contexts.leitura_grupos.juizo.heuristica import heuristica
    from app.contexts.leitura_grupos.leitor import ler

__all__ = [
    "UFS",
    "Campo",
    "Categoria",
    "Fechamento",
    "Folha",
    "Leitura",
    "Nota",
    "Periodo",
    "Texto",
    "Trecho",
    "Turno",
    "VagaDita",
    "VagaLida",
    "ValorTipo",
    "Vocabulario",
    "apagar",
    "chave",
    "cidades",
    "folha",
    "heuristica",
    "ler",
    "palavras",
    "palavras_soltas",
    "periodo_das_horas",
    "trechos",
    "vaga_documento",
    "vale_em",
]


def __getattr__(name: str) -> object:
    if name == "heuristica":
        from app.contexts.leitura_grupos.juizo.heuristica import heuristica

        return heuristica
    if name == "ler":
        from app.contexts.leitura_grupos.leitor import ler

        return ler
    raise AttributeError(name)
