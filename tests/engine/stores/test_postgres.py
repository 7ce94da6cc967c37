"""Failures of PostgreSQL that cannot occur with SQLite, because it has no server."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest

from batuta.kernel.clock import SystemClock
from batuta.kernel.errors import (
    ConcurrentStatements,
    InvalidSetting,
    StatementRefused,
    StoreTimeout,
    StoreUnavailable,
)
from batuta.stores import connect
from batuta.stores.postgres.driver import PostgresDatabase, to_batuta_error
from batuta.stores.postgres.server import PostgresServer
from batuta.stores.sql.database import ConnectionLimits
from batuta.stores.sql.queries import in_dialect, query_of
from tests.conftest import lack
from tests.faults.proxy import proxy
from tests.servers import Postgres, free_port, postgres_server
from tests.stored import opened

ONE = in_dialect(query_of("one", "SELECT 1 AS n", writes=False), "postgres")
CUT_OFF = in_dialect(
    query_of(
        "cut",
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()",
        writes=True,
    ),
    "postgres",
)


def _database(url: str, limits: ConnectionLimits) -> PostgresDatabase:
    return PostgresDatabase(PostgresServer(url), limits)


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[PostgresDatabase]:
    async with opened(_database(postgres_url, ConnectionLimits())) as database:
        yield database


@pytest.fixture
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL server that only this test uses and may stop."""
    with postgres_server() as started:
        yield started or lack("PostgreSQL", "set BATUTA_PG_BIN to the folder that holds initdb")


async def test_cancelled_statement_returns_soon_although_the_server_hangs(postgres_url: str) -> None:
    port = urlsplit(postgres_url).port
    assert port is not None
    async with (
        proxy(port) as between,
        opened(_database(postgres_url.replace(f":{port}", f":{between.port}"), ConnectionLimits())) as database,
    ):
        try:
            between.freeze()
            alone = asyncio.create_task(database.all(ONE))
            with_others = asyncio.create_task(_ask_in_a_transaction(database))
            await asyncio.wait([alone, with_others], timeout=0.1)
            alone.cancel()
            with_others.cancel()
            done, _ = await asyncio.wait([alone, with_others], timeout=20)  # the limit of a statement is 30 s
            assert done == {alone, with_others}
        finally:
            between.heal()


async def _ask_in_a_transaction(database: PostgresDatabase) -> None:
    async with database.transaction() as transaction:
        await transaction.all(ONE)


async def test_database_recovers_after_a_server_restart(own_server: Postgres) -> None:
    async with opened(_database(own_server.url(), ConnectionLimits())) as database:
        await database.all(ONE)
        await asyncio.to_thread(own_server.stop)
        with pytest.raises(StoreUnavailable):
            await database.all(ONE)
        await asyncio.to_thread(own_server.start)
        assert [row["n"] for row in await database.all(ONE)] == [1]


async def test_lost_connection_fails_only_its_own_transaction(server: PostgresDatabase, postgres_url: str) -> None:
    await server.script("CREATE TABLE things (name TEXT)")
    put = in_dialect(query_of("put", "INSERT INTO things VALUES (:name)", writes=True), "postgres")
    async with opened(connect(postgres_url, SystemClock())) as executioner:
        with pytest.raises(StoreUnavailable):
            async with server.transaction() as transaction:
                await transaction.run(put, name="a")
                await asyncio.create_task(executioner.all(CUT_OFF))
                await transaction.run(put, name="b")
    await server.run(put, name="c")
    rows = await server.all(in_dialect(query_of("all", "SELECT name FROM things", writes=False), "postgres"))
    assert [row["name"] for row in rows] == ["c"]


