"""PostgreSQL behind a transaction pooler: the tests' own pooler always, and PgBouncer if it is installed."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from pydantic import SecretStr

from batuta import Batuta
from batuta.cli.commands.doctor import examine_database
from batuta.config import EngineSettings
from batuta.engine import backup
from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import InvalidSetting, PoolerNotDeclared, RestoreRefused, StoreTimeout, StoreUnavailable
from batuta.stores import connect
from batuta.stores.postgres.driver import PostgresDatabase
from batuta.stores.sql.database import ChangeListener, ConnectionLimits, Database, Query, Reading
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.tasks.task import TaskContext
from batuta.texts import Texts
from tests.conftest import lack
from tests.pooler import TransactionPooler, through
from tests.servers import Postgres, pgbouncer
from tests.stored import opened

SESSION = (
    "application_name",
    "timezone",
    "plan_cache_mode",
    "jit",
    "statement_timeout",
    "lock_timeout",
    "idle_in_transaction_session_timeout",
)


def query(text: str) -> Query:
    return in_dialect(query_of("test", text, writes=not text.startswith("SELECT")), "postgres")


SETTINGS = query("SELECT " + ", ".join(f"current_setting('{name}') AS {name}" for name in SESSION))
SESSION_NOW = query("SELECT pg_backend_pid() AS pid")
NAMED = query("SELECT count(*) AS n FROM pg_prepared_statements WHERE name <> ''")


@pytest.fixture(scope="module", params=["ours", "ours, deaf", "pgbouncer", "pgbouncer, deaf"])
def pooler_port(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[int]:
    """Return the port of a pooler that rejects our startup parameters. A ``deaf`` pooler accepts the parameters but
    ignores them.
    """
    ignored = SESSION if "deaf" in request.param else ()
    if request.param.startswith("ours"):
        with TransactionPooler(postgres.port, frozenset(ignored)) as pooler:
            yield pooler.port
        return
    with pgbouncer(postgres.port, ignored) as port:
        yield port or lack("PgBouncer", "install pgbouncer")


@pytest.fixture
async def pooled(pooler_port: int, postgres_url: str) -> AsyncIterator[PostgresDatabase]:
    database = connect(through(pooler_port, postgres_url), SystemClock())
    assert isinstance(database, PostgresDatabase)
    async with opened(database):
        yield database


@asynccontextmanager
async def listening(database: Database, heard: "asyncio.Queue[str | None]") -> AsyncIterator[ChangeListener]:
    listener = await database.listen(heard.put_nowait)
    try:
        yield listener
    finally:
        await listener.close()


async def test_undeclared_pooler_is_detected_by_the_first_connection(pooled: PostgresDatabase) -> None:
    assert pooled.server.is_pooled is True
    assert [row["pid"] > 0 for row in await pooled.all(SESSION_NOW)] == [True]


async def test_test_pooler_gives_each_transaction_another_session(pooler: TransactionPooler, postgres_url: str) -> None:
    async with opened(connect(through(pooler.port, postgres_url), SystemClock())) as database:
        sessions = [(await database.all(SESSION_NOW))[0]["pid"] for _ in range(6)]
    assert all(one != next for one, next in itertools.pairwise(sessions))


async def test_server_without_a_pooler_is_detected(postgres_url: str) -> None:
    database = connect(postgres_url, SystemClock())
    assert isinstance(database, PostgresDatabase)
    await database.open()
    await database.close()
    assert database.server.is_pooled is False


async def test_each_transaction_has_its_limits_and_leaves_none_to_the_next(
    pooled: PostgresDatabase, pooler_port: int, postgres_url: str
) -> None:
    expected = ["batuta", "UTC", "force_generic_plan", "off", "30s", "10s", "10s"]

    async def seen(within: Reading) -> list[str]:
        row = await within.one(SETTINGS)
        assert row is not None
        return [row[name] for name in SESSION]

    for _ in range(3):
        assert await seen(pooled) == expected
        async with pooled.transaction() as transaction:
            assert await seen(transaction) == expected
        async with pooled.snapshot() as snapshot:
            assert await seen(snapshot) == expected
    stranger = await asyncpg.connect(through(pooler_port, postgres_url), statement_cache_size=0)
    try:
        for _ in range(5):
            row, named = await stranger.fetchrow(SETTINGS.text), await stranger.fetchval(NAMED.text)
            assert row is not None
            assert (row["statement_timeout"], row["lock_timeout"], row["plan_cache_mode"]) == ("0", "0", "auto")
            assert named == 0
    finally:
        stranger.terminate()


async def test_server_ends_a_statement_that_takes_too_long(pooler_port: int, postgres_url: str) -> None:
    limits = ConnectionLimits(statement=timedelta(seconds=1), margin=timedelta(minutes=2))
    async with opened(connect(through(pooler_port, postgres_url), SystemClock(), limits)) as database:
        with pytest.raises(StoreTimeout, match="canceling statement due to statement timeout"):
            await database.all(query("SELECT pg_sleep(200)"))
        assert len(await database.all(SESSION_NOW)) == 1


async def test_worker_runs_items_through_a_pooler(pooler_port: int, postgres_url: str) -> None:
    work = Batuta(through(pooler_port, postgres_url), timezone="UTC")
    done: list[int] = []

    @work.task()
    async def count(context: TaskContext, n: int) -> None:
        done.append(n)

    async with work:
        assert work.connections.way == "pooler_polled"
        await asyncio.gather(*(work.enqueue(count, n) for n in range(40)))
        assert await work.work_once("default", 100, at_a_time=20) == 40
        await work.beats.beat("one", "worker", {})
        row = await work.liveness.one(SETTINGS)
    assert sorted(done) == list(range(40))
    assert row is not None
    assert (row["application_name"], row["statement_timeout"]) == ("batuta-liveness", "6s")


@pytest.mark.parametrize(
    ("has_direct", "way", "step"),
    [(False, "way_pooler_polled", "DATABASE_DIRECT_URL"), (True, "way_pooler_direct", None)],
)
async def test_doctor_reports_how_the_database_is_reached(
    pooler: TransactionPooler, postgres_url: str, has_direct: bool, way: str, step: str | None
) -> None:
    direct = SecretStr(postgres_url) if has_direct else None
    work = Batuta(through(pooler.port, postgres_url), settings=EngineSettings(database_direct_url=direct))
    texts = Texts("en")
    found = {finding.what: finding.next_step for finding in await examine_database(work, texts)}
    assert texts(f"doctor.{way}") in found
    assert step is None or step in str(found[texts(f"doctor.{way}")])


async def test_tables_are_polled_each_second_without_a_direct_address(pooled: PostgresDatabase) -> None:
    heard: asyncio.Queue[str | None] = asyncio.Queue()
    async with listening(pooled, heard), asyncio.timeout(60):
        assert [await heard.get(), await heard.get()] == [None, None]


async def test_listener_hears_pooled_writes_at_once_through_the_direct_address(
    pooler_port: int, postgres_url: str
) -> None:
    settings = EngineSettings(database_direct_url=SecretStr(postgres_url))
    async with Batuta(through(pooler_port, postgres_url), settings=settings) as work:
        assert work.connections.way == "pooler_direct"
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        async with listening(work.database, heard), asyncio.timeout(60):
            await work.database.all(query("SELECT pg_notify('batuta', 'default')"))
            assert await heard.get() == "default"


async def test_backup_and_restore_work_through_a_pooler(pooler_port: int, postgres_url: str, tmp_path: Path) -> None:
    def made() -> Batuta:
        work = Batuta(through(pooler_port, postgres_url))
        work.task(name="count")(_nothing)
        return work

    async with made() as work:
        kept = await work.enqueue("count")
        await backup.take(made(), tmp_path / "backup", lambda what, count: None, by="ana")
        await work.enqueue("count")
    async with asyncio.timeout(60):
        while True:  # the pooler closes its connections to the server a moment after ours
            with suppress(RestoreRefused):
                await backup.restore(
                    made(), tmp_path / "backup", by="ana", force=False, progress=lambda what, count: None
                )
                break
    async with made() as work:
        rows = await work.database.all(query("SELECT id FROM tasks"))
    assert [row["id"] for row in rows] == [kept]


async def _nothing(context: TaskContext) -> None: ...


@pytest.mark.parametrize("ignored", [(), SESSION])
async def test_direct_address_of_a_transaction_pooler_is_reported(
    postgres: Postgres, postgres_url: str, ignored: tuple[str, ...]
) -> None:
    with TransactionPooler(postgres.port, frozenset(ignored)) as pooler:
        url = through(pooler.port, postgres_url)
        async with opened(connect(url, SystemClock(), direct_url=url)) as database:
            with pytest.raises(StoreUnavailable, match="correct DATABASE_DIRECT_URL"):
                await database.listen(lambda name: None)


async def test_direct_address_may_be_a_session_pooler(pooler_port: int, postgres: Postgres, postgres_url: str) -> None:
    with pgbouncer(postgres.port, SESSION, mode="session") as port:
        if port is None:
            lack("PgBouncer", "install pgbouncer")
        direct = through(port, postgres_url)
        heard: asyncio.Queue[str | None] = asyncio.Queue()
        async with (
            opened(connect(through(pooler_port, postgres_url), SystemClock(), direct_url=direct)) as database,
            listening(database, heard) as listener,
            asyncio.timeout(60),
        ):
            await listener.probe()
            await database.all(query("SELECT pg_notify('batuta', 'default')"))
            assert await heard.get() == "default"


async def test_pooler_declared_as_none_is_reported_with_the_setting_to_change(
    pooler: TransactionPooler, postgres: Postgres, postgres_url: str
) -> None:
    refused = connect(through(pooler.port, postgres_url, "pooler=none"), SystemClock())
    with pytest.raises(StoreUnavailable, match="startup parameter"):
        await refused.open()
    with TransactionPooler(postgres.port, frozenset(SESSION)) as deaf:
        async with opened(connect(through(deaf.port, postgres_url, "pooler=none"), SystemClock())) as database:
            with pytest.raises(PoolerNotDeclared, match=r"add \?pooler=transaction"):
                for _ in range(3):
                    await database.all(SESSION_NOW)


@pytest.mark.parametrize(
    ("url", "direct", "says"),
    [
        ("postgresql://host/db?pooler=session", None, "neither transaction nor none"),
        ("postgresql://host/db", "mysql://host/db", "begin with postgresql://"),
        ("postgresql://host/db", "postgresql://host/db?pooler=transaction", "bypass the pooler"),
        ("sqlite:///work.db", "postgresql://host/db", "only with PostgreSQL in DATABASE_URL"),
    ],
)
def test_contradictory_settings_are_refused(url: str, direct: str | None, says: str) -> None:
    with pytest.raises(InvalidSetting, match=says):
        connect(url, SystemClock(), direct_url=direct)


def test_pooler_options_are_not_sent_to_the_server() -> None:
    database = connect("postgresql://u:p@host:6543/db?sslmode=require&pooler=transaction", SystemClock())
    assert isinstance(database, PostgresDatabase)
    assert database.server.url == "postgresql://u:p@host:6543/db?sslmode=require"
    assert database.server.is_pooled is True
