"""The api role: uvicorn, started and stopped by us, so that a stop drains in the same order everywhere."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import uvicorn


class Server(uvicorn.Server):
    """Signals belong to the process, not to the server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve(api: Any, listening: socket.socket, stop: asyncio.Event, grace: timedelta) -> None:
    """Answer until ``stop``; then take no new connection, finish the open requests within ``grace``, and return.

    The application's lifespan is not run: whoever serves has opened what it needs, and told plainly if it could not.
    """
    config = uvicorn.Config(
        api,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, int(grace.total_seconds())),
    )
    server = Server(config)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        if (state := getattr(getattr(api, "state", None), "batuta", None)) is not None:
            state.draining.set()
        server.should_exit = True
        await serving
    finally:
        stopping.cancel()
