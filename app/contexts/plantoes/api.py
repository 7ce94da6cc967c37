"""Interface of vacancies for other contexts: announce, suggest, reserve and release vacancies, and choose doctors for
them. It also exports the types of the results.
"""

from app.contexts.plantoes.anuncios import Anuncio, Anuncios
from app.contexts.plantoes.candidatos import Candidato, Candidatos, Escolha, Impedimento
from app.contexts.plantoes.horario import Turno, turno_de
from app.contexts.plantoes.model import (
    Feita,
    HospitalSemOfertas,
    Impedida,
    Ocupada,
    PlantaoComecou,
    Repetida,
    Resposta,
    VagaDesconhecida,
)
from app.contexts.plantoes.service import Plantoes
from app.contexts.plantoes.sugestoes import Sugestoes, VagasAbertas
from app.contexts.plantoes.texto import DIAS, fatos_da_vaga

__all__ = [
    "DIAS",
    "Anuncio",
    "Anuncios",
    "Candidato",
    "Candidatos",
    "Escolha",
    "Feita",
    "HospitalSemOfertas",
    "Impedida",
    "Impedimento",
    "Ocupada",
    "PlantaoComecou",
    "Plantoes",
    "Repetida",
    "Resposta",
    "Sugestoes",
    "Turno",
    "VagaDesconhecida",
    "VagasAbertas",
    "fatos_da_vaga",
    "turno_de",
]
