"""What the first page shows of what comes in, put together."""

from app.quadro_leitura import QuadroDosAgendamentos, QuadroDosGrupos
from app.settings import Settings
from app.wiring_agendamentos import appointments_of
from app.wiring_grupos import review
from app.wiring_grupos_vistos import heard, vacancies
from batuta.engine import Batuta


def groups_board(work: Batuta, settings: Settings) -> QuadroDosGrupos:
    return QuadroDosGrupos(recebidas=heard(work), abertas=vacancies(work), revisao=review(work, settings).quantas)


def appointments_board(work: Batuta, settings: Settings) -> QuadroDosAgendamentos:
    agendamentos, importacao = appointments_of(work, settings)
    return QuadroDosAgendamentos(agendamentos=agendamentos, importacao=importacao)
