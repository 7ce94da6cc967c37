import asyncio
import functools
import gc
import itertools
import os
import shutil
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpcore2
import pytest
from hypothesis import settings

from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.stores import connect
from batuta.stores.sql.database import Database
from batuta.stores.sql.migrations import Migrator, engine_migrations
from batuta.supervise.supervisor import Supervisor
from batuta.testing import EventRecorder, FakeClock
from tests.copies import Copies
from tests.engine.dispatch.scheduling import House
from tests.engine.queue.queue_bench import Bench
from tests.patience import PATIENT
from tests.pooler import TransactionPooler, through
from tests.servers import REQUIRED, Postgres, in_memory, postgres_server, redis_server

pytest_plugins = ["tests.command", "tests.leaks"]
# System settings of the test run: programs without their own settings take this zone, language and mode.
os.environ.update({"TZ": "America/Sao_Paulo", "LANG": "pt_BR.UTF-8", "APP_ENV": "development"})
# Production withholds the messages of exceptions; the tests look for leaks as in production.
os.environ["BATUTA_SHOW_ERRORS"] = "0"
# The servers of the tests have no certificate, and a first attempt with encryption would double the time of a
# connection.
os.environ["PGSSLMODE"] = "disable"
# Every run uses the same examples, so that a failure comes from the change. `--hypothesis-profile explore` searches for
# new ones. There is no deadline per example, because on a busy machine any example can take a second.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("explore", max_examples=2_000, deadline=None)
settings.load_profile("steady")
# All HTTP clients share one set of certificates, because each would take 20 ms to load them.
vars(httpcore2)["default_ssl_context"] = functools.cache(httpcore2.default_ssl_context)
# Every request to an ASGI application tries to import sniffio. Without this entry, each of these imports would search
# all folders.
sys.modules.setdefault("sniffio", None)  # type: ignore[arg-type]
HERE = Path(__file__).parent
JULIA, FAULTS, TYPING = HERE / "julia", HERE / "faults", HERE / "typing"
# Test modules that also run through a transaction pooler.
THROUGH_A_POOLER = {
    "test_backup",
    "test_database_port",
    "test_queue",
    "test_tasks",
    "test_scheduler",
    "test_migrations",
}
# Test classes that do not run through the pooler, because their statements are those of the engine's own table.
DIRECTLY_ONLY = {"TestAnApplicationsTable"}


@dataclass(frozen=True)
class Contents:
    """Schema and rows of a template database, which tests copy. ``more`` creates additional tables. ``fill`` writes
    rows, and is only for test modules that do not change these rows.
    """

    tables: str
    more: str = ""
    fill: Callable[[Database], Awaitable[None]] | None = None


class TemplateDatabases:
    """Databases that tests copy: one SQLite file and one PostgreSQL template for each ``Contents``, created on first
    use.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Contents, Path] = {}
        self._templates: dict[Contents, str] = {}

    def file(self, contents: Contents) -> Path:
        if contents not in self._files:
            file = self._folder / f"{len(self._files)}.db"
            _create_contents(f"sqlite:///{file}", contents)
            self._files[contents] = file
        return self._files[contents]

    def on(self, server: Postgres, contents: Contents) -> str:
        if contents not in self._templates:
            name = server.create()
            _create_contents(server.url(name), contents)
            self._templates[contents] = name
        return self._templates[contents]


def _create_contents(url: str, contents: Contents) -> None:
    from app.composition.catalogue import migrations

    async def grow() -> None:
        database = connect(url, SystemClock())
        await database.open()
        wanted = [*engine_migrations(), *(migrations() if contents.tables == "julia" else ())]
        await Migrator(database, wanted, SystemClock(), EventRecorder()).migrate()
        if contents.more:
            await database.script(contents.more)
        if contents.fill is not None:
            await contents.fill(database)
        await database.close()

    # Runs in a thread, because the fixture may be requested while an event loop runs.
    with ThreadPoolExecutor(1) as elsewhere:
        elsewhere.submit(asyncio.run, grow()).result()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def events() -> EventRecorder:
    return EventRecorder()


@pytest.fixture
def ids(clock: FakeClock) -> Ids:
    return Ids(clock)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    with postgres_server() as server:
        yield server or lack("PostgreSQL", "set BATUTA_PG_BIN to the folder that holds initdb")


@pytest.fixture(scope="session")
def copies(postgres: Postgres) -> Iterator[Copies]:
    kept = Copies(postgres)
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with redis_server() as url:
        yield url or lack("Redis", "install redis-server")


@pytest.fixture(scope="session")
def template_databases(tmp_path_factory: pytest.TempPathFactory) -> TemplateDatabases:
    return TemplateDatabases(tmp_path_factory.mktemp("grown"))


@pytest.fixture(scope="session")
def pooler(postgres: Postgres) -> Iterator[TransactionPooler]:
    """Start a transaction pooler in front of the PostgreSQL server. Each transaction may run in a different session."""
    with TransactionPooler(postgres.port) as started:
        yield started


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database. The test runs once for each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/test.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(
    request: pytest.FixtureRequest, template_databases: TemplateDatabases, tmp_path: Path
) -> Iterator[str]:
    """The URL of a database with the engine's tables. The test runs once for each kind of database. Julia's tables
    exist too if the test is in tests/julia or uses the fixture ``julia``.

    The database is a copy of a migrated one, because migrating takes ten times as long. The fixture ``full`` adds the
    rows that the test module's ``fill`` writes, and the mark ``tables`` adds the tables created by its statements. For
    modules in ``THROUGH_A_POOLER``, the kind "pooler" is PostgreSQL behind a transaction pooler.
    """
    julia = JULIA in request.path.parents or "julia" in request.fixturenames
    tables = "julia" if julia else "engine"
    more = request.node.get_closest_marker("tables")
    fill = request.module.fill if "full" in request.fixturenames else None
    contents = Contents(tables, more.args[0] if more else "", fill)
    if request.param == "sqlite":
        shutil.copyfile(template_databases.file(contents), tmp_path / "test.db")
        yield f"sqlite:///{tmp_path}/test.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    template = template_databases.on(server, contents)
    if request.param == "postgres":
        with request.getfixturevalue("copies").of(template) as url:
            yield url
        return
    with server.database(like=template) as url:  # the pooler keeps its sessions, so it gets a new name for each test
        yield through(request.getfixturevalue("pooler").port, url, "pooler=transaction")


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = connect(database_url, SystemClock(), PATIENT)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def julia(database: Database) -> Database:
    """The database with Julia's tables in addition to the engine's."""
    return database


@pytest.fixture
def work_url(template_databases: TemplateDatabases, tmp_path: Path) -> str:
    """The URL of a SQLite file with the engine's tables, for a test that does not depend on the kind of database."""
    shutil.copyfile(template_databases.file(Contents("engine")), tmp_path / "work.db")
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
def julia_url(template_databases: TemplateDatabases, tmp_path: Path) -> str:
    """The URL of a SQLite file with Julia's tables, for a test that does not depend on the kind of database."""
    shutil.copyfile(template_databases.file(Contents("julia")), tmp_path / "julia.db")
    return f"sqlite:///{tmp_path}/julia.db"


