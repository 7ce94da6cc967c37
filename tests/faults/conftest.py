import asyncio
import shutil
from collections.abc import Coroutine, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from batuta import stores
from batuta.stores import connections
from tests.conftest import Contents, TemplateDatabases
from tests.faults import waiting
from tests.faults.figures import LONG
from tests.patience import PATIENT
from tests.servers import Postgres, postgres_binaries

# Modules whose processes run Julia.
JULIA = (
    "test_send",
    "test_handoff",
    "test_import",
    "test_telegram",
    "test_vacancy",
    "test_queue_grupos",
    "test_queue_arq",
)
# Tests that need the long form.
collect_ignore = [] if LONG else ["test_scheduler_long.py", "test_send_demo.py"]


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("markexpr") == "calm":
        waiting.expect_calm()


@pytest.fixture(autouse=True)
def patient_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengthen the connection timeouts in the test's own process. The processes under test keep the product's
    timeouts.
    """
    for module in (stores, connections):
        monkeypatch.setattr(module, "ConnectionLimits", partial(replace, PATIENT))
    monkeypatch.setattr(connections, "ASIDE", PATIENT)


@pytest.fixture
def places(
    request: pytest.FixtureRequest, tmp_path: Path, template_databases: TemplateDatabases
) -> Iterator[dict[str, Path]]:
    """One migrated database of each available kind, with a folder for its files. The result maps each database URL to
    its folder.
    """
    contents = Contents("julia" if request.module.__name__.rpartition(".")[2].startswith(JULIA) else "engine")
    found = {f"sqlite:///{tmp_path}/sqlite/test.db": tmp_path / "sqlite"}
    (tmp_path / "sqlite").mkdir()
    shutil.copyfile(template_databases.file(contents), tmp_path / "sqlite" / "test.db")
    if postgres_binaries() is None:
        yield found
        return
    (tmp_path / "postgresql").mkdir()
    server: Postgres = request.getfixturevalue("postgres")
    with server.database(like=template_databases.on(server, contents)) as url:
        yield {**found, url: tmp_path / "postgresql"}


def one_of(places: dict[str, Path], kind: str) -> dict[str, Path]:
    """Return the databases on which a fault test runs. In the short form of the tests, one database of the given kind
    is enough, because the test exercises the same mechanism on all kinds. In the long form (``FAULTS=long``), return
    all databases.
    """
    return places if LONG else {url: folder for url, folder in places.items() if url.startswith(kind)} or places


async def together(*runs: Coroutine[Any, Any, None]) -> None:
    """Execute the cases of a fault test. In the short form of the tests, the cases run concurrently, because they
    mostly wait. In the long form (``FAULTS=long``), they run one after another, so that the figures are accurate.
    """
    if LONG:
        try:
            for run in runs:
                await run
        finally:
            for run in runs:
                run.close()
        return
    for ending in await asyncio.gather(*runs, return_exceptions=True):
        if ending is not None:
            raise ending
