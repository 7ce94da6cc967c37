"""The outside, where there is none: the simulator as a role of `batuta up` in development, and where it is found."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import timedelta

from app.composition.appointments import demonstrate
from app.integrations.evolution.client import EVENTS, SECRET_HEADER
from app.settings import Settings
from batuta.engine.batuta import Batuta
from batuta.engine.extension import Role
from batuta.kernel.json import Json
from batuta.web.server import listen

SIMULATED = "simulador"


def simulator(settings: Settings, build: Callable[[Settings], Batuta]) -> Role:
    where = ("127.0.0.1", settings.simulador_port, "SIMULADOR_PORT")
    return Role("simulador", lambda stop: _simulate(settings, build, where, stop), listens=where)


def simulated(settings: Settings) -> Mapping[str, str]:
    """Where the outside is in development. Anything set by hand wins."""
    outside = f"http://127.0.0.1:{settings.simulador_port}"
    return {
        "EVOLUTION_API_URL": f"{outside}/evolution",
        "EVOLUTION_API_KEY": SIMULATED,
        "WEBHOOK_SECRET": SIMULATED,
        "SLACK_WEBHOOK_URL": f"{outside}/slack/alertas",
        "DEADMAN_URL": f"{outside}/ping/scheduler",
    }


def told_besides(settings: Settings, told: Mapping[str, str]) -> Settings:
    return Settings.model_validate(settings.model_dump() | {name.lower(): value for name, value in told.items()})


async def _simulate(
    settings: Settings, build: Callable[[Settings], Batuta], where: tuple[str, int, str], stop: asyncio.Event
) -> None:
    from app.composition.demo import LISTENER, Demo
    from batuta.kernel.clock import SystemClock
    from batuta.web.server import serve
    from simulador.comportamento import Comportamento
    from simulador.main import create_app, keeper

    listening = listen(*where)
    if settings.is_demo:
        async with build(settings) as work:
            if await Demo(work.database, work.zone).begin(now=work.clock.now()):
                await demonstrate(work, settings)
    secret = settings.webhook_secret.get_secret_value() if settings.webhook_secret else SIMULATED
    webhook: dict[str, Json] = {
        "enabled": True,
        "url": settings.webhook_address,
        "headers": {SECRET_HEADER: secret},
        "events": list(EVENTS),
    }
    lively = Comportamento(reply_share=0.25, opt_out_share=0.02, group_messages_per_minute=6)
    clock, grace = SystemClock(), timedelta(seconds=5)
    app = create_app(clock, at_rest=lively, webhook=webhook, instances=[LISTENER])
    await asyncio.gather(serve(app, listening, stop, grace), keeper(app, clock).run(stop, grace))
