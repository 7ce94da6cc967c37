"""Statements that run often use their index, however large the table has grown."""

import pytest

from batuta.stores.sql.calls import CallBook
from batuta.stores.sql.database import Database, Query
from batuta.stores.sql.engine_schema import BOOKS
from batuta.stores.sql.queries import in_dialect, load, query_of
from batuta.stores.sql.switches import SwitchBook
from batuta.stores.sql.tokens import TokenBook
from batuta.testing import FakeClock

ROWS = 20_000
FILL = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) ",
    "postgres": "WITH n(i) AS (SELECT generate_series(1, {rows})) ",
}
TABLES = {
    "job_calls": "INSERT INTO job_calls (key, endpoint, subject, fingerprint, started_at, lease_until, finished_at)"
    " SELECT 'k' || i, 'e', 's' || i, 'f', now(), now(), now() FROM n",
    "feature_flags": "INSERT INTO feature_flags (key, value, reason, updated_by, updated_at)"
    " SELECT 'k' || i, 'true', '', '', now() FROM n",
    "api_tokens": "INSERT INTO api_tokens (id, name, secret_hash, scopes, created_by, created_at)"
    " SELECT 'k' || i, '', '', '[]', '', now() FROM n",
}


@pytest.fixture
async def full(migrated: Database) -> Database:
    for insert in TABLES.values():
        prefix, _, select = insert.partition(" SELECT ")
        with_rows = FILL[migrated.dialect].format(rows=ROWS)
        text = f"{prefix} {with_rows} SELECT {select}"
        await migrated.run(in_dialect(query_of("fill", text, writes=True), migrated.dialect))
    await migrated.script("ANALYZE")
    return migrated


async def plan(database: Database, query: Query, **values: object) -> str:
    explain = "EXPLAIN QUERY PLAN " if database.dialect == "sqlite" else "EXPLAIN "
    explained = Query(query.name, explain + query.text, query.parameters, writes=True)
    rows = await database.all(explained, **values)
    return "\n".join(str(row[key]) for row in rows for key in row.keys())  # noqa: SIM118


async def test_job_calls_are_found_buried_and_pruned_by_index(full: Database, clock: FakeClock) -> None:
    book = load(CallBook, BOOKS / "calls.sql", full.dialect)
    now = clock.now()
    plans = [
        await plan(full, book.call, key="k7"),
        await plan(full, book.bury, key="k7", subject="s7", now=now),
        await plan(full, book.close, key="k7", opened_at=now, now=now, response_code=200, response=None),
        await plan(full, book.prune, before=now, limit=1000),
    ]
    for each in plans:
        assert "Seq Scan" not in each, each
        assert "SCAN job_calls\n" not in f"{each}\n", each


async def test_a_switch_and_a_token_are_found_by_key(full: Database) -> None:
    switches = load(SwitchBook, BOOKS / "switches.sql", full.dialect)
    tokens = load(TokenBook, BOOKS / "tokens.sql", full.dialect)
    for each in (await plan(full, switches.switch, key="k7"), await plan(full, tokens.token, id="k7")):
        assert "Seq Scan" not in each, each
        assert "SCAN " not in each, each
