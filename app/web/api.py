"""Julia's HTTP application: the engine's routes and Julia's own."""

from fastapi import FastAPI

from app.composition.envio import hours, limits
from app.composition.julia import Julia
from app.contexts.agendamentos.planilha.arquivo import MOST_BYTES
from app.contexts.handoffs.links import PATH
from app.web.metrics import readings
from app.web.routes import (
    agendamentos,
    autores,
    campanhas,
    conversas,
    fechamentos,
    grupos,
    listas_de_grupos,
    medicos,
    nomes,
    vagas,
    webhooks,
)
from app.web.routes.gestao import chips, diretrizes, followups, gatilhos, lgpd, qualidade, relatorios, telegram
from app.web.routes.handoffs import pagina, rotas
from app.web.routes.health import health_router
from batuta.web import create_api


def create_app(julia: Julia) -> FastAPI:
    work, settings, groups = julia.work, julia.settings, julia.groups
    return create_api(
        work,
        settings,
        service="julia-api",
        routers=[
            health_router(limits(settings), hours(settings)),
            campanhas.router(julia.campaigns.campanhas, work.zone),
            grupos.router(groups.revisao, work.zone),
            fechamentos.router(groups.fechamentos, work.zone),
            autores.router(groups.autores, work.zone),
            nomes.router(groups.ensino),
            listas_de_grupos.router(groups.recebidas, groups.abertas, work.zone),
            *conversas.routers(julia.messages, julia.team.escrita, work.zone),
            followups.router(julia.followups.followups, work.zone),
            vagas.router(julia.shifts, work.zone),
            rotas.router(julia.handoffs.handoffs, work.zone),
            pagina.router(julia.handoffs.handoffs),
            chips.router(work, julia.chips),
            telegram.router(work, julia.telegram.servico),
            medicos.router(julia.doctors.cadastro, julia.doctors.estados, work.zone),
            diretrizes.router(julia.directives.diretrizes, work.zone),
            lgpd.router(julia.personal_data.lgpd, work.zone),
            relatorios.router(julia.reports.relatorios, work.zone),
            qualidade.router(julia.quality, work.zone),
            gatilhos.router(julia.triggers.gatilhos),
            agendamentos.router(work, julia.appointments.agendamentos, julia.appointments.importacao),
            webhooks.router(julia.inbox, settings),
        ],
        larger_bodies={agendamentos.IMPORT: MOST_BYTES + 64 * 1024, telegram.SEND_FILE: telegram.LARGEST_BODY},
        own_proof=[webhooks.EVOLUTION, webhooks.CHATWOOT, PATH],
        readings=readings(julia.appointments.health.documento, julia.telegram.health.documento),
    )
