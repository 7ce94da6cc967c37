"""Build Julia from the settings: the engine, all services, the roles and the web pages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from app.composition.catalogue import build_engine, extension_of
from app.composition.development.simulator import with_environment
from app.composition.envio import Pace
from app.composition.julia import Julia, compose
from app.contexts.agendamentos.api import ENCRYPTED
from app.contexts.telegram.porta import Telegram as Port
from app.integrations.evolution.doctor import examine
from app.settings import Settings
from app.web.boards import (
    appointments_board,
    groups_board,
    people_board,
    reports_board,
    sending_board,
    telegram_board,
    vacancies_board,
)
from app.web.screens import TEMPLATES, actions, screens
from batuta.extension import Command, Examined
from batuta.kernel import Clock

if TYPE_CHECKING:
    from fastapi import FastAPI

# The page on which operators fix a finding, by its text key or its source.
FINDING_PAGES: Final[Mapping[str, str]] = {
    "grupos": "/vagas",
    "alertas": "/conversas",
    "alertas_performance": "/tarefas/heartbeat",
    "alertas_recusas_altas": "/vagas?situacao=anunciada",
    "alertas_sem_respostas": "/freios",
    "alertas_tempo_resposta_alto": "/processos",
    "conversas_optouts_provaveis": "/conversas/duvidas#descadastros",
    "diretrizes": "/tarefas/sincronizar_briefing",
    "equipe_avisos": "/filas/avisos_equipe?estado=dead",
    "equipe_central": "/filas/central_fila?estado=dead",
    "fila_para_decisao": "/conversas/duvidas",
    "fila_sem_gateway": "/processos",
    "followups": "/tarefas/processar_followups",
    "gatilhos": "/freios",
    "grupos_canario": "/filas",
    "grupos_fila_travada": "/filas?estado=dead",
    "grupos_itens_pendentes_antigos": "/processos",
    "grupos_travados": "/filas",
    "handoffs": "/tarefas/processar_handoffs",
    "plantoes": "/vagas?situacao=pendente_confirmacao",
    "plantoes_reservada_passada": "/tarefas/processar_confirmacao_plantao",
    "respostas": "/tarefas/processar_retomadas",
}


def build(
    settings: Settings, commands: Mapping[str, Command], clock: Clock | None, pace: Pace | None, port: Port | None
) -> Julia:
    """Build Julia for this process: the engine with the commands, pages and API routes, and all services. If ``port``
    is given, it replaces the Telegram client that the settings select.
    """
    julia: Julia
    work = build_engine(
        settings,
        replace(
            extension_of(settings, lambda: julia),
            commands=commands,
            application=lambda: julia,
            examine=lambda: _examine(julia),
            api=lambda: create_api(julia),
            boards=[
                lambda: sending_board(julia),
                lambda: groups_board(julia),
                lambda: vacancies_board(julia),
                lambda: appointments_board(julia),
                lambda: reports_board(julia),
                lambda: people_board(julia),
                lambda: telegram_board(julia),
            ],
            screens=screens(lambda: julia),
            actions=actions(lambda: julia),
            finding_pages=FINDING_PAGES,
            templates=[TEMPLATES],
            rebuilt=lambda added: build(with_environment(settings, added), commands, None, None, None).work,
            encrypted=ENCRYPTED,
            restoring=lambda: [julia.messages.restauracao, julia.personal_data.restauracao],
        ),
        clock,
    )
    julia = compose(work, settings, pace, port)
    return julia


def create_api(julia: Julia) -> "FastAPI":
    # Only the api imports FastAPI, because the import would cost every other role memory.
    from app.web.api import create_app

    return create_app(julia)


async def _examine(julia: Julia) -> Sequence[Examined]:
    journal, settings = [_examine_journal(julia)], julia.settings
    if julia.line is None:
        return journal
    has_secret = settings.webhook_secret is not None
    return journal + await examine(julia.line, settings.webhook_address, has_secret=has_secret)


def _examine_journal(julia: Julia) -> Examined:
    if (journal := julia.messages.diario) is None:
        return Examined(False, "doctor.diario.none", "doctor.diario.none_step")
    facts = {"file": str(journal.file)}
    if journal.is_writable:
        return Examined(True, "doctor.diario.writable", facts=facts)
    return Examined(False, "doctor.diario.broken", "doctor.diario.broken_step", facts)
