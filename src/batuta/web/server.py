"""The api role: uvicorn with the shutdown phases of ``supervise.shutdown``."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import uvicorn

from batuta.kernel.clock import SystemClock
from batuta.supervise.shutdown import Phase, Shutdown


class Server(uvicorn.Server):
    """Signals belong to the process, not to the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(api: Any, listening: socket.socket, stop: asyncio.Event, grace: timedelta) -> None:
    """Answer until ``stop``; then accept no new connection, finish the open requests within ``grace``, and return.

    Requests that are still open at the end of the finish phase are cancelled; the rest of the grace is for their clean-up. The
    application's lifespan is not run: the caller has opened what the application needs.
    """
    clock = SystemClock()
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(Shutdown.begin(clock, grace).length(Phase.FINISH).total_seconds())),
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if (state := getattr(getattr(api, "state", None), "batuta", None)) is not None:
            state.draining.set()
        shutdown = Shutdown.begin(clock, grace)
        server.should_exit = True
        await serving
        if cancelled := server.server_state.tasks:
            await asyncio.wait(cancelled, timeout=shutdown.left().total_seconds())
    finally:
        stopping.cancel()
