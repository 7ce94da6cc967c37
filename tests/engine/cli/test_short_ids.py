"""Operators can refer to a row by the first characters of its id."""

import pytest

from batuta.kernel.errors import AmbiguousId
from batuta.stores.sql.database import Database
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.stores.sql.tables.history import full_id
from batuta.testing import FakeClock

FIRST, SECOND = "01a1e49d-0000-7000-8000-000000000001", "01a1e49d-0000-7000-8000-0000000000f2"
ADD = """
INSERT INTO job_executions (id, job_name, categoria, trigger, started_at, status)
VALUES (:id, 'x', 'x', 'manual', :now, 'success')
"""


@pytest.fixture
async def database(database: Database, clock: FakeClock) -> Database:
    add = in_dialect(query_of("add", ADD, writes=True), database.dialect)
    for id in (FIRST, SECOND):
        await database.run(add, id=id, now=clock.now())
    return database


@pytest.mark.parametrize("written", [FIRST, FIRST.upper(), FIRST[:-1], FIRST.replace("-", "")[:31]])
async def test_unambiguous_beginning_resolves_to_the_id(database: Database, written: str) -> None:
    assert await full_id(database, "job_executions", written) == FIRST


@pytest.mark.parametrize("written", ["", "01a", "ffff", "no-id", FIRST + "0", "01a1e49d_"])
async def test_text_that_begins_no_id_finds_none(database: Database, written: str) -> None:
    assert await full_id(database, "job_executions", written) is None


async def test_ambiguous_beginning_is_refused_with_the_candidates(database: Database) -> None:
    with pytest.raises(AmbiguousId, match=f"{FIRST}, {SECOND}"):
        await full_id(database, "job_executions", "01a1e49d")
