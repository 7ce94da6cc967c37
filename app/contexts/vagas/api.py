"""Interface of vacancies for other contexts: the services that store, close and reprice vacancies, their states and
thresholds.
"""

from app.contexts.vagas.alvo_do_fechamento import NADA
from app.contexts.vagas.chaves import Chaves
from app.contexts.vagas.fechamentos import Fechamentos
from app.contexts.vagas.importacao import PERIODO_ID, Candidata, DecisaoDaImportacao, julgar
from app.contexts.vagas.limiares import Limiares, alcanca
from app.contexts.vagas.reajustes import Reajustado, Reajustes
from app.contexts.vagas.revisao import VagaInexistente
from app.contexts.vagas.transicoes import LONGEST_REASON, PROCURA, StatusDaVaga, Transicoes
from app.contexts.vagas.vagas import CANARIO, Vagas, chave_de

__all__ = [
    "CANARIO",
    "LONGEST_REASON",
    "NADA",
    "PERIODO_ID",
    "PROCURA",
    "Candidata",
    "Chaves",
    "DecisaoDaImportacao",
    "Fechamentos",
    "Limiares",
    "Reajustado",
    "Reajustes",
    "StatusDaVaga",
    "Transicoes",
    "VagaInexistente",
    "Vagas",
    "alcanca",
    "chave_de",
    "julgar",
]
