"""What a process without an API of its own shows of itself: ``/metrics`` and ``/health`` at BATUTA_METRICS_PORT."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from batuta.config import EngineSettings
from batuta.engine import Batuta
from batuta.kernel.errors import ConfigError
from batuta.supervise.address import listen
from batuta.supervise.supervisor import Supervisor

GRACE = timedelta(seconds=1)


@asynccontextmanager
async def shown(work: Batuta, settings: EngineSettings, role: str, supervisor: Supervisor) -> AsyncIterator[None]:
    """While the block runs. Without the setting: nothing."""
    port = settings.batuta_metrics_port
    if port is None:
        yield
        return
    try:
        from batuta.web.api import create_side_api
        from batuta.web.server import serve
    except ModuleNotFoundError as missing:
        problem, next_step = f"BATUTA_METRICS_PORT needs {missing.name}", "pip install 'batuta[web]'"
        raise ConfigError(problem=problem, next_step=next_step) from None
    listening = listen(settings.host, port, "BATUTA_METRICS_PORT")
    stop = asyncio.Event()
    api = create_side_api(work, settings, role, lambda: supervisor.running)
    serving = asyncio.create_task(serve(api, listening, stop, GRACE))
    try:
        yield
    finally:
        stop.set()
        await serving


def port_of_child(settings: EngineSettings, role: str, number: int = 1) -> dict[str, str]:
    """Under `batuta up` all share one environment: the parent has the port, the scheduler the next, the workers those after."""
    port = settings.batuta_metrics_port
    after = {"scheduler": 1, "worker": 1 + number}.get(role)
    return {} if port is None else {"BATUTA_METRICS_PORT": "" if after is None else str(port + after)}
