"""Settings that ARQ's command loads: ``arq app.workers.config.WorkerSettings``."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from app.composition.arq import worker_settings
from app.integrations.redis.arq import require_redis
from app.main import build
from app.settings import Settings
from batuta import BatutaError
from batuta.config import environment, load_settings

if TYPE_CHECKING:
    WorkerSettings: type


def __getattr__(name: str) -> object:
    if name == "WorkerSettings":
        return _make()
    raise AttributeError(name)


def _make() -> type:
    """Build the settings. If this fails, end the process with a one-sentence error instead of the traceback that
    ``arq`` would print.
    """
    try:
        settings = load_settings(Settings, environment(), Path(".env"))
        made = worker_settings(build(settings))
        asyncio.run(require_redis(settings))
    except BatutaError as error:
        raise SystemExit(f"julia: {error}") from None
    # ARQ uses the event loop of its thread, but asyncio.run has removed that loop.
    asyncio.set_event_loop(asyncio.new_event_loop())
    return made
