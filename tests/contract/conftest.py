from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.main import build
from app.settings import Settings
from batuta.kernel.ids import Ids
from batuta.stores.sql.database import Database
from batuta.testing import EventRecorder, FakeClock
from tests.contract.queue_bench import Bench
from tests.contract.sending import LIMITS, OPEN, PHONE, TRUSTED, Office
from tests.julia import add_chip, add_doctor, write
from tests.line import ScriptedLine

# Every statement of the engine's stores is run through a transaction pooler as well.
THROUGH_A_POOLER = {
    "test_backup",
    "test_database_port",
    "test_queue",
    "test_tasks",
    "test_scheduler",
    "test_migrations",
}
# The same statements as of the engine's own table.
DIRECTLY_ONLY = {"TestAnApplicationsTable"}


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if metafunc.cls is not None and metafunc.cls.__name__ in DIRECTLY_ONLY:
        return
    if "database_url" in metafunc.fixturenames and module in THROUGH_A_POOLER:
        databases = pytest.mark.parametrize("database_url", ["sqlite", "postgres", "pooler"], indirect=True)
        metafunc.definition.add_marker(databases)  # a marker takes the place of the fixture's own parameters


@pytest.fixture
async def office(database_url: str, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Office]:
    clock.step(OPEN - clock.now())
    journal = str(tmp_path / "optouts")
    settings = Settings(
        database_url=database_url,
        evolution_api_url="http://127.0.0.1:1",
        optout_journal=journal,
        **LIMITS,  # type: ignore[arg-type]
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
async def bench(migrated: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Bench:
    return Bench(migrated, clock, ids, events)
