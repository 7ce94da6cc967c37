"""Build the engine with Julia's jobs and roles, but without the services of ``app/contexts``.

Commands such as ``batuta jobs`` and the parent process of ``batuta up`` use this engine. This module imports no
service, so these commands start fast.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.composition.development.demo import is_free
from app.composition.development.simulator import simulator, simulator_settings, telegram_simulator
from app.composition.jobs import PROFILES, RESERVED, WINDOWS, add_jobs, switches
from app.composition.telegram.role import TELEGRAM_ROLE
from app.settings import Settings
from batuta import Batuta
from batuta.events import ExecutionStarted, ProcessStarted
from batuta.extension import Extension, Role, Wording
from batuta.health import Section
from batuta.kernel import Clock
from batuta.sql import Mark, Migration, read_migrations

if TYPE_CHECKING:
    from app.composition.julia import Julia

APP: Final = Path(__file__).parents[1]
# With ARQ, the worker keeps up to this many times ARQ_MAX_JOBS tasks in Redis, because it feeds several ARQ processes.
ARQ_SENT_AT_A_TIME = 4
# Names on which operators' scripts depend: the health score's sections, the log's phrases and fields, and
# the setting with which production recognises its database.
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


def build_catalogue(settings: Settings) -> Batuta:
    """Build an engine that knows the jobs and the role names. The engine cannot run a role, because it has
    no services.
    """

    def no_services() -> "Julia":
        raise TypeError("the catalogue has no services: build the application with app.main.build")

    work = build_engine(settings, extension_of(settings, no_services))
    add_jobs(work, settings)
    return work


def build_engine(settings: Settings, extension: Extension, clock: Clock | None = None) -> Batuta:
    """Build this process's engine from the settings."""
    return Batuta(
        settings.database_url.get_secret_value(),
        timezone=settings.timezone,
        settings=settings,
        clock=clock,
        migrate=not settings.in_production,
        concurrency=settings.arq_max_jobs * (ARQ_SENT_AT_A_TIME if settings.tasks_backend == "arq" else 1),
        extension=extension,
    )


def extension_of(settings: Settings, julia: "Callable[[], Julia]") -> Extension:
    """Return the part of Julia's engine extension that needs no services: the schema, the texts, the roles, the
    timetables, the switches, and the names that operators see.
    """
    return Extension(
        service="julia",
        migrations=migrations(),
        texts=[APP / "texts"],
        roles=roles(settings, julia),
        child_env=simulator_settings(settings) if settings.in_development else {},
        profiles=PROFILES,
        first_profile=settings.schedule_profile,
        wording=WORDING,
        sections=SECTIONS,
        reserved=RESERVED,
        windows=WINDOWS,
        switches=switches(settings),
        mark=replace(MARK, project=settings.supabase_project_ref) if settings.in_production else None,
    )


def roles(settings: Settings, julia: "Callable[[], Julia]") -> Sequence[Role]:
    """Return Julia's own roles: the Telegram worker, the simulators in development, and the ARQ worker if tasks run on
    ARQ.
    """

    async def run_tasks(stop: asyncio.Event) -> None:
        # Only this role imports the ARQ and Redis clients, because the import would cost every other role memory.
        from app.composition.arq import run_role

        await run_role(julia(), stop)

    async def may_play() -> bool:
        async with julia().work as work:
            return await is_free(work.database)

    made = [simulator(settings, may_play), telegram_simulator(settings)] if settings.in_development else []
    made.append(TELEGRAM_ROLE)
    return [*made, Role("arq", run_tasks)] if settings.tasks_backend == "arq" else made


@cache
def migrations() -> tuple[Migration, ...]:
    """Return Julia's database migrations. Each process reads the migration files once."""
    return tuple(read_migrations("app", APP / "schema"))
