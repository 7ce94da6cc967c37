"""PostgreSQL copies of template databases, each used by one test after another.

Copying or dropping a database touches a thousand files and takes longer than most tests. So if a test only wrote rows,
its copy is emptied and kept. If a test changed tables, seeded rows or settings, its copy is dropped.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import asyncpg

from tests.servers import Postgres

Answer = TypeVar("Answer")
MOST_KEPT = 4  # largest number of copies that are kept, for all templates together
# The first version with `pg_stat_force_next_flush`. On an older server no copy is kept.
SINCE = 15
# Sessions that a test left open end, as before a DROP DATABASE. Each writes its counters before it ends.
_END_SESSIONS = """
SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_CATALOGUES = """
SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = 'pg_catalog'::regnamespace AND NOT relisshared
"""
_TABLES = """
SELECT oid, pg_relation_size(oid) > 0 AS is_seeded FROM pg_class
WHERE relkind = 'r' AND relnamespace <> ALL (ARRAY['pg_catalog', 'information_schema']::regnamespace[])
"""
# Whether a seeded table refers to a table without seeded rows. A TRUNCATE of the latter would empty the seeded table
# too.
_SEEDED_REFERENCES = """
SELECT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = ANY($1) AND confrelid <> ALL($1))
"""
# The state that a test must not change in a copy that is kept: the number of changes in each watched table, the row of
# the database and its settings.
_STATE = """
SELECT
    (SELECT array_agg(
        pg_stat_get_tuples_inserted(o) + pg_stat_get_tuples_updated(o) + pg_stat_get_tuples_deleted(o) ORDER BY o
     ) FROM unnest($1::oid[]) AS o),
    (SELECT xmin::text FROM pg_database WHERE datname = current_database()),
    (SELECT count(*) FROM pg_db_role_setting JOIN pg_database ON setdatabase = oid WHERE datname = current_database())
"""
_WRITTEN = """
SELECT o::regclass::text AS name, size > $2 AS is_large FROM unnest($1::oid[]) AS o, pg_relation_size(o) AS size
WHERE size > 0
"""
# A DELETE of few rows is ten times as fast as a TRUNCATE, which creates every index again. Unlike a TRUNCATE, a DELETE
# leaves the table's pages allocated.
LARGE = 64 << 10
_RESTART = """
SELECT setval(seqrelid::regclass, seqstart, false) FROM pg_sequence WHERE pg_sequence_last_value(seqrelid) IS NOT NULL
"""


class Copies:
    """Copies of template databases on one server. A copy in which a test changed only rows is kept for later tests."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self._kept: list[_Copy] = []
        self._loop = asyncio.Runner()
        # In its own thread: a fixture may be requested while an event loop runs.
        self._thread = ThreadPoolExecutor(1)

    @contextmanager
    def of(self, template: str) -> Iterator[str]:
        """Yield the URL of a database that is identical to the template."""
        copy = next((each for each in self._kept if each.template == template), None)
        if copy is None:
            name = self._server.create(template)
            copy = self._run(_open(template, name, self._server.url(name)))
        else:
            self._kept.remove(copy)
        yield self._server.url(copy.name)
        self._kept += [copy] if self._run(copy.clean()) else []
        for left in {copy, *self._kept} - {*self._kept[-MOST_KEPT:]}:
            self._drop(left)

    def close(self) -> None:
        for copy in self._kept:
            self._run(copy.end())
        self._thread.submit(self._loop.close).result()
        self._thread.shutdown()

    def _drop(self, copy: "_Copy") -> None:
        self._kept = [each for each in self._kept if each is not copy]
        self._run(copy.end())
        self._server.drop(copy.name)

    def _run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return self._thread.submit(self._loop.run, work).result()


@dataclass(eq=False)
class _Copy:
    template: str
    name: str
    session: "asyncpg.Connection[asyncpg.Record]"  # stays open: opening it takes longer than its work
    watched: list[int]
    emptied: list[int]
    is_kept: bool
    state: object

    async def clean(self) -> bool:
        """Empty the copy, and return whether it is identical to its template again."""
        session = self.session
        if not self.is_kept or session.is_closed():
            return False
        await session.fetch(_END_SESSIONS)
        if await session.fetchrow(_STATE, self.watched) != self.state:
            return False
        if written := await session.fetch(_WRITTEN, self.emptied, LARGE):
            await session.execute(";".join(_empty(written)))
        await session.fetch(_RESTART)
        self.state = await session.fetchrow(_STATE, self.watched)
        return True

    async def end(self) -> None:
        self.session.terminate()
        await asyncio.sleep(0)  # the transport closes in the next iteration of the loop


def _empty(written: list[asyncpg.Record]) -> Iterator[str]:
    """Yield statements that empty the tables to which a test has written. The statements set the session's role to
    ``replica``, in which PostgreSQL checks no foreign keys and runs no triggers.
    """
    if large := [row["name"] for row in written if row["is_large"]]:
        yield f"TRUNCATE {', '.join(large)} CASCADE"
    yield "SET session_replication_role = replica"
    yield from (f"DELETE FROM {row['name']}" for row in written if not row["is_large"])
    yield "RESET session_replication_role"
    yield "SELECT pg_stat_force_next_flush()"


async def _open(template: str, name: str, url: str) -> _Copy:
    session = await asyncpg.connect(url, server_settings={"application_name": "tests"})
    tables = await session.fetch(_TABLES)
    seeded = [table["oid"] for table in tables if table["is_seeded"]]
    watched = [*(row["oid"] for row in await session.fetch(_CATALOGUES)), *seeded]
    is_kept = session.get_server_version().major >= SINCE and not await session.fetchval(_SEEDED_REFERENCES, seeded)
    emptied = [table["oid"] for table in tables if not table["is_seeded"]]
    return _Copy(template, name, session, watched, emptied, is_kept, await session.fetchrow(_STATE, watched))
