"""Names for other contexts: the dictionary of hospitals and specialities and the search in it."""

from app.contexts.nomes.correcoes import Correcao, MotivoAusente, em_duvida, especialidade_de
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.nomes import Achado, busca, onde, pode_ser_nome

__all__ = [
    "Achado",
    "Correcao",
    "Dicionario",
    "MotivoAusente",
    "busca",
    "em_duvida",
    "especialidade_de",
    "onde",
    "pode_ser_nome",
]
