"""The application: ``app`` for uvicorn and ``work`` for the ``batuta`` command. Both are built on first use, not at
import.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import (
    agendamentos,
    campanhas,
    chips,
    conversas,
    followups,
    grupos,
    handoffs,
    lgpd,
    medicos,
    mensagens,
    telegram,
    vagas,
)
from app.cli.gestao import diretrizes, gatilhos, qualidade, relatorios
from app.composition.development.demo import is_free
from app.composition.development.simulator import (
    simulator,
    simulator_settings,
    telegram_simulator,
    with_environment,
)
from app.composition.envio import Pace
from app.composition.jobs import PROFILES, RESERVED, WINDOWS, switches
from app.composition.julia import APP, Julia, compose, migrations
from app.composition.telegram.services import TELEGRAM_ROLE
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
from batuta import Batuta, __version__
from batuta.config import environment, load_settings
from batuta.errors import ConfigError
from batuta.events import ExecutionStarted, ProcessStarted
from batuta.extension import Command, Examined, Extension, Role, Wording, begin_logging
from batuta.health import Section
from batuta.kernel import Clock
from batuta.sql import Mark

if TYPE_CHECKING:
    from fastapi import FastAPI

    app: FastAPI
    work: Batuta

# Tasks sent to Redis concurrently, per task that one ARQ worker runs, because one sender feeds several workers.
ARQ_SENT_AT_A_TIME = 4
# Names that operators and their scripts read: sections of the score, fields and phrases of the log, and the database
# mark.
SECTIONS = (
    Section("connectivity", 20),
    Section("queues", 20, shown="fila"),
    Section("chips", 20),
    Section("circuits", 15),
    Section("jobs_and_workers", 25),
)
WORDING = Wording(
    phrases={
        ProcessStarted: lambda event: f"process started. Hora atual: {event.local_time:%d/%m/%Y %H:%M:%S %z}",
        ExecutionStarted: lambda event: "Executando job",
    },
    fields={"category": "categoria", "local_time": "hora_atual"},
)
MARK = Mark(key="supabase_project_ref", setting="SUPABASE_PROJECT_REF")


def build(settings: Settings, clock: Clock | None = None, pace: Pace | None = None, port: Port | None = None) -> Julia:
    """Build the application of this process. ``port`` replaces the Telegram port that the settings select."""
    julia: Julia
    work = Batuta(
        settings.database_url.get_secret_value(),
        timezone=settings.timezone,
        settings=settings,
        clock=clock,
        migrate=not settings.in_production,
        concurrency=settings.arq_max_jobs * (ARQ_SENT_AT_A_TIME if settings.tasks_backend == "arq" else 1),
        extension=Extension(
            service="julia",
            application=lambda: julia,
            migrations=migrations(),
            texts=[APP / "texts"],
            roles=roles(settings, lambda: julia),
            commands=commands(settings),
            examine=lambda: _examine(julia),
            profiles=PROFILES,
            first_profile=settings.schedule_profile,
            wording=WORDING,
            sections=SECTIONS,
            reserved=RESERVED,
            windows=WINDOWS,
            switches=switches(settings),
            api=lambda: _create_api(julia),
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
            templates=[TEMPLATES],
            child_env=simulator_settings(settings) if settings.in_development else {},
            rebuilt=lambda added: build(with_environment(settings, added)).work,
            restoring=lambda: [julia.messages.restauracao, julia.personal_data.restauracao],
            mark=replace(MARK, project=settings.supabase_project_ref) if settings.in_production else None,
        ),
    )
    julia = compose(work, settings, pace, port)
    return julia


def _create_api(julia: Julia) -> "FastAPI":
    # Imported only by the api, because FastAPI would cost every other role memory.
    from app.web.api import create_app

    return create_app(julia)


def commands(settings: Settings) -> Mapping[str, Command]:
    """Return Julia's own commands for ``batuta``."""
    return {
        "chips": chips.chips,
        "chip": chips.chip,
        "configurar-webhook": mensagens.configurar_webhook,
        "duvidas": mensagens.duvidas,
        "decidir": mensagens.decidir,
        "optout": mensagens.optout,
        "remover": mensagens.remover,
        "campanhas": campanhas.COMMANDS,
        "agendamentos": agendamentos.COMMANDS,
        "grupos": grupos.COMMANDS,
        "vagas": vagas.COMMANDS,
        "handoffs": handoffs.COMMANDS,
        "medicos": medicos.COMMANDS,
        "conversas": conversas.COMMANDS,
        "followups": followups.COMMANDS,
        "relatorios": relatorios.COMMANDS,
        "qualidade": qualidade.COMMANDS,
        "gatilhos": gatilhos.COMMANDS,
        "diretrizes": diretrizes.COMMANDS,
        "lgpd": lgpd.COMMANDS,
        "telegram": telegram.COMMANDS,
    }


def roles(settings: Settings, julia: Callable[[], Julia]) -> Sequence[Role]:
    """Return Julia's own roles: the Telegram worker, the simulators in development, and the ARQ worker if tasks run on
    ARQ.
    """

    async def run_tasks(stop: asyncio.Event) -> None:
        # Imported only by this role, because the ARQ and Redis clients would cost every other role memory.
        from app.composition.arq import run_role

        await run_role(julia(), stop)

    async def may_play() -> bool:
        async with julia().work as work:
            return await is_free(work.database)

    made = [simulator(settings, may_play), telegram_simulator(settings)] if settings.in_development else []
    made.append(TELEGRAM_ROLE)
    return [*made, Role("arq", run_tasks)] if settings.tasks_backend == "arq" else made


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


def __getattr__(name: str) -> object:
    if name == "app":
        return _app()
    if name == "work":
        return _julia().work
    raise AttributeError(name)


@cache
def _julia() -> Julia:
    return build(load_settings(Settings, environment(), Path(".env")))


@cache
def _app() -> "FastAPI":
    """Build the application for a uvicorn that an operator starts. The process writes the same log as under ``batuta
    api``.
    """
    try:
        julia = _julia()
        julia.settings.require_access()
    except ConfigError as error:
        raise SystemExit(f"julia: {error}") from None
    work = julia.work
    wording = work.extension.wording
    begin_logging(work.events, julia.settings, service="api", stream=sys.stdout, zone=work.zone, wording=wording)
    work.events.emit(ProcessStarted("api", __version__, work.clock.now().astimezone(work.zone)))
    return _create_api(julia)
