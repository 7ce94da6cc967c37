"""The only place that knows concretes: settings in, a Batuta with everything of Julia's out."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from app.integrations.evolution.probe import answers
from app.settings import Settings
from batuta.engine import Batuta, Extension, Role
from batuta.health.ready import Probe
from batuta.supervise.address import listen

HERE = Path(__file__).parent


def build(settings: Settings) -> Batuta:
    work = Batuta(
        settings.database_url.get_secret_value(),
        timezone=settings.timezone,
        settings=settings,
        migrate=not settings.in_production,
        extension=Extension(
            texts=[HERE / "texts"],
            roles=[] if settings.in_production else [Role("simulador", lambda stop: _simulate(settings, stop))],
            later=["scheduler", "telegram"],
            api=lambda: _api(work, settings),
            child_env={} if settings.in_production else simulated(settings),
            marked=settings.in_production,
            project=settings.supabase_project_ref,
        ),
    )
    work.probes["evolution"] = Probe(lambda: answers(settings.evolution_api_url), needed=False)
    return work


def simulated(settings: Settings) -> Mapping[str, str]:
    """Where the outside is in development. Anything set by hand wins."""
    outside = f"http://127.0.0.1:{settings.simulador_port}"
    return {"EVOLUTION_API_URL": f"{outside}/evolution", "EVOLUTION_API_KEY": "simulador"}


def _api(work: Batuta, settings: Settings) -> Any:
    from app.main import create_app

    return create_app(settings, work)


async def _simulate(settings: Settings, stop: asyncio.Event) -> None:
    from batuta.kernel.clock import SystemClock
    from batuta.web.server import serve
    from simulador.main import create_app

    listening = listen("127.0.0.1", settings.simulador_port, "SIMULADOR_PORT")
    await serve(create_app(SystemClock()), listening, stop, timedelta(seconds=5))
