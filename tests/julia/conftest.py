import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from app.contexts.vagas.revisao import Revisao
from app.main import build
from app.settings import Settings
from batuta.processes.address import listen
from batuta.testing import FakeClock
from batuta.web.api import serve
from simulador.main import create_app
from tests.julia.envio.sending import LIMITS, OPEN, PHONE, TRUSTED, Office
from tests.julia.grupos.bancada import Bancada, bancada
from tests.julia.line import ScriptedLine
from tests.julia.tables import add_chip, add_doctor, write


@pytest.fixture
async def office(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Office]:
    clock.step(OPEN - clock.now())
    journal = str(tmp_path / "optouts")
    settings = Settings(
        database_url=database_url,
        evolution_api_url="http://127.0.0.1:1",
        optout_journal=journal,
        **LIMITS,
    )
    work = build(settings, clock=clock).work
    async with work:
        yield Office(work, clock, ScriptedLine(clock), settings)


@pytest.fixture
async def doctor(office: Office) -> str:
    return await add_doctor(office.work.database, PHONE, now=office.clock.now())


@pytest.fixture
async def chip(office: Office) -> str:
    id = await add_chip(office.work.database, "julia-sim")
    await write(office.work.database, TRUSTED)
    return id


@pytest.fixture
async def mesa(database_url: str, clock: FakeClock) -> AsyncIterator[Bancada]:
    """The groups pipeline with a reader that understands only simple lines. Test files that test another reader define
    their own fixture.
    """
    async with bancada(database_url, clock) as bench:
        yield bench


@pytest.fixture
def revisao(mesa: Bancada) -> Revisao:
    return mesa.groups.revisao


@pytest.fixture
async def simulador(clock: FakeClock) -> AsyncIterator[str]:
    """The address of a simulator that listens on a local port for requests from real clients."""
    stop, listening = asyncio.Event(), listen("127.0.0.1", 0)
    serving = asyncio.create_task(serve(create_app(clock), listening, stop, timedelta(seconds=1)))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stop.set()
        await serving
