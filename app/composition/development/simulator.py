"""Run the simulators of external services as roles of `batuta up` in development. The simulated Telegram runs in a
process of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from app.composition.development.demo import LISTENER, MORE_SENDERS
from app.settings import Settings
from batuta.extension import Role, listen
from batuta.kernel import Clock, Json, SystemClock
from batuta.loops import LoopPolicy

if TYPE_CHECKING:
    from app.composition.development.demonstration import Demonstration

SIMULATED = "simulador"
# Limits for all messages together, raised because the demonstration sends the messages of a day within minutes. The
# limits of each type of message still apply.
DEMO_LIMITS = {"RATE_LIMIT_PER_HOUR": "60", "RATE_LIMIT_PER_DAY": "500"}
LOOP = LoopPolicy(every=timedelta(seconds=1), stuck_after=timedelta(minutes=2), max_failures=1000)


def simulator(settings: Settings, may_play: Callable[[], Awaitable[bool]]) -> Role:
    """Return the simulator role. ``may_play`` returns whether the demonstration may use the database."""
    where = ("127.0.0.1", settings.simulador_port, "SIMULADOR_PORT")
    return Role("simulador", lambda stop: _simulate(settings, may_play, where, stop), listens=where)


def telegram_simulator(settings: Settings) -> Role:
    """Return the role of the simulated Telegram."""
    where = ("127.0.0.1", settings.telegram_simulador_port, "TELEGRAM_SIMULADOR_PORT")
    return Role("simulador_telegram", lambda stop: _simulate_telegram(settings, where, stop), listens=where)


def simulator_settings(settings: Settings) -> Mapping[str, str]:
    """Return settings that point to the simulated services. The operator's own settings take precedence."""
    outside = f"http://127.0.0.1:{settings.simulador_port}"
    return {
        "EVOLUTION_API_URL": f"{outside}/evolution",
        "EVOLUTION_API_KEY": SIMULATED,
        "WEBHOOK_SECRET": SIMULATED,
        "SLACK_WEBHOOK_URL": f"{outside}/slack/alertas",
        "DEADMAN_URL": f"{outside}/ping/scheduler",
        "TELEGRAM_SIMULADOR_URL": f"http://127.0.0.1:{settings.telegram_simulador_port}/telegram",
        "TELEGRAM_SESSION_KEYS": SIMULATED,
        **(DEMO_LIMITS if settings.is_demo else {}),
    }


def as_child(settings: Settings) -> Settings:
    """Return the settings for a child process of `batuta up`. In development, a setting that the operator has not set
    points to the simulated service.
    """
    if not settings.in_development:
        return settings
    added = simulator_settings(settings).items()
    return with_environment(
        settings, {name: value for name, value in added if name.lower() not in settings.model_fields_set}
    )


def with_environment(settings: Settings, added: Mapping[str, str]) -> Settings:
    """Return the settings that a process would load if the environment variables in ``added`` were also set."""
    return Settings.model_validate(settings.model_dump() | {name.lower(): value for name, value in added.items()})


async def _simulate(
    settings: Settings, may_play: Callable[[], Awaitable[bool]], where: tuple[str, int, str], stop: asyncio.Event
) -> None:
    # Only this role imports FastAPI, the simulator and the HTTP client, because the import would cost other processes
    # memory.
    from app.integrations.evolution.client import EVENTS, SECRET_HEADER
    from batuta.web import serve
    from simulador.comportamento import Comportamento
    from simulador.main import create_app, keeper

    listening = listen(*where)
    is_shown = settings.is_demo and await may_play()
    secret = settings.webhook_secret.get_secret_value() if settings.webhook_secret else SIMULATED
    webhook: dict[str, Json] = {
        "enabled": True,
        "url": settings.webhook_address,
        "headers": {SECRET_HEADER: secret},
        "events": list(EVENTS),
    }
    lively = Comportamento(conversation=True, group_messages_per_minute=6)
    clock, grace = SystemClock(), timedelta(seconds=5)
    app = create_app(clock, seed=new_seed(clock), at_rest=lively, webhook=webhook, instances=[LISTENER, *MORE_SENDERS])
    loops = keeper(app, clock)
    if is_shown:
        loops.add(_demonstration(settings, clock), LOOP)
    await asyncio.gather(serve(app, listening, stop, grace), loops.run(stop, grace))


def new_seed(clock: Clock) -> int:
    """Return a seed for the simulated WhatsApp gateway. The gateway derives its message ids from the seed. Each start
    needs a new seed, because the database may contain message ids from an earlier start.
    """
    return int(clock.now().timestamp() * 1000)


async def _simulate_telegram(settings: Settings, where: tuple[str, int, str], stop: asyncio.Event) -> None:
    from batuta.web import serve
    from simulador.telegram.api import create_app

    app = create_app(SystemClock(), journal=_telegram_journal(settings))
    await serve(app, listen(*where), stop, timedelta(seconds=5))


def _telegram_journal(settings: Settings) -> Path | None:
    """Return the path of the file in which the simulated Telegram keeps its state across restarts. The file is next to
    the SQLite database. Return None for any other database.
    """
    kind, _, file = settings.database_url.get_secret_value().partition(":///")
    return Path(f"{file}.telegram") if kind == "sqlite" and file else None


def _demonstration(settings: Settings, clock: Clock) -> "Demonstration":
    import httpx2

    from app.composition.development.demonstration import Demonstration

    token = settings.api_token
    headers = {} if token is None else {"Authorization": f"Bearer {token.get_secret_value()}"}
    api = httpx2.AsyncClient(base_url=settings.api_url, headers=headers, trust_env=False, timeout=30)
    here = f"http://127.0.0.1:{settings.simulador_port}"
    control = httpx2.AsyncClient(base_url=here, trust_env=False, timeout=30)
    there = f"http://127.0.0.1:{settings.telegram_simulador_port}"
    telegram = httpx2.AsyncClient(base_url=there, trust_env=False, timeout=30)
    return Demonstration(api, control, telegram, clock, ZoneInfo(settings.timezone))
