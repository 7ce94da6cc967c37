"""Vacancies for other contexts: the services that store, close and reprice them, and their thresholds."""

from app.contexts.vagas.alvo_do_fechamento import NADA
from app.contexts.vagas.chaves import Chaves
from app.contexts.vagas.fechamentos import Fechamentos
from app.contexts.vagas.limiares import Limiares, alcanca
from app.contexts.vagas.reajustes import Reajustado, Reajustes
from app.contexts.vagas.revisao import VagaInexistente
from app.contexts.vagas.vagas import CANARIO, Vagas

__all__ = [
    "CANARIO",
    "NADA",
    "Chaves",
    "Fechamentos",
    "Limiares",
    "Reajustado",
    "Reajustes",
    "VagaInexistente",
    "Vagas",
    "alcanca",
]
