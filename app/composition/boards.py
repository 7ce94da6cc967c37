"""What the first page shows of what comes in, put together."""

from app.composition.appointments import appointments_of
from app.composition.groups import heard, review, vacancies
from app.settings import Settings
from app.web.reading_boards import QuadroDosAgendamentos, QuadroDosGrupos
from batuta.engine.batuta import Batuta


def groups_board(work: Batuta, settings: Settings) -> QuadroDosGrupos:
    return QuadroDosGrupos(recebidas=heard(work), abertas=vacancies(work), revisao=review(work, settings).quantas)


def appointments_board(work: Batuta, settings: Settings) -> QuadroDosAgendamentos:
    agendamentos, importacao = appointments_of(work, settings)
    return QuadroDosAgendamentos(agendamentos=agendamentos, importacao=importacao)