@pytest.fixture
def house(database: Database, clock: FakeClock, events: EventRecorder) -> House:
    """A test setup with one database, on which the test can start any number of schedulers."""
    return House(database, clock, events)


@pytest.fixture
def supervisor(clock: FakeClock, events: EventRecorder) -> Supervisor:
    return Supervisor(clock, events, chance=lambda: 1.0)


@pytest.fixture
async def bench(database: Database, clock: FakeClock, ids: Ids, events: EventRecorder) -> Bench:
    return Bench(database, clock, ids, events)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests that have their own timeout first, because they take a long time. Alternate tests that wait with
    tests that compute.

    Fault tests mostly wait, so they are spread evenly among the other test files. The typing tests come last: by then
    the `check` command, which runs concurrently, has filled mypy's cache.
    """
    files = list(dict.fromkeys(item.path for item in items))
    waiting = [file for file in files if FAULTS in file.parents]
    computing = [file for file in files if FAULTS not in file.parents]
    place = {file: (n + 0.5) / len(group) for group in (waiting, computing) for n, file in enumerate(group)}
    place |= {file: 1.0 for file in files if TYPING in file.parents}
    items.sort(key=lambda item: 0 if item.get_closest_marker("timeout") else place[item.path])


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection, because each full collection would visit a million objects.

    Each test creates and drops thousands of objects, so collections are made rare. Garbage collection is off until this
    point. The imports leave a little garbage, which is not collected because a collection would take a second in each
    worker.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if metafunc.cls is not None and metafunc.cls.__name__ in DIRECTLY_ONLY:
        return
    if "database_url" in metafunc.fixturenames and module in THROUGH_A_POOLER:
        databases = pytest.mark.parametrize("database_url", ["sqlite", "postgres", "pooler"], indirect=True)
        metafunc.definition.add_marker(databases)  # a marker replaces the parameters of the fixture


def lack(server: str, next_step: str) -> NoReturn:
    if REQUIRED:
        pytest.fail(f"{server} was not found and BATUTA_REQUIRE_SERVERS=1: {next_step}", pytrace=False)
    warnings.warn(f"NOT TESTED: no {server} on this machine; {next_step}", stacklevel=2)
    pytest.skip(f"no {server}: {next_step}")


def pytest_configure() -> None:
    """Restore the default handling of Ctrl-C, which tests send, and create temporary folders in memory.

    A shell that starts the suite in the background makes the suite and its child processes ignore Ctrl-C. In memory, a
    SQLite commit need not wait for a disk. This is safe because the tests kill processes but do not simulate a power
    cut. The long fault tests use a disk, because they measure durations.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("FAULTS") != "long" and (memory := in_memory()):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the time per folder so that slow folders are noticed. Write the time per test to the file that dev.py
    specified.
    """
    spent: defaultdict[str, float] = defaultdict(float)
    each: defaultdict[str, float] = defaultdict(float)
    ran: defaultdict[str, int] = defaultdict(int)
    for report in itertools.chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            folder = Path(report.nodeid.partition("::")[0]).parts[1]
            spent[folder] += report.duration
            each[report.nodeid] += report.duration
            ran[folder] += report.when == "call"
    terminalreporter.section("time per folder")
    for folder in sorted(spent, key=spent.__getitem__, reverse=True):
        terminalreporter.write_line(f"{folder:14} {spent[folder]:7.2f} s  {ran[folder]:5d} tests")
    if file := os.environ.get("TEST_TIMES"):
        Path(file).write_text("".join(f"{seconds:.3f} {test}\n" for test, seconds in each.items()))
        bad = [report for word in ("failed", "error") for report in terminalreporter.stats.get(word, ())]
        Path(f"{file}.failed").write_text("".join(f"{test}\n" for test in dict.fromkeys(each.nodeid for each in bad)))
