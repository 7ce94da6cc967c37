"""Enqueueing within transactions of other database libraries, and from synchronous code."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import django
import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connections as django_connections
from django.db import transaction as django_transaction
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from batuta import Batuta, Handle, Task, enqueue_in, enqueue_in_sync
from batuta.kernel.errors import ForeignConnection, StoreUnavailable, TaskCancelled, TaskUnknown


class Abandoned(Exception):
    """An exception that a test raises to roll a transaction back."""


@pytest.fixture
async def work(database_url: str) -> AsyncIterator[Batuta]:
    if "pooler" in database_url:
        pytest.skip("the libraries connect without the pooler")
    made = Batuta(database_url, timezone="UTC")

    @made.task(name="double")
    async def double(n: int) -> int:
        return 2 * n

    async with made:
        yield made


@pytest.fixture
def double(work: Batuta) -> Task[[int], int]:
    found: Task[[int], int] = work.task_registry.get("double")
    return found


async def check(work: Batuta, ids: list[str]) -> None:
    """Check the outcome: the committed call runs, the delayed one is queued, the rolled-back one does not exist, and
    two calls with the same key are stored once.
    """
    abandoned, first, again, later = ids
    assert first == again
    assert await work.status(abandoned) is None
    status = await work.status(later)
    assert status is not None
    assert (status.status, status.tags) == ("queued", ("mail",))
    assert await work.work_once("default", 10) == 1
    assert await work.handle(first).result(timeout=60) == 14


async def enqueue_all(connection: Any, task: Task[[int], int], *, fails: bool) -> list[str]:
    if fails:
        return [(await enqueue_in(connection, task, 3)).id]
    keyed = task.options(key="once")
    return [
        (await enqueue_in(connection, keyed, 7)).id,
        (await enqueue_in(connection, keyed, 7)).id,
        (await enqueue_in(connection, task.options(delay=86_400, tags=["mail"]), 1)).id,
    ]


def enqueue_all_sync(connection: Any, task: Task[[int], int], *, fails: bool) -> list[str]:
    if fails:
        return [enqueue_in_sync(connection, task, 3).id]
    keyed = task.options(key="once")
    return [
        enqueue_in_sync(connection, keyed, 7).id,
        enqueue_in_sync(connection, keyed, 7).id,
        enqueue_in_sync(connection, task.options(delay=86_400, tags=["mail"]), 1).id,
    ]


@asynccontextmanager
async def of_asyncpg(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def of_psycopg(url: str) -> AsyncIterator[Any]:
    async with await psycopg.AsyncConnection.connect(url) as connection, connection.transaction():
        yield connection


@asynccontextmanager
async def of_session(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))
    try:
        async with AsyncSession(engine) as session, session.begin():
            yield session
    finally:
        await engine.dispose()


@asynccontextmanager
async def of_sqlalchemy_on_psycopg(url: str) -> AsyncIterator[Any]:
    engine = create_async_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        async with engine.begin() as connection:
            yield connection
    finally:
        await engine.dispose()


@contextmanager
def of_psycopg_sync(url: str) -> Iterator[Any]:
    with psycopg.connect(url) as connection:
        yield connection


@contextmanager
def of_sqlalchemy_sync(url: str) -> Iterator[Any]:
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with Session(engine) as session, session.begin():
            yield session
    finally:
        engine.dispose()


@contextmanager
def of_sqlite3(url: str) -> Iterator[Any]:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        with connection:
            yield connection
    finally:
        connection.close()


def configure_django() -> None:
    if not django_settings.configured:
        django_settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()


@contextmanager
def of_django(url: str) -> Iterator[Any]:
    configure_django()
    if url.startswith("sqlite"):
        described = {"ENGINE": "django.db.backends.sqlite3", "NAME": url.removeprefix("sqlite:///")}
    else:
        parts = psycopg.conninfo.conninfo_to_dict(url)
        described = {"ENGINE": "django.db.backends.postgresql", "NAME": str(parts["dbname"])}
        described |= {name.upper(): str(parts[name]) for name in ("user", "password", "host", "port") if name in parts}
    django_connections.databases["default"] = described
    django_connections.configure_settings({"default": described})
    connection = django_connections.create_connection("default")
    django_connections["default"] = connection
    try:
        with django_transaction.atomic():
            yield connection
    finally:
        connection.close()


@pytest.mark.parametrize("opens", [of_asyncpg, of_psycopg, of_session, of_sqlalchemy_on_psycopg])
async def test_call_commits_with_the_transaction_of_an_async_library(
    work: Batuta, double: Task[[int], int], database_url: str, opens: Any
) -> None:
    if work.database.dialect == "sqlite":
        pytest.skip("these libraries speak PostgreSQL")
    ids: list[str] = []
    for fails in (True, False):
        try:
            async with opens(database_url) as connection:
                ids += await enqueue_all(connection, double, fails=fails)
                if fails:
                    raise Abandoned
        except Abandoned:
            continue
    await check(work, ids)


@pytest.mark.parametrize("opens", [of_psycopg_sync, of_sqlalchemy_sync, of_sqlite3, of_django])
async def test_call_commits_with_the_transaction_of_a_synchronous_library(
    work: Batuta, double: Task[[int], int], database_url: str, opens: Any
) -> None:
    if opens is (of_psycopg_sync if work.database.dialect == "sqlite" else of_sqlite3):
        pytest.skip("this library speaks to the other database")

    def enqueue() -> list[str]:
        ids: list[str] = []
        for fails in (True, False):
            try:
                with opens(database_url) as connection:
                    ids += enqueue_all_sync(connection, double, fails=fails)
                    if fails:
                        raise Abandoned
            except Abandoned:
                continue
        return ids

    await check(work, await asyncio.to_thread(enqueue))


async def test_unknown_connection_or_another_database_is_refused(work: Batuta, double: Task[[int], int]) -> None:
    with pytest.raises(ForeignConnection, match="pass a connection"):
        await enqueue_in(object(), double, 1)
    memory = sqlite3.connect(":memory:")
    with pytest.raises(ForeignConnection, match="enqueue_in_sync"):
        await enqueue_in(memory, double, 1)
    if work.database.dialect == "postgres":
        with pytest.raises(ForeignConnection, match="the application uses postgres"):
            enqueue_in_sync(memory, double, 1)
    memory.close()


async def test_synchronous_code_enqueues_on_a_connection_of_its_own(work: Batuta, double: Task[[int], int]) -> None:
    def enqueue() -> list[str]:
        return [double.enqueue_sync(7).id, double.options(key="k").enqueue_sync(8).id]

    first, second = await asyncio.to_thread(enqueue)
    assert await work.work_once("default", 10) == 2
    assert [await work.handle(id).result(timeout=60) for id in (first, second)] == [14, 16]
    with pytest.raises(RuntimeError, match="write await"):
        double.enqueue_sync(1)
    with pytest.raises(TypeError, match="missing a required argument"):
        await asyncio.to_thread(double.enqueue_sync)  # type: ignore[call-arg]


async def test_synchronous_code_waits_for_results_and_cancels(work: Batuta, double: Task[[int], int]) -> None:
    def enqueue() -> list[Handle[int]]:
        return [*double.enqueue_many_sync([[1], {"n": 2}]), double.options(delay=60).enqueue_sync(3)]

    first, second, later = await asyncio.to_thread(enqueue)
    waiting = asyncio.create_task(asyncio.to_thread(first.result_sync, 60))
    assert await work.work_once("default", 10) == 2
    assert await waiting == 2
    assert await asyncio.to_thread(second.result_sync) == 4
    assert await asyncio.to_thread(later.cancel_sync, "not needed")
    status = await asyncio.to_thread(later.status_sync)
    assert status is not None
    assert (status.status, status.error) == ("cancelled", "not needed")
    with pytest.raises(TaskCancelled, match="not needed"):
        await asyncio.to_thread(later.result_sync)
    with pytest.raises(TaskUnknown):
        await asyncio.to_thread(work.handle("no-id").result_sync)
    with pytest.raises(ValueError, match="omit key"):
        double.options(key="k").enqueue_many_sync([[1]])
    calls: dict[str, Callable[[], object]] = {
        "enqueue_many": lambda: double.enqueue_many_sync([[1]]),
        "result": first.result_sync,
        "status": first.status_sync,
        "cancel": first.cancel_sync,
    }
    for method, call in calls.items():
        with pytest.raises(RuntimeError, match=rf"{method}_sync\(\) would block .* await ….{method}\("):
            call()


async def test_close_ends_the_wait_of_synchronous_code(database_url: str) -> None:
    work = Batuta(database_url, timezone="UTC")

    @work.task()
    def greet(name: str) -> None: ...

    async with work:
        handle = await greet.enqueue("Ana")
        waiting = asyncio.create_task(asyncio.to_thread(handle.result_sync))
        assert work.tasks.blocking is not None
        while (backend := work.tasks.blocking._backend) is None or not backend.endings._waiters:
            await asyncio.sleep(0)
    with pytest.raises(StoreUnavailable):
        await waiting


def test_synchronous_program_needs_no_event_loop_and_ends(work_url: str) -> None:
    work = Batuta(work_url, timezone="UTC")

    @work.task()
    def greet(name: str) -> None: ...

    handle = greet.enqueue_sync("Ana")

    async def read() -> str | None:
        async with work:
            status = await handle.status()
            return None if status is None else status.status

    assert asyncio.run(read()) == "queued"
    assert greet.enqueue_sync("Rui") != handle  # works again after the application was closed
    asyncio.run(work.tasks.blocking.close())  # type: ignore[union-attr]
    assert "batuta-sync" not in {thread.name for thread in threading.enumerate() if not thread.daemon}
