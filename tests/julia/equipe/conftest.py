"""The simulator on a port of this machine, for requests of real clients."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from batuta.processes.address import listen
from batuta.testing import FakeClock
from batuta.web.api import serve
from simulador.main import create_app


@pytest.fixture
async def simulador(clock: FakeClock) -> AsyncIterator[str]:
    stop, listening = asyncio.Event(), listen("127.0.0.1", 0)
    serving = asyncio.create_task(serve(create_app(clock), listening, stop, timedelta(seconds=1)))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stop.set()
        await serving
