"""The simulator of external services as a role of `batuta up` in development, and its addresses."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from app.composition.development.demo import LISTENER
from app.integrations.evolution.client import EVENTS, SECRET_HEADER
from app.settings import Settings
from batuta.extension import Role, listen
from batuta.kernel import Json, SystemClock

SIMULATED = "simulador"


def simulator(settings: Settings, fill: Callable[[], Awaitable[None]]) -> Role:
    """Return the role of the simulator. ``fill`` adds the demonstration to an empty database before the simulator
    accepts requests.
    """
    where = ("127.0.0.1", settings.simulador_port, "SIMULADOR_PORT")
    return Role("simulador", lambda stop: _simulate(settings, fill, where, stop), listens=where)


def simulator_settings(settings: Settings) -> Mapping[str, str]:
    """Return the settings that point to the simulated services. A setting of the operator takes precedence."""
    outside = f"http://127.0.0.1:{settings.simulador_port}"
    return {
        "EVOLUTION_API_URL": f"{outside}/evolution",
        "EVOLUTION_API_KEY": SIMULATED,
        "WEBHOOK_SECRET": SIMULATED,
        "SLACK_WEBHOOK_URL": f"{outside}/slack/alertas",
        "DEADMAN_URL": f"{outside}/ping/scheduler",
    }


def with_environment(settings: Settings, added: Mapping[str, str]) -> Settings:
    """Return the settings of a process that has ``added`` in its environment."""
    return Settings.model_validate(settings.model_dump() | {name.lower(): value for name, value in added.items()})


async def _simulate(
    settings: Settings, fill: Callable[[], Awaitable[None]], where: tuple[str, int, str], stop: asyncio.Event
) -> None:
    # Imported only by this role, because FastAPI and the simulator would cost every other role memory.
    from batuta.web import serve
    from simulador.comportamento import Comportamento
    from simulador.main import create_app, keeper

    listening = listen(*where)
    if settings.is_demo:
        await fill()
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
