"""Interface of names for other contexts: the dictionary of hospitals and specialities, and the search in it."""

from app.contexts.nomes.correcoes import Correcao, MotivoAusente, em_duvida
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.nomes import Achado, Nomes, achar, busca, onde, pode_ser_nome

__all__ = [
    "Achado",
    "Correcao",
    "Dicionario",
    "MotivoAusente",
    "Nomes",
    "achar",
    "busca",
    "em_duvida",
    "onde",
    "pode_ser_nome",
]
