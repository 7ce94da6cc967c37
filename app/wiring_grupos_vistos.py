"""What is looked at of the groups, put together."""

from app.contexts.grupos.abertas import Abertas
from app.contexts.grupos.dicionario import Dicionario
from app.contexts.grupos.leituras import Regras
from app.contexts.grupos.recebidas import Recebidas
from batuta.engine import Batuta


def heard(work: Batuta) -> Recebidas:
    return Recebidas(work.database, work.zone, work.clock)


def rules(work: Batuta, known: Dicionario) -> Regras:
    """Whoever tries a text pays nobody for it: the rules alone."""
    return Regras(known, work.zone)


def vacancies(work: Batuta) -> Abertas:
    return Abertas(work.database, work.zone, work.clock)