async def test_commit_counts_although_releasing_its_connection_fails(
    server: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await server.script("CREATE TABLE things (name TEXT)")
    put = in_dialect(query_of("put", "INSERT INTO things VALUES (:name)", writes=True), "postgres")
    release = asyncpg.Pool.release

    async def cut(pool: Any, connection: Any, **named: Any) -> None:
        await release(pool, connection, **named)
        raise ConnectionResetError

    monkeypatch.setattr(asyncpg.Pool, "release", cut)
    async with server.transaction() as transaction:
        await transaction.run(put, name="a")
    assert await server.run(put, name="b") == 1
    assert [row["n"] for row in await server.all(ONE)] == [1]


async def test_connection_whose_rollback_fails_returns_to_the_pool(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = asyncpg.Connection.execute

    async def confused(connection: Any, query: str, *values: Any, **named: Any) -> str:
        if query == "ROLLBACK":
            raise asyncpg.InternalClientError("got result for unknown protocol state")
        return await execute(connection, query, *values, **named)

    async with opened(_database(postgres_url, ConnectionLimits(pool=2))) as small:
        with monkeypatch.context() as patch:
            patch.setattr(asyncpg.Connection, "execute", confused)
            for _ in range(3):  # more often than the number of connections in the pool
                with pytest.raises(RuntimeError, match="its own"):
                    async with small.transaction() as transaction:
                        await transaction.all(ONE)
                        raise RuntimeError("its own")
        assert [row["n"] for row in await small.all(ONE)] == [1]
        async with small.transaction() as transaction:
            await transaction.all(ONE)


async def test_statement_times_out_when_every_connection_is_taken(postgres_url: str) -> None:
    inside, leave = asyncio.Semaphore(0), asyncio.Event()

    async def sit() -> None:
        async with small.transaction() as transaction:
            await transaction.all(ONE)
            inside.release()
            await leave.wait()

    async with opened(_database(postgres_url, ConnectionLimits(pool=2, ready=2, lock=timedelta(seconds=1)))) as small:
        sitting = [asyncio.create_task(sit()) for _ in range(2)]
        for _ in sitting:
            await inside.acquire()
        with pytest.raises(StoreTimeout, match="no connection became available"):
            await small.all(ONE)
        leave.set()
        await asyncio.gather(*sitting)
        await small.all(ONE)


async def test_wait_for_a_locked_row_has_a_limit(postgres_url: str) -> None:
    change = in_dialect(query_of("change", "UPDATE things SET name = name", writes=True), "postgres")
    async with opened(_database(postgres_url, ConnectionLimits(lock=timedelta(seconds=1), ready=2))) as impatient:
        await impatient.script("CREATE TABLE things (name TEXT); INSERT INTO things VALUES ('a')")
        async with impatient.transaction() as transaction:
            await transaction.run(change)
            with pytest.raises(StoreTimeout):
                await asyncio.create_task(impatient.run(change))


@pytest.mark.parametrize("place", ["127.0.0.1:{port}/x", "nobody.invalid/x"])
async def test_missing_server_is_one_error_without_the_password(place: str) -> None:
    url = f"postgresql://user:segredo@{place.format(port=free_port())}"
    database = connect(url, SystemClock(), ConnectionLimits(connect=timedelta(seconds=2)))
    with pytest.raises(StoreUnavailable) as refused:
        await database.open()
    assert "segredo" not in str(refused.value)
    assert "check that it is running and reachable" in str(refused.value)


async def test_missing_database_is_named(postgres: Postgres) -> None:
    database = connect(postgres.url("nowhere"), SystemClock())
    with pytest.raises(StoreUnavailable, match='database "nowhere" does not exist'):
        await database.open()


@pytest.mark.parametrize(
    "url", ["postgresql://", "postgresql://host", "postgresql://host:port/x", "postgresql://host:99999999/x"]
)
def test_invalid_address_is_refused_with_the_right_form(url: str) -> None:
    with pytest.raises(InvalidSetting, match="postgresql://user"):
        connect(url, SystemClock())


async def test_cancelling_a_statement_during_a_connect_leaves_no_stray_error(postgres_url: str) -> None:
    strays: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: strays.append(context))
    for turns in range(0, 300, 3):
        async with opened(_database(postgres_url, ConnectionLimits(pool=2))) as database:
            async with database.snapshot() as held:
                await held.all(ONE)
                leaver = asyncio.create_task(database.all(ONE))  # needs a second connection
                for _ in range(turns):
                    await asyncio.sleep(0)
                leaver.cancel()
                await asyncio.wait({leaver})
            assert [row["n"] for row in await database.all(ONE)] == [1]
    gc.collect()
    assert strays == []


async def test_server_compiles_no_statement_however_large_its_table(postgres_url: str) -> None:
    async with opened(connect(postgres_url, SystemClock())) as database:
        row = await database.one(query_of("jit", "SELECT current_setting('jit') AS jit", writes=False))
    assert row is not None
    assert row["jit"] == "off"


async def test_close_waits_only_for_the_open_transaction(
    server: PostgresDatabase,
) -> None:
    await server.script("CREATE TABLE things (name TEXT)")
    put = in_dialect(query_of("put", "INSERT INTO things VALUES (:name)", writes=True), "postgres")
    async with server.transaction() as transaction:
        await transaction.run(put, name="a")
        closing = asyncio.create_task(server.close())
        await asyncio.sleep(0)
        await transaction.run(put, name="b")
    async with asyncio.timeout(8):  # closing a connection gives up after 10 s
        await closing
    with pytest.raises(StoreUnavailable, match="not open"):
        await server.all(ONE)
    await server.open()
    row = await server.one(in_dialect(query_of("n", "SELECT count(*) AS n FROM things", writes=False), "postgres"))
    assert row is not None
    assert row["n"] == 2


async def test_statement_that_waits_for_a_connection_fails_when_the_pool_closes(postgres_url: str) -> None:
    async with opened(_database(postgres_url, ConnectionLimits(pool=1))) as small:
        async with small.transaction() as transaction:
            await transaction.all(ONE)
            waiting = asyncio.create_task(small.all(ONE))
            await asyncio.sleep(0)
            closing = asyncio.create_task(small.close())
            await asyncio.sleep(0)
        async with asyncio.timeout(8):
            await closing
            with pytest.raises(StoreUnavailable, match="closed"):
                await waiting


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("cannot perform operation: another operation is in progress", ConcurrentStatements),
        ("connection is closed", StoreUnavailable),
        ("cannot call Connection.fetch(): the underlying connection is closed", StoreUnavailable),
        ("pool is closing", StoreUnavailable),
        ("cannot call Connection.fetch(): connection has been released back to the pool", StoreUnavailable),
        ("cursor already has an open portal", StatementRefused),
    ],
)
def test_only_a_lost_connection_is_an_outage(said: str, means: type[Exception]) -> None:
    assert type(to_batuta_error(asyncpg.InterfaceError(said), "somewhere")) is means
